// The question of a panel as a command line, as SQL, and as an address.

import { type Asked, address } from './api'

const shellWord = (text: string) =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
const sqlText = (text: string) => `'${text.replaceAll("'", "''")}'`

/** Arguments that stand first in their command, without a name. */
const FIRST = ['dimension']

export function commandLine({ function: name, args }: Asked): string {
  const words = ['tacho', name.replaceAll('_', '-')]
  const given = Object.entries(args).filter(([arg, value]) => arg !== 'server' && value !== '')
  for (const [arg, value] of given) if (FIRST.includes(arg)) words.push(shellWord(value))
  for (const [arg, value] of given) {
    if (FIRST.includes(arg)) continue
    words.push(`--${arg.replaceAll('_', '-')}`)
    if (value !== 'true') words.push(shellWord(value))
  }
  return words.join(' ')
}

const BARE = /^(n|by_leader)$/

export function sql({ function: name, args }: Asked): string {
  const given = Object.entries(args).filter(([arg, value]) => arg !== 'server' && value !== '')
  const value = (arg: string, text: string) =>
    text === 'all' && arg === 'n' ? 'null' : BARE.test(arg) ? text : sqlText(text)
  const list = given.map(([arg, text]) => `${arg} => ${value(arg, text)}`)
  return `select * from tacho.${name}(${list.join(', ')})`
}

/** The address that answers in JSON. */
export const jsonAddress = address
