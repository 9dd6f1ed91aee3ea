// Names and texts of queries may be of any length: so much of each is asked for as
// anybody reads, and a whole one when somebody wants it.

import type { Answer, Asked } from './api'

/** Bytes of a text that are asked for. */
export const TEXT_BYTES = 2000
/** These end texts by themselves. */
const ENDED = ['lanes', 'fleet']

/** The argument that asks for no more of each text. */
export const textsOf = ({ function: name }: Asked) => (ENDED.includes(name) ? '' : `&texts=${TEXT_BYTES}`)

const encoder = new TextEncoder()
/** A text is not told to its end: with its mark it is longer than any that is. It names nothing. */
export const isShortened = (text: string) => text.length > TEXT_BYTES / 3 && encoder.encode(text).length > TEXT_BYTES

/** The text of a query, and where the rest of it is to be had. */
export interface QueryText {
  text: string
  /** Bytes of all of it, null when this is all. */
  bytes: number | null
  asked: Asked
  row: number
}

/** The first text of a query that an answer has. */
export function queryText(asked: Asked | null, answer: Answer | null): QueryText | null {
  if (!asked || !answer) return null
  const row = answer.rows.findIndex((one) => typeof one.query_text === 'string')
  if (row < 0) return null
  const end = answer.shortened?.find((one) => one.row === row && one.column === 'query_text')
  return { text: String(answer.rows[row]!.query_text), bytes: end?.bytes ?? null, asked, row }
}

/** The question of all of it: no more rows than have it. */
export const wholeOf = ({ asked, row }: QueryText): Asked => ({ ...asked, args: { ...asked.args, n: String(row + 1) } })
