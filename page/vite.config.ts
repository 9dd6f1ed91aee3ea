import { svelte } from '@sveltejs/vite-plugin-svelte'
import { readFile, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { type Plugin, defineConfig } from 'vite'

/** Writes a compressed copy of each file, which the program sends as it is. */
function compressed(): Plugin {
  let directory = ''
  return {
    name: 'compressed',
    apply: 'build',
    configResolved: (config) => void (directory = config.build.outDir),
    async closeBundle() {
      for (const entry of await readdir(directory, { recursive: true, withFileTypes: true })) {
        if (!entry.isFile()) continue
        const path = join(entry.parentPath ?? entry.path, entry.name)
        await writeFile(`${path}.gz`, gzipSync(await readFile(path), { level: 9 }))
      }
    },
  }
}

// Addresses are relative, so that the page works below any path of a proxy. The page contains no
// inline scripts or styles: its policy allows only files of its server.
export default defineConfig({
  base: './',
  plugins: [svelte(), compressed()],
  // the dictionary of wait events is in ../catalog
  server: { fs: { allow: ['..'] } },
  build: { target: 'es2022', assetsInlineLimit: 0, modulePreload: { polyfill: false } },
})
