// Makes the page of `memtrace report --format html`: one file with a marker where the data goes.
//
//   node build.mjs --modules DIR --out page.html [--depfile FILE]
//
// DIR is what `npm ci` installed; it is not below this directory, which the build leaves as it is.
// The content security policy names the hash of the one script that may run, so that nothing in the
// data can ever become another.

import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const here = dirname(fileURLToPath(import.meta.url));
const { values } = parseArgs({
  options: {
    modules: { type: 'string', default: join(here, 'node_modules') },
    out: { type: 'string', default: 'page.html' },
    depfile: { type: 'string' },
  },
});
const modules = resolve(values.modules);
const esbuild = createRequire(join(modules, 'x.js'))('esbuild');

const MARKER = '@@MEMTRACE_DATA@@';

// The directory of the package that a bundled file is of.
function packageOf(file) {
  const path = resolve(file);
  if (!path.startsWith(modules)) return null;
  const parts = relative(modules, path).split('/');
  return parts[0].startsWith('@') ? join(parts[0], parts[1]) : parts[0];
}

// What the licences of bundled code ask for: their text goes with every copy.
function licences(inputs) {
  const names = [...new Set(inputs.map(packageOf).filter(Boolean))].sort();
  return names.map((name) => {
    const { version, license } = JSON.parse(readFileSync(join(modules, name, 'package.json')));
    const file = readdirSync(join(modules, name)).find((entry) => /^licen[cs]e/i.test(entry));
    if (!file) throw new Error(`${name} has no licence file`);
    return { name, version, license, text: readFileSync(join(modules, name, file), 'utf8') };
  });
}

const common = {
  bundle: true, minify: true, write: false, metafile: true, legalComments: 'none',
  nodePaths: [modules], absWorkingDir: here, logLevel: 'warning', charset: 'ascii',
  target: ['chrome103', 'firefox113', 'safari16.4'],
};
const inputsOf = (result) => Object.keys(result.metafile.inputs).map((file) => resolve(here, file));

const style = await esbuild.build({ ...common, entryPoints: ['src/style.css'] });
const script = await esbuild.build({ ...common, entryPoints: ['src/main.ts'], format: 'iife' });
const inputs = [...inputsOf(style), ...inputsOf(script)];

const code = script.outputFiles[0].text.trimEnd();
const css = style.outputFiles[0].text.trimEnd();
if (/<\/script|<!--|<script/i.test(code)) throw new Error('the script would end itself');
if (/<\/style/i.test(css)) throw new Error('the style would end itself');
const hash = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
const policy = [
  "default-src 'none'", `script-src ${hash(code)}`, `style-src ${hash(css)}`, 'img-src data:',
  "base-uri 'none'", "form-action 'none'", "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

const page = readFileSync(join(here, 'src/page.html'), 'utf8')
  .replace('@@POLICY@@', () => policy)
  .replace('@@STYLE@@', () => css)
  .replace('@@LICENCES@@', () => JSON.stringify(licences(inputs)).replaceAll('<', '\\u003c'))
  .replace('@@SCRIPT@@', () => code);
if (page.split(MARKER).length !== 2) throw new Error('the marker of the data is not there once');
writeFileSync(values.out, page);
if (values.depfile) {
  const escape = (path) => path.replace(/([ #])/g, '\\$1');
  const files = [...new Set([...inputs, join(here, 'src/page.html'), join(here, 'build.mjs')])]
    .filter((file) => existsSync(file));
  writeFileSync(values.depfile, `${escape(resolve(values.out))}: ${files.map(escape).join(' ')}\n`);
}
