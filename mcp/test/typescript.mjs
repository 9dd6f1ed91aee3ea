// The program as the official TypeScript SDK sees it. usage: node typescript.mjs PROGRAM TAPE
import assert from 'node:assert/strict'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'

const [program, tape] = process.argv.slice(2)
const client = new Client({ name: 'test', version: '0' })
await client.connect(new StdioClientTransport({ command: program, args: ['--tape', `shop=${tape}`] }))
const call = async (name, args) => {
  const result = await client.callTool({ name, arguments: args })
  assert.ok(result.content[0].text.length <= 25_000)
  return JSON.parse(result.content[0].text)
}
const { tools } = await client.listTools()
const { servers } = await call('servers', {})
assert.equal(servers[0].name, 'shop')
const window = { since: servers[0].first_tick_time, until: servers[0].last_tick_time }
const top = await call('top', { ...window, dimension: 'wait_event' })
assert.ok(top.rows.length > 0)
const refused = await client.callTool({ name: 'top', arguments: { sql: 'select 1' } })
assert.equal(refused.isError, true)
await client.close()
console.log(`typescript: ${tools.length} tools, ${top.rows.length} waits`)
