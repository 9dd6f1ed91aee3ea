// A load as the path of a small picture.

export interface Strip {
  /** Path of the area. */
  area: string
  /** Parts without observation. */
  gaps: { left: number; width: number }[]
  /** Height of the line of CPUs; null if it is not in the picture. */
  level: number | null
}

/** CPUs above this many times the highest load are not drawn: the load would be too flat to read. */
const FAR = 4

export function points(loads: (number | null)[], cpus: number | null, width: number, height: number): Strip {
  const most = Math.max(0, ...loads.map((load) => load ?? 0))
  const near = cpus !== null && cpus > 0 && cpus <= FAR * most
  const top = Math.max(most, near ? cpus : 0) || 1
  const step = width / Math.max(1, loads.length)
  const [x, y] = [(i: number) => Math.round(i * step * 100) / 100, (load: number) => Math.round((height - (load / top) * (height - 2)) * 100) / 100]
  const drawn = loads.map((load, i) => (load ? `M${x(i)} ${height}V${y(load)}H${x(i + 1)}V${height}Z` : ''))
  const none = loads.flatMap((load, i) => (load === null ? [{ left: x(i), width: x(i + 1) - x(i) }] : []))
  return { area: drawn.join(''), gaps: none, level: near ? y(cpus) : null }
}
