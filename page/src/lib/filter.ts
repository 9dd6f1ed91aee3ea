// Filters as text: "a,b" means a or b, "!a,!b" means neither. The readers describe the full syntax.

export interface Filter {
  values: string[]
  /** True if the values are excluded. */
  not: boolean
}

const needsQuotes = (value: string) => /[",]|^[!(\s]|\s$/.test(value) || value === ''

/** A value as a filter writes it, in quotes if needed. A literal such as (null) is never quoted. */
function written(value: string, literal: boolean): string {
  return !literal && needsQuotes(value) ? `"${value.replaceAll('"', '""')}"` : value
}

export const NULL = '(null)'

export function parseFilter(text: string): Filter {
  const values: string[] = []
  let not = false
  const item = /(!?)("(?:[^"]|"")*"|[^,]*)(,|$)/y
  for (let found = item.exec(text); found; found = item.exec(text)) {
    const value = found[2] ?? ''
    not ||= found[1] === '!'
    values.push(value.startsWith('"') ? value.slice(1, -1).replaceAll('""', '"') : value)
    if (found[3] === '') break
  }
  return { values, not }
}

export function filterText({ values, not }: Filter): string {
  return values.map((value) => (not ? '!' : '') + written(value, value === NULL)).join(',')
}

/** Adds a value to the filter. A filter of the opposite sense is replaced. */
export function withValue(text: string | undefined, value: string, not: boolean): string {
  const before = text ? parseFilter(text) : { values: [], not }
  const kept = before.not === not && not ? before.values.filter((v) => v !== value) : []
  return filterText({ values: [...kept, value], not })
}
