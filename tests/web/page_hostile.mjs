// Names that would be something else than text, were they not kept from it.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { drawn, open, show } from './browser.mjs';
import { browser, on, rows, viewsOf, treeItem } from './page_setup.mjs';

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
