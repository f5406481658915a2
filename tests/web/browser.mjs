// A headless Chromium for tests, and pages opened in it. Exits with 77, which CTest calls skipped,
// where there is none.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { deflateRawSync, inflateRawSync } from 'node:zlib';

const modules = createRequire(join(process.env.MEMTRACE_NODE_MODULES, 'x.js'));
export const { chromium } = modules('playwright-core');
export const axe = modules.resolve('axe-core/axe.min.js');

export const build = process.env.MEMTRACE_BUILD_DIR;
export const directory = join(build, 'tests/pages');
mkdirSync(directory, { recursive: true });

const executablePath = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']
  .find((path) => existsSync(path));
if (!executablePath) {
  console.log('skipped: no Chromium here; on Debian: apt-get install chromium');
  process.exit(77);
}

// Makes the page `to` of the page `from`, with a document that `change` has changed.
export function altered(from, to, change) {
  const text = readFileSync(join(directory, from), 'utf8');
  const [, packed] = /id="data">([^<]*)</.exec(text);
  const document = JSON.parse(inflateRawSync(Buffer.from(packed, 'base64')).toString());
  change(document);
  writeFileSync(join(directory, to), text.replace(packed, deflateRawSync(JSON.stringify(document)).toString('base64')));
}

export const launch = () => chromium.launch({
  executablePath,
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
         '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});

// Opens a page and waits until it is drawn. `problems` collects what must not happen: errors,
// refusals by the policy, requests to anywhere.
export async function open(browser, name, fragment = '', options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  page.problems = [];
  page.on('pageerror', (error) => page.problems.push(`error: ${error.message}`));
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) page.problems.push(message.text());
  });
  page.on('dialog', (dialog) => { page.problems.push('a dialog'); void dialog.dismiss(); });
  page.on('request', (request) => {
    if (!request.url().startsWith('file:') && !request.url().startsWith('data:')) {
      page.problems.push(`request: ${request.url()}`);
    }
  });
  await page.goto(`file://${join(directory, name)}${fragment}`);
  await page.waitForSelector('html[data-ready]', { timeout: 60000 });
  await drawn(page);
  return page;
}

// A table that comes into sight learns its height, and draws its rows, between a frame's callbacks
// and the frame: they are there in the callbacks of the next.
export const drawn = (page) => page.evaluate(() => new Promise(
  (done) => requestAnimationFrame(() => requestAnimationFrame(() => done()))));

export async function show(page, view) {
  await page.locator(`#tab-${view}`).click();
  await drawn(page);
}

export const fragmentOf = (page) =>
  new URLSearchParams(new URL(page.url()).hash.slice(1));
