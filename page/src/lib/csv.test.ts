import { expect, test } from 'vitest'
import { csv } from './csv'

const answer = (rows: Record<string, string | number | boolean | null>[]) => ({
  columns: [
    { name: 'key', type: 'text' },
    { name: 'avg_aas', type: 'numeric' },
  ],
  rows,
  notices: [],
})

test('null is empty, an empty name is quoted, marks are doubled', () => {
  const rows = [{ key: null, avg_aas: null }, { key: '', avg_aas: 0.5 }, { key: 'say "a,b"\nc', avg_aas: 1 }]
  expect(csv(answer(rows))).toBe('key,avg_aas\r\n,\r\n"",0.5\r\n"say ""a,b""\nc",1\r\n')
})

test('a name of others is no formula of a spreadsheet, a query id stays as it is', () => {
  const rows = ['=1+1', '@sum', '+x', '-x', '\tx', '-42', 'a=b'].map((key) => ({ key, avg_aas: -1 }))
  expect(csv(answer(rows)).split('\r\n').slice(1, -1)).toEqual(["'=1+1,-1", "'@sum,-1", "'+x,-1", "'-x,-1", "'\tx,-1", '-42,-1', 'a=b,-1'])
})
