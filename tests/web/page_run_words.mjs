// What the page says of the run as a whole: the words of the text report, and what it says where little is known.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { altered, show } from './browser.mjs';
import { on } from './page_setup.mjs';

// The figures of the summary, by their names.
const figures = (page, view = 'summary') => page.locator(`#panel-${view} dl.figures`).first().evaluate((list) =>
  Object.fromEntries([...list.querySelectorAll('dt')].map((term) => [term.textContent, term.nextElementSibling.textContent])));

// Of a page with `change` made to its report.
async function told(change, fragment = '', view = 'summary') {
  altered('ordinary.html', 'words.html', ({ report, series }) => change(report, series));
  let found;
  await on('words.html', fragment, async (page) => { found = await figures(page, view); });
  return found;
}

const nothingRecorded = (report, series) => {
  for (const all of [report.sites, report.leaks, report.leak_scans, report.growing, report.faults.sites, report.faults.words, series.points]) all.length = 0;
  report.sites_total = report.leaks_total = 0;
  report.leak_scan = null;
  report.no_leak_scan = 'the trace ends before the program did';
  for (const key of Object.keys(report.totals)) if (typeof report.totals[key] === 'number') report.totals[key] = 0;
  for (const point of report.timeline.points) point.minor_faults = point.major_faults = null;
  report.coverage.all_recorded = false;
  report.coverage.dropped_events = 4857;
  Object.assign(report.faults, { minor: null, major: null, tool_minor: 0, peak_rss_bytes: null });
  Object.assign(report.process, { duration_s: 2 });
};

describe('the words of the run', () => {
  test('are those of the document, two of one label below each other', async () => {
    const found = await told(({ summary }) => summary.splice(1, summary.length,
      { label: 'Then', text: 'one' }, { label: 'Then', text: 'two' }, { label: 'Host', text: 'vm' }));
    assert.deepEqual(Object.keys(found), ['Program', 'Trace', 'Then', 'Host']);
    await on('words.html', '', async (page) => {
      const list = page.locator('#panel-summary dl.figures').first();
      assert.deepEqual(await list.locator('dt, dd').allTextContents(),
        ['Program', found.Program, 'Trace', found.Trace, 'Then', 'one', 'two', 'Host', 'vm']);
      const left = async (text) => (await list.getByText(text, { exact: true }).boundingBox()).x;
      assert.equal(await left('two'), await left('one'));
    });
  });

  test('do not take for nothing what is not known', async () => {
    await told(nothingRecorded);
    await on('words.html', '#view=faults', async (page) => {
      const panel = page.locator('#panel-faults');
      assert.match((await figures(page, 'faults')).Number, /^not known: the trace ends before/);
      assert.doesNotMatch(await panel.textContent(), /taken off already|counted by the kernel|too few samples/);
      assert.equal(await panel.locator('.chart').count(), 0);
      assert.equal(await page.locator('#measure').isVisible(), false);
      assert.equal(await page.getByText('Measure', { exact: true }).isVisible(), false);
      assert.equal(await page.getByLabel('Filter').isVisible(), true);
    });
  });

  test('say of a log once that it has no faults', async () => {
    await told((report) => {
      Object.assign(report.process, { end: null, exit_status: null, start_time: null });
      report.faults = { source: null, minor: null, major: null, attributed_minor: null, tool_minor: 0, thrash: [], peak_rss_bytes: null,
                        correlation: { live_bytes_vs_minor: null, allocated_bytes_vs_minor: null, lagged: null, words: [] } };
      report.phases = [];
      for (const point of report.timeline.points) point.minor_faults = point.major_faults = null;
    });
    await on('words.html', '#view=faults', async (page) => {
      assert.equal(await page.locator('#panel-faults').textContent(), 'FaultsThe log has no page faults.');
      assert.equal(await page.locator('section.timeline details > summary').first().textContent(), 'Allocations');
    });
  });
});

