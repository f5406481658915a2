// Figures that are added up over stacks, in a chosen time and otherwise, and what of tables fits on paper and on
// narrow screens.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { altered, drawn, show } from './browser.mjs';
import { on, rows } from './page_setup.mjs';

describe('figures that are added up, and paper', () => {
  test('says of a caller what all of its stacks grew by', async () => {
    // Put by one way has 300 KiB less, and by another 200 KiB more.
    altered('told.html', 'moved.html', (document) => {
      const point = (interval, live) => [interval, 1, 0, 1, live << 10, 0];
      document.series = { begin_s: 0, interval_s: 0.02, points: [[...point(0, 300), ...point(60, 0)], point(60, 200), [...point(0, 10), ...point(60, 60)]] };
    });
    await on('moved.html', '#from=1&to=1.5', async (page) => {
      const panel = page.locator('#panel-summary');
      const bars = await panel.locator('.bars li').allInnerTexts();
      assert.equal(bars.length, 1);
      assert.match(bars[0], /^50\.0 KiB 100 %.*Get/s);
      assert.match(await panel.innerText(), /Not drawn: 100 KiB by which others shrank; all together shrank by 50\.0 KiB\./);
      await show(page, 'sites');
      assert.deepEqual((await rows(page, 'sites').locator('td:first-child').allTextContents()).map((text) => text.slice(1)), ['50.0 KiB', '-100 KiB']);
      await show(page, 'flame');
      assert.match(await page.locator('#panel-flame').innerText(), /Not drawn: 300 KiB by which other stacks shrank, which may be of functions that are drawn/);
      // What has more in it is there, though it is not drawn itself.
      await show(page, 'sources');
      const sources = page.locator('#panel-sources');
      assert.equal(await sources.locator('.rings').isVisible(), false);
      assert.match(await sources.locator('.bars li').innerText(), /^-50\.0 KiB\s+work\/src\/cache\.cc$/);
      await sources.locator('.bars button').click();
      assert.match(await sources.locator('.bars li').innerText(), /^50\.0 KiB 100 %.*Get/s);
      assert.match(await sources.locator('.details').innerText(), /cache\.cc: -50\.0 KiB\. Not drawn: 100 KiB by which others shrank/);
    });
  });

  test('draws in a ring no more than there is room for', async () => {
    // A folder that grew by 900 KiB, with files in it that grew by 1200 KiB.
    altered('ordinary.html', 'rings.html', ({ series }) => {
      const point = (interval, live) => [interval, 1, 0, 1, live << 10, 0];
      series.points = series.points.map((_, i) => [...point(0, i === 0 ? 300 : 0), ...point(60, i === 0 ? 0 : 400)]);
    });
    await on('rings.html', '#view=sources&from=1&to=1.5', async (page) => {
      const sources = page.locator('#panel-sources');
      assert.match(await sources.locator('.bars li').innerText(), /^900 KiB 100 %\s+work\/src$/);
      const middles = await sources.locator('.rings path').evaluateAll((paths) => paths.map(({ style }) => Number(style.getPropertyValue('--hue'))));
      assert.ok(middles.length >= 5 && middles.every((degrees) => degrees > 0 && degrees < 360), String(middles));
      await sources.locator('.bars button').click();
      assert.deepEqual((await sources.locator('.bars small').allInnerTexts()).map((text) => text.trim()), ['33.3 %', '33.3 %', '33.3 %']);
      assert.match(await sources.locator('.details').innerText(), /: 900 KiB\. Not drawn: 300 KiB by which others shrank; all together grew by 900 KiB/);
    });
  });

  test('breaks a long name on paper, so that all columns are there', async () => {
    const long = `ns::${'VeryLongTemplate<'.repeat(20)}int${'>'.repeat(20)}::${'operation_'.repeat(40)}end`;
    altered('ordinary.html', 'long_name.html', ({ strings }) => { strings[strings.indexOf('Keep')] = long; });
    await on('long_name.html', '', async (page) => {
      await page.emulateMedia({ media: 'print' });
      await page.evaluate(() => window.dispatchEvent(new Event('beforeprint')));
      await drawn(page);
      const [wide, room] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
      assert.ok(wide <= room, `${wide} in ${room}`);
      for (const view of ['leaks', 'growth', 'sites']) {
        for (const box of await page.locator(`#panel-${view} th`).all()) {
          const { x, width } = await box.boundingBox();
          assert.ok(width > 10 && x + width <= room, `${view}: ${x} ${width}`);
        }
      }
    }, { viewport: { width: 718, height: 1000 } });
  });

  test('has whole words in the heads of short tables, where there is little room', async () => {
    for (const width of [320, 400]) {
      for (const [name, view] of [['ordinary.html', 'threads'], ['ordinary.html', 'faults'], ['ordinary.html', 'mappings'], ['mismatched.html', 'leaks']]) {
        await on(name, `#view=${view}`, async (page) => {
          const heads = page.locator(`#panel-${view} .plain thead th`);
          assert.ok(await heads.count() > 0, view);
          // In as many lines as the longest word alone has: one for each word at most.
          const broken = await heads.evaluateAll((all) => all.filter((head) => {
            const range = document.createRange();
            range.selectNodeContents(head);
            const lines = new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size;
            return lines > head.textContent.split(' ').length;
          }).map((head) => head.textContent));
          assert.deepEqual(broken, [], `${view} at ${width}`);
          const wide = await page.evaluate(() => document.documentElement.scrollWidth);
          assert.ok(wide <= width, `${view}: ${wide}`);
        }, { viewport: { width, height: 800 } });
      }
    }
  });

  test('has first what is lost, and of that the leak that most was lost with', async () => {
    altered('told.html', 'head.html', ({ report }) => {
      const [head] = report.leaks;
      Object.assign(head, { bytes: 16, blocks: 1, indirect_bytes: 5_000_000, indirect_blocks: 500 });
      report.leaks.push({ ...head, bytes: 2000, indirect_bytes: 0, indirect_blocks: 0, stack: 2, record: 2 },
                        { ...head, kind: 'indirect', bytes: 5_000_000, blocks: 500, indirect_bytes: 0, indirect_blocks: 0, record: 3 },
                        { ...head, kind: 'reachable', bytes: 9_000_000, indirect_bytes: 0, indirect_blocks: 0, record: 4 },
                        { ...head, kind: 'possible', bytes: 8, indirect_bytes: 0, indirect_blocks: 0, record: 5 },
                        { ...head, kind: 'possible', of_runtime: true, bytes: 9, indirect_bytes: 0, indirect_blocks: 0, record: 6 });
      report.leaks_total = 6;
    });
    await on('head.html', '#view=leaks', async (page) => {
      const cells = async (column) => (await rows(page, 'leaks').locator(`td:nth-child(${column})`).allTextContents());
      const sorted = () => page.locator('#panel-leaks th:not([aria-sort=none])').allTextContents();
      assert.deepEqual(await sorted(), ['Kind']);
      assert.deepEqual((await cells(1)).map((kind) => kind.replace('▸', '')),
        ['definitely lost', 'definitely lost', 'possibly lost', 'indirectly lost', 'still reachable', 'possibly lost, the runtime’s']);
      assert.deepEqual(await cells(2), ['4.77 MiB', '1.95 KiB', '8 B', '4.77 MiB', '8.58 MiB', '9 B']);
      assert.deepEqual(await cells(3), ['16 B', '1.95 KiB', '8 B', '4.77 MiB', '8.58 MiB', '9 B']);
      assert.match(await page.locator('.verdicts .verdict').first().innerText(), /most in .*Put/);
      await page.locator('#panel-leaks').getByRole('button', { name: 'Bytes', exact: true }).click();
      assert.deepEqual(await cells(3), ['8.58 MiB', '4.77 MiB', '1.95 KiB', '16 B', '9 B', '8 B']);
    });
    // Where nothing leads to anything the bytes are all.
    await on('ordinary.html', '#view=leaks', async (page) => {
      assert.equal(await page.getByRole('columnheader', { name: 'In all' }).count(), 0);
      assert.deepEqual(await page.locator('#panel-leaks th[aria-sort=ascending]').allTextContents(), ['Kind']);
      assert.match(await rows(page, 'leaks').first().textContent(), /definitely lost/);
    });
  });

  test('draws of a site the most that it held, though it held nothing when an interval ended', async () => {
    altered('told.html', 'bursts.html', (document) => {
      document.series = { begin_s: 0, interval_s: 0.02, points: document.report.sites.map(() => [7, 3, 3, 0, 0, 4096]) };
    });
    await on('bursts.html', '#view=growth', async (page) => {
      const points = await rows(page, 'growth').locator('.spark polyline').first().getAttribute('points');
      const heights = points.split(' ').map((point) => point.split(',')[1]);
      assert.equal(new Set(heights).size, 2);
      assert.deepEqual(heights.flatMap((height, i) => (height === heights[0] ? [] : [i])), [7]);
    });
  });

  test('says of the table of growth that a chosen time narrows no figure of it', () => on('ordinary.html', '#view=growth', async (page) => {
    const figures = () => rows(page, 'growth').filter({ hasText: 'Keep' }).locator('td.number').allTextContents();
    const before = await figures();
    await page.evaluate(() => { location.hash = '#view=growth&from=0.5&to=0.6'; });
    await page.waitForFunction(() => document.querySelector('.chip').classList.contains('active'));
    await drawn(page);
    assert.deepEqual(await figures(), before);
    assert.match(await page.locator('#panel-growth .note').textContent(), /; verdicts, rates, live bytes and peaks are of the whole run$/);
  }));
});
