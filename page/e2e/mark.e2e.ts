// Marks of this moment: a refusal of the source is shown at the input.

import { expect, open, test } from './web'

test('a mark without a recorder is refused with its reason, and the text stays', async ({ page }) => {
  await open(page, 'shop')
  await page.keyboard.press('m')
  const dialog = page.getByRole('dialog', { name: 'Mark this moment' })
  await expect(dialog.getByRole('textbox')).toBeFocused()
  await page.keyboard.type('deploy 1.4')
  await page.keyboard.press('Enter')
  await expect(dialog.getByRole('alert')).toContainText('no recorder runs for directory')
  await expect(dialog.getByRole('textbox')).toHaveValue('deploy 1.4')
  await page.keyboard.press('Escape')
  await expect(dialog).toBeHidden()
})

test('a text that is no line is refused by the server, and a key is a key again behind the dialog', async ({ page }) => {
  await open(page, 'shop')
  await page.getByRole('button', { name: 'Mark' }).click()
  const dialog = page.getByRole('dialog', { name: 'Mark this moment' })
  await dialog.getByRole('textbox').fill('\u202e')
  await page.keyboard.press('Enter')
  await expect(dialog.getByRole('alert')).toBeVisible()
  await dialog.getByRole('button', { name: 'Cancel' }).click()
  await page.keyboard.press('4')
  await expect(page.getByRole('tab', { selected: true })).toHaveText('Locks')
})
