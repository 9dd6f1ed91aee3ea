// Whether an element is on the screen: answers that are not visible can wait.

export class Seen {
  #is = true

  /** True until it is known. */
  now = () => this.#is

  /** Watches an element as long as it exists. */
  watch = (element: Element) => {
    const observer = new IntersectionObserver((entries) => (this.#is = entries.at(-1)!.isIntersecting))
    observer.observe(element)
    return () => observer.disconnect()
  }
}
