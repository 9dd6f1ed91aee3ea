import { expect, test } from 'vitest'
import { changes, changing } from './changes'

test('the first word after comments shows a statement that changes how others run', () => {
  expect(['drop index i', '  CREATE TABLE t (a int)', '/* deploy\n 1.4 */ alter table t add b int', '-- x\nvacuum analyze t'].map(changes)).toEqual([true, true, true, true])
  expect(['select 1', 'update t set created = 1', 'dropping', 'COMMIT', '/* create */ select 1', null].map(changes)).toEqual([false, false, false, false, false, false])
})

test('a question has each id once', () => {
  expect(changing([{ query_id: '5', query_text: 'drop index i' }, { query_id: '6', query_text: 'select 1' }, { query_id: '5', query_text: 'drop index i' }])).toBe('5')
})
