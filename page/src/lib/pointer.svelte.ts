// The moment under the pointer, which all pictures of a window show.

class Pointer {
  time: number | null = $state(null)
}

export const pointer = new Pointer()
