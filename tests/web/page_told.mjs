// What the program told of itself: phases, marks and pools, above the timeline and in a view of their own.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { before, describe, test } from 'node:test';
import { altered, axe, drawn, fragmentOf, show } from './browser.mjs';
import { on, rows, written } from './page_setup.mjs';

const at = (time_s, live_bytes) => ({ time_s, live_bytes, live_blocks: live_bytes / 64 });
const phase = (name, times, begin, end, again = [begin, end]) => ({
  name, times, open: 0, total_s: end - begin, allocations: 10, frees: 5, bytes_allocated: 640, minor_faults: 3, major_faults: 1, growth_bytes: -2048,
  growth_blocks: 5, largest_growth_bytes: 320, first_begin: at(begin, 1024), first_end: at(end, 2048), last_begin: at(again[0], 3072), last_end: at(again[1], 4096) });

describe('what the program told', () => {
  before(() => {
    altered('ordinary.html', 'phases.html', ({ report }) => {
      report.phases = [phase('load', 1, 0.5, 1), phase('query', 3, 1, 1.1, [1.5, 1.6])];
      report.marks = [...Array.from({ length: 60 }, (_, i) => ({ name: `request ${i} ${'😀'.repeat(40)}`, ...at(0.115 + i * 0.03, 64 * i) })), { name: 'closing', ...at(1.99, 64) }];
      report.pools = [['arena', 0], ['', 2]].map(([name, site]) => ({
        name, created: 2, destroyed: 0, allocations: 20, frees: 7, bytes_allocated: 1280, live_bytes: 832, live_blocks: 13, peak_bytes: 1024,
        first_created_s: 1, stack: report.sites[site].stack }));
    });
  });

  test('has its names apart from each other and from the plot', () => on('phases.html', '', async (page) => {
    await page.evaluate(() => {
      window.bars = [];
      const { fillRect } = CanvasRenderingContext2D.prototype;
      CanvasRenderingContext2D.prototype.fillRect = function (x, y, width, height) {
        if (height === 3 && this.canvas === document.querySelector('.timeline canvas')) window.bars.push({ x, width });
        fillRect.call(this, x, y, width, height);
      };
    });
    const names = (await written(page)).filter(({ text }) => /^(load|query|request|closing)/.test(text));
    const texts = names.map(({ text }) => text);
    assert.ok(['load', 'query'].every((text) => texts.includes(text)), String(texts));
    const requests = texts.filter((text) => text.startsWith('request'));
    assert.ok(requests.length > 2 && requests.every((text) => /^request \d+ (😀)+…$/u.test(text)), String(requests));
    const plot = await page.evaluate(() => {
      const { top, left, width } = document.querySelector('.timeline .u-over').style;
      return { top: parseFloat(top), left: parseFloat(left), right: parseFloat(left) + parseFloat(width) };
    });
    names.forEach((one, i) => {
      assert.ok(one.y < plot.top && one.left >= plot.left && one.right <= plot.right + 1, JSON.stringify([one, plot]));
      for (const other of names.slice(i + 1)) {
        assert.ok(one.y !== other.y || one.right < other.left || one.left > other.right, JSON.stringify([one, other]));
      }
    });
    // A phase from its begin to its end, and its last time.
    const time = (x) => 2 * (x - plot.left) / (plot.right - plot.left);
    const bars = (await page.evaluate(() => window.bars)).slice(-3).map(({ x, width }) => [time(x), time(x + width)]);
    [[0.5, 1], [1, 1.1], [1.5, 1.6]].forEach((span, i) => span.forEach((edge, j) => assert.ok(Math.abs(bars[i][j] - edge) < 0.01, JSON.stringify(bars))));
  }));

  test('has the name of a mark at the right edge to the left of it', async () => {
    altered('phases.html', 'one_mark.html', ({ report }) => { report.marks.splice(0, 60); });
    await on('one_mark.html', '', async (page) => {
      const [mark] = (await written(page)).filter(({ text }) => text === 'closing');
      const right = await page.evaluate(() => parseFloat(document.querySelector('.timeline .u-over').style.left) + parseFloat(document.querySelector('.timeline .u-over').style.width));
      assert.ok(mark.right < right, JSON.stringify([mark, right]));
    });
  });

  test('has a view, with what was live and what was done in a phase', () => on('phases.html', '#view=phases', async (page) => {
    const panel = page.locator('#panel-phases');
    const cells = (table, row) => panel.getByRole(table === 'Pools' ? 'treegrid' : 'grid', { name: table }).locator('tr[data-index]').nth(row).locator('td').allTextContents();
    assert.deepEqual(await cells('Phases', 1), ['query', '1.00 s to 1.60 s', '3', '100 ms', '10', '640 B', '1.00 KiB', '4.00 KiB', '-2.00 KiB', '4']);
    assert.deepEqual(await cells('Pools', 0), ['▸1.25 KiB', '832 B', '1.00 KiB', '20', '7', '2', 'arena', 'Parse', 'parser.cc:12']);
    assert.equal((await cells('Pools', 1))[6], '(no name)');
    const marks = panel.locator('table.plain tbody tr');
    assert.equal(await marks.count(), 61);
    assert.match(await marks.nth(1).textContent(), /^request 1 (😀){40}145 ms64 B1$/u);
    await panel.getByRole('button', { name: '1.00 s to 1.60 s' }).click();
    await drawn(page);
    assert.deepEqual([fragmentOf(page).get('from'), fragmentOf(page).get('to')], ['1', '1.6']);
    assert.equal(await marks.count(), 20);  // from 1.0 s to 1.6 s
    assert.equal((await cells('Phases', 0))[0], 'load');  // which ends there
    await page.getByLabel('Filter').fill('begin');
    await page.waitForFunction(() => location.hash.includes('q=begin'));
    assert.equal((await cells('Pools', 0))[7], 'Begin');
    await panel.locator('tr[aria-expanded]').click();
    assert.match(await panel.getByRole('list', { name: /^Stack/ }).textContent(), /Begin.*main/);
  }));

  test('can be read by a screen reader, and on a narrow screen', () => on('phases.html', '#view=phases', async (page) => {
    await page.evaluate(readFileSync(axe, 'utf8'));
    const { violations } = await page.evaluate(() => window.axe.run());
    assert.deepEqual(violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`), []);
    await page.setViewportSize({ width: 320, height: 700 });
    await drawn(page);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= 320);
  }, { bypassCSP: true }));

  test('has no view where it told nothing', async () => {
    altered('ordinary.html', 'quiet.html', ({ report }) => { report.phases = []; });
    await on('quiet.html', '', async (page) => {
      assert.equal(await page.locator('#tab-phases').count(), 0);
      await show(page, 'faults');
      assert.equal(await rows(page, 'faults').count() > 0, true);
    });
  });

  test('draws ten thousand marks as so many lines as have room', async () => {
    altered('phases.html', 'many_marks.html', ({ report }) => { report.marks = Array.from({ length: 10_000 }, (_, i) => ({ name: `step ${i}`, ...at(i * 0.0002, 64) })); });
    await on('many_marks.html', '#view=phases', async (page) => {
      await page.evaluate(() => {
        window.lines = 0;
        const { stroke } = CanvasRenderingContext2D.prototype;
        CanvasRenderingContext2D.prototype.stroke = function (...path) {
          if (this.getLineDash().length > 0 && this.canvas === document.querySelector('.timeline canvas')) ++window.lines;
          stroke.apply(this, path);
        };
      });
      const names = (await written(page)).filter(({ text }) => text.startsWith('step '));
      assert.ok(names.length > 2 && names.length < 100, String(names.length));
      const lines = await page.evaluate(() => window.lines);
      assert.ok(lines > 100 && lines < 2 * 720, String(lines));  // drawn twice: in other colours, in another width
      assert.equal(await page.locator('#panel-phases table.plain tbody tr').count(), 100);
      assert.match(await page.locator('#panel-phases caption').textContent(), /^and 9,900 more rows/);
    });
  });
});
