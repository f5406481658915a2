// Numbers of the page as text, where the text reports have them otherwise than whole.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sourceOf } from './source_module.mjs';

const { Figures, perTime, quotient } = await sourceOf('text.ts');

test('slow growth is told by the hour or by the day', () => {
  for (const [perSecond, text] of [[6000, '5.86 KiB/s'], [1, '1 B/s'], [0.3, '1.05 KiB/h'], [1 / 3600, '1 B/h'],
                                   [0.0002, '17 B/d'], [0, '0 B/d'], [-0.3, '-1.05 KiB/h']]) {
    assert.equal(perTime(perSecond), text, String(perSecond));
  }
  assert.equal(new Figures(true).perTime(0.3), '~1.05 KiB/h');
});

test('a little of what was divided is not nothing', () => {
  for (const [value, bytes, count] of [[0.31415, '0.314 B', '0.314'], [0, '0 B', '0'], [999, '999 B', '999'],
                                       [1234567, '1.18 MiB', '1.23M'], [-0.25, '-0.25 B', '-0.25']]) {
    assert.equal(quotient(value, 'bytes'), bytes);
    assert.equal(quotient(value, 'count'), count);
  }
  assert.equal(new Figures(true).quotient(-0.25, 'bytes'), '-~0.25 B');
});
