// What the tests of the page of --format html have in common: the pages, made by make_pages, and a browser. No test
// depends on how fast anything is.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { build, directory, launch, open } from './browser.mjs';

export let browser;
before(async () => {
  execFileSync(join(build, 'tests/make_pages'), [directory]);
  browser = await launch();
});
after(() => browser?.close());

// Runs with a page that is closed after it, and on which nothing may have gone wrong.
export async function on(name, fragment, run, options) {
  const page = await open(browser, name, fragment, options);
  try {
    await run(page);
    assert.deepEqual(page.problems, []);
  } finally {
    await page.context().close();
  }
}

export const rows = (page, view) => page.locator(`#panel-${view} tbody tr[aria-level="1"], #panel-${view} tbody tr:not([aria-level]):not(.gap)`);
export const callers = (page) => page.locator('#panel-sites tbody tr[data-index] td:nth-last-child(2)').allTextContents();
// Which there are depends on what the report has.
export const viewsOf = (page) => page.locator('[role=tab]').evaluateAll((tabs) => tabs.map((tab) => tab.id.slice('tab-'.length)));
export const treeItem = (page, name) => page.getByRole('treeitem', { name });
