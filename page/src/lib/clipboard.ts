// The clipboard, which a browser gives to a page only in a secure context (https, or this host).

/** The words for a text that could not be copied. */
export const NOT_COPIED = 'not copied: the browser has no clipboard for this page'

/** Copies a text. False if the page has no clipboard or may not use it. */
export async function toClipboard(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    return false
  }
}
