// The client of /api/v1: few questions at once, stale ones given up, answers of
// windows that are over kept for a while.

import { textsOf } from './texts'

export type Value = string | number | boolean | null
export type Row = Record<string, Value>

export interface Notice {
  severity: string
  message: string
  detail?: string
  hint?: string
}
export interface Answer {
  columns: { name: string; type: string }[]
  rows: Row[]
  notices: Notice[]
  /** Where texts are not told to their end, and how long they are. */
  shortened?: { row: number; column: string; bytes: number }[]
}
/** Sessions as a picture shows them: `lanes`. */
export interface Picture {
  rows: (Row & { spans: [number, number, number, number][] })[]
  /** What they do, by number. */
  doings: Row[]
  /** Width of a column, 0 for spans as they are. */
  step_ms: number
  /** Lanes that there would be. */
  sessions: number
}
export interface Server {
  name: string
  state: 'recorded' | 'empty' | 'missing' | 'refused' | 'unreachable'
  /** Marks can be written into its history. */
  marks: boolean
}
/** A question: a function and its arguments. */
export interface Asked {
  function: string
  args: Record<string, string>
}

/** What went wrong, as the server says it; status 0 is no answer at all. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly detail?: string,
    readonly hint?: string,
    readonly sqlstate?: string,
  ) {
    super(message)
  }
}

/** With the stream of a live window as many as browsers connect with, and fewer than the server answers at once. */
const AT_ONCE = 5
/** The longest that questions wait until the first ones are drawn. */
const DRAWN_MS = 500
const KEPT = 60
const PATIENCE_MS = 200
const TRIES = 8

/** The address of a question, relative to that of the page, with all of each text. */
export function address({ function: name, args }: Asked): string {
  const query = new URLSearchParams(Object.entries(args).filter(([, value]) => value !== ''))
  return `api/v1/${name}?${query}`
}

const shownAddress = (asked: Asked) => address(asked) + textsOf(asked)

class Api {
  #running = 0
  #waiting: (() => void)[] = []
  #kept = new Map<string, Answer>()
  /** How far the clock of the server is ahead. */
  #ahead = 0
  /** How many of the questions that the page begins with were asked. */
  #begun = 0
  #drawn: Promise<void>
  #draw!: () => void

  constructor() {
    this.#drawn = new Promise((resolve) => (this.#draw = resolve))
  }

  /** The time on the clock of the server. */
  now(): number {
    return Date.now() + this.#ahead
  }

  servers = async (signal?: AbortSignal): Promise<Server[]> =>
    ((await this.#get('api/v1/servers', signal)) as { servers: Server[] }).servers

  /** Marks this moment in the history of a server. */
  async mark(server: string, text: string): Promise<void> {
    let response: Response
    try {
      response = await fetch('api/v1/markers', { method: 'POST', body: new URLSearchParams({ server, text }) })
    } catch {
      throw gone()
    }
    if (!response.ok) throw await problem(response)
  }

  /** Asks for as much of each text as panels show, or for all of it. */
  async ask(asked: Asked, signal: AbortSignal, { whole = false, seen = () => true }: { whole?: boolean; seen?: () => boolean } = {}): Promise<Answer> {
    const url = whole ? address(asked) : shownAddress(asked)
    const kept = this.#kept.get(url)
    if (kept) return kept
    await this.#beginning()
    await this.#turn(signal, seen)
    try {
      const answer = (await this.#get(url, signal)) as Answer
      const until = asked.args.until ?? asked.args.until_2 ?? ''
      if (Date.parse(until) < this.now() - 60_000) this.#keep(url, answer)
      return answer
    } finally {
      this.#running -= 1
      // everybody who waits looks again whether it is its turn
      for (const look of this.#waiting.splice(0)) look()
      if (this.#running === 0) requestAnimationFrame(() => setTimeout(this.#draw))
    }
  }

  /** The first questions are those of the story and the load. What comes after
   *  them waits until these are on the screen: drawing needs the cores, too. */
  async #beginning() {
    if (this.#begun === AT_ONCE) return this.#drawn
    if (this.#begun === 0) setTimeout(this.#draw, DRAWN_MS)
    this.#begun += 1
  }

  kept(asked: Asked): Answer | undefined {
    return this.#kept.get(shownAddress(asked))
  }

  /** Few questions run at once, and nothing beside one whose answer is not seen. */
  async #turn(signal: AbortSignal, seen: () => boolean) {
    while (this.#running >= AT_ONCE || (this.#running > 0 && !seen())) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    }
    signal.throwIfAborted()
    this.#running += 1
  }

  #keep(url: string, answer: Answer) {
    this.#kept.set(url, answer)
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= KEPT) break
      this.#kept.delete(oldest)
    }
  }

  async #get(url: string, signal?: AbortSignal, tries = TRIES): Promise<unknown> {
    let response: Response
    try {
      response = await fetch(url, { signal, headers: { Accept: 'application/json' } })
    } catch (error) {
      if (signal?.aborted) throw error
      throw gone()
    }
    const date = Date.parse(response.headers.get('Date') ?? '')
    // The header counts whole seconds: half of one is the mean error.
    const ahead = date + 500 - Date.now()
    if (!Number.isNaN(ahead)) this.#ahead = Math.abs(ahead) > 1500 ? ahead : 0
    if (response.status === 429 && tries > 1) {
      await new Promise((resolve) => setTimeout(resolve, PATIENCE_MS))
      signal?.throwIfAborted()
      return this.#get(url, signal, tries - 1)
    }
    if (!response.ok) throw await problem(response)
    return response.json()
  }
}

const gone = () => new Problem(0, 'tacho web does not answer', undefined, 'Is it still running?')

async function problem(response: Response): Promise<Problem> {
  const said = (await response.json().catch(() => ({}))) as Record<string, string | undefined>
  const message = said.message ?? `the server answered ${response.status}`
  return new Problem(response.status, message, said.detail, said.hint, said.sqlstate)
}

export const api = new Api()
