// The program as the official inspector sees it, which a new process asks each question.
// usage: node inspector.mjs INSPECTOR PROGRAM TAPE
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'

const [inspector, program, tape] = process.argv.slice(2)
const ask = (...args) => {
  const target = ['--cli', program, '--tape', `shop=${tape}`]
  const { status, stdout, stderr } = spawnSync(inspector, [...target, '--method', ...args], { encoding: 'utf8' })
  return { status, stderr, answer: stdout ? JSON.parse(stdout) : null }
}
const call = (tool, args = {}) => {
  const pairs = Object.entries(args).flatMap(([name, value]) => ['--tool-arg', `${name}=${value}`])
  const { status, stderr, answer } = ask('tools/call', '--tool-name', tool, ...pairs)
  assert.deepEqual({ status, isError: answer?.isError ?? false }, { status: 0, isError: false }, `${tool}: ${stderr}`)
  const { text } = answer.content[0]
  assert.ok(Buffer.byteLength(text) <= 25_000, tool)
  return JSON.parse(text)
}

// --strict reports parts of a schema that some clients do not understand
const listed = ask('tools/list', '--strict')
assert.deepEqual([listed.status, listed.stderr], [0, ''])
const names = listed.answer.tools.map((tool) => tool.name)
const { servers } = call('servers')
assert.equal(servers[0].name, 'shop')
const window = { since: servers[0].first_tick_time, until: servers[0].last_tick_time }
const { rows } = call('top', { ...window, dimension: 'query_id', n: 3 })
const query = rows.find((row) => /^-?\d+$/.test(row.key)).key

// the other tools, each with the arguments that it needs, and a member of its answer
const others = {
  load: [{ filters: '{"wait_event_type": "!Lock"}' }, 'rows'],
  changes: [{}, 'rows'],
  report: [{}, 'report'],
  query: [{ query_id: query }, 'waits'],
  plans: [{}, 'rows'],
  locks: [{}, 'rows'],
  sessions: [{ n: 2 }, 'rows'],
  tables: [{ n: 2 }, 'rows'],
  indexes: [{ n: 2 }, 'rows'],
  errors: [{ n: 2 }, 'rows'],
  markers: [{}, 'rows'],
}
for (const [tool, [args, member]] of Object.entries(others)) assert.ok(call(tool, { ...window, ...args })[member], tool)
assert.match(JSON.stringify(call('explain_wait', { name: 'walsync' })), /IO:WalSync/)
assert.deepEqual(names.toSorted(), ['servers', 'top', 'explain_wait', ...Object.keys(others)].toSorted())

const refused = ask('tools/call', '--tool-name', 'top', '--tool-arg', 'sql=select 1')
assert.equal(refused.answer.isError, true)
console.log(`inspector: ${names.length} tools, each called`)
