import { describeEvent } from '../../../raft/core/index.ts'
import type { ConfChange, MemberId, Membership, Message } from '../../../raft/types.ts'
import { ClusterMember, emptyDisk } from './cluster-member.ts'
import type { Checkpoint, MemberOptions } from './cluster-member.ts'
import { entriesText, messageText, readyText } from './message-text.ts'

interface Arguments {
  readonly words: readonly string[]
  readonly named: ReadonlyMap<string, string>
}

function parse(line: string): Arguments & { readonly name: string } {
  const [name = '', ...rest] = line.split(/\s+/)
  const named = new Map(
    rest
      .filter((word) => word.includes('='))
      .map((word) => [word.slice(0, word.indexOf('=')), word.slice(word.indexOf('=') + 1)]),
  )
  return { name, words: rest.filter((word) => !word.includes('=')), named }
}

/**
 * The world of a golden script: members, the messages between them in order of sending, and every change printed. Nothing moves
 * unless a command says so. Election timeouts are not randomised: member n waits electionTimeoutTicks + n - 1 ticks.
 */
export class Interaction {
  readonly #members = new Map<MemberId, ClusterMember>()
  readonly #checkpoints = new Map<string, Checkpoint>()
  #network: Message[] = []
  #isolated = new Set<MemberId>()
  /** Members whose fsync does not return until `persist`. */
  readonly #held = new Set<MemberId>()
  #output: string[] = []

  run(line: string): string {
    this.#output = []
    const { name, ...args } = parse(line)
    const command = this.#commands[name]
    if (command === undefined) throw new Error(`no command ${name}`)
    command(args)
    return this.#output.length === 0 ? 'ok' : this.#output.join('\n')
  }

