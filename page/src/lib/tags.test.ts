import { expect, test } from 'vitest'
import { keysOf } from './tags'

const row = (key: string | null, avg_aas: number | null) => ({ key, avg_aas })

test('each key of the tags is a dimension, the one with the most load first', () => {
  const rows = [row('action=show,controller=a%2C%25=b', 2), row(null, 9), row('(other)', 1), row('controller=carts', 3), row('job=mail', null)]
  expect(keysOf(rows)).toEqual(['tag:controller', 'tag:action', 'tag:job'])
})

test('without tags there is no dimension', () => {
  expect(keysOf([row(null, 4), row('(other)', 1)])).toEqual([])
})
