// What each view of the page shows of a report, and what it says where it has nothing.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { altered, drawn, fragmentOf, show } from './browser.mjs';
import { on, rows, viewsOf } from './page_setup.mjs';

describe('an ordinary page, its views', () => {
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

  test('has the bars of a histogram beside their shares, however little room there is', async () => {
    altered('ordinary.html', 'many_sizes.html', ({ report }) => {
      report.sizes = Array.from({ length: 22 }, (_, i) => ({ ...report.sizes[0], from_bytes: 2 ** i, to_bytes: 2 ** (i + 1) - 1,
                                                           allocations: 740_381 >> (i > 6 ? i - 6 : 0), bytes: 999 << i, live_bytes: 999 << i }));
    });
    for (const width of [601, 700, 1400]) {
      await on('many_sizes.html', '#view=mappings', async (page) => {
        const parts = await page.locator('#panel-mappings table.plain').first().locator('td:has(.inline-bar)').evaluateAll((all) => all.map((part) =>
          ['.share', '.inline-bar'].map((child) => part.querySelector(child).getBoundingClientRect().toJSON())));
        assert.equal(parts.length, 22);
        for (const [share, bar] of parts) {
          assert.ok(bar.left >= share.right && bar.top < share.bottom && bar.bottom > share.top, JSON.stringify([width, share, bar]));
          assert.equal(bar.left, parts[0][1].left);
        }
        assert.ok(parts[0][1].width > 90, String(parts[0][1].width));
        assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= width);
      }, { viewport: { width, height: 900 } });
    }
  });

  test('has the classes of lifetimes that no block is of, and a bar for one block', async () => {
    altered('ordinary.html', 'lifetimes.html', ({ report }) => {
      report.lifetimes = { blocks: 5003, classes: [[0, 1, 1], [3, 4, 2], [4, 6, 5000], [16, 24, 1]].map(([from, to, blocks]) => ({ from_s: from / 1e9, to_s: to / 1e9, blocks })) };
    });
    await on('lifetimes.html', '#view=mappings', async (page) => {
      const rows = page.locator('#panel-mappings table.plain').nth(1).locator('tbody tr');
      const told = await rows.evaluateAll((all) => all.map((row) => `${row.cells[0].textContent}: ${row.cells[1].textContent}`));
      assert.deepEqual(told, ['0 s to 1 ns: 1', '2 ns to 3 ns: 0', '3 ns to 4 ns: 2', '4 ns to 6 ns: 5,000', '6 ns to 8 ns: 0', '8 ns to 12 ns: 0',
                              '12 ns to 16 ns: 0', '16 ns to 24 ns: 1']);
      const bars = await rows.evaluateAll((all) => all.map((row) => row.querySelector('.inline-bar')?.getBoundingClientRect().width ?? 0));
      assert.deepEqual(bars.map((width) => width >= 1), [true, false, true, true, false, false, false, true], String(bars));
    });
  });

  test('shows what was sampled from outside', () => on('ordinary.html', '#view=pressure', async (page) => {
    const panel = page.locator('#panel-pressure');
    assert.match(await panel.textContent(), /200 samples of the process and of the machine.*100 are here/);
    assert.deepEqual(await panel.locator('h3').allTextContents(), ['Memory', 'Taken back and wanted again', 'All that was sampled']);
    assert.equal(await panel.locator('.chart canvas').count(), 2);
    const rows = await panel.locator('table.plain tbody tr').allTextContents();
    assert.deepEqual(rows, ['resident, anonymous0 B6.19 MiB6.19 MiB at 1.98 s', 'resident, of files1.00 MiB1.00 MiB1.00 MiB at 0 s',
      "major faults, with memtrace's own07+7"]);
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

  test('does not call growing what was freed after all', async () => {
    for (const [name, held, words] of [['freed.html', false, 'grew, freed'], ['held.html', true, 'growing, held']]) {
      altered('ordinary.html', name, ({ report }) => {
        const site = report.sites.find(({ growth }) => growth === 'growing');
        Object.assign(site, { live_bytes: 0, live_blocks: 0, held_until_exit: held });
      });
      await on(name, '#view=growth', async (page) => {
        const tag = rows(page, 'growth').first().locator('.tag');
        assert.equal(await tag.textContent(), words);
        assert.equal((await tag.getAttribute('class')).includes('growing'), held);
        assert.match(await page.locator('#panel-growth .table > .note').textContent(), held ? /^4 stacks, 1 growing;/ : /^4 stacks, 0 growing;/);
        await show(page, 'sites');
        assert.equal(await rows(page, 'sites').filter({ hasText: 'Keep' }).locator('.tag').textContent(), held ? 'growing' : words);
      });
    }
  });

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

  test('says of leaks in a chosen time what is known of them', async () => {
    altered('ordinary.html', 'paused.html', ({ strings, frames, nodes, stacks, report, series }) => {
      const names = report.sites.map(({ stack }) => strings[frames.name[nodes.frame[stacks.node[stack]]]]);
      const points = series.points[names.indexOf('Keep')];
      for (let i = points.length - 6; i >= 0; i -= 6) if (points[i] >= 25 && points[i] < 50) points.splice(i, 5);
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
    const resident = { number: 1, time_s: 2, reason: 'end', name: null, peak: true, rss_bytes: 1 << 20, parts: {} };
    altered('ordinary.html', 'no_leaks.html', ({ report }) => { report.leaks = []; report.leaks_total = 0; });
    altered('ordinary.html', 'nothing.html', ({ report, series }) => {
      for (const all of [report.sites, report.leaks, series.points]) all.length = 0;
      report.sites_total = report.leaks_total = 0;
      report.mappings = report.threads = [];
      report.resident = [{ ...resident, sites: [] }];
    });
    altered('ordinary.html', 'none_resident.html', ({ report }) => { report.resident = [{ ...resident, sites: [] }]; });
    altered('ordinary.html', 'resident.html', ({ report }) => {
      report.resident = [{ ...resident, sites: [{ stack: report.sites[0].stack, allocator: 'malloc', resident_bytes: 1, live_bytes: 1,
                                                  untouched_bytes: 0, swapped_bytes: 0, pinned_bytes: 0 }] }];
    });
    const one = 'None is left by what was chosen.', site = 'No site is left by what was chosen.', of = 'No site has anything of it.', none = 'No site allocated.';
    for (const [name, fragment, said] of [['no_leaks.html', '', { leaks: 'There is none.' }],
                                          ['ordinary.html', '#q=nobody', { summary: site, leaks: one, sites: site, flame: of, sources: of }],
                                          ['ordinary.html', '#q=begin&measure=live_bytes', { summary: of }],
                                          ['resident.html', '#q=nobody', { resident: 'No site is left by the filter.', mappings: 'None is left by the filter.' }],
                                          ['none_resident.html', '', { resident: 'No site had a live block then.' }],
                                          ['nothing.html', '', { sites: none, flame: none, sources: none, resident: none, threads: 'There is none.',
                                                                 mappings: 'Nothing was mapped that the trace shows.' }]]) {
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

  test('breaks no word of what they ended by, where there is little room', () => on('mismatched.html', '#view=leaks', async (page) => {
    const lines = await page.locator('#panel-leaks table.plain').last().locator('td:nth-child(2n)').evaluateAll((all) => all.map((words) => {
      const range = document.createRange();
      range.selectNodeContents(words);
      return new Set([...range.getClientRects()].map(({ top }) => top)).size;
    }));
    assert.ok(lines[0] <= 2 && lines[1] === 1, String(lines));  // "operator new" and "realloc"
  }, { viewport: { width: 300, height: 700 } }));

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

  test('stays in a folder of which a filter leaves a part', () => on('ordinary.html', '#view=sources&measure=bytes_allocated&folder=work/src', async (page) => {
    const path = page.getByLabel('Path in the source tree');
    assert.match(await path.textContent(), /^allwork\/src$/);
    await page.getByLabel('Filter').fill('cache.cc');
    await page.waitForFunction(() => location.hash.includes('q=cache.cc'));
    assert.match(await path.textContent(), /^allwork\/src\/cache\/cache\.cc$/);
    assert.equal(fragmentOf(page).get('folder'), 'work/src');
  }));

  test('writes no name of a ring beyond the part that it is of', async () => {
    const names = { Parse: 'void svc::Parser::MMMMMMMM(std::string_view, WWWWWWWW)', Keep: 'Illimitable_fillInTheLittleListOfIllegalFill', Begin: 'Go' };
    altered('ordinary.html', 'ring_names.html', ({ strings, report }) => {
      for (const [from, to] of Object.entries(names)) strings[strings.indexOf(from)] = to;
      report.sites.forEach((site, i) => { site.bytes_allocated = [1000, 800, 300, 60][i]; });
    });
    for (const [name, fragment] of [['ring_names.html', ''], ['ring_names.html', '&folder=work/src'], ['large.html', ''], ['large.html', '&folder=work/src']]) {
      await on(name, `#view=sources&measure=bytes_allocated${fragment}`, async (page) => {
        const outside = await page.locator('#panel-sources .rings').evaluate((rings) => {
          const paths = [...rings.querySelectorAll('path')];
          return [...rings.querySelectorAll('text')].flatMap((text) => {
            const { x, y, width, height } = text.getBBox();  // as it is before it is turned
            const to = rings.createSVGPoint();
            const corner = (left, top) => {
              Object.assign(to, { x: left, y: top });
              const matrix = text.transform.baseVal.consolidate()?.matrix;
              return matrix ? to.matrixTransform(matrix) : to.matrixTransform(rings.createSVGMatrix());
            };
            // Above and below the letters there is more than what they need.
            const corners = [0, width].flatMap((right) => [0.2, 0.8].map((down) => corner(x + right, y + down * height)));
            const one = paths.find((path) => path.isPointInFill(corner(x + width / 2, y + height / 2)));
            return corners.every((each) => one?.isPointInFill(each)) ? [] : [text.textContent];
          });
        });
        assert.deepEqual(outside, [], `${name} ${fragment}`);
        const texts = await page.locator('#panel-sources .rings text').allTextContents();
        assert.ok(texts.every((text) => text.length >= 5 || !text.endsWith('…')), String(texts));
        if (name === 'ring_names.html' && fragment) {
          const of = (begin) => texts.find((text) => text.startsWith(begin)) ?? '';
          assert.ok(texts.includes('Go'), String(texts));
          assert.ok(of('Illi').length > of('void').length, String(texts));  // of narrow letters there are more
        }
      });
    }
  });

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
});
