import { expect, test } from 'vitest'
import type { Answer } from './api'
import { TEXT_BYTES, isShortened, queryText, textsOf, wholeOf } from './texts'

const asked = (name: string) => ({ function: name, args: { n: 'all', query_id: '7' } })
const answer = (texts: (string | null)[], shortened: Answer['shortened'] = []): Answer => ({
  columns: [],
  rows: texts.map((query_text) => ({ query_text })),
  notices: [],
  shortened,
})

test('a question limits the bytes of each text if the function can', () => {
  expect(textsOf(asked('top'))).toBe('&texts=2000')
  expect(textsOf(asked('lanes'))).toBe('')
  expect(textsOf(asked('fleet'))).toBe('')
})

test('a text with the limit of bytes and a mark was shortened', () => {
  expect(isShortened('x'.repeat(TEXT_BYTES))).toBe(false)
  expect(isShortened('x'.repeat(TEXT_BYTES) + '…')).toBe(true)
  // Three bytes per character, and four bytes in two UTF-16 units.
  expect(['€'.repeat(666), '€'.repeat(667), '🦀'.repeat(500), '🦀'.repeat(501)].map(isShortened)).toEqual([false, true, false, true])
})

test('the text of a query is the first known one, its rest comes with as many rows', () => {
  expect(queryText(null, null)).toBeNull()
  expect(queryText(asked('top'), answer([null]))).toBeNull()
  expect(queryText(asked('top'), answer(['select 1']))).toMatchObject({ text: 'select 1', bytes: null })
  const end = [
    { row: 0, column: 'username', bytes: 5000 },
    { row: 1, column: 'query_text', bytes: 9000 },
  ]
  const found = queryText(asked('top'), answer([null, 'select …', 'other'], end))!
  expect(found).toEqual({ text: 'select …', bytes: 9000, asked: asked('top'), row: 1 })
  expect(wholeOf(found)).toEqual({ function: 'top', args: { n: '2', query_id: '7' } })
})
