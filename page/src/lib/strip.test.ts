import { expect, test } from 'vitest'
import { points } from './strip'

test('a load is drawn from the ground, to the CPUs or to its peak', () => {
  expect(points([1, 2, null, 0], 2, 40, 12)).toEqual({
    area: 'M0 12V7H10V12ZM10 12V2H20V12Z',
    gaps: [{ left: 20, width: 10 }],
    level: 2,
  })
})

test('CPUs far above the load are no part of the picture', () => {
  expect(points([1, 0.5], 64, 20, 12)).toEqual({ area: 'M0 12V2H10V12ZM10 12V7H20V12Z', gaps: [], level: null })
})

test('without a load there is nothing but gaps', () => {
  expect(points([0, null], 4, 20, 12)).toEqual({ area: '', gaps: [{ left: 10, width: 10 }], level: null })
  expect(points([], null, 20, 12)).toEqual({ area: '', gaps: [], level: null })
})
