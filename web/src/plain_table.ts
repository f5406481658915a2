// A short table that is read from above to below. Of very many rows it shows the first, and says how
// many there are.

import { h, type Child } from './dom';
import { plural } from './text';

const MOST_ROWS = 100;

// The first of a row's `cells` names it, the others are numbers but for `texts`, counted from 0.
export function plainTable<Row>(titles: string[], rows: Row[], cells: (row: Row) => Child[], texts: number[] = []): HTMLElement {
  const more = rows.length - MOST_ROWS;
  return h('table', { class: 'plain' },
    more > 0 && h('caption', {}, `and ${plural(more, 'more row')}: memtrace report --format json`),
    h('thead', {}, h('tr', {}, ...titles.map((title) => h('th', { scope: 'col' }, title)))),
    h('tbody', {}, ...rows.slice(0, MOST_ROWS).map((row) => {
      const [first, ...others] = cells(row);
      return h('tr', {}, h('th', { scope: 'row' }, first),
        ...others.map((cell, i) => h('td', texts.includes(i + 1) ? {} : { class: 'number' }, cell)));
    })));
}
