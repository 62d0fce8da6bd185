export * from './env.ts'
export * from './errors.ts'
export * from './seams.ts'
export * from './types.ts'
