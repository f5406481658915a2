// The filter of the page, and what it does not narrow.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { altered, drawn, fragmentOf, show } from './browser.mjs';
import { on, rows, callers, viewsOf, treeItem } from './page_setup.mjs';

describe('an ordinary page, its filter', () => {
  test('filters all views by function, file and expression', () => on('ordinary.html', '#view=sites', async (page) => {
    const filter = page.getByLabel('Filter');
    for (const [query, left] of [['forget', ['Forget']], ['cache.cc', ['Keep']], ['/^(Parse|Keep)$/', ['Keep', 'Parse']],
                                 ['load.cc', ['Keep', 'Parse']], ['[', []]]) {
      await filter.fill(query);
      await page.waitForFunction((want) => new URLSearchParams(location.hash.slice(1)).get('q') === want, query);
      assert.deepEqual((await callers(page)).sort(), left, query);
    }
    assert.equal(await filter.getAttribute('aria-invalid'), 'false');
    await filter.fill('/(/');
    await page.waitForFunction(() => document.querySelector('#filter').getAttribute('aria-invalid') === 'true');
    assert.match(await page.locator('#filter-error').textContent(), /Unterminated group/);
    await filter.fill('forget');
    await page.waitForFunction(() => location.hash.includes('q=forget'));
    assert.equal(await filter.getAttribute('aria-invalid'), 'false');
    assert.equal(await page.locator('#filter-error').textContent(), '');
    await show(page, 'flame');
    assert.equal(await treeItem(page, /^Forget/).count(), 1);
    assert.equal(await treeItem(page, /^Keep/).count(), 0);
    await show(page, 'leaks');
    assert.equal(await rows(page, 'leaks').count(), 1);
    await show(page, 'sources');
    assert.match(await page.locator('#panel-sources').textContent(), /leak\.cc/);
  }));

  test('filters by the function of a frame that is clicked, whatever its name looks like', async () => {
    altered('ordinary.html', 'names.html', ({ strings }) => {
      for (const [from, to] of [['Begin', 'a'], ['Forget', '/.*/'], ['Keep', '=Parse']]) strings[strings.indexOf(from)] = to;
    });
    await on('names.html', '', async (page) => {
      for (const view of ['sites', 'growth', 'leaks']) {
        for (const name of view === 'leaks' ? ['/.*/', '=Parse'] : ['a', '/.*/', '=Parse', 'Parse']) {
          await page.goto(page.url().replace(/#.*|$/, `#view=${view}`));
          await drawn(page);
          await rows(page, view).filter({ has: page.getByText(name, { exact: true }) }).click();
          await page.locator(`#panel-${view} tr.detail`).getByRole('button', { name, exact: true }).click();
          await drawn(page);
          assert.equal(fragmentOf(page).get('q'), `=${name}`);
          assert.equal(await page.getByLabel('Filter').inputValue(), `=${name}`);
          assert.equal(await page.getByRole('treegrid').getAttribute('aria-rowcount'), '2', name);
          assert.equal(await page.locator('#filter-error').textContent(), '');
        }
      }
    });
  });

  test('says in each view what it does not narrow', async () => {
    const whole = /Figures of the whole run, which the filter and the chosen time do not narrow/i;
    await on('ordinary.html', '#q=forget&from=0.5&to=1', async (page) => {
      for (const view of ['summary', 'threads', 'faults', 'mappings', 'pressure', 'coverage']) {
        await show(page, view);
        assert.match(await page.locator(`#panel-${view}`).innerText(), whole, view);
      }
      await show(page, 'summary');
      // Of its 32 allocations in 71 intervals 9 are before those 25, and 20 before their end.
      assert.match(await page.locator('#panel-summary .filtered').textContent(), /chosen time1 site: 11 allocations, 0 frees; live from 1\.13 KiB to 2\.54 KiB/);
      await show(page, 'leaks');
      assert.match(await page.getByLabel(/definitely lost/).locator('..').textContent(), / 0 B in 0 blocks, of 400 KiB$/);
      assert.match(await page.getByLabel(/still reachable/).locator('..').textContent(), / 4\.00 KiB in 32 blocks, of 4\.00 KiB$/);
    });
    await on('ordinary.html', '#q=forget', async (page) => {
      assert.match(await page.locator('#panel-summary').innerText(), /the whole run, which the filter does not narrow/);
      assert.match(await page.locator('#panel-summary .filtered').textContent(), /1 site: 32 allocations of 4\.00 KiB, 0 frees; live at the end 4\.00 KiB in 32 blocks/);
    });
    await on('ordinary.html', '', async (page) => {
      for (const view of await viewsOf(page)) {
        await show(page, view);
        assert.doesNotMatch(await page.locator(`#panel-${view}`).innerText(), /narrow/, view);
      }
    });
  });

  test('says of resident memory what the filter narrows', async () => {
    altered('ordinary.html', 'resident.html', ({ report }) => {
      const sites = report.sites.map(({ stack, allocator, fingerprint }) => ({
        stack, allocator, fingerprint, resident_bytes: 4096, live_bytes: 4096, untouched_bytes: 0, swapped_bytes: 0, pinned_bytes: 0 }));
      report.resident = [{ number: 1, time_s: 2, reason: 'end', name: null, peak: true, rss_bytes: 1 << 20, parts: { code: 1 << 20 }, sites }];
    });
    await on('resident.html', '#view=resident&q=forget&from=0.5&to=1', async (page) => {
      assert.match(await page.locator('#panel-resident .note').first().textContent(), /which the filter and the chosen time do not narrow/);
      assert.equal(await page.locator('#panel-resident .table > .note').textContent(), '1 site; figures of the whole run, which the chosen time does not narrow');
    });
  });
});
