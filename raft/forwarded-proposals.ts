import { forwardedWindow } from './limits.ts'
import { readProposalId } from './proposal-id.ts'
import type { Entry, Message, Term } from './types.ts'

interface Window {
  highest: number
  readonly taken: Set<number>
}

/**
 * A network may double a forwarded proposal, and deliver the second one after the first has been applied, acknowledged
 * and overwritten: appended twice it would undo what came later. So the leader takes each proposal id once, and only
 * from its own term: what a member forwarded to an earlier leader has been given up there as unknown.
 */
export class ForwardedProposals {
  #term: Term = 0
  #windows = new Map<string, Window>()

  /** The entries of `message` that may be appended at a leader of `term`. */
  admit(message: Message & { type: 'propose' }, term: Term): readonly Entry[] {
    if (message.term !== term) return []
    if (term !== this.#term) {
      this.#term = term
      this.#windows = new Map()
    }
    // Membership changes have no id to know a double by: they are proposed at the leader itself.
    return message.entries.filter((entry) => entry.type === 'normal' && this.#take(entry))
  }

  #take(entry: Entry): boolean {
    const id = readProposalId(entry.data)
    if (!id) return false
    const key = `${id.member}/${id.incarnation}`
    let window = this.#windows.get(key)
    if (!window) {
      window = { highest: 0, taken: new Set() }
      this.#windows.set(key, window)
    }
    if (window.taken.has(id.sequence) || id.sequence <= window.highest - forwardedWindow) return false
    window.taken.add(id.sequence)
    window.highest = Math.max(window.highest, id.sequence)
    if (window.taken.size > 2 * forwardedWindow) {
      const oldest = window.highest - forwardedWindow
      for (const sequence of window.taken) if (sequence <= oldest) window.taken.delete(sequence)
    }
    return true
  }
}
