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

// What is written on the canvas of a chart of the timeline when it is drawn anew as for paper: texts, with where they are.
export const written = (page, chart = 0) => page.evaluate(async (chart) => {
  let all = [];
  const { fillText, clearRect } = CanvasRenderingContext2D.prototype;
  Object.assign(CanvasRenderingContext2D.prototype, {
    fillText(text, x, y) {
      const { width } = this.measureText(text);
      const left = x - (this.textAlign === 'center' ? width / 2 : ['right', 'end'].includes(this.textAlign) ? width : 0);
      all.push({ text, y, left, right: left + width, canvas: this.canvas });
      fillText.call(this, text, x, y);
    },
    clearRect(...where) {
      all = all.filter(({ canvas }) => canvas !== this.canvas);
      clearRect.apply(this, where);
    },
  });
  window.dispatchEvent(new Event('beforeprint'));  // in other colours and another width
  await new Promise((done) => requestAnimationFrame(done));
  Object.assign(CanvasRenderingContext2D.prototype, { fillText, clearRect });
  const canvas = document.querySelectorAll('.timeline .chart')[chart].querySelector('canvas');
  return all.filter((one) => one.canvas === canvas).map((one) => ({ ...one, canvas: { width: canvas.width, height: canvas.height } }));
}, chart);
