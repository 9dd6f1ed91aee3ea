import { expect, test } from 'vitest'
import { GROUPS, QUESTIONS, alarms } from './server'

const row = (metric: string, value: number) => ({ period_start: '2026-04-01T12:00:00Z', metric, object: null, avg: value, min: value, max: value, total: null })

test('every metric of a picture is in one question', () => {
  const drawn = new Set(GROUPS.flatMap(({ pictures }) => pictures.flatMap(({ metrics, level }) => [...metrics, ...(level ? [level] : [])])))
  for (const metric of drawn) expect([metric, QUESTIONS.filter((metrics) => metrics.includes(metric)).length]).toEqual([metric, 1])
})

test('a source that lacks newer metrics has all older ones and their alarms', () => {
  const all = [row('load_1', 9), row('vcpus', 4), row('connections', 97), row('max_connections', 100)]
  const said = (lacks: string[]) => {
    const answered = QUESTIONS.filter((metrics) => !metrics.some((metric) => lacks.includes(metric))).flat()
    return alarms(all.filter(({ metric }) => answered.includes(metric))).map(({ why }) => why)
  }
  const newest = ['connections_by_state', 'logins_failed', 'logins_refused']
  expect(said(newest)).toEqual(['97 of 100 connections', 'load 9.0 on 4 CPUs'])
  expect(said([...newest, 'connections', 'max_connections'])).toEqual(['load 9.0 on 4 CPUs'])
})
