// The pages that the commands write of real traces.

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { altered, axe, build, directory, fragmentOf, launch, open, show } from './browser.mjs';

const source = join(dirname(fileURLToPath(import.meta.url)), '../..');
const memtrace = (...words) => spawnSync(join(build, 'bin/memtrace'), words, { encoding: 'utf8' });
const trace = (name) => join(directory, `${name}.mtr`);
const page = (name) => join(directory, name);

let browser;
before(async () => {
  for (const program of ['leaks', 'temporary', 'new_delete']) {
    const run = memtrace('run', '-o', trace(program), '--', join(build, 'examples', program));
    assert.equal(run.status, 0, run.stderr);
  }
  browser = await launch();
});
after(() => browser?.close());

async function on(name, fragment, run, options) {
  const shown = await open(browser, name, fragment, options);
  try {
    await run(shown);
    assert.deepEqual(shown.problems, []);
  } finally {
    await shown.context().close();
  }
}

const rows = (shown) => shown.locator('tbody tr[aria-level="1"]');

async function readable(name) {
  for (const colorScheme of ['light', 'dark']) {
    await on(name, '', async (shown) => {
      await shown.evaluate(readFileSync(axe, 'utf8'));
      const { violations } = await shown.evaluate(() => window.axe.run());
      assert.deepEqual(violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`), []);
    }, { colorScheme, bypassCSP: true });
  }
}

describe('memtrace report --format html', () => {
  test('does not say of the whole what it knows of a part', async () => {
    const out = page('part.html');
    const made = memtrace('report', trace('leaks'), '--match', 'nobody', '--format', 'html', '-o', out);
    assert.equal(made.status, 0, made.stderr);
    await on('part.html', '', async (shown) => {
      const verdict = await shown.locator('.verdicts').innerText();
      assert.match(verdict, /of the selection/);
      assert.match(verdict, /the rest is not in this page/);
      assert.doesNotMatch(verdict, /Nothing is lost/);
    });
  });

  test('shows the leaks of the example, with their lines', async () => {
    const out = page('leaks.html');
    const made = memtrace('report', trace('leaks'), '--format', 'html', '-o', out);
    assert.equal(made.status, 0, made.stderr);
    assert.ok(statSync(out).size < 500_000);
    await on('leaks.html', '#view=leaks', async (shown) => {
      const text = await shown.locator('#panel-leaks tbody').innerText();
      assert.match(text, /LeakOneTable/);
      assert.match(text, /LeakInALoop/);
      assert.match(text, /leaks\.c:\d+/);
      assert.match(text, /256 B/);
      await rows(shown).first().click();
      assert.match(await shown.getByRole('list', { name: /^Stack/ }).innerText(), /main/);
    });
  });

  test('says which kinds of leaks are not in it', async () => {
    const made = memtrace('report', trace('leaks'), '--format', 'html', '-o', page('leaks.html'));
    assert.equal(made.status, 0, made.stderr);
    altered('leaks.html', 'kinds.html', ({ report }) => {  // as where --top has larger ones of another kind
      assert.ok(report.leaks.every(({ kind }) => kind === 'definite'));
      report.leaks = [];
    });
    await on('kinds.html', '#view=leaks', async (shown) => {
      const text = await shown.locator('#panel-leaks .choice').innerText();
      assert.match(text, /definitely lost [\d.]+ K?i?B in [\d,]+ blocks?, not in this page/);
    });
  });

  test('has the totals of --format json', async () => {
    const made = memtrace('report', trace('temporary'), '--format', 'html', '-o', page('temporary.html'));
    assert.equal(made.status, 0, made.stderr);
    const { totals } = JSON.parse(memtrace('report', trace('temporary'), '--format', 'json').stdout);
    await on('temporary.html', '', async (shown) => {
      const text = await shown.locator('#panel-summary').innerText();
      assert.ok(text.includes(`${totals.allocations.toLocaleString('en-US')} allocations`), text);
      await show(shown, 'flame');
      await shown.getByLabel('Measure').selectOption('allocations');
      assert.ok((await shown.getByRole('treeitem', { name: /^all/ }).getAttribute('aria-label'))
        .includes(totals.allocations.toLocaleString('en-US')));
    });
  });

  test('counts the same in a chosen time in all of its views', async () => {
    const { process: run, totals } = JSON.parse(memtrace('report', trace('temporary'), '--format', 'json').stdout);
    const at = (part) => (run.duration_s * part).toPrecision(6);
    const some = [];
    for (const [from, to] of [[0, 0.3], [0.3, 0.31], [0.31, 1]]) {
      await on('temporary.html', `#group=stack&from=${at(from)}${to < 1 ? `&to=${at(to)}` : ''}`, async (shown) => {
        const text = await shown.locator('#panel-summary .range').innerText();
        const [, allocations, frees] = /([\d,]+) allocations? of .*, ([\d,]+) frees?;/.exec(text).map((one) => Number(one.replaceAll(',', '')));
        await show(shown, 'sites');
        const sum = async (column) => (await rows(shown).locator(`td:nth-child(${column})`).allTextContents())
          .reduce((all, one) => all + Number(one.replaceAll(',', '')), 0);
        assert.deepEqual([await sum(2), await sum(3)], [allocations, frees]);
        some.push(allocations);
      });
    }
    assert.ok(Math.min(...some) < totals.allocations);
  });

  test('goes to standard output, or nowhere when the trace cannot be read', () => {
    const whole = execFileSync(join(build, 'bin/memtrace'), ['report', trace('leaks'), '--format', 'html'], { encoding: 'utf8' });
    assert.match(whole, /^<!DOCTYPE html>/);
    assert.match(whole, /<\/html>\s*$/);
    const bad = memtrace('report', join(build, 'bin/memtrace'), '--format', 'html', '-o', page('no.html'));
    assert.equal(bad.status, 2);
    assert.throws(() => statSync(page('no.html')));
  });
});

