import { campaign, canStand } from './election.ts'
import { checkQuorum } from './replication.ts'
import { abortTransfer } from './state.ts'
import type { State } from './state.ts'

export function tick(state: State): void {
  if (state.refusing) return
  if (state.role === 'leader') tickLeader(state)
  else tickElection(state)
}

function tickElection(state: State): void {
  state.electionElapsed++
  if (state.electionElapsed < state.randomizedTimeout || !canStand(state)) return
  campaign(state, { transfer: false })
}

function tickLeader(state: State): void {
  state.heartbeatElapsed++
  state.electionElapsed++
  if (state.electionElapsed >= state.settings.electionTimeoutTicks) {
    state.electionElapsed = 0
    if (state.settings.checkQuorum) checkQuorum(state)
    if (state.role !== 'leader') return
    // The transferee had one election timeout.
    abortTransfer(state)
  }
  if (state.heartbeatElapsed < state.settings.heartbeatTicks) return
  state.heartbeatElapsed = 0
  state.heartbeatDue = true
  for (const peer of state.peers) peer.recheckDue = true
}
