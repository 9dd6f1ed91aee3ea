// The client of /api/v1. It asks few questions at once, gives up outdated ones, and keeps answers
// about past windows for a while.

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
  /** The cells whose texts are shortened, each with the length of the whole text in bytes. */
  shortened?: { row: number; column: string; bytes: number }[]
}
/** Sessions for a picture: the answer of `lanes`. */
export interface Picture {
  rows: (Row & { spans: [number, number, number, number][] })[]
  /** The activities of the sessions, by number. */
  doings: Row[]
  /** Width of a column, ms; 0 if the spans are not merged. */
  step_ms: number
  /** Number of lanes without the limit. */
  sessions: number
}
export interface Server {
  name: string
  state: 'recorded' | 'empty' | 'missing' | 'refused' | 'unreachable'
  /** True if the server accepts marks for its history. */
  marks: boolean
}
/** The answer of /servers: all servers, and a limit of questions. */
interface Servers {
  servers: Server[]
  longest_with_causes_s: number
}
/** A question: a function and its arguments. */
export interface Asked {
  function: string
  args: Record<string, string>
}

/** An error in the server's words; status 0 means that no answer came. */
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

/** SQLSTATE of a source that lacks the function: asking again does not help. */
export const LACKING = '42883'
/** Most questions at once. With the stream of a live window this is the browsers' limit of
 *  connections, and less than the server answers at once. */
const AT_ONCE = 5
/** Later questions wait until the first answers are drawn, but at most this many ms. */
const DRAWN_MS = 500
/** Most answers that are kept. */
const KEPT = 60
/** Pause before a question is repeated that the server refused as one too many. */
const PATIENCE_MS = 200
const TRIES = 8

/** The address of a question, relative to the page, with whole texts. */
export function address({ function: name, args }: Asked): string {
  const query = new URLSearchParams(Object.entries(args).filter(([, value]) => value !== ''))
  return `api/v1/${name}?${query}`
}

const shownAddress = (asked: Asked) => address(asked) + textsOf(asked)

class Api {
  #running = 0
  #waiting: (() => void)[] = []
  #kept = new Map<string, Answer>()
  /** Time in ms by which the server's clock is ahead. */
  #ahead = 0
  /** Number of first questions asked so far. */
  #begun = 0
  /** Resolves when the answers of the first questions are on the screen. */
  readonly drawn: Promise<void>
  #draw!: () => void

  constructor() {
    this.drawn = new Promise((resolve) => (this.#draw = resolve))
  }

  /** Time on the server's clock. */
  now(): number {
    return Date.now() + this.#ahead
  }

  servers = async (signal?: AbortSignal): Promise<Servers> => (await this.#get('api/v1/servers', signal)) as Servers

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

  /** Asks with texts as long as panels show, or with whole texts. */
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
      // Every waiting question checks again whether it is its turn.
      for (const look of this.#waiting.splice(0)) look()
      if (this.#running === 0) requestAnimationFrame(() => setTimeout(this.#draw))
    }
  }

  /** The story and the load ask the first questions. Later questions wait until their answers are on
   *  the screen, because drawing needs the cores as well. */
  async #beginning() {
    if (this.#begun === AT_ONCE) return this.drawn
    if (this.#begun === 0) setTimeout(this.#draw, DRAWN_MS)
    this.#begun += 1
  }

  kept(asked: Asked): Answer | undefined {
    return this.#kept.get(shownAddress(asked))
  }

  /** Few questions run at once. A question whose answer is not visible runs alone. */
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
    // The header has whole seconds, so the mean error is half a second.
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
