// What the page says before anything else: its verdict and the cards of the summary.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { describe, test } from 'node:test';
import { altered, fragmentOf, show } from './browser.mjs';
import { on, rows, treeItem } from './page_setup.mjs';

describe('an ordinary page, its verdict', () => {
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
      assert.match(await verdict.textContent(), /20 blocks of 0 bytes lost for certain/);
      assert.match(await verdict.textContent(), /What was before 500 ms was not kept/);
    });
  });

  test('shows estimates of a sample as estimates', () => on('estimated.html', '', async (page) => {
    assert.match(await page.locator('.verdicts').textContent(), /~172 KiB \[\d+ KiB to \d+ KiB\] not freedIn ~1\.76k blocks\./);
    const summary = await page.locator('#panel-summary').textContent();
    assert.match(summary, /every 4\.00 KiB: estimates from \d+ samples, marked ~/);
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
    assert.match(cards[1], /2 call sites grew without an end.*5\.86 KiB\/s together; fastest .*Put.* cache\.cc:24/);
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
    for (const [name, short_run, kind, words] of [['short.html', true, 'unknown', /^2 call sites rose until the end of a short run$/],
                                                  ['long.html', false, 'bad', /^2 call sites grew without an end$/]]) {
      altered('told.html', name, ({ report }) => { report.process.short_run = short_run; });
      await on(name, '', async (page) => {
        const card = page.locator('.verdicts .verdict').nth(1);
        assert.match(await card.locator('h2').textContent(), words);
        assert.equal(await card.getAttribute('class'), `verdict ${kind}`);
      });
    }
  });

  test('says of frees whether they are certain, and of a scan that was not at the exit which it was', async () => {
    for (const [name, certain, words] of [['sure.html', true, /^12 double frees$/],
                                          ['unsure.html', false, /^12 double frees, if all allocations are in the trace$/]]) {
      altered('mismatched.html', name, ({ report }) => { report.invalid_frees.certain = certain; });
      await on(name, '', async (page) => assert.match(await page.locator('.verdict.bad h2').first().textContent(), words));
    }
    altered('told.html', 'asked.html', ({ report }) => { Object.assign(report.leak_scans[0], { reason: 'request' }); });
    await on('asked.html', '', async (page) => {
      assert.match(await page.locator('.verdicts h2').first().textContent(), /^3\.40 MiB lost for certain, 1\.10 MiB of it directly, at scan 1$/);
    });
  });

  test('has no good news of all where it is of a part', async () => {
    for (const [name, alter, kind, words] of [
      ['verdict_none.html', () => {}, 'good', /^Nothing is lost$/],
      ['verdict_late.html', (report) => { Object.assign(report.range, { whole: false, from_s: 0.5 }); }, 'unknown', /^Nothing of the selection is lost$/],
      ['verdict_paused.html', (report) => { report.coverage.stopped_allocations = 3; report.coverage.all_recorded = false; }, 'unknown', /^Nothing of what was recorded is lost$/],
    ]) {
      altered('ordinary.html', name, ({ report }) => {
        for (const { totals, of_runtime } of report.leak_scans) {
          for (const amount of [totals.definite, totals.indirect, totals.possible, of_runtime]) Object.assign(amount, { bytes: 0, blocks: 0 });
        }
        alter(report);
      });
      await on(name, '', async (page) => {
        const first = page.locator('.verdicts .verdict').first();
        assert.match(await first.locator('h2').textContent(), words);
        assert.equal(await first.getAttribute('class'), `verdict ${kind}`);
        const all = await page.locator('.verdicts').textContent();
        if (name === 'verdict_late.html') assert.match(all, /Only blocks allocated from 500 ms to .*: the rest is not in this page\./);
        if (name === 'verdict_paused.html') assert.match(all, /The program stopped the recording: 3 allocations then are in no figure\./);
      });
    }
  });

  test('counts one event as one', async () => {
    for (const [name, events, words] of [['events1.html', 1, 'The only event is in the trace.'], ['events0.html', 0, 'There was no event.'],
                                         ['events2.html', 20_000, 'All 20,000 events are in the trace.']]) {
      altered('ordinary.html', name, ({ report }) => { report.coverage.events = events; });
      await on(name, '', async (page) => assert.equal(await page.locator('.verdict.good p').last().textContent(), words));
    }
    altered('told.html', 'lost1.html', ({ report }) => { report.coverage.events = report.faults.account.lost = 1; });
    await on('lost1.html', '', async (page) => {
      assert.match(await page.locator('.verdict.warning').textContent(), /The only event of the heap is in the trace; 1 page fault was lost\./);
    });
  });

  test('shows the command as the text report has it', async () => {
    const shown = (page) => page.locator('#panel-summary dd').first().textContent();
    const line = String.raw`./app 'a b' '' 'it'\''s' $'line 1\x0a\\x0a \xe2\x80\xae' '\x0a' '"command_line":'` +
      " '\u00ad\u180e\u206a\u{1ee00}\u{1f600}\u{e0100}'";
    for (const [command_line, wanted] of [[line, line], ['', '/bin/app']]) {
      altered('ordinary.html', 'command.html', ({ report }) => {
        Object.assign(report.process, { command: ['"command_line": "x"'], command_line });
        report.summary[0].text = '/bin/app';
      });
      await on('command.html', '', async (page) => assert.equal(await shown(page), wanted));
    }
  });

  test('shows a command that a shell takes apart again', async () => {
    let command = [];
    altered('hostile.html', 'command.html', ({ report }) => { command = report.process.command; });
    await on('command.html', '', async (page) => {
      const line = await page.locator('#panel-summary dd').first().textContent();
      for (const word of [String.raw`$'bell\x07 escape\x1b[2J`, String.raw`$'\xff\xfe not utf-8 \xc3'`]) assert.ok(line.includes(word), line);
      const words = execFileSync('bash', ['-c', `printf '%s\\0' ${line}`], { encoding: 'utf8' }).split('\0').slice(0, -1);
      const replaced = (text) => text.replace(/\ufffd+/g, '\ufffd');  // how many there are, decoders do not agree in
      assert.ok(words.length > 10);
      assert.deepEqual(words.map(replaced), command.map(replaced));
    });
  });
});
