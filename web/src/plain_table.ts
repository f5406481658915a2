// A short table that is read from above to below.

import { h, type Child } from './dom';

// The first column names the row, the others are numbers but for `texts`, counted from 0.
export function plainTable(titles: string[], rows: Child[][], texts: number[] = []): HTMLElement {
  return h('table', { class: 'plain' },
    h('thead', {}, h('tr', {}, ...titles.map((title) => h('th', { scope: 'col' }, title)))),
    h('tbody', {}, ...rows.map(([first, ...others]) => h('tr', {},
      h('th', { scope: 'row' }, first),
      ...others.map((cell, i) => h('td', texts.includes(i + 1) ? {} : { class: 'number' }, cell))))));
}
