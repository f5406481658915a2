// A source of the page as a module, for tests that need no browser.

import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const source = join(dirname(fileURLToPath(import.meta.url)), '../../web/src');
const modules = process.env.MEMTRACE_NODE_MODULES;
const esbuild = createRequire(join(modules, 'x.js'))('esbuild');

export async function sourceOf(file) {
  const built = await esbuild.build({
    entryPoints: [join(source, file)], bundle: true, write: false, format: 'esm', nodePaths: [modules], logLevel: 'warning' });
  return import(`data:text/javascript;base64,${Buffer.from(built.outputFiles[0].contents).toString('base64')}`);
}
