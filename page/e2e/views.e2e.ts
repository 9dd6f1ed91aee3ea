// Every view opens, and asks no other server.

import { TABS, expect, open, test } from './web'

for (const tab of TABS) {
  test(`the view ${tab} opens without trouble`, async ({ page }) => {
    await open(page, 'shop', { tab })
    await expect(page.getByRole('tab', { selected: true })).toHaveText(new RegExp(tab, 'i'))
    await expect(page.getByRole('tabpanel')).not.toBeEmpty()
    await expect(page.getByRole('alert')).toHaveCount(0)
  })
}
