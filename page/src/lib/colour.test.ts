// Neighbouring colours can be distinguished, by colour or by pattern, with full sight and with each
// kind of colour blindness.

import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { CLASSES_IN_ORDER, paint } from './colour'
import { LEVELS } from './heat'

type Rgb = [number, number, number]
const linear = (byte: number) => (byte / 255 <= 0.04045 ? byte / 255 / 12.92 : ((byte / 255 + 0.055) / 1.055) ** 2.4)

/** Machado, Oliveira, Fernandes 2009, severity 1, on linear RGB. */
const SIGHT: Record<string, number[][]> = {
  full: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  protanopia: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
  deuteranopia: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
  tritanopia: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}

/** CIE L*a*b* of linear RGB, D65. */
function lab([r, g, b]: Rgb): Rgb {
  const x = (0.4124564 * r + 0.3575761 * g + 0.1804375 * b) / 0.95047
  const y = 0.2126729 * r + 0.7151522 * g + 0.072175 * b
  const z = (0.0193339 * r + 0.119192 * g + 0.9503041 * b) / 1.08883
  const f = (t: number) => (t > 0.008856 ? Math.cbrt(t) : 7.787 * t + 16 / 116)
  return [116 * f(y) - 16, 500 * (f(x) - f(y)), 200 * (f(y) - f(z))]
}

function seen(hex: string, sight: number[][]): Rgb {
  const rgb = [1, 3, 5].map((at) => linear(parseInt(hex.slice(at, at + 2), 16)))
  const through = sight.map((row) => Math.min(1, Math.max(0, row.reduce((sum, factor, i) => sum + factor * rgb[i]!, 0))))
  return lab(through as Rgb)
}
const distance = (a: Rgb, b: Rgb) => Math.hypot(...a.map((value, i) => value - b[i]!))

/** Custom properties of app.css; the light theme comes first. */
function colours(theme: 'light' | 'dark'): Record<string, string> {
  const css = readFileSync(new URL('../app.css', import.meta.url), 'utf8')
  const [light, dark] = css.split('prefers-color-scheme: dark')
  const of = (part: string) => Object.fromEntries([...part.matchAll(/(--[\w-]+): (#[0-9a-f]{6});/g)].map(([, name, hex]) => [name, hex]))
  return theme === 'light' ? of(light!) : { ...of(light!), ...of(dark!) }
}

test('white and black are 100 apart, a colour is none from itself', () => {
  expect(distance(seen('#ffffff', SIGHT.full!), seen('#000000', SIGHT.full!))).toBeCloseTo(100, 2)
  expect(distance(seen('#2c9f7c', SIGHT.deuteranopia!), seen('#2c9f7c', SIGHT.deuteranopia!))).toBe(0)
})

for (const theme of ['light', 'dark'] as const) {
  for (const [name, sight] of Object.entries(SIGHT)) {
    test(`levels of heat go from the paper to its opposite: ${theme}, ${name}`, () => {
      const all = colours(theme)
      const steps = ['--paper', ...LEVELS].map((level) => seen(all[level]!, sight))
      const sign = theme === 'light' ? -1 : 1
      for (let i = 1; i < steps.length; i += 1) {
        expect(sign * (steps[i]![0] - steps[i - 1]![0]), `lightness of level ${i}`).toBeGreaterThan(8)
        expect(distance(steps[i]!, steps[i - 1]!), `level ${i}`).toBeGreaterThan(10)
      }
    })
    test(`classes beside each other are told apart: ${theme}, ${name}`, () => {
      const all = colours(theme)
      for (let i = 1; i < CLASSES_IN_ORDER.length; i += 1) {
        const [a, b] = [CLASSES_IN_ORDER[i - 1]!, CLASSES_IN_ORDER[i]!].map((key) => ({ key, ...paint('wait_event_type', key) }))
        if (a!.colour === b!.colour) continue // two names of one class
        const apart = distance(seen(all[a!.colour]!, sight), seen(all[b!.colour]!, sight))
        const what = `${a!.key} and ${b!.key}: ${apart.toFixed(1)}`
        expect(apart, what).toBeGreaterThan(10)
        if (apart < 20) expect(a!.pattern, what).not.toBe(b!.pattern)
      }
    })
  }
}
