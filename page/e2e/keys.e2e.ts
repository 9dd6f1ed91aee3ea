// Everything without a pointer.

import { at } from './tape'
import { TABS, expect, open, settled, test } from './web'

test('keys move, zoom, change tabs and zone, open the filter and the help', async ({ page }) => {
  await open(page, 'shop', { since: at(100), until: at(300) })
  const window = page.locator('.window')
  const presses = async (key: string, shows: string) => {
    await page.keyboard.press(key)
    await expect(window).toHaveText(shows)
  }
  await presses('ArrowRight', 'Sun 1 Mar, 10:57:30 – 11:00:50')
  await presses('ArrowLeft', 'Sun 1 Mar, 10:56:40 – 11:00:00')
  await presses('Shift+ArrowLeft', 'Sun 1 Mar, 10:55:50 – 11:00:00')
  await presses('Shift+ArrowRight', 'Sun 1 Mar, 10:55:50 – 11:01:02')
  await presses('Backspace', 'Sun 1 Mar, 10:55:50 – 11:00:00')
  await presses('Backspace', 'Sun 1 Mar, 10:56:40 – 11:00:00')
  await presses('ArrowLeft', 'Sun 1 Mar, 10:55:50 – 10:59:10')
  await presses('ArrowLeft', 'Sun 1 Mar, 10:55:00 – 10:58:20')
  await presses('ArrowLeft', 'Sun 1 Mar, 10:54:10 – 10:57:30')
  await presses('+', 'Sun 1 Mar, 10:55:00 – 10:56:40')
  await presses('-', 'Sun 1 Mar, 10:54:10 – 10:57:30')
  await presses('t', 'Sun 1 Mar, 05:54:10 – 05:57:30')
  await presses('Backspace', 'Sun 1 Mar, 10:54:10 – 10:57:30')
  for (const [i, tab] of TABS.entries()) {
    await page.keyboard.press(String(i + 1))
    await expect(page.getByRole('tab', { selected: true })).toHaveAttribute('id', `tab-${tab}`)
    await settled(page)
  }
  await page.keyboard.press('?')
  await expect(page.getByRole('dialog')).toBeVisible()
  await page.keyboard.press('Escape')
  await expect(page.getByRole('dialog')).toBeHidden()
  await page.keyboard.press('/')
  await expect(page.getByLabel('Value')).toBeFocused()
  await expect(page.locator('.adder').getByRole('button').first()).toBeVisible()
  await page.keyboard.type('work')
  await expect(page.locator('.adder').getByRole('button')).toHaveCount(1)
  await page.keyboard.press('Enter')
  await expect(page).toHaveURL(/application=worker/)
})

test('arrows walk along the tabs, and the tab key leaves them', async ({ page }) => {
  await open(page, 'shop')
  await page.locator('#tab-queries').focus()
  for (const tab of [...TABS.slice(1), TABS[0]]) {
    await page.keyboard.press('ArrowRight')
    await expect(page.locator(`#tab-${tab}`)).toBeFocused()
    await expect(page.locator(`#tab-${tab}`)).toHaveAttribute('aria-selected', 'true')
  }
  await settled(page)
  await page.keyboard.press('Tab')
  expect(await page.evaluate(() => document.activeElement!.closest('[role="tabpanel"]') !== null)).toBe(true)
})

for (const tab of TABS) {
  test(`each control of ${tab} is reached by the tab key and seen when it is`, async ({ page }) => {
    await open(page, 'shop', { tab })
    const controls = await page.evaluate(() => {
      const all = [...document.querySelectorAll<HTMLElement>('a[href], button, select, input, summary')]
      const seen = all.filter((one) => one.checkVisibility() && one.tabIndex >= 0 && !(one as HTMLButtonElement).disabled)
      seen.forEach((one, i) => (one.dataset.nth = String(i)))
      return seen.length
    })
    await page.evaluate(() => (document.activeElement as HTMLElement | null)?.blur())
    const reached = new Set<string>()
    for (let i = 0; i < controls + 5 && reached.size < controls; i += 1) {
      await page.keyboard.press('Tab')
      const found = await page.evaluate(() => {
        const one = document.activeElement as HTMLElement
        const style = getComputedStyle(one)
        return { nth: one.dataset.nth, outlined: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0 }
      })
      if (found.nth === undefined) continue
      expect(found.outlined).toBe(true)
      reached.add(found.nth)
    }
    expect(reached.size).toBe(controls)
  })
}

test('the slice is chosen by keys', async ({ page }) => {
  await open(page, 'shop')
  await page.getByRole('button', { name: /^by wait class/ }).focus()
  await page.keyboard.press('Enter')
  await expect(page.locator('.slice').getByRole('button', { name: 'application' })).toBeVisible()
  for (let i = 0; i < 4; i += 1) await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await expect(page).toHaveURL(/by=application/)
  await page.getByRole('button', { name: /^by application/ }).focus()
  await page.keyboard.press('Enter')
  await page.keyboard.press('Escape')
  await expect(page.locator('.slice ul')).toHaveCount(0)
})

test('in a table keys open and scroll it, and the window stays', async ({ page }) => {
  await open(page, 'shop')
  const before = page.url()
  const load = page.getByRole('region', { name: /^Load/ })
  await load.getByText('As a table').focus()
  await page.keyboard.press('Space')
  const table = load.getByRole('region', { name: 'Load as a table' })
  await expect(table).toBeVisible()
  await table.focus()
  for (const key of ['ArrowRight', 'ArrowLeft', 'Space']) await page.keyboard.press(key)
  expect(page.url()).toBe(before)
})