describe('memtrace diff --format html', () => {
  before(() => {
    const made = memtrace('diff', trace('leaks'), trace('new_delete'), '--by', 'allocated', '--format', 'html', '-o', page('diff.html'));
    assert.equal(made.status, 0, made.stderr);
  });

  test('says what is new and what is gone, and narrows to it', () => on('diff.html', '', async (shown) => {
    const { counts, sites } = JSON.parse(memtrace('diff', trace('leaks'), trace('new_delete'), '--by', 'allocated', '--format', 'json').stdout);
    assert.ok(counts.new > 0 && counts.gone > 0);
    assert.match(await shown.locator('.verdicts').innerText(), new RegExp(`${counts.new} new, .* ${counts.gone} gone`));
    assert.equal(await rows(shown).count(), sites.length);
    await shown.getByRole('checkbox', { name: /^new/ }).uncheck();
    assert.equal(fragmentOf(shown).get('kinds').includes('new'), false);
    assert.equal(await rows(shown).count(), sites.length - counts.new);
    await shown.getByLabel('Filter').fill('LeakOneTable');
    await shown.waitForFunction(() => location.hash.includes('q=LeakOneTable'));
    assert.equal(await rows(shown).count(), 1);
    for (const [query, left] of [['=LeakOne', 0], ['=LeakOneTable', 1]]) {  // a whole name
      await shown.getByLabel('Filter').fill(query);
      await shown.waitForFunction((want) => new URLSearchParams(location.hash.slice(1)).get('q') === want, query);
      assert.equal(await rows(shown).count(), left);
    }
    await rows(shown).first().click();
    assert.match(await shown.getByRole('list', { name: /^Stack/ }).innerText(), /LeakOneTable/);
  }));

  test('names a run once beside its notes', async () => {
    altered('diff.html', 'noted.html', ({ diff }) => { diff.old.notes = [`${diff.old.name}: 5 events lost`, `${diff.old.name}: cut`, 'and more']; });
    await on('noted.html', '', async (shown) => {
      assert.match(await shown.locator('.verdict.warning').first().innerText(), /leaks\.mtr: 5 events lost; cut; and more$/);
    });
  });

  test('tells sites apart that one wrapper allocates', async () => {
    altered('diff.html', 'apart.html', ({ diff }) => {
      Object.assign(diff.sites[0], { caller: 'Duplicate(char const*)', called_by: 'Load()  /src/load.cc:20', called_by_depth: 1 });
      Object.assign(diff.sites[1], { caller: 'Duplicate(char const*)', called_by: 'main', called_by_depth: 2 });
      diff.sites.length = 2;
    });
    await on('apart.html', '#sort=caller', async (shown) => {
      assert.match(await rows(shown).first().innerText(), /Duplicate\(char const\*\), called by Load\(\) load\.cc:20/);
      assert.match(await rows(shown).last().innerText(), /Duplicate\(char const\*\), on behalf of main/);
    });
  });

  test('reads from its address what it is sorted by', () => on('diff.html', '#sort=caller', async (shown) => {
    const head = shown.getByRole('columnheader', { name: 'Caller' });
    assert.equal(await head.getAttribute('aria-sort'), 'ascending');
    await shown.evaluate(() => { location.hash = '#sort=-caller'; });
    await shown.waitForFunction(() => document.querySelector('th[aria-sort=descending]')?.textContent === 'Caller');
  }));

  test('is readable by a screen reader', () => readable('diff.html'));
});

