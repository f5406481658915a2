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
  for (const point of report.timeline.points) point.minor_faults = point.major_faults = 0;
  report.coverage.all_recorded = false;
  report.coverage.dropped_events = 4857;
  Object.assign(report.faults, { minor: null, major: null, tool_minor: 0, peak_rss_bytes: null });
  Object.assign(report.process, { duration_s: 2 });
};

describe('the words of the run', () => {
  test('say how it ended as exactly as the text', async () => {
    const killed = { end: 'signal', exit_status: null, end_signal: 9 };
    const why = 'No count of OOM kills went up.';
    for (const [process, words] of [
      [{ end: 'exit', exit_status: 3 }, /^exit status 3, after 2\.00 s$/],
      [{ end: 'exit', exit_status: 3, exit_work_s: 0.5 }, /^exit status 3, after 2\.00 s, 500 ms of it memtrace’s work at the exit$/],
      [{ end: 'exec' }, /^replaced itself by exec, after/],
      [{ ...killed, end_signal: 11 }, /^killed by SIGSEGV, after/],
      [{ ...killed, end_signal: 40 }, /^killed by signal 40, after/],
      [{ ...killed, oom_evidence: why, oom_killed: false }, /^killed by SIGKILL, not by the OOM killer, after 2\.00 s$/],
      [{ ...killed, oom_evidence: why, oom_killed: null }, /^killed by SIGKILL, perhaps by the OOM killer, after/],
      [{ ...killed, oom_evidence: why, oom_killed: true, memory_limit_bytes: 64 << 20 }, /^killed by the OOM killer \(SIGKILL\), after/],
      [{ end: 'cut' }, /^not in the trace \(killed, still running, or it could no longer write\); the last event is after 2\.00 s$/],
    ]) {
      const { Ended, Then } = await told((report) => Object.assign(report.process, { duration_s: 2, exit_work_s: 0 }, process));
      assert.match(Ended, words);
      if (process.oom_killed) assert.match(Then, /^the heap held .* in \d+ blocks, the memory limit was 64\.0 MiB\. No count/);
      else if (process.oom_killed !== null) assert.equal(Then, undefined);
    }
    const { Ended } = await told(({ process, coverage }) => {
      Object.assign(process, killed, { oom_evidence: why, oom_killed: false });
      coverage.recording_end_s = 0.5;
    });
    assert.equal(Ended, 'killed by SIGKILL, not by the OOM killer; the recording, before it, after 500 ms');
    const live = await told(({ process, coverage }) => {
      process.end = 'cut';
      coverage.live_until_s = 1;
    });
    assert.match(live.Ended, /^not yet: it is at work; the last event is after/);
  });

  test('say when it started, as one reads it', async () => {
    const { Started } = await told(({ process }) => Object.assign(process, {
      start_time: '2026-11-28T22:31:26.026194116Z', pid: 7, ppid: 5, host: 'vm', forked: true }));
    assert.equal(Started, '2026-11-28 22:31:26 UTC, pid 7 on vm, forked by 5');
  });

  test('say what is memtrace’s own, and what is lost', async () => {
    const found = await told(({ faults, coverage, leak_scans: [scan] }) => {
      Object.assign(faults, { minor: 766, major: 0, tool_minor: 234, peak_rss_bytes: 6 << 20 });
      coverage.tool_memory_bytes = 3 << 20;
      scan.totals.possible = { bytes: 2048, blocks: 3 };
      scan.of_runtime = { bytes: 1024, blocks: 2 };
    });
    assert.equal(found.Faults, '766 minor, 0 major, without memtrace’s own 234 minor');
    assert.equal(found.Memory, 'peak RSS 6.00 MiB, of which memtrace’s own at most 3.00 MiB');
    assert.match(found.Lost, /^400 KiB in 400 blocks definitely lost, 1\.00 KiB in 1 block possibly lost at the exit; 1\.00 KiB that look so are the runtime’s own/);
    assert.match(found.Unfreed, / at the end$/);
    const more = await told(({ faults, coverage }) => {
      faults.peak_rss_bytes = 1 << 20;
      coverage.tool_memory_bytes = 3 << 20;
    });
    assert.equal(more.Memory, 'peak RSS 1.00 MiB, some of it of memtrace’s own mappings of 3.00 MiB');
    const { Lost } = await told((report) => { report.leak_scan = null; });
    assert.match(Lost, /^not known: no scan told/);
  });

  test('do not take for nothing what is not known', async () => {
    const found = await told(nothingRecorded);
    assert.deepEqual([found.Peak, found.Unfreed, found.Lost, found.Faults, found.Memory], ['nothing was ever live',
      'not known: no allocation was recorded, see Coverage', undefined, 'not known: the trace ends before they were counted', 'peak RSS not known']);
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
    const found = await told((report) => {
      Object.assign(report.process, { end: null, exit_status: null, start_time: null });
      report.faults = { source: null, minor: null, major: null, attributed_minor: null, tool_minor: 0, thrash: [], peak_rss_bytes: null,
                        correlation: { live_bytes_vs_minor: null, allocated_bytes_vs_minor: null, lagged: null } };
      report.phases = [];
      for (const point of report.timeline.points) point.minor_faults = 0;
    });
    assert.equal(found.Faults, 'not in the log');
    assert.match(found.Ended, /^not in the log, which is of/);
    assert.equal(found.Started, undefined);
    await on('words.html', '#view=faults', async (page) => {
      assert.equal(await page.locator('#panel-faults').textContent(), 'FaultsThe log has no page faults.');
    });
  });
});

describe('the words of the views', () => {
  test('say when a scan was made', async () => {
    for (const [scan, process, words] of [
      [{ reason: 'exit-late' }, {}, 'Scan 1, at the exit, after the destructors, at 2.00 s.'],
      [{ reason: 'exit-late' }, { exit_at_once: true }, 'Scan 1, at the exit, which ran no destructors, at 2.00 s.'],
      [{ reason: 'exit-early' }, { exit_at_once: true }, 'Scan 1, at the exit, before the destructors, at 2.00 s.'],
      [{ reason: 'request', label: 'warm' }, {}, 'Scan 1, at the program’s request (warm), at 2.00 s.'],
      [{ reason: 'outside' }, {}, 'Scan 1, asked for from outside, at 2.00 s.'],
    ]) {
      altered('ordinary.html', 'words.html', ({ report }) => {
        Object.assign(report.leak_scans[0], { label: '', time_s: 2 }, scan);
        Object.assign(report.process, process);
      });
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
    const columns = ['tree.processes', 'rollup.pss_bytes', 'system.stall_full_us', 'cgroup.oom_kill', 'system.pgsteal_direct', 'cgroup.of_tomorrow'];
    altered('ordinary.html', 'words.html', ({ report }) => {
      report.pressure.columns = columns;
      report.pressure.points = [0, 1].map((time_s) => ({ time_s, ...Object.fromEntries(columns.map((column) => [column, 5])) }));
    });
    await on('words.html', '#view=pressure', async (page) => {
      const heads = page.locator('#panel-pressure table.plain tbody th');
      assert.deepEqual(await heads.allTextContents(), ['processes, with all descendants', 'its share of what is resident (PSS)',
        'system: all waited for memory', 'control group: processes killed for lack of memory',
        'system: pages taken back by those who wanted memory', 'cgroup of tomorrow']);
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
