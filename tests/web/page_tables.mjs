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