describe('memtrace diff --format html of few sites', () => {
  test('has the change of the whole runs', async () => {
    const made = memtrace('diff', trace('leaks'), trace('new_delete'), '--by', 'allocations', '--top', '1', '--format', 'html', '-o', page('top.html'));
    assert.equal(made.status, 0, made.stderr);
    const { old: before, new: after, sites } = JSON.parse(
      memtrace('diff', trace('leaks'), trace('new_delete'), '--by', 'allocations', '--top', '1', '--format', 'json').stdout);
    const signed = (value) => `${value > 0 ? '+' : ''}${value.toLocaleString('en-US')}`;
    const change = after.totals.allocations - before.totals.allocations;
    assert.notEqual(change, sites[0].change);
    await on('top.html', '', async (shown) => {
      const text = await shown.locator('.verdicts').innerText();
      assert.ok(text.includes(`${signed(change)} in all`), text);
      assert.ok(text.includes(`the 1 site in this page: ${signed(sites[0].change)}.`), text);
    });
  });
});

describe('memtrace diff --format html of a selection', () => {
  test('has no good news of the rest', async () => {
    const made = memtrace('diff', trace('leaks'), trace('leaks'), '--format', 'html', '-o', page('same.html'));
    assert.equal(made.status, 0, made.stderr);
    const of = (file, ...filter) => {
      const some = memtrace('diff', trace('leaks'), trace('leaks'), ...filter, '--format', 'html', '-o', page(file));
      assert.equal(some.status, 0, some.stderr);
    };
    of('match.html', '--match', 'nobody');
    of('size.html', '--size', '1..');
    await on('same.html', '', async (shown) => assert.equal(await shown.locator('.verdict.good').count(), 1));
    await on('match.html', '', async (shown) => {
      assert.equal(await shown.locator('.verdict.good').count(), 0);
      assert.match(await shown.locator('.verdicts').innerText(), /Nothing that matches is new or grew.*Only sites that match \/nobody\//s);
    });
    await on('size.html', '', async (shown) => {
      assert.equal(await shown.locator('.verdict.good').count(), 0);
      assert.match(await shown.locator('.verdicts').innerText(), /Nothing of these blocks is new or grew.*Only blocks of 1 B and more\./s);
      assert.match(await shown.locator('main').innerText(), /Only\s+blocks of 1 B and more/);
    });
  });
});

describe('memtrace diff --format html of samples', () => {
  test('has no good news of what differs by chance, and says how many do', async () => {
    const made = memtrace('diff', trace('leaks'), trace('leaks'), '--format', 'html', '-o', page('same.html'));
    assert.equal(made.status, 0, made.stderr);
    for (const [name, by_chance, words] of [['chance.html', 12, /12 more sites differ by/], ['chance1.html', 1, /1 more site differs by/]]) {
      altered('same.html', name, ({ diff }) => {
        assert.equal(diff.counts.by_chance, 0);
        diff.counts.by_chance = by_chance;
      });
      await on(name, '', async (shown) => {
        assert.equal(await shown.locator('.verdict.good').count(), 0);
        const verdict = shown.locator('.verdict.unknown').first();
        assert.equal(await verdict.locator('h2').innerText(), 'Nothing is new or grew by more than chance');
        assert.match(await verdict.innerText(), words);
        assert.match(await verdict.innerText(), /no more than another sample might\.$/);
      });
    }
    await on('same.html', '', async (shown) => {
      assert.match(await shown.locator('.verdict.good').innerText(), /Nothing is new, nothing grew/);
      assert.doesNotMatch(await shown.locator('.verdicts').innerText(), /another sample/);
    });
  });
});

describe('memtrace diff --format html of what may not be all', () => {
  test('has no good news where something is missing, or of samples, and says which', async () => {
    const made = memtrace('diff', trace('leaks'), trace('leaks'), '--format', 'html', '-o', page('same.html'));
    assert.equal(made.status, 0, made.stderr);
    for (const [name, key, value, title] of [['lacking.html', 'all_recorded', false, 'Nothing of what was recorded is new or grew'],
                                             ['samples.html', 'estimated', true, 'Nothing of what was sampled is new or grew']]) {
      altered('same.html', name, ({ diff }) => {
        assert.deepEqual([diff.old.all_recorded, diff.old.estimated], [true, false]);
        diff.new[key] = value;
      });
      await on(name, '', async (shown) => {
        assert.equal(await shown.locator('.verdict.good').count(), 0);
        assert.equal(await shown.locator('.verdict.unknown h2').first().innerText(), title);
        assert.equal(await shown.getByRole('heading', { name: 'Not everything was recorded' }).count(), key === 'all_recorded' ? 1 : 0);
      });
    }
  });

  test('does not take every note for one of something that is missing', async () => {
    const made = memtrace('diff', trace('leaks'), trace('leaks'), '--format', 'html', '-o', page('same.html'));
    assert.equal(made.status, 0, made.stderr);
    altered('same.html', 'remark.html', ({ diff }) => {
      diff.old.notes = ['app is not the file that ran'];
      diff.new.notes = ['app is not the file that ran', 'nor is its library'];
    });
    await on('remark.html', '', async (shown) => {
      assert.deepEqual(await shown.locator('.verdict h2').allInnerTexts(), ['Nothing is new, nothing grew', '0 B in all', 'Note', 'Notes']);
      assert.equal(await shown.locator('.verdict.good').count(), 1);
    });
  });
});

describe('memtrace compare --format html', () => {
  before(() => {
    const made = memtrace('compare', trace('leaks'), join(source, 'tests/fuzz/valgrind_xml/protocol6.xml'), '--format', 'html', '-o', page('compare.html'));
    assert.ok([0, 1].includes(made.status), made.stderr);
  });

  test('has a row for each leak of either side', () => on('compare.html', '', async (shown) => {
    const { leaks } = JSON.parse(memtrace('compare', trace('leaks'), join(source, 'tests/fuzz/valgrind_xml/protocol6.xml'), '--format', 'json').stdout);
    assert.ok(leaks.length > 0);
    assert.equal(await rows(shown).count(), leaks.length);
    await rows(shown).first().click();
    assert.ok(await shown.getByRole('list', { name: /^Stack/ }).isVisible());
  }));

  test('shows the whole of an amount', async () => {
    altered('compare.html', 'amounts.html', ({ compare }) => {
      compare.leaks[0].here = compare.leaks[0].there = { reachable: { bytes: 1023 << 20, blocks: 99_999_999_999 } };
    });
    for (const width of [1400, 1200]) {
      await on('amounts.html', '', async (shown) => {
        const cells = await rows(shown).locator('td', { hasText: 'in 99,999,999,999 blocks' }).evaluateAll((all) => all.map((cell) => cell.scrollWidth <= cell.clientWidth));
        assert.deepEqual(cells, [true, true]);
        const [wide, room] = await shown.locator('.scroller').evaluate((scroller) => [scroller.scrollWidth, scroller.clientWidth]);
        assert.ok(wide <= room, `${width}: ${wide} of ${room}`);
      }, { viewport: { width, height: 900 } });
    }
  });

  test('fits on paper', async () => {
    altered('compare.html', 'wide_compare.html', ({ compare }) => {
      const amount = { bytes: 123_456_789, blocks: 1_234_567 };
      compare.leaks[0].here = compare.leaks[0].there = { definite: amount, indirect: amount, possible: amount, reachable: amount };
    });
    await on('wide_compare.html', '', async (shown) => {
      await shown.emulateMedia({ media: 'print' });
      await shown.evaluate(() => window.dispatchEvent(new Event('beforeprint')));
      assert.ok(await shown.evaluate(() => document.documentElement.scrollWidth) <= 700);
      // The first rows may be gaps. A row that is being replaced has no box.
      const cell = shown.locator('tbody tr[aria-level="1"] td:last-child').first();
      let stack = null;
      for (let i = 0; stack === null && i < 100; ++i) {
        await cell.waitFor();
        stack = await cell.boundingBox();
      }
      assert.ok(stack.width > 100 && stack.x + stack.width <= 700, JSON.stringify(stack));
    }, { viewport: { width: 700, height: 900 } });
  });

  test('is readable by a screen reader', () => readable('compare.html'));
});
