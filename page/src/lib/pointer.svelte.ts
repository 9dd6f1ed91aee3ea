// The moment under the pointer, shown by all pictures of a window.

class Pointer {
  time: number | null = $state(null)
  /** The moment in ms since 1970 if the picture is not a chart; charts tell each other. */
  outside: number | null = $state(null)

  /** Sets the moment in a picture that is not a chart; null if the pointer has left. */
  rest(time: number | null) {
    this.time = this.outside = time
  }
}

export const pointer = new Pointer()
