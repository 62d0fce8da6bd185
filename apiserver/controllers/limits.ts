/** Pause before the content of a terminating namespace is looked at again, while finalizers hold some of it. */
export const namespaceRetryMs = 1_000
/** Pause before a store watch that ended is opened again. */
export const watchRetryMs = 500
/** Objects of one namespace deleted at the same time. */
export const namespaceDeletionWorkers = 8
/** Seconds until one pass over a namespace is given up and tried again. */
export const namespacePassMs = 60_000
