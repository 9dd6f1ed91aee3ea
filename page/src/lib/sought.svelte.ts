/** The group of measurements that somebody asked for with a click on its alarm. */
export const sought = $state({ group: null as string | null })
