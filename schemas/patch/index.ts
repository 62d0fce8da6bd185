export { jsonPatch, jsonPatchOperationsMax } from './json-patch.ts'
export { jsonEqual } from './json-value.ts'
export { mergePatch } from './merge-patch.ts'
export { strategicMergePatch } from './strategic-merge-patch.ts'
