// The flame graph of the page: its boxes, shares, zoom and keys.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { altered, drawn, fragmentOf, show } from './browser.mjs';
import { on, rows, treeItem } from './page_setup.mjs';

describe('an ordinary page, its flame graph', () => {
  test('boxes above a zoom keep their figures', () => on('ordinary.html', '', async (page) => {
    await show(page, 'flame');
    const main = page.locator('#panel-flame .box', { hasText: /^main$/ });
    const figures = await main.getAttribute('title');
    await page.locator('#panel-flame .box', { hasText: /^Keep$/ }).click();
    assert.equal(await page.locator('#panel-flame .box.above', { hasText: /^main$/ }).getAttribute('title'), figures);
  }));

  test('has a flame graph both ways, by any measure', () => on('ordinary.html', '#view=flame&measure=bytes_allocated', async (page) => {
    // 9000 * 64 + 500 * 1024 + 32 * 128 + 10 * 4096 = 1133056 bytes
    assert.match(await treeItem(page, /^all/).getAttribute('aria-label'), /1\.08 MiB/);
    assert.match(await treeItem(page, /^main/).getAttribute('aria-label'), /: 1\.08 MiB, 100 %$/);
    assert.match(await treeItem(page, /^Parse/).getAttribute('aria-label'), /^Parse \(parser\.cc:12\): 563 KiB, 50\.8 %$/);
    assert.equal(await treeItem(page, /^main/).getAttribute('aria-level'), '3');  // all, libc's start, main
    await page.getByLabel('from the allocation up to its callers').check();
    assert.equal(await treeItem(page, /^Parse/).getAttribute('aria-level'), '2');
    assert.equal(fragmentOf(page).get('direction'), 'callers');
    await page.getByLabel('Measure').selectOption('allocations');
    assert.match(await treeItem(page, /^Parse/).getAttribute('aria-label'), /9,000, 94\.3 %/);
    await treeItem(page, /^Keep/).click();
    assert.equal(await treeItem(page, /^Parse/).count(), 0);
    assert.match(await page.getByLabel('Path in the flame graph').textContent(), /all.*Keep/);
    await page.getByRole('button', { name: 'all', exact: true }).click();
    assert.equal(await treeItem(page, /^Parse/).count(), 1);
  }));

  test('takes shares of the whole run where it does not have all sites, and says so', async () => {
    altered('ordinary.html', 'some.html', ({ report, series }) => {
      for (const sites of [report.sites, series.points]) sites.length = 2;  // Parse and Keep
    });
    const some = /Of the 2 sites in this page, of 4\./;
    await on('some.html', '#measure=bytes_allocated', async (page) => {
      assert.match(await page.getByRole('region', { name: 'Sites that are not here' }).textContent(), /^2 sites with fewer bytes are not in this page/);
      const largest = page.locator('#panel-summary .columns > section').last();
      assert.match(await largest.textContent(), new RegExp(`${some.source} Shares are of all 4\\..*563 KiB 50\\.8 %Parse`));
      await show(page, 'flame');
      assert.match(await page.locator('#panel-flame').textContent(), new RegExp(`${some.source} Shares are of all 4\\.`));
      assert.match(await treeItem(page, /^all/).getAttribute('aria-label'), /1\.08 MiB$/);
      assert.match(await treeItem(page, /^Parse/).getAttribute('aria-label'), /: 563 KiB, 50\.8 %$/);
      await treeItem(page, /^Keep/).click();
      assert.match(await page.locator('#panel-flame .box.above').first().getAttribute('title'), /1\.08 MiB$/);
      for (const view of ['growth', 'sites']) {
        await show(page, view);
        assert.match(await page.locator(`#panel-${view} .table > .note`).textContent(), /; 2 more are not in this page/, view);
      }
      await show(page, 'sources');
      assert.match(await page.locator('#panel-sources').textContent(), some);
      await page.getByText('Live heap by who holds it').click();
      await drawn(page);
      assert.match(await page.locator('.timeline details[open]').textContent(), some);
    });
    await on('some.html', '#measure=bytes_allocated&q=parse', async (page) => {
      assert.match(await page.locator('#panel-summary .filtered').textContent(), some);
      const largest = page.locator('#panel-summary .columns > section').last();
      assert.match(await largest.textContent(), /Shares are of these\..*563 KiB 100 %Parse/);
    });
    // Of the chosen time the timeline tells of all sites.
    await on('some.html', '#measure=allocations&from=0.5&to=1', async (page) => {
      const [, all] = /([\d,]+) allocations of/.exec(await page.locator('#panel-summary .range').textContent());
      await show(page, 'flame');
      assert.ok((await treeItem(page, /^all/).getAttribute('aria-label')).endsWith(` ${all}`));
    });
    altered('some.html', 'some_without_series.html', (document) => { delete document.series; });
    await on('some_without_series.html', '#measure=bytes_allocated&from=0.5&to=1', async (page) => {
      assert.match(await page.locator('#panel-summary .columns > section').last().textContent(), /Shares are of these\./);
    });
    await on('ordinary.html', '#measure=bytes_allocated', async (page) => {
      for (const view of ['summary', 'flame', 'growth', 'sites', 'sources']) {
        await show(page, view);
        assert.doesNotMatch(await page.locator(`#panel-${view}`).innerText(), /in this page/, view);
      }
    });
  });

  test('takes a closer look at the flame graph back when nothing is left there', () => on('ordinary.html', '#view=flame&measure=bytes_allocated', async (page) => {
    const gone = page.locator('#panel-flame').getByRole('status');
    const path = page.getByLabel('Path in the flame graph');
    await treeItem(page, /^Parse/).click();
    assert.match(await path.textContent(), /Parse$/);
    assert.equal(await gone.isVisible(), false);
    await page.getByLabel('Measure').selectOption('live_bytes');  // of which Parse has nothing
    assert.match(await path.textContent(), /Load$/);
    assert.match(await gone.textContent(), /^Nothing of it is left in Parse, which was looked at closely/);
    assert.match(await treeItem(page, /^Keep/).getAttribute('aria-label'), /: 400 KiB,/);
    await page.getByLabel('Measure').selectOption('bytes_allocated');
    assert.match(await path.textContent(), /Parse$/);
    assert.equal(await gone.isVisible(), false);
    await page.goto(`${page.url()}&q=forget`);
    await drawn(page);
    assert.match(await path.textContent(), /main$/);
    assert.match(await treeItem(page, /^Forget/).getAttribute('aria-label'), /: 4\.00 KiB, 100 %/);
    await show(page, 'sites');
    await rows(page, 'sites').click();
    await page.getByRole('button', { name: 'main', exact: true }).click();
    assert.deepEqual([fragmentOf(page).get('q'), fragmentOf(page).get('frame')], ['=main', null]);
    await show(page, 'flame');
    assert.match(await treeItem(page, /^all/).getAttribute('aria-label'), /1\.08 MiB$/);
  }));

  test('has one box for a function that calls from many lines, and says how many are too narrow', async () => {
    altered('ordinary.html', 'wide.html', ({ strings, frames, nodes, stacks, report, series }) => {
      const main = frames.name.findIndex((each) => strings[each] === 'main');
      const outer = nodes.parent[nodes.frame.indexOf(main)];
      const add = (table, values) => Object.entries(values).forEach(([key, value]) => table[key].push(value)) ?? table[Object.keys(values)[0]].length - 1;
      for (let line = 1; line <= 2000; ++line) {
        const like = (name) => ({ name, module: frames.module[main], file: frames.file[main], line, flags: frames.flags[main] });
        const at = add(nodes, { parent: outer, frame: add(frames, like(frames.name[main])) });
        const called = add(frames, like(strings.push(`call${line}`) - 1));
        report.sites.push({ ...report.sites[0], stack: add(stacks, { node: add(nodes, { parent: at, frame: called }), begin: 0, end: 2, caller: 0 }) });
        series.points.push(series.points[0]);
      }
      report.sites_total = report.sites.length;
    });
    for (const direction of ['callees', 'callers']) {
      await on('wide.html', `#view=flame&measure=bytes_allocated&direction=${direction}`, async (page) => {
        assert.match(await page.locator('#panel-flame').textContent(), /Too narrow to be drawn: 2,00\d branches\./);
        if (direction === 'callers') return;
        assert.match(await treeItem(page, /^main/).getAttribute('aria-label'), /^main \(main\.cc\): 1\.07 GiB, 100 %$/);
        await treeItem(page, /^main/).click();
        assert.match(await page.getByLabel('Path in the flame graph').textContent(), /main$/);
      });
    }
    await on('ordinary.html', '#view=flame', async (page) => assert.doesNotMatch(await page.locator('#panel-flame').innerText(), /Too narrow/));
  });

  test('moves in the flame graph by keys', () => on('ordinary.html', '#view=flame&measure=bytes_allocated', async (page) => {
    const focused = () => page.evaluate(() => document.activeElement.getAttribute('aria-label'));
    await treeItem(page, /^all/).focus();
    for (const [key, name] of [['ArrowDown', /^__libc_start_main/], ['ArrowDown', /^main/], ['ArrowDown', /^Load/],
                               ['ArrowRight', /^Begin/], ['ArrowUp', /^main/], ['ArrowDown', /^Load/], ['End', /^Forget/],
                               ['Home', /^Load/]]) {
      await page.keyboard.press(key);
      assert.match(await focused(), name, key);
    }
    await page.keyboard.press('Enter');
    assert.match(await focused(), /^Load/);
    assert.notEqual(fragmentOf(page).get('frame'), null);
    await page.keyboard.press('Escape');
    assert.match(await focused(), /^main/);
    await treeItem(page, /^Keep/).click();
    assert.match(await focused(), /^Keep/);
    await page.keyboard.press('Escape');
    assert.match(await focused(), /^Load/);
  }));
});
