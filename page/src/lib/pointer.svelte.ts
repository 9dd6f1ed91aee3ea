// The moment under the pointer, which all pictures of a window show.

class Pointer {
  time: number | null = $state(null)
  /** The same where the picture is no chart: charts tell each other. */
  outside: number | null = $state(null)

  /** It is there, in a picture that is no chart, or nowhere any more. */
  rest(time: number | null) {
    this.time = this.outside = time
  }
}

export const pointer = new Pointer()
