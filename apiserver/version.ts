import { createRequire } from 'node:module'
import { lazy } from '../schemas/index.ts'

/** The Kubernetes release whose API this server speaks. */
export const kubernetesMajor = '1'
export const kubernetesMinor = '37'

/** This package's version, from its package.json. */
export const packageVersion = lazy((): string => {
  // built code lies one folder deeper (dist/apiserver) than sources (apiserver): the package refers to itself by name
  return (createRequire(import.meta.url)('trireme/package.json') as { version: string }).version
})

export const gitVersion = (): string => `v${kubernetesMajor}.${kubernetesMinor}.0+trireme.${packageVersion()}`

/** `/version` in Go's field order (apimachinery version/types.go); major and minor are bare integers. */
export function versionInfo(): object {
  return {
    major: kubernetesMajor,
    minor: kubernetesMinor,
    emulationMajor: kubernetesMajor,
    emulationMinor: kubernetesMinor,
    minCompatibilityMajor: kubernetesMajor,
    minCompatibilityMinor: String(Number(kubernetesMinor) - 1),
    gitVersion: gitVersion(),
    gitCommit: '',
    gitTreeState: 'clean',
    buildDate: '1970-01-01T00:00:00Z',
    goVersion: `node${process.versions.node}`,
    compiler: 'node',
    platform: `${process.platform === 'win32' ? 'windows' : process.platform}/${process.arch === 'x64' ? 'amd64' : process.arch}`,
  }
}
