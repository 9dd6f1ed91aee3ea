// On a low screen pictures are lower: the first queries must be in sight without scrolling.

import { MediaQuery } from 'svelte/reactivity'

export const low = new MediaQuery('(max-height: 960px)')