  readonly #commands: Readonly<Record<string, (args: Arguments) => void>> = {
    'add-nodes': (args) => this.#addNodes(args),
    join: (args) =>
      this.#add(this.#id(args), { voters: this.#ids(args, 'voters'), learners: this.#ids(args, 'learners') }, args),
    campaign: (args) => this.#of(args).core.campaign(),
    // campaign and stabilize, told in one line.
    elect: (args) => {
      this.#of(args).core.campaign()
      this.#stabilize({ words: [], named: new Map() })
      this.#output = []
      this.#status(this.#of(args))
    },
    tick: (args) => {
      for (let i = 0; i < Number(args.named.get('count') ?? 1); i++) this.#of(args).core.tick()
    },
    propose: (args) => this.#propose(args),
    change: (args) => {
      const [type, member] = [...args.named][0]!
      const change = { type, member: BigInt(member) } as ConfChange
      this.#say(this.#of(args).core.proposeConfChange(change))
    },
    'read-index': (args) => this.#of(args).core.readIndex(BigInt(args.named.get('id')!)),
    transfer: (args) => this.#of(args).core.transferLeadership(BigInt(args.named.get('to')!)),
    ready: (args) => this.#drive(this.#of(args)),
    persist: (args) => this.#persist(this.#of(args)),
    hold: (args) => void this.#held.add(this.#id(args)),
    deliver: (args) => this.#deliver(args, (message) => this.#hand(message)),
    drop: (args) => this.#deliver(args, (message) => this.#lose(message)),
    duplicate: (args) => this.#duplicate(args),
    stabilize: (args) => this.#stabilize(args),
    partition: (args) => {
      this.#isolated = new Set(args.words.map(BigInt))
    },
    heal: () => this.#isolated.clear(),
    compact: (args) => this.#compact(this.#of(args)),
    crash: (args) => {
      this.#of(args).crash()
      this.#held.delete(this.#id(args))
    },
    restart: (args) => this.#restart(this.#of(args)),
    'lose-log': (args) => this.#loseLog(this.#of(args), args.named),
    unreachable: (args) => this.#of(args).core.reportUnreachable(BigInt(args.named.get('member')!)),
    status: (args) => {
      for (const word of args.words) this.#status(this.#members.get(BigInt(word))!)
    },
    log: (args) => this.#log(this.#of(args)),
    network: () => this.#network.forEach((message) => this.#say(messageText(message))),
  }

  #say(line: string): void {
    this.#output.push(line)
  }

  #id = (args: Arguments): MemberId => BigInt(args.words[0]!)

  #of(args: Arguments): ClusterMember {
    const member = this.#members.get(this.#id(args))
    if (member === undefined) throw new Error(`no member ${args.words[0]}`)
    return member
  }

  #ids(args: Arguments, name: string): readonly MemberId[] {
    const list = args.named.get(name) ?? ''
    return list === '' ? [] : list.split(',').map(BigInt)
  }

  #addNodes(args: Arguments): void {
    const count = Number(args.words[0])
    const ids = Array.from({ length: count }, (_, i) => BigInt(i + 1))
    const learners = this.#ids(args, 'learners')
    const voters = ids.filter((id) => !learners.includes(id))
    for (const id of ids) this.#add(id, { voters, learners }, args)
  }

  #add(id: MemberId, membership: Membership, args: Arguments): void {
    const limit = (name: string): object => (args.named.has(name) ? { [name]: Number(args.named.get(name)) } : {})
    const electionTimeoutTicks = Number(args.named.get('election') ?? 10)
    const options: MemberOptions = {
      electionTimeoutTicks,
      heartbeatTicks: 1,
      preVote: args.named.get('preVote') !== 'false',
      checkQuorum: args.named.get('checkQuorum') !== 'false',
      random: () => Number(id - 1n) / electionTimeoutTicks,
      limits: {
        ...limit('inflightMessagesMax'),
        ...limit('appendBytesMax'),
        ...limit('uncommittedBytesMax'),
        ...limit('pendingReadsMax'),
      },
    }
    const hooks = {
      onEvent: (member: ClusterMember, event: Parameters<typeof describeEvent>[0]) =>
        this.#say(`  ${member.id}: ${describeEvent(event)}`),
    }
    this.#members.set(
      id,
      new ClusterMember(id, emptyDisk(membership), options, { checkpoints: this.#checkpoints, hooks }),
    )
  }

  #propose(args: Arguments): void {
    const { core } = this.#of(args)
    const [, word = 'x'] = args.words
    const count = Number(args.named.get('count') ?? 1)
    const data = (i: number): string =>
      (count === 1 ? word : `${word}${i + 1}`).padEnd(Number(args.named.get('bytes') ?? 0), '.')
    const outcomes = Array.from({ length: count }, (_, i) => core.propose(new TextEncoder().encode(data(i))))
    this.#say(outcomes.join(' '))
  }

  #drive(member: ClusterMember): void {
    if (member.writing === undefined && member.core.hasReady()) {
      this.#send(member.begin())
      const what = readyText(member.writing!)
      if (what !== '') this.#say(`${member.id} ${what}${this.#held.has(member.id) ? ' (held)' : ''}`)
    }
    if (member.writing !== undefined && !this.#held.has(member.id)) this.#send(member.finish())
  }

  #persist(member: ClusterMember): void {
    this.#held.delete(member.id)
    if (member.writing !== undefined) this.#send(member.finish())
  }

  #send(messages: readonly Message[]): void {
    this.#network.push(...messages)
  }

  #reachable(message: Message): boolean {
    const cut = this.#isolated.has(message.from) !== this.#isolated.has(message.to)
    return !cut && this.#members.get(message.to)?.up === true
  }

  #hand(message: Message): void {
    if (!this.#reachable(message)) return this.#lose(message)
    this.#say(messageText(message))
    this.#members.get(message.to)!.core.step(message)
    if (message.type === 'snapshot') this.#report(message, 'finished')
  }

  #lose(message: Message): void {
    this.#say(`${messageText(message)} (lost)`)
    if (message.type === 'snapshot') this.#report(message, 'failed')
  }

  #report(message: Message & { type: 'snapshot' }, outcome: 'finished' | 'failed'): void {
    const sender = this.#members.get(message.from)!
    if (sender.up) sender.core.reportSnapshot(message.to, outcome)
  }

  #matching(args: Arguments): (message: Message) => boolean {
    const { named } = args
    return (message) =>
      (!named.has('from') || message.from === BigInt(named.get('from')!)) &&
      (!named.has('to') || message.to === BigInt(named.get('to')!)) &&
      (!named.has('type') || message.type === named.get('type'))
  }

  #deliver(args: Arguments, handle: (message: Message) => void): void {
    const matches = this.#matching(args)
    const chosen = this.#network.filter(matches).slice(0, Number(args.named.get('count') ?? Infinity))
    this.#network = this.#network.filter((message) => !chosen.includes(message))
    chosen.forEach(handle)
  }

  #duplicate(args: Arguments): void {
    const copies = this.#network.filter(this.#matching(args))
    copies.forEach((message) => this.#say(messageText(message)))
    this.#send(copies)
  }

  /** Until nothing moves, or for the members named only. */
  #stabilize(args: Arguments): void {
    const only = new Set(args.words.map(BigInt))
    const taking = (id: MemberId): boolean => only.size === 0 || only.has(id)
    for (let i = 0; i < 200; i++) {
      let moved = false
      for (const member of this.#members.values()) {
        if (!member.up || !taking(member.id) || member.writing !== undefined || !member.core.hasReady()) continue
        this.#drive(member)
        moved = true
      }
      const messages = this.#network.filter((message) => taking(message.to))
      this.#network = this.#network.filter((message) => !taking(message.to))
      messages.forEach((message) => this.#hand(message))
      if (!moved && messages.length === 0) return
    }
    this.#say('still moving after 200 rounds')
  }

  #compact(member: ClusterMember): void {
    member.compact(member.applied)
    const { firstIndex, lastIndex } = member.core.status()
    this.#say(`${member.id} log holds ${firstIndex}..${lastIndex}`)
  }

  #restart(member: ClusterMember): void {
    try {
      member.restart()
      this.#status(member)
    } catch (error) {
      this.#say(`${member.id} refuses to start: ${(error as Error).message}`)
    }
  }

  /** A disk that lied about fsync, or a file restored from a backup. */
  #loseLog({ disk }: ClusterMember, named: Arguments['named']): void {
    const after = Number(named.get('after'))
    disk.entries = disk.entries.filter((entry) => entry.index <= after)
    if (named.get('keepCommit') === 'true') return
    disk.hardState = { ...disk.hardState, commit: Math.min(disk.hardState.commit, after) }
  }

  #status(member: ClusterMember): void {
    if (!member.up) return this.#say(`${member.id} is down`)
    const status = member.core.status()
    const { role, term, leader, commit, applied, lastIndex, membership } = status
    this.#say(
      `${member.id} ${role} term=${term} leader=${leader} commit=${commit} applied=${applied} last=${lastIndex} ` +
        `voters=(${membership.voters.join(' ')}) learners=(${membership.learners.join(' ')})`,
    )
    for (const [id, progress] of status.progress ?? []) {
      this.#say(`  ${id}: ${progress.state} match=${progress.match} next=${progress.next}`)
    }
  }

  #log(member: ClusterMember): void {
    const { checkpoint, entries } = member.disk
    this.#say(`${member.id} disk: checkpoint ${checkpoint.index}/${checkpoint.term}, [${entriesText(entries)}]`)
  }
}
