// Names of functions and places where there is less room than they need, and what stands beside them in tables.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { altered, show } from './browser.mjs';
import { on } from './page_setup.mjs';

const fits = (page) => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth);

// Whether the last letter of the name in each cell of the column is in sight, and whether all of it is.
const inSight = (page, view, column) => page.locator(`#panel-${view} tr[data-index] td:nth-last-child(${column})`).evaluateAll((cells) =>
  cells.map((cell) => {
    const { left, right } = cell.getBoundingClientRect(), text = cell.querySelector('.name').firstChild, range = document.createRange();
    const letter = (at) => {
      range.setStart(text, at);
      range.setEnd(text, at + 1);
      const box = range.getBoundingClientRect();
      return box.left >= left && box.right <= right;
    };
    return [letter(text.length - 1), letter(0)];
  }));

describe('names that are long', () => {
  test('are short in sentences and in the summary, with the whole beside the mouse', async () => {
    for (const width of [320, 768, 1280]) {
      await on('told.html', '', async (page) => {
        const who = page.locator('#panel-summary .bars .what').first();
        assert.match(await who.textContent(), /^svc::LruCache<\.\.>::Put cache\.cc:24$/);
        assert.match(await who.locator('[title]').getAttribute('title'), /^void svc::LruCache<std::.*::Put\(/);
        await show(page, 'faults');
        const words = page.locator('#panel-faults ul.notes li').first();
        assert.match(await words.textContent(), /^100 of 100 faults came when svc::LruCache<\.\.>::Put touched the block allocated by svc::LruCache<\.\.>::Put cache\.cc:24, from/);
        assert.match(await words.locator('[title]').getAttribute('title'), /came when void svc::LruCache<std::.*basic_string.*cache\.cc:24, from/);
        assert.equal(await fits(page), true, String(width));
      }, { viewport: { width, height: 900 } });
    }
  });

  test('are broken where they do not fit', async () => {
    const long = 'one_word_without_an_end'.repeat(30);
    altered('told.html', 'one_word.html', ({ report }) => {
      report.faults.words = [`1 of 1 faults came when ${long} touched blocks`];
      report.coverage.notes = [long];
    });
    await on('one_word.html', '#view=faults', async (page) => {
      for (const view of ['faults', 'coverage']) {
        await show(page, view);
        assert.equal(await fits(page), true, view);
      }
    }, { viewport: { width: 320, height: 900 } });
  });

  test('lose their begin in tables, not the function, the file and the line', async () => {
    altered('told.html', 'long_names.html', ({ strings, report }) => {
      strings.forEach((text, i) => {
        if (/::(Put|Get)\(/.test(text)) strings[i] = `${'a_name_of_a_namespace_that_is_long::'.repeat(6)}${/Put/.test(text) ? 'Put' : 'Get'}`;
        if (/cache\.cc$/.test(text)) strings[i] = `/work/${'a_name_of_a_file_that_is_long_'.repeat(6)}${i}.cc`;
      });
      report.mappings = [{ kind: 'heap_growth', calls: 1, bytes: 1, live_bytes: 1, stack: report.sites[0].stack }];
    });
    for (const width of [400, 1280]) {
      await on('long_names.html', '#view=sites', async (page) => {
        for (const view of ['sites', 'leaks', 'growth', 'mappings']) {
          await show(page, view);
          if (width < 1000) {
            const all = page.locator(`#panel-${view} tr[data-index] td:first-child .end`);
            assert.ok(await all.count() > 0, view);
            assert.deepEqual(await all.evaluateAll((ends) => ends.filter((end) => end.clientHeight > 30 ||
              end.getBoundingClientRect().right > end.closest('td').getBoundingClientRect().right)), [], view);
            continue;
          }
          for (const column of [1, 2]) {
            const seen = await inSight(page, view, column);
            assert.ok(seen.length > 0);
            assert.deepEqual(seen, seen.map(() => [true, false]), `${view} ${column}`);
          }
        }
        await show(page, 'sites');
        const cells = page.locator('#panel-sites tr[data-index] .end[title]');
        assert.match(await cells.first().getAttribute('title'), /^a_name_of_a_namespace.*::(Put|Get)$/);
        assert.match(await page.locator('#panel-sites .place[title]').first().getAttribute('title'), /^\/work\/a_name_of_a_file/);
      }, { viewport: { width, height: 900 } });
    }
  });
});

describe('columns of tables', () => {
  test('tell of memory from the kernel where it was asked for, and its kind in full', async () => {
    altered('ordinary.html', 'mappings.html', ({ report }) => {
      const { stack } = report.mappings[0];
      report.mappings = ['mmap', 'heap_growth', 'arena_growth', 'mapped_block'].map((kind, i) => ({ kind, calls: 1, bytes: 100 - i, live_bytes: 0, stack }));
    });
    await on('mappings.html', '#view=mappings', async (page) => {
      const kinds = page.locator('#panel-mappings tr[data-index] td:first-child');
      assert.deepEqual(await kinds.allTextContents(), ['▸mmap', '▸heap growth', '▸arena growth', '▸mapped block']);
      assert.deepEqual(await kinds.evaluateAll((cells) => cells.filter((cell) => cell.scrollWidth > cell.clientWidth).length), 0);
      assert.equal(await page.locator('#panel-mappings tr[data-index]').first().locator('td').last().textContent(), 'parser.cc:12');
      assert.equal(await page.locator('#panel-mappings th').last().textContent(), 'Place');
    });
  });

  test('have the mark of a row that opens at one edge, however wide the number beside it is', () => on('ordinary.html', '#view=sites', async (page) => {
    const at = await page.locator('#panel-sites td.number .twist').evaluateAll((marks) => marks.map((mark) => mark.getBoundingClientRect().left));
    const { left } = await page.locator('#panel-sites td.number').first().evaluate((cell) => cell.getBoundingClientRect().toJSON());
    assert.equal(at.length, 4);
    assert.deepEqual(at, at.map(() => left + 8));
  }));
});
