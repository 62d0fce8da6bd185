/**
 * Objects and arrays inside each other, the outermost one counting. More is ERR_DEPTH. Go's decoder takes
 * 10,000; ours stops earlier because everything behind it (patch, merge, encoding) recurses over the value
 * and must stay far from the end of the stack. No real object is 100 deep.
 */
export const nestingDepthMax = 1_000

/** Unknown and duplicate fields reported of one object, as in Go's decoder; later ones are only dropped. */
export const fieldProblemsMax = 100

/**
 * JSON text that one YAML document may become: so many times its own characters (without aliases it is at most three
 * times: "\\0" and empty values), and so many besides. More is ERR_SYNTAX (an alias bomb).
 */
export const yamlJsonGrowthMax = 4
export const yamlJsonCharactersExtra = 256 * 1024

/** Keys that the merges (<<) of one YAML document may add. */
export const yamlMergedKeysMax = 10_000
