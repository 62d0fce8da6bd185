import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { repositoryRoot } from '../../repository.ts'

/**
 * A script is a text of blocks: comments (#), one command line, `----`, the expected output up to an empty line.
 *
 *     # Comment.
 *     command 1 key=value
 *     ----
 *     output
 */
interface Block {
  readonly comment: string
  readonly command: string
  readonly expected: string
}

export function parseScript(text: string): readonly Block[] {
  return text
    .split(/\n{2,}/)
    .map((block) => block.trimEnd())
    .filter((block) => block !== '')
    .map((block) => {
      const lines = block.split('\n')
      const start = lines.findIndex((line) => !line.startsWith('#'))
      const comment = (start < 0 ? lines : lines.slice(0, start)).map((line) => `${line}\n`).join('')
      if (start < 0) return { comment, command: '', expected: '' }
      const bar = lines.indexOf('----')
      return { comment, command: lines[start]!, expected: bar < 0 ? '' : lines.slice(bar + 1).join('\n') }
    })
}

/** Runs every command and returns the script with the actual output. */
export function runScript(text: string, run: (command: string) => string): string {
  const blocks = parseScript(text).map(({ comment, command }) =>
    command === '' ? comment : `${comment}${command}\n----\n${run(command)}\n`,
  )
  return blocks.join('\n')
}

/** The folder of scripts in the sources. */
export function scriptFolder(): string {
  return join(repositoryRoot(), 'test/raft/core/testdata')
}

export function scripts(): readonly { readonly name: string; readonly path: string; readonly text: string }[] {
  const folder = scriptFolder()
  return readdirSync(folder)
    .filter((name) => name.endsWith('.txt'))
    .sort()
    .map((name) => ({ name, path: join(folder, name), text: readFileSync(join(folder, name), 'utf8') }))
}

export function rewriteScript(path: string, text: string): void {
  writeFileSync(path, text)
}
