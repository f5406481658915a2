// How the page looks: light and dark, for screen readers, in print, on narrow screens.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { axe, show } from './browser.mjs';
import { on, rows, viewsOf } from './page_setup.mjs';

describe('an ordinary page, how it looks', () => {
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

  test('fits a narrow screen', () => on('ordinary.html', '', async (page) => {
    for (const view of await viewsOf(page)) {
      await show(page, view);
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(width <= 380, `${view}: ${width}`);
    }
  }, { viewport: { width: 380, height: 700 } }));
});
