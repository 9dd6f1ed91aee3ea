// Whether something is on the screen: what nobody sees yet can wait.

export class Seen {
  #is = true

  /** Until it is known, it is. */
  now = () => this.#is

  /** Watches an element for as long as it is there. */
  watch = (element: Element) => {
    const observer = new IntersectionObserver((entries) => (this.#is = entries.at(-1)!.isIntersecting))
    observer.observe(element)
    return () => observer.disconnect()
  }
}
