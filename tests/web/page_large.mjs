// A page of so many sites that a browser must not draw them all.

import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { directory, drawn, show } from './browser.mjs';
import { on, rows, viewsOf } from './page_setup.mjs';

describe('a page of 10,000 sites', () => {
  test('is small, and has few elements', async () => {
    assert.ok(statSync(join(directory, 'large.html')).size < 3e6);
    const start = performance.now();
    await on('large.html', '', async (page) => {
      console.log(`# drawn after ${(performance.now() - start).toFixed(0)} ms`);
      for (const view of await viewsOf(page)) {
        const from = performance.now();
        await show(page, view);
        const elements = await page.evaluate(() => document.querySelectorAll('*').length);
        console.log(`# ${view}: ${(performance.now() - from).toFixed(0)} ms, ${elements} elements`);
        assert.ok(elements < 6000, `${view}: ${elements}`);
      }
    });
  });

  test('says how many rows of a short table it leaves out', () => on('large.html', '#view=threads', async (page) => {
    const panel = page.locator('#panel-threads');
    const table = panel.locator('table.plain', { hasText: 'Freed by' });
    assert.equal(await table.locator('tbody tr').count(), 100);
    assert.match(await table.locator('caption').textContent(), /^and 50 more rows: memtrace report/);
    assert.match(await panel.textContent(), /not told apart: 77 blocks, 4\.00 KiB/);
  }));

  test('scrolls to its last row, and filters', () => on('large.html', '#view=sites&group=stack', async (page) => {
    const table = page.getByRole('treegrid', { name: 'Sites' });
    assert.equal(await table.getAttribute('aria-rowcount'), '10001');
    await rows(page, 'sites').first().focus();
    await page.keyboard.press('End');
    await page.locator('tr[aria-rowindex="10001"]:focus').waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('list', { name: /^Stack/ }).waitFor();
    await page.getByLabel('Filter').fill('Function1234(');
    await page.waitForFunction(() => location.hash.includes('Function1234'));
    const left = Number(await table.getAttribute('aria-rowcount')) - 1;
    assert.ok(left > 0 && left < 1000, String(left));
  }));

  test('lets Tab through a stack that is higher than the table, and out of it', () => on('large.html', '#view=leaks', async (page) => {
    await rows(page, 'leaks').first().focus();
    await page.keyboard.press('Enter');
    const frames = await page.locator('#panel-leaks tr.detail li button').allTextContents();
    const { height } = await page.locator('#panel-leaks tr.detail').boundingBox();
    assert.ok(height > (await page.locator('#panel-leaks .scroller').boundingBox()).height, String(height));
    const focused = () => page.evaluate(() => (document.activeElement.closest('tr.detail') ? document.activeElement.textContent : null));
    for (const [i, frame] of frames.entries()) {
      await page.keyboard.press('Tab');
      await drawn(page);
      await drawn(page);
      assert.equal(await focused(), frame, String(i));
    }
    await page.keyboard.press('Shift+Tab');
    await drawn(page);
    assert.equal(await focused(), frames[frames.length - 2]);
    for (let i = 0; i < 3; ++i) await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => document.activeElement.closest('table') === null), true);
  }, { viewport: { width: 1280, height: 500 } }));
});
