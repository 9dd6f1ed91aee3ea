// Turns of the wheel. One that scrolls the page goes on to do so, also when it brings
// a picture under the pointer that a turn would move.

/** Between two events of one turn, in ms. */
const PAUSE = 250

export class Turns {
  #last = -Infinity
  #target: EventTarget | null = null

  /** The wheel has turned. */
  turned({ timeStamp, target }: Pick<WheelEvent, 'timeStamp' | 'target'>) {
    if (timeStamp - this.#last > PAUSE) this.#target = target
    this.#last = timeStamp
  }

  /** The turn began in there. */
  beganIn(host: { contains: (other: Node | null) => boolean }): boolean {
    return host.contains(this.#target as Node | null)
  }
}

export const turns = new Turns()
if (typeof addEventListener === 'function') addEventListener('wheel', (event) => turns.turned(event), { capture: true, passive: true })
