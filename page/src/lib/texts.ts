// Names and texts of queries may have any length. Panels ask for as much as people read, and for a
// whole text only on demand.

import type { Answer, Asked } from './api'

/** Most bytes of a text in an answer. */
export const TEXT_BYTES = 2000
/** Functions that cut texts themselves. */
const ENDED = ['lanes', 'fleet', 'findings', 'alarms']

/** The argument that limits each text. */
export const textsOf = ({ function: name }: Asked) => (ENDED.includes(name) ? '' : `&texts=${TEXT_BYTES}`)

const encoder = new TextEncoder()
/** Whether a text was cut: only with its mark it is longer than the limit. A cut name identifies nothing. */
export const isShortened = (text: string) => text.length > TEXT_BYTES / 3 && encoder.encode(text).length > TEXT_BYTES

/** The text of a query, and where to ask for the rest of it. */
export interface QueryText {
  text: string
  /** Bytes of the whole text; null if this is the whole text. */
  bytes: number | null
  asked: Asked
  row: number
}

/** The first text of a query in an answer. */
export function queryText(asked: Asked | null, answer: Answer | null): QueryText | null {
  if (!asked || !answer) return null
  const row = answer.rows.findIndex((one) => typeof one.query_text === 'string')
  if (row < 0) return null
  const end = answer.shortened?.find((one) => one.row === row && one.column === 'query_text')
  return { text: String(answer.rows[row]!.query_text), bytes: end?.bytes ?? null, asked, row }
}

/** The question for the whole text: only as many rows as necessary. */
export const wholeOf = ({ asked, row }: QueryText): Asked => ({ ...asked, args: { ...asked.args, n: String(row + 1) } })
