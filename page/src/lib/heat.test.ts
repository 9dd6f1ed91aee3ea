import { expect, test } from 'vitest'
import { bounds, classText, heat, levelOf } from './heat'

const row = (minute: number, from: number | null, to: number | null, calls: number | null) => ({
  period_start: `2026-03-01T10:0${minute}:00Z`,
  period_end: `2026-03-01T10:0${minute + 1}:00Z`,
  ...{ exec_time_from: from, exec_time_to: to, calls },
})

test('classes between those that are there are there, too', () => {
  const map = heat([row(1, null, null, 0), row(0, 0.512, 1.024, 10), row(0, 4.096, 8.192, 3), row(2, null, null, null), row(3, null, null, 7)])
  expect(map.times).toEqual([0, 1, 2, 3, 4].map((minute) => Date.parse(`2026-03-01T10:0${minute}:00Z`)))
  expect(map.classes).toEqual([
    { from: 0.512, to: 1.024 },
    { from: 1.024, to: 2.048 },
    { from: 2.048, to: 4.096 },
    { from: 4.096, to: 8.192 },
  ])
  expect(map.calls).toEqual([[10, 0, null, 0], [0, 0, null, 0], [0, 0, null, 0], [3, 0, null, 0]])
  expect([map.most, map.untimed]).toEqual([10, 7])
})

test('the first class begins at nothing, the last has no end', () => {
  const { classes } = heat([row(0, 0, 0.002, 1), row(0, 8388.608, null, 2)])
  expect([classes[0], classes.at(-1), classes.length]).toEqual([{ from: 0, to: 0.002 }, { from: 8388.608, to: null }, 24])
  expect([classText(classes[0]!), classText(classes.at(-1)!)]).toEqual(['0 µs – 2.00 µs', '8.39 s and more'])
})

test('nothing recorded has no class', () => {
  expect(heat([])).toEqual({ times: [], classes: [], calls: [], most: 0, untimed: 0 })
  expect(heat([row(0, null, null, null)]).classes).toEqual([])
})

test('a level has three times the executions of the one before', () => {
  expect(bounds(810)).toEqual([10, 30, 90, 270, 810])
  expect([0, 1, 10, 11, 270, 271, 810].map((calls) => levelOf(calls, 810))).toEqual([-1, 0, 0, 1, 3, 4, 4])
  expect([1, 2, 3, 4].map((calls) => levelOf(calls, 4))).toEqual([3, 4, 4, 4])
})