describe('the words of the views', () => {
  test('say when a scan was made', async () => {
    for (const [scan, words] of [
      [{}, 'Scan 1, at the exit, after the destructors, at 2.00 s.'],
      [{ when: 'at the full moon', label: 'warm' }, 'Scan 1, at the full moon (warm), at 2.00 s.'],
    ]) {
      altered('ordinary.html', 'words.html', ({ report }) => Object.assign(report.leak_scans[0], { label: '', time_s: 2 }, scan));
      await on('words.html', '#view=leaks', async (page) => {
        assert.equal(await page.locator('#panel-leaks p.note').filter({ hasText: 'Scan' }).textContent(), words);
      });
    }
  });

  test('name the threads of which one freed what another allocated', async () => {
    altered('ordinary.html', 'words.html', ({ report }) => {
      const [thread] = report.threads;
      report.threads = [{ ...thread, tid: 1, name: 'app' }, { ...thread, tid: 1, name: 'app', in_signal_handlers: true }, { ...thread, tid: 2, name: 'net' },
                        { ...thread, tid: 3, name: '' }, { ...thread, tid: 4, name: 'old' }, { ...thread, tid: 4, name: 'new' }];
      report.thread_exchanges = [[1, 2], [2, 3], [4, null]].map(([from_tid, to_tid]) => ({ from_tid, to_tid, blocks: 5, bytes: 6 }));
    });
    await on('words.html', '#view=threads', async (page) => {
      const table = page.locator('#panel-threads table.plain', { hasText: 'Freed by' });
      assert.deepEqual(await table.locator('tbody tr').allTextContents(), ['app 1net 256 B', 'net 2356 B', '4another56 B']);
    });
  });

  test('are words for all that was sampled from outside', async () => {
    const columns = ['tree.processes', 'rollup.pss_bytes', 'system.stall_full_us'], titles = ['processes', 'its share', 'all waited'];
    altered('ordinary.html', 'words.html', ({ report }) => {
      Object.assign(report.pressure, { columns, titles });
      report.pressure.points = [0, 1].map((time_s) => ({ time_s, ...Object.fromEntries(columns.map((column) => [column, 5])) }));
    });
    await on('words.html', '#view=pressure', async (page) => {
      const heads = page.locator('#panel-pressure table.plain tbody th');
      assert.deepEqual(await heads.allTextContents(), titles);
      assert.deepEqual(await heads.locator('[title]').evaluateAll((all) => all.map((one) => one.title)), columns);
    });
  });

  test('say what the colours of the flame graph mean', () => on('ordinary.html', '#view=flame&measure=bytes_allocated', async (page) => {
    const legend = page.getByRole('list', { name: 'Colours of the flame graph' });
    assert.deepEqual(await legend.locator('li').allTextContents(), ['the program and its libraries', 'starts main or a thread']);
    const colour = (element) => element.evaluate((one) => getComputedStyle(one).backgroundColor);
    assert.equal(await colour(legend.locator('.swatch').first()), await colour(page.getByRole('treeitem', { name: /^Parse/ })));
    assert.equal(await colour(legend.locator('.swatch').last()), await colour(page.getByRole('treeitem', { name: /^__libc_start_main/ })));
    await show(page, 'summary');
    assert.equal(await legend.isVisible(), false);
  }));

  test('are sentences in the card of what was not recorded, with where the file ends', async () => {
    const cut = 'the trace is incomplete: the file ends at byte 300000, within a block; what was whole before was read';
    for (const [coverage, words] of [
      [{ truncated: true, notes: ['another', cut] }, `T${cut.slice(1)}.`],
      [{ truncated: true, notes: [] }, 'The trace is incomplete.'],
      [{ truncated: true, notes: [cut], window_begin_s: 0.5, interrupted: true },
       `T${cut.slice(1)}. What was before 500 ms was not kept, the reading was interrupted.`],
      [{ dropped_events: 3 }, '3 events lost.'], [{}, 'The notes of the trace say what.'],
    ]) {
      altered('ordinary.html', 'words.html', ({ report }) => Object.assign(report.coverage, { all_recorded: false }, coverage));
      await on('words.html', '', async (page) => {
        assert.equal(await page.locator('.verdict.warning', { hasText: 'Not everything was recorded' }).locator('p').textContent(), words);
      });
    }
  });
});
