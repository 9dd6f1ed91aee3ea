import { expect, test } from 'vitest'
import { filterText, parseFilter, withValue } from './filter'

test('filters are read as they are written', () => {
  for (const values of [['web'], ['a,b', 'say "hi"', '!x', '(x)', ''], ['(null)'], ['ünï', 'a b']]) {
    for (const not of [false, true]) expect(parseFilter(filterText({ values, not }))).toEqual({ values, not })
  }
})

test('blanks at the ends of a value are part of it', () => {
  expect(filterText({ values: [' psql', 'a b', 'psql '], not: false })).toBe('" psql",a b,"psql "')
})

test('a click asks for one value, exclusions add up', () => {
  expect(withValue('a', 'b', false)).toBe('b')
  expect(withValue('!a', 'b', true)).toBe('!a,!b')
  expect(withValue('!a', 'a', true)).toBe('!a')
  expect(withValue('a', 'b', true)).toBe('!b')
})
