// The available servers, and the extent of the chosen one's history.

import { type Server, Problem, api } from './api'
import { place } from './place.svelte'
import { SECOND } from './time'

export interface History {
  oldest: number
  newest: number
  /** Observed share of the last hour, in percent. */
  coverage: number | null
}

/** Parses a time of `status`, in UTC. */
function statusTime(text: unknown): number {
  return Date.parse(String(text).replace(' ', 'T').replace(/\+00$/, 'Z'))
}

class Servers {
  all: Server[] = $state.raw([])
  problem: Problem | null = $state.raw(null)
  history: History | null = $state.raw(null)
  /** Length in ms of the longest window with causes, changes of plans and alarms, which read all of
   *  it; null until it has been received. */
  longest: number | null = $state(null)
  /** True if the list of servers has been received. */
  known = $state(false)
  /** True if the extent of a history has been received. */
  looked = $state(false)

  chosen = $derived(this.all.find((server) => server.name === place.view.server) ?? null)

  async load() {
    try {
      const { servers, longest_with_causes_s } = await api.servers()
      this.all = servers
      this.longest = longest_with_causes_s * SECOND
      this.known = true
      this.problem = null
      const first = this.all.find((server) => server.state === 'recorded') ?? this.all[0]
      if (place.view.server === null && first) place.go({ server: first.name }, true)
    } catch (error) {
      this.problem = error instanceof Problem ? error : new Problem(0, String(error))
    }
  }

  /** A tick was recorded. */
  recorded(end: number) {
    if (this.history && end > this.history.newest) this.history = { ...this.history, newest: end }
  }

  /** Asks for the extent of the history. */
  async look(server: string, signal: AbortSignal) {
    try {
      const { rows } = await api.ask({ function: 'status', args: { server } }, signal)
      const value = (metric: string) => rows.find((row) => row.metric === metric)?.value ?? null
      const [oldest, newest] = [statusTime(value('first_tick_time')), statusTime(value('last_tick_time'))]
      const coverage = value('coverage_last_hour_pct')
      this.problem = null
      this.looked = true
      if (Number.isNaN(oldest) || Number.isNaN(newest)) return
      this.history = { oldest, newest, coverage: coverage === null ? null : Number(coverage) }
      place.begin(oldest, newest)
    } catch (error) {
      if (!signal.aborted) this.problem = error instanceof Problem ? error : new Problem(0, String(error))
    }
  }
}

export const servers = new Servers()
