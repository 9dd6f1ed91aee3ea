// Figures for people. The same kind has the same number of decimals everywhere, so that columns align.

export const DASH = '–'

/** Average active sessions: two decimals. */
export function aas(value: number | null | undefined): string {
  if (value === null || value === undefined) return DASH
  return value > 0 && value < 0.005 ? '<0.01' : grouped(value, 2)
}

/** The format of each number of decimals. It is made once, because that takes longer than its use. */
const formats = new Map<number, Intl.NumberFormat>()

export function grouped(value: number, decimals = 0): string {
  let format = formats.get(decimals)
  if (!format) {
    format = new Intl.NumberFormat('en-US', { minimumFractionDigits: decimals, maximumFractionDigits: decimals })
    formats.set(decimals, format)
  }
  return format.format(value)
}

export function percent(value: number | null | undefined): string {
  if (value === null || value === undefined) return DASH
  if (value > 0 && value < 0.1) return '<0.1 %'
  return `${value.toFixed(value < 99.95 && value !== 0 ? 1 : 0)} %`
}

/** Writes a value with three significant digits and the unit that fits. */
export function scaled(value: number | null | undefined, units: [number, string][]): string {
  if (value === null || value === undefined) return DASH
  if (value === 0) return `0 ${units[0]![1]}`
  const [size, name] = units.findLast(([size]) => Math.abs(value) >= size * 0.9995) ?? units[0]!
  const shown = value / size
  const decimals = Math.abs(shown) >= 99.95 ? 0 : Math.abs(shown) >= 9.995 ? 1 : 2
  return `${grouped(shown, decimals)} ${name}`
}

/** Milliseconds. */
export const ms = (value: number | null | undefined) =>
  scaled(value, [
    [0.001, 'µs'],
    [1, 'ms'],
    [1000, 's'],
    [60_000, 'min'],
  ])

export const bytes = (value: number | null | undefined) =>
  scaled(value, [
    [1, 'B'],
    [1024, 'kB'],
    [1024 ** 2, 'MB'],
    [1024 ** 3, 'GB'],
    [1024 ** 4, 'TB'],
  ])

/** Calls per second. */
export function rate(value: number | null | undefined): string {
  if (value === null || value === undefined) return DASH
  if (value > 0 && value < 0.01) return '<0.01/s'
  return `${grouped(value, value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2)}/s`
}

/** Things that are counted. */
export function count(value: number | null | undefined): string {
  if (value === null || value === undefined) return DASH
  return value < 100_000 ? grouped(Math.round(value)) : scaled(value, [[1, ''], [1000, 'k'], [1e6, 'M'], [1e9, 'G']]).trim()
}

/** Seconds of sessions. */
export const seconds = (value: number | null | undefined) =>
  scaled(value, [
    [0.001, 'ms'],
    [1, 's'],
    [60, 'min'],
    [3600, 'h'],
  ])
