import { expect, test } from 'vitest'
import derived from '../../../catalog/derived.h?raw'
import samples from '../../../catalog/samples.h?raw'
import { DIMENSIONS } from './view'

test('the page has the dimensions of the catalog', () => {
  const names = (header: string, line: RegExp) => [...header.matchAll(line)].map(([, name]) => name)
  const columns = names(samples, /^COLUMN\(\w+, \d+, (\w+), \w+, \w+, DIM,/gm)
  expect([...DIMENSIONS].sort()).toEqual([...columns, ...names(derived, /^DERIVED\((\w+),/gm)].sort())
})
