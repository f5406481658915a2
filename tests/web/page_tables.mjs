// The tables of the page: sorted, opened by keys, in little room.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { altered, drawn, fragmentOf, show } from './browser.mjs';
import { on, rows, callers, viewsOf } from './page_setup.mjs';

describe('an ordinary page, its tables', () => {
  test('sorts a table, and opens its stacks by keys', () => on('ordinary.html', '#view=sites', async (page) => {
    const head = (name) => page.getByRole('columnheader', { name });
    assert.equal(await head('Total').getAttribute('aria-sort'), 'descending');
    assert.deepEqual(await callers(page), ['Parse', 'Keep', 'Begin', 'Forget']);
    await head('Caller').getByRole('button').click();
    assert.deepEqual(await callers(page), ['Begin', 'Forget', 'Keep', 'Parse']);
    assert.equal(fragmentOf(page).get('sort'), 'caller');
    const table = page.getByRole('treegrid', { name: 'Sites' });
    assert.equal(await table.getAttribute('aria-rowcount'), '5');
    await rows(page, 'sites').first().focus();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    const open = page.locator('#panel-sites tr[aria-expanded=true]');
    assert.match(await open.textContent(), /Forget/);
    const stack = page.getByRole('list', { name: 'Stack, innermost frame first' });
    assert.deepEqual(await stack.locator('li .name:not(.place *)').allTextContents(), ['Forget', 'main']);
    await page.getByRole('button', { name: /^show all 3 frames/ }).click();
    assert.match(await stack.textContent(), /__libc_start_main/);
    for (let frame = 0; frame < 4; ++frame) await drawn(page);  // the row is higher now, and the table draws itself anew
    assert.deepEqual(await stack.locator('li .name:not(.place *)').allTextContents(), ['Forget', 'main', '__libc_start_main']);
    assert.equal(await page.evaluate(() => document.activeElement.closest('li')?.querySelector('.name').textContent), '__libc_start_main');
    await show(page, 'summary');
    await show(page, 'sites');
    assert.match(await stack.textContent(), /__libc_start_main/);
    await open.focus();
    await page.keyboard.press('ArrowLeft');
    assert.equal(await open.count(), 0);
  }));

  test('keeps in sight what a row is of, where there is little room', () => on('ordinary.html', '#view=sites', async (page) => {
    const table = page.getByRole('treegrid', { name: 'Sites' });
    assert.deepEqual(await table.locator('th').first().getByRole('button').allTextContents(), ['Caller', 'Place']);
    const first = rows(page, 'sites').filter({ hasText: 'Keep' }).locator('td').first();
    assert.equal(await first.textContent(), '▸Keepcache.cc:88');
    // In one step: a table that measures its rows puts new ones in their place.
    const boxOf = async (selector) => (await page.waitForFunction(
      (one) => document.querySelector(one)?.getBoundingClientRect().toJSON(), selector)).jsonValue();
    const left = async () => (await boxOf('#panel-sites tbody tr[aria-level="1"] td')).x;
    const before = await left();
    await page.locator('#panel-sites .scroller').evaluate((scroller) => { scroller.scrollLeft = 300; });
    await drawn(page);
    assert.equal(await left(), before);
    // Where others are at work the row may be replaced while the mouse is down on it.
    const open = async () => {
      await first.click();
      return page.waitForSelector('#panel-sites .opened', { timeout: 5000 }).then(() => true, () => false);
    };
    assert.ok(await open() || await open());
    await drawn(page);
    const opened = await boxOf('#panel-sites .opened');
    assert.ok(opened.x >= 0 && opened.x + opened.width <= 380, JSON.stringify(opened));
    await page.evaluate(() => scrollTo(0, 0));
    await page.getByRole('button', { name: /lost for certain/ }).click();
    assert.ok((await page.getByRole('tab', { name: 'Leaks' }).boundingBox()).y < 350);
    await page.setViewportSize({ width: 1400, height: 900 });
    await drawn(page);
    assert.equal(await page.locator('#panel-leaks th').first().textContent(), 'Kind');
  }, { viewport: { width: 380, height: 700 } }));

  test('shows all columns in a window of 1200 px', () => on('ordinary.html', '', async (page) => {
    for (const view of await viewsOf(page)) {
      await show(page, view);
      for (const scroller of await page.locator(`#panel-${view} .table .scroller`).all()) {
        const [wide, room] = await scroller.evaluate((element) => [element.scrollWidth, element.clientWidth]);
        assert.ok(wide <= room, `${view}: ${wide} of ${room}`);
      }
    }
    await show(page, 'phases');
    const faults = await page.locator('#panel-phases th').getByRole('button', { name: 'Faults' }).boundingBox();
    assert.ok(faults.x + faults.width <= 1200, `${faults.x} ${faults.width}`);
  }, { viewport: { width: 1200, height: 900 } }));

  test('shows the whole of a number, however large it is', async () => {
    const counts = (of, names) => Object.assign(of, Object.fromEntries(names.map((name) => [name, 99_999_999_999])));
    altered('ordinary.html', 'large_counts.html', ({ report }) => {
      report.sites.forEach((site) => counts(site, ['allocations', 'live_blocks', 'temporary']));
      report.threads.forEach((thread) => counts(thread, ['allocations', 'frees', 'live_blocks', 'temporary']));
      report.leaks.forEach((leak) => counts(leak, ['blocks']));
      report.faults.sites.forEach((site) => counts(site, ['minor', 'major']));
      report.mappings.forEach((mapping) => counts(mapping, ['calls']));
      report.phases.forEach((phase) => counts(phase, ['times', 'allocations', 'minor_faults']));
    });
    for (const [width, seen] of [[1400, 4 * 3 + 2 * 4 + 2 + 2 + 1 + 3], [700, 4 * 3 + 2 * 4 + 2 + 2 + 1 + 3]]) {
      await on('large_counts.html', '', async (page) => {
        let large = 0;
        for (const view of ['sites', 'threads', 'leaks', 'growth', 'faults', 'mappings', 'phases']) {
          await show(page, view);
          const cells = await page.locator(`#panel-${view} .table td.number`).evaluateAll((all) => all.map((cell) =>
            ({ text: cell.textContent, fits: cell.scrollWidth <= cell.clientWidth })));
          assert.deepEqual(cells.filter(({ fits }) => !fits), [], `${view} at ${width}`);
          large += cells.filter(({ text }) => /99,999,999,999|100,000,000,\d/.test(text)).length;
        }
        assert.equal(large, seen);
        await show(page, 'sites');
        // The names are where they are mostly.
        const name = await rows(page, 'sites').first().locator('.end').first().evaluate((end) => end.scrollWidth <= end.clientWidth);
        assert.ok(name, String(width));
      }, { viewport: { width, height: 900 } });
    }
  });

  test('sorts by place where that has no column', () => on('ordinary.html', '#view=sites&sort=place', async (page) => {
    const sorted = () => page.locator('#panel-sites th:not([aria-sort=none])').evaluateAll((heads) => heads.map((head) =>
      [head.ariaSort, head.querySelector('[aria-current=true]').textContent, head.querySelectorAll('[aria-current=true]').length]));
    const places = () => page.locator('#panel-sites tbody .place').allTextContents();
    const up = ['begin.cc:5', 'cache.cc:88', 'leak.cc:3', 'parser.cc:12'];
    assert.deepEqual([await sorted(), await places()], [[['ascending', 'Place', 1]], up]);
    const head = page.locator('#panel-sites th').first();
    await head.getByRole('button', { name: 'Place' }).click();
    assert.deepEqual([await sorted(), await places()], [[['descending', 'Place', 1]], [...up].reverse()]);
    await head.getByRole('button', { name: 'Caller' }).click();
    assert.deepEqual(await sorted(), [['ascending', 'Caller', 1]]);
    const sizes = await head.getByRole('button').evaluateAll((buttons) => buttons.map((button) => button.scrollWidth <= button.clientWidth));
    assert.deepEqual(sizes, [true, true]);
  }, { viewport: { width: 380, height: 700 } }));

  test('keeps the focus on a head when there is more room, or less', () => on('ordinary.html', '#view=sites', async (page) => {
    const focused = () => page.evaluate(() => document.activeElement.closest('th') && document.activeElement.textContent);
    for (const title of ['Live', 'Caller', 'Place']) {
      await page.setViewportSize({ width: 1280, height: 900 });
      await drawn(page);
      await page.locator('#panel-sites th').getByRole('button', { name: title, exact: true }).focus();
      for (const width of [900, 1280]) {
        await page.setViewportSize({ width, height: 900 });
        await drawn(page);
        assert.equal(await focused(), title, `${width}`);
      }
    }
  }));

  // Sites of two calls in one line have one stack in the page, and nothing but their figures tells them apart.
  test('opens the row that is clicked, where others have its stack', async () => {
    altered('ordinary.html', 'twins.html', ({ report }) => {
      const [{ stack, allocator, fingerprint }] = report.sites, rows = [0, 1, 2, 3];
      const twins = (of) => rows.map((row) => ({ stack, allocator, fingerprint, ...of(1000 - row) }));
      const [fault] = report.faults.sites, [mapping] = report.mappings, [thread] = report.threads, [leak] = report.leaks;
      report.faults.sites = twins((minor) => ({ ...fault, minor }));
      report.mappings = twins((calls) => ({ ...mapping, calls, bytes: calls }));
      report.threads = twins((allocations) => ({ ...thread, allocations, bytes_allocated: allocations }));
      report.leaks = twins((blocks) => ({ ...leak, stack, blocks, bytes: blocks }));
      report.pools = twins((bytes) => ({ name: 'pool', created: 1, allocations: bytes, frees: 0, bytes_allocated: bytes, live_bytes: 0, live_blocks: 0, peak_bytes: bytes }));
      report.resident = [{ number: 1, time_s: 2, reason: 'end', name: null, peak: true, rss_bytes: 1 << 20, parts: {},
                           sites: twins((bytes) => ({ resident_bytes: bytes, live_bytes: bytes, untouched_bytes: 0, swapped_bytes: 0, pinned_bytes: 0 })) }];
      report.sites.forEach((site) => { site.stack = stack; });
    });
    await on('twins.html', '', async (page) => {
      // Of the last table of a view, each row as whether it is open and whether what it shows is below it.
      const state = (view) => page.locator(`#panel-${view} [role=treegrid]`).last().locator('tbody tr:not(.detail)').evaluateAll((all) =>
        all.map((row) => `${row.classList.contains('open')} ${row.nextElementSibling?.classList.contains('detail') ?? false}`));
      const opened = (at) => [0, 1, 2, 3].map((row) => (row === at ? 'true true' : 'false false'));
      for (const view of ['leaks', 'growth', 'resident', 'faults', 'mappings', 'phases']) {
        await show(page, view);
        const table = page.locator(`#panel-${view} [role=treegrid]`).last();
        for (const row of [0, 2, 3]) {
          await table.locator('tbody tr:not(.detail)').nth(row).locator('td').first().click();
          await drawn(page);
          assert.deepEqual(await state(view), opened(row), view);
          await table.locator('tbody tr:not(.detail)').nth(row).locator('td').first().click();
          await drawn(page);
          assert.deepEqual(await state(view), opened(-1), view);
        }
      }
      // It is the same row in another order.
      await show(page, 'resident');
      await rows(page, 'resident').nth(1).locator('td').first().click();
      const live = page.locator('#panel-resident th button', { hasText: /^Live$/ });
      await live.click();
      await live.click();
      await drawn(page);
      assert.deepEqual(await state('resident'), opened(2));
      assert.match(await page.locator('#panel-resident tr.open').textContent(), /999 B/);
      await page.getByLabel('Filter').fill('nobody');
      await page.getByText('No site is left by the filter.').waitFor();
      await page.getByLabel('Filter').fill('');
      await page.locator('#panel-resident tr.open').waitFor();
      assert.deepEqual(await state('resident'), opened(2));
      await show(page, 'threads');
      assert.equal(await page.locator('#panel-threads [role=grid] tbody tr[data-index]').count(), 4);
    });
  });

  test('counts the rows that a table of sites has, and the sites in them', async () => {
    altered('ordinary.html', 'shared.html', ({ report }) => {
      report.sites.push({ ...report.sites[0], bytes_allocated: 1 });
      report.sites_total = 5;
    });
    for (const [name, fragment, words] of [['ordinary.html', '', /^4 callers with 4 sites$/], ['ordinary.html', '&group=stack', /^4 stacks with 4 sites$/],
                                           ['ordinary.html', '&group=module', /^1 module with 4 sites$/], ['ordinary.html', '&group=file', /^4 files with 4 sites$/],
                                           ['ordinary.html', '&from=0.5', /^3 callers with 3 sites that did or held something in the chosen time$/],
                                           ['shared.html', '&group=stack', /^4 stacks with 5 sites$/],
                                           ['estimated.html', '', /^1 caller with 2 sites$/]]) {
      await on(name, `#view=sites${fragment}`, async (page) => assert.match(await page.locator('#panel-sites .table > .note').textContent(), words));
    }
  });
});
