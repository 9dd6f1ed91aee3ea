import { afterEach, expect, test, vi } from 'vitest'
import { toClipboard } from './clipboard'

afterEach(() => void vi.unstubAllGlobals())

test('a text is copied', async () => {
  const texts: string[] = []
  vi.stubGlobal('navigator', { clipboard: { writeText: async (text: string) => void texts.push(text) } })
  expect(await toClipboard('select 1')).toBe(true)
  expect(texts).toEqual(['select 1'])
})

test('without a secure context, or without permission, nothing is copied, and the page learns it', async () => {
  vi.stubGlobal('navigator', {})
  expect(await toClipboard('select 1')).toBe(false)
  vi.stubGlobal('navigator', { clipboard: { writeText: () => Promise.reject(new Error('NotAllowedError')) } })
  expect(await toClipboard('select 1')).toBe(false)
})
