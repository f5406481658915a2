// Names of functions are as short in the page as in the text report: both read one list.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { sourceOf } from './source_module.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const { shortName } = await sourceOf('short_name.ts');

test('names are shortened as the list says', () => {
  const lines = readFileSync(join(here, '../report/names/short_names.txt'), 'utf8').split('\n');
  const pairs = lines.filter((line) => line.includes('\t')).map((line) => line.split('\t'));
  assert.ok(pairs.length > 10);
  assert.deepEqual(pairs.map(([name]) => [name, shortName(name)]), pairs);
});

test('a name that is short is left as it is, and none is lost', () => {
  assert.equal(shortName('ns::Cache<int>::Put(int) const'), 'ns::Cache<int>::Put(int) const');
  for (const odd of ['(', '<', '{(', '{)(}', 'operator', 'operator()::', 'f(::', ' ', ' [', '->']) {
    assert.notEqual(shortName(odd.repeat(41)), '');
  }
});
