// The timeline of the page, and what a range of it narrows.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { altered, drawn, fragmentOf, show } from './browser.mjs';
import { on, rows, callers, treeItem, written } from './page_setup.mjs';

describe('an ordinary page, its time', () => {
  test('has round steps on an axis of bytes', () => on('ordinary.html', '', async (page) => {
    const texts = (await written(page)).map(({ text }) => text);
    assert.ok(['4.00 MiB', '8.00 MiB', '12.0 MiB'].every((text) => texts.includes(text)), String(texts));
    assert.ok(!texts.includes('5.00 MiB'), String(texts));
  }));

  test('has a label of its own at each tick of time, in the unit of the step', async () => {
    for (const [from, to, wanted] of [[0.1, 0.101, ['100.2 ms', '100.4 ms', '101 ms']], [0, 5e-9, ['0', '1 ns', '2 ns', '5 ns']],
                                      [12345, 12345.00002, ['12345 s', '12345.00001 s', '12345.00002 s']],
                                      [9.98, 10.02, ['9.98 s', '10 s', '10.02 s']],
                                      [0, 5_918_400, ['480 h', '960 h', '1440 h']], [0, 2, ['0.5 s', '1 s', '1.5 s', '2 s']]]) {
      altered('ordinary.html', 'stretch.html', ({ report, series }) => {
        report.range = { ...report.range, from_s: from, to_s: to };
        report.timeline.interval_s = (to - from) / 200;
        report.timeline.points.forEach((point, i) => { point.time_s = from + (i + 1) * (to - from) / 200; });
        series.begin_s = from;
        series.interval_s = (to - from) / 100;
        report.phases = report.pressure.points = [];
      });
      await on('stretch.html', '', async (page) => {
        const texts = (await written(page)).map(({ text }) => text).filter((text) => /^0$| (ns|us|ms|s|min|h)$/.test(text));
        assert.ok(wanted.every((text) => texts.includes(text)), String(texts));
        assert.equal(new Set(texts).size, texts.length, String(texts));
        assert.equal(new Set(texts.filter((text) => text !== '0').map((text) => text.split(' ')[1])).size, 1, String(texts));
      });
    }
  });

  test('draws a line where the run is shorter than an interval', async () => {
    altered('ordinary.html', 'instant.html', ({ report, series }) => {
      report.range.to_s = 5e-9;
      report.timeline.interval_s = 1e-6;
      report.timeline.points = [{ ...report.timeline.points[0], time_s: 1e-6 }];
      series.interval_s = 8e-6;
    });
    await on('instant.html', '', async (page) => {
      await page.locator('.timeline .u-over').first().hover();
      assert.match(await page.locator('.timeline .u-legend').first().textContent(), /time:?(0 s|5 ns)live.*2\.23 MiB/);
    });
  });

  test('draws what was sampled over the time of the timeline', async () => {
    altered('ordinary.html', 'sampled_early.html', ({ report }) => { report.pressure.points.length = 50; });
    await on('sampled_early.html', '#view=pressure', async (page) => {
      const chart = page.locator('#panel-pressure .chart').first();
      await chart.locator('.u-over').hover();  // in the middle of 2 s, of which nothing was sampled after 0.98 s
      assert.match(await chart.locator('.u-legend').textContent(), /time:?980 ms/);
    });
  });

  test('narrows everything to a range that is dragged in the timeline', () => on('ordinary.html', '#view=sites', async (page) => {
    assert.ok((await callers(page)).includes('Begin'));
    const box = await page.locator('.timeline .u-over').first().boundingBox();
    const y = box.y + box.height / 2;
    await page.mouse.move(box.x + box.width * 0.5, y);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.8, y, { steps: 5 });
    await page.mouse.up();
    await page.waitForFunction(() => location.hash.includes('from='));
    const { from, to } = Object.fromEntries(fragmentOf(page));
    assert.ok(Math.abs(Number(from) - 1.0) < 0.05, from);  // of 2 s
    assert.ok(Math.abs(Number(to) - 1.6) < 0.05, to);
    assert.ok(!(await callers(page)).includes('Begin'));  // which allocated until 0.15 s
    await show(page, 'flame');
    assert.equal(await treeItem(page, /^Begin/).count(), 0);
    await show(page, 'summary');
    assert.match(await page.locator('#panel-summary').textContent(), /In the chosen time/);
    await page.getByRole('button', { name: 'Whole run' }).click();
    assert.equal(fragmentOf(page).get('from'), null);
    await show(page, 'sites');
    assert.ok((await callers(page)).includes('Begin'));
  }));

  test('counts in a range what happened in it', () => on('ordinary.html', '#view=sites&from=0.5&to=1', async (page) => {
    // Keep allocates from 0.1 s to 1.5 s, in 71 intervals of 20 ms: of its 500 the 25 intervals from 0.5 s on have 176.
    const row = (await rows(page, 'sites').filter({ hasText: 'Keep' }).locator('td').allTextContents()).map((text) => text.replace(/^[▸▾]/, ''));
    assert.deepEqual(row.slice(0, 3), ['141 KiB', '176', '35']);
    await show(page, 'flame');
    assert.equal(await page.getByLabel('Measure').inputValue(), 'growth_bytes');
    assert.match(await treeItem(page, /^Keep/).getAttribute('aria-label'), /141 KiB/);
    await page.getByLabel('Measure').selectOption('allocations');
    assert.match(await treeItem(page, /^Keep/).getAttribute('aria-label'), /: 176,/);
    await page.getByRole('button', { name: 'Whole run' }).click();
    assert.match(await treeItem(page, /^Keep/).getAttribute('aria-label'), /: 500,/);
  }));

  test('takes the range from the keyboard as well', () => on('ordinary.html', '', async (page) => {
    const from = page.getByLabel('From, time of the run');
    await from.focus();
    for (let i = 0; i < 5; ++i) await page.keyboard.press('ArrowRight');
    assert.equal(fragmentOf(page).get('from'), '0.1');  // of intervals of 20 ms
    assert.equal(fragmentOf(page).get('to'), null);
    assert.match(await from.getAttribute('aria-valuetext'), /^100 ms$/);
    const to = page.getByLabel('To, time of the run');
    await to.focus();
    await page.keyboard.press('Home');  // not before the other one, which stays
    assert.deepEqual([fragmentOf(page).get('from'), fragmentOf(page).get('to')], ['0.1', '0.12']);
    assert.equal(await to.inputValue(), '6');
  }));

  test('says of which intervals its figures are', () => on('ordinary.html', '#view=sites&from=0.5123&to=0.9877', async (page) => {
    assert.equal(await page.locator('.chip').textContent(), '500 ms to 1.00 s');
    assert.match(await page.locator('.brush').textContent(), /in steps of 20\.0 ms/);
    const row = async () => rows(page, 'sites').filter({ hasText: 'Keep' }).locator('td').allTextContents();
    const figures = await row();
    await show(page, 'summary');
    // 50 points of 10 ms, of 1,000 to 1,600 allocations by turns of seven: the first is that at 510 ms.
    const allocations = Array.from({ length: 50 }, (_, i) => 1000 + ((51 + i) % 7) * 100).reduce((sum, one) => sum + one);
    assert.ok((await page.locator('#panel-summary .range').textContent()).includes(`${allocations.toLocaleString('en-US')} allocations`));
    await page.goto(page.url().replace(/#.*/, '#view=sites&from=0.5&to=1'));
    await drawn(page);
    assert.deepEqual(await row(), figures);
    await page.goto(page.url().replace(/#.*/, '#to=0'));  // one interval at least
    await drawn(page);
    assert.equal(await page.locator('.chip').textContent(), '0 s to 20.0 ms');
  }));
});
