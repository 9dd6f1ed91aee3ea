import { expect, test } from 'vitest'
import { Turns } from './turns'

const [chart, page] = ['chart', 'page'] as unknown as Node[]
const host = { contains: (other: Node | null) => other === chart }

test('a turn belongs to where it began until the wheel rests', () => {
  const turns = new Turns()
  expect(turns.beganIn(host)).toBe(false)
  const began = [[0, page], [100, chart], [340, chart], [600, chart], [800, page], [1051, page]] as const
  expect(began.map(([timeStamp, target]) => (turns.turned({ timeStamp, target: target! }), turns.beganIn(host)))).toEqual([false, false, false, true, true, false])
})
