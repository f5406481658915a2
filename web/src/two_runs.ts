// What the pages of diff and compare have in common: figures of two runs beside each other, and a
// table with a filter and a choice of verdicts.

import { h, name, type Child } from './dom';
import { FilterBox } from './filter_box';
import { matcher } from './stacks';
import type { State } from './state';
import { byPlace, Table, type Column } from './table';
import { plural } from './text';

export function besides(titles: [string, string], rows: [string, Child, Child][]): HTMLElement {
  return h('table', { class: 'plain besides' },
    h('thead', {}, h('tr', {}, h('td', {}), ...titles.map((title) => h('th', { scope: 'col' }, name(title))))),
    h('tbody', {}, ...rows.map(([term, one, other]) => h('tr', {},
      h('th', { scope: 'row' }, term), h('td', {}, one), h('td', {}, other)))));
}

export interface Choosable { verdict: string }

export interface RowsOptions<T extends Choosable> {
  rows: T[];
  label: string;
  columns: Column<T>[];
  sort: string;
  detail: (row: T) => HTMLElement;
  texts: (row: T) => string[];       // what the filter looks at
  verdicts: { [verdict: string]: string };
  note: string;                      // of rows that are not in the page
}

export class Rows<T extends Choosable> {
  readonly element: HTMLElement;
  private readonly table: Table<T>;
  private readonly boxes: HTMLInputElement[];
  private readonly filter: FilterBox;
  private readonly onPaper = h('p', { class: 'on-paper' });  // which has no tools

  constructor(private readonly options: RowsOptions<T>, private readonly state: State) {
    this.filter = new FilterBox(state);
    this.boxes = [];
    const labels = Object.entries(options.verdicts)
      .map(([verdict, title]) => [verdict, title, options.rows.filter((row) => row.verdict === verdict).length] as const)
      .filter(([, , number]) => number > 0)
      .map(([verdict, title, number]) => {
        const box = h('input', { type: 'checkbox', value: verdict, on: { change: () => this.choose() } });
        this.boxes.push(box);
        return h('label', {}, box, ' ', h('span', { class: `tag ${verdict.replaceAll(' ', '-')}` }, title), ` ${number}`);
      });
    this.table = new Table<T>({
      label: options.label, columns: options.columns, sort: options.sort,
      onSort: (sort) => state.set({ sort }), key: byPlace(options.rows), detail: options.detail,
      empty: options.rows.length === 0 ? 'There is none.' : 'None is left by the filter.',
    });
    this.element = h('div', {},
      h('div', { class: 'tools', role: 'search' }, this.filter.element), this.onPaper,
      h('fieldset', { class: 'choice' }, h('legend', {}, 'Verdicts'), ...labels), this.table.element);
    window.addEventListener('beforeprint', () => this.table.setWhole(true));
    window.addEventListener('afterprint', () => this.table.setWhole(false));
  }

  update(): void {
    const query = this.state.get('q'), wanted = this.state.get('kinds');
    const kinds = wanted.split(',');
    this.filter.update();
    this.onPaper.textContent = query === '' ? '' : `Filter: ${query}`;
    for (const box of this.boxes) box.checked = wanted === '' || kinds.includes(box.value);
    const test = query === '' ? null : matcher(query);
    const rows = this.options.rows.filter((row) => (wanted === '' || kinds.includes(row.verdict)) &&
      (test === null || this.options.texts(row).some(test)));
    this.table.setRows(rows, plural(rows.length, 'row') + this.options.note, this.state.get('sort'));
  }

  private choose(): void {
    const on = this.boxes.filter((box) => box.checked).map((box) => box.value);
    this.state.set({ kinds: on.length === this.boxes.length ? '' : on.join(',') || 'none' }, true);
  }
}
