// Colours for canvases, which style sheets do not reach.

import type { Paint, Pattern } from './colour'

class Theme {
  /** Number of theme changes. Drawings read it, and so are drawn again. */
  version = $state(0)

  /** Fills are made once per theme, because pictures of a live window are drawn each second. */
  #made = new Map<string, string | CanvasPattern>()

  constructor() {
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
      this.#made.clear()
      this.version += 1
    })
  }

  #once(name: string, make: () => string | CanvasPattern): string | CanvasPattern {
    const key = `${name} ${devicePixelRatio}`
    const made = this.#made.get(key) ?? make()
    this.#made.set(key, made)
    return made
  }

  colour(name: string): string {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim()
  }

  /** A fill for a canvas: the colour, with lines of the paper's colour over it. */
  fill(context: CanvasRenderingContext2D, paint: Paint): string | CanvasPattern {
    return this.#once(`${paint.colour} ${paint.pattern}`, () => this.#filled(context, paint))
  }

  #filled(context: CanvasRenderingContext2D, { colour, pattern }: Paint): string | CanvasPattern {
    const ink = this.colour(colour)
    if (pattern === 'plain') return ink
    const tile = document.createElement('canvas')
    const size = Math.round(6 * devicePixelRatio)
    tile.width = tile.height = size
    const on = tile.getContext('2d')
    if (!on) return ink
    on.fillStyle = ink
    on.fillRect(0, 0, size, size)
    on.strokeStyle = on.fillStyle = this.colour('--paper')
    on.globalAlpha = 0.38
    on.lineWidth = size / 6
    strokes(on, pattern, size)
    return context.createPattern(tile, 'repeat') ?? ink
  }

  /** The fill for periods that were not observed. */
  hatch(context: CanvasRenderingContext2D): string | CanvasPattern {
    return this.#once('hatch', () => this.#hatched(context))
  }

  #hatched(context: CanvasRenderingContext2D): string | CanvasPattern {
    const tile = document.createElement('canvas')
    const size = Math.round(8 * devicePixelRatio)
    tile.width = tile.height = size
    const on = tile.getContext('2d')!
    on.strokeStyle = this.colour('--hatch')
    on.lineWidth = devicePixelRatio
    lines(on, [
      [0, size, size, 0],
      [-1, 1, 1, -1],
      [size - 1, size + 1, size + 1, size - 1],
    ])
    return context.createPattern(tile, 'repeat')!
  }
}

function lines(on: CanvasRenderingContext2D, all: [number, number, number, number][]) {
  on.beginPath()
  for (const [x1, y1, x2, y2] of all) {
    on.moveTo(x1, y1)
    on.lineTo(x2, y2)
  }
  on.stroke()
}

function strokes(on: CanvasRenderingContext2D, pattern: Pattern, size: number) {
  const half = size / 2
  switch (pattern) {
    case 'rising':
      return lines(on, [
        [0, size, size, 0],
        [-1, 1, 1, -1],
        [size - 1, size + 1, size + 1, size - 1],
      ])
    case 'falling':
      return lines(on, [
        [0, 0, size, size],
        [-1, size - 1, 1, size + 1],
        [size - 1, -1, size + 1, 1],
      ])
    case 'lying':
      return lines(on, [[0, half, size, half]])
    case 'standing':
      return lines(on, [[half, 0, half, size]])
    case 'grid':
      return lines(on, [
        [0, half, size, half],
        [half, 0, half, size],
      ])
    case 'dots':
      on.fillRect(half - size / 8, half - size / 8, size / 4, size / 4)
  }
}

export const theme = new Theme()
