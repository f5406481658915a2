// What a reader does with the page of --format html, in a headless Chromium. The pages are made by
// make_pages; no test depends on how fast anything is.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { altered, axe, build, directory, drawn, fragmentOf, launch, open, show } from './browser.mjs';

let browser;
before(async () => {
  execFileSync(join(build, 'tests/make_pages'), [directory]);
  browser = await launch();
});
after(() => browser?.close());

// Runs with a page that is closed after it, and on which nothing may have gone wrong.
async function on(name, fragment, run, options) {
  const page = await open(browser, name, fragment, options);
  try {
    await run(page);
    assert.deepEqual(page.problems, []);
  } finally {
    await page.context().close();
  }
}

const rows = (page, view) => page.locator(`#panel-${view} tbody tr[aria-level="1"], #panel-${view} tbody tr:not([aria-level]):not(.gap)`);
const callers = (page) => page.locator('#panel-sites tbody tr[data-index] td:nth-last-child(2)').allTextContents();
// Which there are depends on what the report has.
const viewsOf = (page) => page.locator('[role=tab]').evaluateAll((tabs) => tabs.map((tab) => tab.id.slice('tab-'.length)));
const treeItem = (page, name) => page.getByRole('treeitem', { name });

describe('an ordinary page', () => {
  test('says its verdict before anything else', () => on('ordinary.html', '', async (page) => {
    const first = page.locator('.page > section').first();
    assert.equal(await first.getAttribute('aria-label'), 'Verdict');
    // What Keep keeps is lost, what Forget does is reachable: make_pages says so.
    assert.match(await first.textContent(), /400 KiB lost for certain.*most in Keep/);
    assert.match(await page.title(), /^app – memtrace report$/);
    await first.getByRole('button', { name: /lost for certain/ }).click();
    assert.equal(fragmentOf(page).get('view'), 'leaks');
    assert.equal(await page.getByRole('tab', { name: 'Leaks' }).getAttribute('aria-selected'), 'true');
  }));

  test('has no good news where not all is known', async () => {
    await on('sampled.html', '', async (page) => {
      const verdict = page.locator('.page > section').first();
      assert.equal(await verdict.locator('.good').count(), 0);
      assert.match(await verdict.textContent(), /Every block of what was sampled was freed.*little of all/);
    });
    await on('window.html', '', async (page) => {
      const verdict = page.locator('.page > section').first();
      assert.equal(await verdict.locator('.good').count(), 0);
      assert.match(await verdict.textContent(), /0 B lost for certain.*20 blocks/);
      assert.match(await verdict.textContent(), /what was before 500 ms was not kept/);
    });
  });

  test('shows estimates of a sample as estimates', () => on('estimated.html', '', async (page) => {
    assert.match(await page.locator('.verdicts').textContent(), /~172 KiB not freedIn ~1\.76k blocks \[\d+ KiB to \d+ KiB\]/);
    const summary = await page.locator('#panel-summary').textContent();
    assert.match(summary, /every 4\.00 KiB: .* estimates/);
    assert.match(summary, /~1\.76k allocations, 0 frees, ~172 KiB \[/);
    const interval = /~172 KiB (\[.*?\]) in all/.exec(summary)[1];
    await show(page, 'sites');
    // Of one caller the page adds the sites up itself: as the report does all of them.
    const cells = (await rows(page, 'sites').locator('td').allTextContents()).map((text) => text.replace(/^[▸▾]/, '').trim());
    assert.deepEqual(cells.slice(0, 5), ['~172 KiB', interval, '~1.76k', '~172 KiB', '~1.76k']);
    assert.equal(cells[7], '–');  // temporary: not known, and so not 0
    await show(page, 'leaks');
    assert.match(await rows(page, 'leaks').first().textContent(), /~160 KiB \[\d+ KiB to \d+ KiB\]~1\.64k/);
    await show(page, 'flame');
    assert.match(await treeItem(page, /^Make/).first().getAttribute('aria-label'), /: ~160 KiB, /);
  }));

  test('its cards say what the text says', () => on('told.html', '', async (page) => {
    const cards = await page.locator('.verdicts .verdict').allTextContents();
    assert.match(cards[0], /3\.40 MiB lost for certain, 1\.10 MiB of it directly12,000 blocks that nothing points to any more, and 48,008 that only these lead to; most in .*Put/);
    assert.doesNotMatch(cards[0], /possibly/);  // that is the C runtime's
    assert.match(cards[1], /2 call sites grew without an end.*5\.86 KiB a second together; fastest .*Put.* cache\.cc:24/);
    assert.match(cards[2], /Not all page faults were seen.*5,000 page faults were lost/);
    await show(page, 'growth');
    assert.match(await page.locator('#panel-growth .note').textContent(), /^3 stacks, 3 growing at 2 call sites;/);
    const names = await rows(page, 'growth').locator('td:nth-last-child(2)').allTextContents();
    assert.deepEqual(names, ['svc::LruCache<..>::Put', 'svc::LruCache<..>::Put', 'svc::LruCache<..>::Get']);
    const whole = await rows(page, 'growth').last().locator('td:nth-last-child(2) [title]').getAttribute('title');
    assert.match(whole, /^void svc::LruCache<std::__cxx11::basic_string.*::Get\(std::.*const&\)$/);
    await show(page, 'faults');
    assert.match(await page.locator('#panel-faults tr[data-index]').first().textContent(), /LruCache<\.\.>::Putcache\.cc:24/);
    assert.match(await page.locator('#panel-faults').textContent(), /memtrace itself7 minor/);
    assert.doesNotMatch(await page.locator('#panel-faults ul.notes').textContent(), /none in the/);
    await show(page, 'resident');
    assert.deepEqual(await page.locator('#panel-resident ul.bars .what').allTextContents(), ['free, kept by the allocator', 'memtrace itself']);
    assert.equal(await page.getByText(/^whole run$/i).count(), 1);
  }));

  test('does not say of a short run that it grows without an end', async () => {
    // That of told.html is of 2 s.
    for (const [name, exitWork, kind, words] of [['short.html', 0.000_000_001, 'unknown', /^2 call sites rose until the end of a short run$/],
                                                 ['long.html', 0, 'bad', /^2 call sites grew without an end$/]]) {
      altered('told.html', name, ({ report }) => {
        assert.deepEqual([report.process.duration_s, report.process.exit_work_s], [2, 0]);
        report.process.exit_work_s = exitWork;
      });
      await on(name, '', async (page) => {
        const card = page.locator('.verdicts .verdict').nth(1);
        assert.match(await card.locator('h2').textContent(), words);
        assert.equal(await card.getAttribute('class'), `verdict ${kind}`);
      });
    }
  });

  test('boxes above a zoom keep their figures', () => on('ordinary.html', '', async (page) => {
    await show(page, 'flame');
    const main = page.locator('#panel-flame .box', { hasText: /^main$/ });
    const figures = await main.getAttribute('title');
    await page.locator('#panel-flame .box', { hasText: /^Keep$/ }).click();
    assert.equal(await page.locator('#panel-flame .box.above', { hasText: /^main$/ }).getAttribute('title'), figures);
  }));

  test('shows every view without an error', () => on('ordinary.html', '', async (page) => {
    const views = await viewsOf(page);
    for (const view of ['summary', 'flame', 'leaks', 'sites', 'sources', 'threads', 'faults', 'mappings', 'coverage']) {
      assert.ok(views.includes(view), view);
    }
    for (const view of await viewsOf(page)) {
      await show(page, view);
      const panel = page.locator(`#panel-${view}`);
      assert.ok(await panel.isVisible(), view);
      assert.ok((await panel.textContent()).length > 20, view);
      assert.equal(await page.locator('[role=tabpanel]:visible').count(), 1);
    }
  }));

  test('says in words what was found about page faults', () => on('ordinary.html', '#view=faults', async (page) => {
    const panel = page.locator('#panel-faults');
    const words = await panel.locator('ul.notes li').allTextContents();
    assert.equal(words.length, 2);
    assert.match(words[0], /^1,190 of 1,200 faults came when Fill touched blocks allocated by .*, from 100 ms to 200 ms; none in the 1\.80? s after that\.$/);
    assert.match(words[1], /^Minor faults follow the growth of the live heap 40(\.0)? ms later \(r = 0\.90; 0\.10 at the same time\)\.$/);
    assert.match(await panel.textContent(), /1,234 minor/);
    assert.match(await panel.locator('tr[data-index]').first().textContent(), /1,2000600 .s/);  // 1200 minor, no major, of 500 ns each
    assert.deepEqual(await panel.locator('table.plain tbody tr').allTextContents(), ['load125600 B0 B', 'stack of main thread340']);
  }));

  test('draws the bars of a histogram from one line on, with their shares', () => on('ordinary.html', '#view=mappings', async (page) => {
    const table = page.locator('#panel-mappings table.plain').first();
    assert.deepEqual(await table.locator('tbody tr').allTextContents(), ['64 to 1279,00092.8 %563 KiB0 B', '128 to 2557007.2 %87.5 KiB0 B']);
    const left = await table.locator('.inline-bar').evaluateAll((bars) => bars.map((bar) => bar.getBoundingClientRect().left));
    assert.equal(left[0], left[1]);
  }));

  test('shows what was sampled from outside', () => on('ordinary.html', '#view=pressure', async (page) => {
    const panel = page.locator('#panel-pressure');
    assert.match(await panel.textContent(), /200 samples of the process and of the machine.*100 are here/);
    assert.deepEqual(await panel.locator('h3').allTextContents(), ['Memory', 'Taken back and wanted again', 'All that was sampled']);
    assert.equal(await panel.locator('.chart canvas').count(), 2);
    const rows = await panel.locator('table.plain tbody tr').allTextContents();
    assert.deepEqual(rows, ['rss_anon_bytes0 B6.19 MiB6.19 MiB at 1.98 s', 'rss_file_bytes1.00 MiB1.00 MiB1.00 MiB at 0 s', 'major_faults07+7']);
  }));

  test('has round steps on an axis of bytes', () => on('ordinary.html', '', async (page) => {
    const texts = await page.evaluate(async () => {
      const drawn = [], { fillText } = CanvasRenderingContext2D.prototype;
      CanvasRenderingContext2D.prototype.fillText = function (text, ...where) {
        drawn.push(text);
        fillText.call(this, text, ...where);
      };
      window.dispatchEvent(new Event('beforeprint'));  // in other colours and another width
      await new Promise((done) => requestAnimationFrame(done));
      return drawn;
    });
    assert.ok(['4.00 MiB', '8.00 MiB', '12.0 MiB'].every((text) => texts.includes(text)), String(texts));
    assert.ok(!texts.includes('5.00 MiB'), String(texts));
  }));

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

  test('tells how each site grew', () => on('ordinary.html', '', async (page) => {
    await page.getByRole('button', { name: /1 call site grew without an end/ }).click();
    const first = rows(page, 'growth').first();
    assert.match(await first.textContent(), /^▸growing195 KiB\/s.*99\.9 %.*Keep/);
    assert.equal(await first.locator('svg polyline').count(), 1);
    await page.getByText('Live heap by who holds it').click();
    for (const by of ['caller', 'file', 'folder', 'module']) {
      await page.locator('.timeline details select').selectOption(by);
      await page.locator('.timeline .u-legend').last().waitFor();
    }
    assert.match(await page.locator('.timeline .u-legend').last().textContent(), /\/work\/app/);
  }));

  test('has a colour for what is large at the end, and words for what shrank', () => on('late.html', '#from=0.9', async (page) => {
    await page.getByText('Live heap by who holds it').click();
    await drawn(page);
    assert.match(await page.locator('.timeline .u-legend').last().textContent(), /2 others.*Last/);
    for (const view of ['summary', 'flame', 'sources']) {
      await show(page, view);
      assert.match(await page.locator(`#panel-${view}`).innerText(), view === 'flame'
        ? /Not drawn: 800 KiB by which other stacks shrank, which may be of functions that are drawn; all together shrank by 160 KiB\./
        : /Not drawn: 800 KiB by which others shrank; all together shrank by 160 KiB\./, view);
    }
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

  test('has a flame graph both ways, by any measure', () => on('ordinary.html', '#view=flame&measure=bytes_allocated', async (page) => {
    // 9000 * 64 + 500 * 1024 + 32 * 128 + 10 * 4096 = 1133056 bytes
    assert.match(await treeItem(page, /^all/).getAttribute('aria-label'), /1\.08 MiB/);
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
      assert.match(await largest.textContent(), /Shares are of these\..*563 KiB 100\.0 %Parse/);
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
    assert.match(await treeItem(page, /^Forget/).getAttribute('aria-label'), /: 4\.00 KiB, 100\.0 %/);
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
        assert.match(await treeItem(page, /^main/).getAttribute('aria-label'), /^main \(main\.cc\): 1\.07 GiB, 100\.0 %$/);
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

  test('says of leaks in a chosen time what is known of them', async () => {
    altered('ordinary.html', 'paused.html', ({ strings, frames, nodes, stacks, report, series }) => {
      const names = report.sites.map(({ stack }) => strings[frames.name[nodes.frame[stacks.node[stack]]]]);
      const points = series.points[names.indexOf('Keep')];
      for (let i = points.length - 5; i >= 0; i -= 5) if (points[i] >= 25 && points[i] < 50) points.splice(i, 5);
    });
    altered('ordinary.html', 'no_series.html', (document) => { delete document.series; });
    for (const [name, left, words] of [['ordinary.html', 2, /^2 rows whose site allocated in the chosen time$/],
                                       ['paused.html', 1, /^1 row whose site allocated in the chosen time$/],
                                       ['no_series.html', 2, /^2 rows that may be of the chosen time$/]]) {
      await on(name, '#view=leaks&from=0.5&to=1', async (page) => {
        assert.equal(await rows(page, 'leaks').count(), left, name);
        assert.match(await page.locator('#panel-leaks .table > .note').textContent(), words);
        const definite = await page.getByLabel(/definitely lost/).locator('..').textContent();
        assert.match(definite, left === 2 ? / 400 KiB in 400 blocks, of 400 KiB$/ : / 0 B in 0 blocks, of 400 KiB$/);
      });
    }
    await on('ordinary.html', '#view=threads&from=0.5&to=1', async (page) => {
      assert.match(await page.locator('#panel-threads .table > .note').textContent(), /^2 threads that may have done something in the chosen time$/);
    });
  });

  test('says why a view has nothing', async () => {
    altered('ordinary.html', 'no_leaks.html', ({ report }) => { report.leaks = []; report.leaks_total = 0; });
    altered('ordinary.html', 'nothing.html', ({ report, series }) => {
      for (const all of [report.sites, report.leaks, series.points]) all.length = 0;
      report.sites_total = report.leaks_total = 0;
    });
    const one = 'None is left by what was chosen.', site = 'No site is left by what was chosen.', of = 'No site has anything of it.', none = 'No site allocated.';
    for (const [name, fragment, said] of [['no_leaks.html', '', { leaks: 'There is none.' }],
                                          ['ordinary.html', '#q=nobody', { leaks: one, sites: site, flame: of, sources: of }],
                                          ['nothing.html', '', { sites: none, flame: none, sources: none }]]) {
      await on(name, fragment, async (page) => {
        for (const [view, words] of Object.entries(said)) {
          await show(page, view);
          assert.equal(await page.locator(`#panel-${view} .empty:visible`).textContent(), words, `${name} ${view}`);
        }
      });
    }
  });

  test('chooses kinds of leaks', () => on('ordinary.html', '#view=leaks', async (page) => {
    assert.equal(await rows(page, 'leaks').count(), 2);
    await page.getByLabel(/still reachable/).uncheck();
    assert.equal(await rows(page, 'leaks').count(), 1);
    assert.match(await rows(page, 'leaks').textContent(), /definitely lost/);
  }));

  test('lists blocks that ended by the wrong function', () => on('mismatched.html', '#view=leaks', async (page) => {
    const table = page.locator('#panel-leaks table.plain').last();
    assert.match(await table.textContent(), /operator new.*Grow .*grow\.cc:5.*realloc.*1,234/);
  }));

  test('lists invalid frees', () => on('mismatched.html', '#view=leaks', async (page) => {
    assert.match(await page.locator('.verdict.bad').first().textContent(), /12 double frees.*Of a block of Keep /);
    const table = page.locator('#panel-leaks table.plain').first();
    assert.match(await table.textContent(), /freed before.*2\.00 KiB.*12.*Keep .*keep\.cc:8.*Grow .*grow\.cc:5.*not recorded at 3/);
  }));

  test('says that neither filter nor time narrows what was freed wrongly', () => on('mismatched.html', '#view=leaks', async (page) => {
    const notes = page.locator('#panel-leaks').getByText(/which the filter does not narrow/);
    assert.equal(await notes.count(), 0);
    await page.getByLabel('Filter').fill('grow');
    await page.waitForFunction(() => location.hash.includes('q=grow'));
    assert.equal(await notes.count(), 2);
    for (const heading of ['Invalid frees', 'Ended by another kind of function than they came from']) {
      const note = await page.getByRole('heading', { name: heading }).evaluate((each) => each.nextElementSibling.textContent);
      assert.match(note, /^Figures of the whole run, which the filter does not narrow\.$/);
    }
  }));

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

  test('stays in a folder of which a filter leaves a part', () => on('ordinary.html', '#view=sources&measure=bytes_allocated&folder=work/src', async (page) => {
    const path = page.getByLabel('Path in the source tree');
    assert.match(await path.textContent(), /^allwork\/src$/);
    await page.getByLabel('Filter').fill('cache.cc');
    await page.waitForFunction(() => location.hash.includes('q=cache.cc'));
    assert.match(await path.textContent(), /^allwork\/src\/cache\/cache\.cc$/);
    assert.equal(fragmentOf(page).get('folder'), 'work/src');
  }));

  test('goes down the source tree and back', () => on('ordinary.html', '#view=sources&measure=bytes_allocated', async (page) => {
    const panel = page.locator('#panel-sources');
    await panel.locator('.bars').getByRole('button', { name: 'work/src' }).click();
    assert.match(await panel.locator('.bars').textContent(), /parse/);
    const folder = fragmentOf(page).get('folder');
    await page.goBack();
    await drawn(page);
    assert.notEqual(fragmentOf(page).get('folder'), folder);
    assert.ok(await panel.locator('svg path').count() > 4);
  }));

  test('shows who gets its address what was chosen', () => on('ordinary.html', '', async (page) => {
    await show(page, 'sites');
    await page.getByLabel('Measure').selectOption('wasted_bytes');
    await page.getByLabel('Rows of the table').selectOption('file');
    await page.getByLabel('Filter').fill('src');
    await page.waitForFunction(() => location.hash.includes('q=src'));
    const shown = await page.locator('[role=tabpanel]:visible').innerText();
    const fragment = new URL(page.url()).hash;
    await on('ordinary.html', fragment, async (other) => {
      assert.equal(await other.locator('[role=tabpanel]:visible').innerText(), shown);
      assert.equal(await other.getByLabel('Filter').inputValue(), 'src');
    });
    await page.goBack();
    await drawn(page);
    assert.equal(await page.getByLabel('Rows of the table').inputValue(), 'caller');
  }));

  test('has what its tables are sorted by in the address, each by itself', async () => {
    for (const [name, views] of [['ordinary.html', ['leaks', 'growth', 'sites', 'faults', 'mappings']], ['told.html', ['resident']]]) {
      await on(name, '', async (page) => {
        for (const view of views) {
          await show(page, view);
          const head = page.locator(`#panel-${view} .table th`).filter({ hasText: /^(Caller|Allocated by)/ });
          const sorted = () => head.getAttribute('aria-sort');
          assert.equal(await sorted(), 'none');
          await head.getByRole('button').first().click();
          assert.deepEqual([await sorted(), fragmentOf(page).get('sort')], ['ascending', 'caller'], view);
          await show(page, 'coverage');
          assert.equal(fragmentOf(page).get('sort'), null);
          await show(page, view);
          assert.deepEqual([await sorted(), fragmentOf(page).get('sort')], ['ascending', 'caller'], view);
          const address = page.url();
          await page.goto(address.replace('sort=caller', 'sort=-caller'));
          await drawn(page);
          assert.equal(await sorted(), 'descending');
          await page.goto(address.replace(/&?sort=caller/, ''));
          await drawn(page);
          assert.equal(await sorted(), 'none');
        }
      });
    }
  });

  test('has whose the live heap over time is in the address', () => on('ordinary.html', '', async (page) => {
    const details = page.locator('.timeline details').last();
    await page.getByText('Live heap by who holds it').click();
    await page.waitForFunction(() => location.hash.includes('by=caller'));
    await details.locator('select').selectOption('file');
    assert.equal(fragmentOf(page).get('by'), 'file');
    const fragment = new URL(page.url()).hash;
    await page.goBack();
    await drawn(page);
    assert.equal(await details.locator('select').inputValue(), 'caller');
    await page.getByText('Live heap by who holds it').click();
    await page.waitForFunction(() => !location.hash.includes('by='));
    await on('ordinary.html', `${fragment}&q=forget`, async (other) => {
      const shown = other.locator('.timeline details').last();
      assert.equal(await shown.locator('select').inputValue(), 'file');
      assert.match(await shown.locator('.u-legend').textContent(), /leak\.cc/);
      await other.getByLabel('Filter').fill('nobody');
      await other.waitForFunction(() => location.hash.includes('q=nobody'));
      assert.match(await shown.innerText(), /No site is left by the filter\./);
      assert.equal(await shown.locator('canvas').count(), 0);
    });
  }));

  test('loses nothing of what is typed, and takes it back', () => on('ordinary.html', '', async (page) => {
    await show(page, 'sites');
    const typed = await page.evaluate(() => {
      const filter = document.querySelector('#filter');
      filter.focus();
      filter.value = 'forget';
      filter.dispatchEvent(new Event('input'));
      const before = location.hash;
      document.querySelector('#tab-sites').focus();  // before the moment is over
      return [before, location.hash];
    });
    assert.deepEqual(typed, ['#view=sites', '#view=sites&q=forget']);
    assert.equal(await rows(page, 'sites').count(), 1);
    await page.getByLabel('Filter').focus();
    await page.goBack();
    await drawn(page);
    assert.equal(await page.getByLabel('Filter').inputValue(), '');
  }));

  test('makes one step of the history of a slider that is dragged, or whose key is held', () => on('ordinary.html', '', async (page) => {
    const from = page.getByLabel('From, time of the run');
    const steps = () => page.evaluate(() => history.length);
    const before = await steps();
    const box = await from.boundingBox();
    await page.mouse.move(box.x + 8, box.y + box.height / 2);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2, { steps: 10 });
    await page.mouse.up();
    const dragged = Number(fragmentOf(page).get('from'));
    assert.ok(dragged > 0.8 && dragged < 1.2, String(dragged));  // of 2 s
    assert.equal(await steps(), before + 1);
    for (let i = 0; i < 5; ++i) await page.keyboard.down('ArrowRight');
    await page.keyboard.up('ArrowRight');
    assert.ok(Number(fragmentOf(page).get('from')) > dragged);
    assert.equal(await steps(), before + 2);
    await page.goBack();
    await page.waitForFunction((want) => location.hash.includes(want), `from=${dragged}`);
    await page.goBack();
    await page.waitForFunction(() => !location.hash.includes('from='));
    await drawn(page);
    assert.equal(await from.inputValue(), '0');
  }));

  test('survives an address that is nonsense', () => on('ordinary.html',
    '#view=no&measure=no&from=x&to=-5&frame=99999.-1.x&sort=-no&folder=/no/&group=__proto__&kinds=no&direction=no', async (page) => {
      for (const view of await viewsOf(page)) await show(page, view);
    }));

  test('is light or dark as the system is, or as one says', async () => {
    const background = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    for (const colorScheme of ['light', 'dark']) {
      await on('ordinary.html', '', async (page) => {
        const light = 'rgb(255, 255, 255)';
        assert.equal(await background(page) === light, colorScheme === 'light');
        const button = page.getByRole('button', { name: /^Colours/ });
        await button.click();
        assert.equal(await background(page), light);
        await button.click();
        assert.notEqual(await background(page), light);
      }, { colorScheme });
    }
  });

  test('has names and roles that a screen reader can use', async () => {
    for (const colorScheme of ['light', 'dark']) {
      await on('ordinary.html', '', async (page) => {
        await page.evaluate(readFileSync(axe, 'utf8'));
        for (const view of await viewsOf(page)) {
          await show(page, view);
          const { violations } = await page.evaluate(() => window.axe.run());
          assert.deepEqual(violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).slice(0, 3)}`), [], view);
        }
      }, { colorScheme, bypassCSP: true });
    }
  });

  test('prints all of its views', () => on('ordinary.html', '', async (page) => {
    const pdf = await page.pdf({ format: 'A4' });
    assert.ok(pdf.length > 10000);
    await page.emulateMedia({ media: 'print' });
    await page.evaluate(() => window.dispatchEvent(new Event('beforeprint')));
    assert.equal(await page.locator('[role=tabpanel]:visible').count(), (await viewsOf(page)).length);
    assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), 'rgb(255, 255, 255)');
    assert.ok(!(await page.getByLabel('Filter').isVisible()));
    await page.evaluate(() => window.dispatchEvent(new Event('afterprint')));
    assert.equal(await page.locator('[role=tabpanel]:visible').count(), 1);
  }, { colorScheme: 'dark' }));

  test('prints what was chosen, and the whole timeline', () => on('ordinary.html', '#view=growth&q=/forget|keep/&from=0.5&to=1', async (page) => {
    await page.emulateMedia({ media: 'print' });
    await page.evaluate(() => window.dispatchEvent(new Event('beforeprint')));
    for (const width of [600, 1050]) {  // of paper, upright or not
      await page.setViewportSize({ width, height: 900 });
      const [chart, canvas] = await page.evaluate(() => ['.timeline .chart', '.timeline canvas']
        .map((each) => document.querySelector(each).getBoundingClientRect().width));
      assert.ok(Math.abs(chart - canvas) < 1, `${chart} ${canvas}`);
    }
    assert.equal(await page.locator('.on-paper').innerText(), 'Time: 500 ms to 1.00 s. Filter: /forget|keep/. Measure: growth in the chosen time');
    await page.setViewportSize({ width: 600, height: 900 });
    const heights = await page.locator('#panel-growth .tag').evaluateAll((tags) => tags.map((tag) => tag.getBoundingClientRect().height));
    assert.ok(heights.length > 0 && heights.every((height) => height < 24), String(heights));
    await page.evaluate(() => window.dispatchEvent(new Event('afterprint')));
    await page.emulateMedia({ media: 'screen' });
    assert.equal(await page.locator('.on-paper').isVisible(), false);
  }, { viewport: { width: 1400, height: 900 } }));

  test('prints all columns, however narrow the window is', () => on('ordinary.html', '#view=growth', async (page) => {
    const heads = () => page.locator('#panel-growth th button').allTextContents();
    const screen = await heads();
    assert.deepEqual(screen.slice(0, 2), ['Caller', 'Place']);  // in one column
    await page.evaluate(() => window.dispatchEvent(new Event('beforeprint')));
    assert.deepEqual([(await heads())[0], (await heads()).at(-1)], ['Verdict', 'Place']);
    assert.match(await rows(page, 'growth').first().locator('td').last().textContent(), /^\w+\.cc:\d+$/);
    await page.evaluate(() => window.dispatchEvent(new Event('afterprint')));
    assert.deepEqual(await heads(), screen);
  }, { viewport: { width: 800, height: 700 } }));

  test('has a filter that is as wide as there is room', async () => {
    for (const [width, least] of [[1280, 450], [380, 200]]) {
      await on('ordinary.html', '', async (page) => {
        const box = await page.getByLabel('Filter').boundingBox();
        assert.ok(box.width >= least && box.x + box.width <= width, JSON.stringify(box));
      }, { viewport: { width, height: 700 } });
    }
  });

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
    await first.click();
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

  test('fits a narrow screen', () => on('ordinary.html', '', async (page) => {
    for (const view of await viewsOf(page)) {
      await show(page, view);
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(width <= 380, `${view}: ${width}`);
    }
  }, { viewport: { width: 380, height: 700 } }));
});

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
    const table = panel.locator('table.plain', { hasText: 'Freed by tid' });
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

describe('names that would be something else', () => {
  test('are text in every view', () => on('hostile.html', '', async (page) => {
    const inert = async () => {
      assert.equal(await page.evaluate(() => window.hacked), undefined);
      assert.equal(await page.locator('img, iframe, object, embed, a[href]').count(), 0);
      assert.equal(await page.locator('#app script, #app style, #app svg[onload]').count(), 0);
      // What would turn or hide text is shown as its number.
      const text = await page.evaluate(() => document.body.innerText +
        [...document.querySelectorAll('[title], [aria-label]')].map((e) => e.title + e.ariaLabel).join(' ') + document.title);
      assert.equal(text.match(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u202a-\u202e\u2066-\u2069]/u)?.[0], undefined);
    };
    for (const view of await viewsOf(page)) {
      await show(page, view);
      await inert();
      const row = rows(page, view).first();
      if (await row.count() > 0) await row.click();
      await inert();
    }
    const shown = await page.locator('#panel-coverage').textContent();
    for (const name of ['</script><script>window.hacked=1</script>', '<img src=x onerror=window.hacked=1>',
                        'right\\u202eto left\\u2066 isolated\\u200b', 'bell\\x07 escape\\x1b[2J', 'c1 \\x9b controls',
                        '\ufffd\ufffd not utf-8', 'hebrew and \u{1f600}', '__proto__', '@@MEMTRACE_DATA@@']) {
      assert.ok(shown.includes(name), `${name} in ${shown}`);
    }
  }));

  test('can be filtered for, grouped and looked at', () => on('hostile.html', '#view=sites', async (page) => {
    for (const group of ['stack', 'file', 'module', 'caller']) {
      await page.getByLabel('Rows of the table').selectOption(group);
      assert.ok(await rows(page, 'sites').count() > 0, group);
    }
    await page.getByLabel('Filter').fill('<img');
    await page.waitForFunction(() => location.hash.includes('q='));
    assert.equal(await rows(page, 'sites').count(), 1);
    await show(page, 'flame');
    await treeItem(page, /<img/).click();
    assert.match(await page.getByLabel('Path in the flame graph').textContent(), /<img src=x/);
    await page.reload();
    await page.waitForSelector('html[data-ready]');
    await drawn(page);
    assert.match(await page.getByLabel('Path in the flame graph').textContent(), /<img src=x/);
  }));

  test('are not run when they are the data itself', async () => {
    // The policy holds against a page that somebody changed, too.
    const page = await open(browser, 'hostile.html');
    const outcome = await page.evaluate(() => {
      const tried = [];
      try { document.body.innerHTML = '<img src=x onerror=window.hacked=1>'; tried.push('innerHTML'); } catch { /* refused */ }
      const script = document.createElement('script');
      try { script.textContent = 'window.hacked = 1'; document.body.append(script); } catch { /* refused */ }
      return [tried, window.hacked];
    });
    assert.deepEqual(outcome, [[], undefined]);
    const answer = await page.evaluate(() => fetch('https://example.org/').then(() => 'fetched', () => 'refused'));
    assert.equal(answer, 'refused');
    await page.context().close();
  });
});

describe('figures that are added up, and paper', () => {
  test('says of a caller what all of its stacks grew by', async () => {
    // Put by one way has 300 KiB less, and by another 200 KiB more.
    altered('told.html', 'moved.html', (document) => {
      const point = (interval, live) => [interval, 1, 0, 1, live << 10];
      document.series = { begin_s: 0, interval_s: 0.02, points: [[...point(0, 300), ...point(60, 0)], point(60, 200), [...point(0, 10), ...point(60, 60)]] };
    });
    await on('moved.html', '#from=1&to=1.5', async (page) => {
      const panel = page.locator('#panel-summary');
      const bars = await panel.locator('.bars li').allInnerTexts();
      assert.equal(bars.length, 1);
      assert.match(bars[0], /^50\.0 KiB 100\.0 %.*Get/s);
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
      assert.match(await sources.locator('.bars li').innerText(), /^50\.0 KiB 100\.0 %.*Get/s);
      assert.match(await sources.locator('.details').innerText(), /cache\.cc: -50\.0 KiB\. Not drawn: 100 KiB by which others shrank/);
    });
  });

  test('draws in a ring no more than there is room for', async () => {
    // A folder that grew by 900 KiB, with files in it that grew by 1200 KiB.
    altered('ordinary.html', 'rings.html', ({ series }) => {
      const point = (interval, live) => [interval, 1, 0, 1, live << 10];
      series.points = series.points.map((_, i) => [...point(0, i === 0 ? 300 : 0), ...point(60, i === 0 ? 0 : 400)]);
    });
    await on('rings.html', '#view=sources&from=1&to=1.5', async (page) => {
      const sources = page.locator('#panel-sources');
      assert.match(await sources.locator('.bars li').innerText(), /^900 KiB 100\.0 %\s+work\/src$/);
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

  test('has first the leak that most was lost with', async () => {
    altered('told.html', 'head.html', ({ report }) => {
      const [head] = report.leaks;
      Object.assign(head, { bytes: 16, blocks: 1, indirect_bytes: 5_000_000, indirect_blocks: 500 });
      report.leaks.push({ ...head, bytes: 2000, indirect_bytes: 0, indirect_blocks: 0, stack: 2, record: 2 },
                        { ...head, kind: 'indirect', bytes: 5_000_000, blocks: 500, indirect_bytes: 0, indirect_blocks: 0, record: 3 });
      report.leaks_total = 3;
    });
    await on('head.html', '#view=leaks', async (page) => {
      const cells = async (column) => (await rows(page, 'leaks').locator(`td:nth-child(${column})`).allTextContents());
      const sorted = () => page.locator('#panel-leaks th:not([aria-sort=none])').allTextContents();
      assert.deepEqual(await sorted(), ['In all']);
      assert.deepEqual(await cells(2), ['4.77 MiB', '4.77 MiB', '1.95 KiB']);
      assert.deepEqual(await cells(3), ['16 B', '4.77 MiB', '1.95 KiB']);
      assert.match(await page.locator('.verdicts .verdict').first().innerText(), /most in .*Put/);
      await page.locator('#panel-leaks').getByRole('button', { name: 'Bytes', exact: true }).click();
      assert.deepEqual(await cells(3), ['4.77 MiB', '1.95 KiB', '16 B']);
    });
    // Where nothing leads to anything the bytes are all.
    await on('ordinary.html', '#view=leaks', async (page) => {
      assert.equal(await page.getByRole('columnheader', { name: 'In all' }).count(), 0);
      assert.deepEqual(await page.locator('#panel-leaks th[aria-sort=descending]').allTextContents(), ['Bytes']);
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
