// The address of the page: who gets it is shown what was chosen.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { drawn, fragmentOf, show } from './browser.mjs';
import { on, rows, viewsOf } from './page_setup.mjs';

describe('an ordinary page, its address', () => {
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
});
