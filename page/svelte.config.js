import { vitePreprocess } from '@sveltejs/vite-plugin-svelte'

// Here, where the type checker looks for it, too.
export default { preprocess: vitePreprocess(), compilerOptions: { css: 'external' } }
