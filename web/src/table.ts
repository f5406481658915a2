// A table of any length: sorted by its heads, rows that open, and only those rows in the document
// that are in sight. TanStack's virtualizer decides what is where; here it becomes a real table, with
// its rows and their number told to screen readers. Where there is little room the column that names
// a row is the first and stays in sight, with the place below the name and beside it in the head.
//
// Keys, in the body: up and down, Page, Home and End move; Enter, Space and Right open a row, Left
// closes it.
//
// What an open row shows is made once and stays in the document while it is in sight, with the focus that is in it: all
// other rows are made anew whenever something is scrolled or measured.

import {
  elementScroll, observeElementOffset, observeElementRect, Virtualizer,
} from '@tanstack/virtual-core';
import { append, h, type Child } from './dom';

export interface Column<T> {
  id: string;
  title: string;
  help?: string;
  value: (row: T) => number | string;  // what it is sorted by
  cell: (row: T) => Child;
  number?: boolean;                    // stands to the right, largest first
  largest?: boolean;                   // a text with numbers, also largest first
  width: string;                       // of CSS; where there are numbers in it that need more, they get it
  names?: 'row' | 'place';             // what the row is of, and where that is
}

export interface TableOptions<T> {
  label: string;
  columns: Column<T>[];
  sort: string;                          // "column", or "-column" for the largest first
  onSort: (sort: string) => void;        // comes back with the rows
  key: (row: T) => string;               // tells rows apart, also when the table changes; mostly byPlace()
  detail?: (row: T) => Node;             // what an open row shows below itself
  empty: string;
}

const PRINTED_ROWS = 100;
const ROW_HEIGHT = 28;

// A key for rows of a document. What they tell is no key: sites of one function, file and line have one stack in the page.
export function byPlace<T>(all: readonly T[]): (row: T) => string {
  const places = new Map(all.map((row, place) => [row, String(place)]));
  return (row) => places.get(row)!;
}

interface Row<T> { id: string; original: T }
interface Item<T> { row: Row<T>; index: number; detail: boolean }
interface Detail<T> { original: T; element: HTMLTableRowElement; cell: HTMLElement }

const narrow = matchMedia('screen and (max-width: 1000px)');
const NAME_WIDTH = 'clamp(10em, 38vw, 22em)';
const LEAST_WIDTH = '12em';   // of a column that takes a part of the room or what is left
const MOST_TEXT = '28em';     // of one with a text: of two such columns the names have some room left in ENOUGH_WIDTH
const CELL_PADDING = '16px', TWIST_WIDTH = '1.2em';  // as in style.css
const ENOUGH_WIDTH = '84em';  // of a table: its names get what is left of it, however little that is

const textOf = (child: Child): string => (child instanceof Node ? child.textContent ?? '' : String(child || ''));

export class Table<T> {
  readonly element: HTMLElement;
  private readonly options: TableOptions<T>;
  private readonly scroller: HTMLElement;
  private readonly table: HTMLTableElement;
  private readonly body: HTMLTableSectionElement;
  private readonly note: HTMLElement;
  private readonly columnWidths = h('colgroup');
  private readonly head = h('thead');
  private readonly heads = new Map<HTMLElement, Column<T>[]>();  // by what each sorts
  private readonly buttons = new Map<string, HTMLElement>();
  private columns: Column<T>[] = [];  // as they are shown
  private readonly virtual: Virtualizer<HTMLElement, HTMLElement>;
  private sorting: { id: string; desc: boolean };
  private rows: Row<T>[] = [];
  private items: Item<T>[] = [];
  private open = new Set<string>();
  private readonly details = new Map<string, Detail<T>>();  // of open rows, by their ids
  private focused = 0;  // where the keys are
  private tabbed = 0;   // the row that Tab comes to
  private whole = false;  // for printing

  constructor(options: TableOptions<T>) {
    this.options = options;
    this.sorting = this.parseSort(options.sort);
    this.body = h('tbody', { on: { focusin: (event) => this.onFocus(event) } });
    this.table = h('table', { role: options.detail ? 'treegrid' : 'grid', 'aria-label': options.label },
      this.columnWidths, this.head, this.body);
    this.arrange();
    narrow.addEventListener('change', () => { this.arrange(); this.layOut(); });
    this.scroller = h('div', { class: 'scroller', tabindex: '-1', on: { keydown: (event) => this.onKey(event) } },
      this.table);
    this.note = h('p', { class: 'note', 'aria-live': 'polite' });
    this.element = h('div', { class: 'table' }, this.scroller, this.note);

    this.virtual = new Virtualizer<HTMLElement, HTMLElement>(this.virtualOptions(0));
    this.virtual._didMount();
  }

  // `sort`: what onSort() told; empty: as it is from the beginning.
  setRows(rows: T[], note: string, sort: string): void {
    this.sorting = this.parseSort(sort);
    this.rows = rows.map((original) => ({ id: this.options.key(original), original }));
    // Of two with one id both would open, and show what the first has. No page of the tests may say this.
    if (new Set(this.rows.map(({ id }) => id)).size < rows.length) console.error(`${this.options.label}: rows that have one key`);
    for (const { id, original } of this.rows) {
      if (this.details.get(id)?.original !== original) this.details.delete(id);  // it may tell something else now
    }
    this.note.textContent = note;
    this.setWidths();
    this.layOut();
  }

  // The first rows in full, as paper cannot scroll.
  setWhole(whole: boolean): void {
    this.whole = whole;
    this.arrange();
    this.layOut();
  }

  // Paper is wide enough, however wide the window is.
  private get narrow(): boolean { return !this.whole && narrow.matches; }

  private parseSort(sort: string): { id: string; desc: boolean } {
    const known = this.options.columns.some((column) => column.id === sort.replace(/^-/, ''));
    const chosen = known ? sort : this.options.sort;
    return { id: chosen.replace(/^-/, ''), desc: chosen.startsWith('-') };
  }

  // Which columns there are, in which order and how wide.
  private arrange(): void {
    const { columns } = this.options;
    const who = columns.find((column) => column.names === 'row');
    const first = this.narrow ? who : undefined;
    this.columns = first ? [first, ...columns.filter((column) => column !== first && column.names !== 'place')] : columns;
    this.table.classList.toggle('narrow', first !== undefined);
    this.setWidths();
    const focused = [...this.buttons].find(([, button]) => button === document.activeElement)?.[0];
    this.heads.clear();
    this.buttons.clear();
    this.head.replaceChildren(this.headRow(first && columns.find((column) => column.names === 'place')));
    if (focused !== undefined) this.buttons.get(focused)!.focus();
  }

  private setWidths(): void {
    const widths = this.columns.map((column, i) => (this.narrow && column.names === 'row' ? NAME_WIDTH : this.widthOf(column, i)));
    const least = widths.map((width) => (/^auto$|%$/.test(width) ? LEAST_WIDTH : width));
    this.table.style.minWidth = `min(${this.narrow ? '' : `${ENOUGH_WIDTH}, `}${least.join(' + ')})`;
    this.columnWidths.replaceChildren(...widths.map((width) => h('col', { style: { width } })));
  }

  // What it is told to have, or what its longest text needs, of which no letter is taken to be wider than a digit. The
  // longest of numbers is the largest or the least, for those that are rounded to three digits have room anyway.
  private widthOf(column: Column<T>, at: number): string {
    const { number, largest, width, cell } = column;
    if (this.whole || (!number && !largest)) return width;  // on paper a cell has the lines and the room that it needs
    const longest = (largest ? this.rows : this.ends(column)).reduce((most, { original }) => Math.max(most, textOf(cell(original)).length), 0);
    const wanted = `${longest}ch + ${CELL_PADDING}${at === 0 && this.options.detail ? ` + ${TWIST_WIDTH}` : ''}`;
    return largest ? `clamp(${width}, ${wanted}, ${MOST_TEXT})` : `max(${width}, ${wanted})`;
  }

  // The rows with the least value and with the largest; none where there is none.
  private ends({ value }: Column<T>): Row<T>[] {
    let least: Row<T> | undefined, most: Row<T> | undefined;
    let low: number | string = Infinity, high: number | string = -Infinity;
    for (const row of this.rows) {
      const at = value(row.original);
      if (at <= low) [least, low] = [row, at];
      if (at >= high) [most, high] = [row, at];
    }
    return [least, most].filter((row) => row !== undefined);
  }

  // By each row's value, which is asked for once; those that are alike stay as they were.
  private sorted(): Row<T>[] {
    const { id, desc } = this.sorting;
    const { value } = this.options.columns.find((column) => column.id === id)!;
    const keyed = this.rows.map((row) => ({ row, at: value(row.original) }));
    const up = desc ? -1 : 1;
    keyed.sort((a, b) => (a.at < b.at ? -up : a.at > b.at ? up : 0));
    return keyed.map(({ row }) => row);
  }

  // The place, where it has no column, is sorted by in the head of the names.
  private headRow(place: Column<T> | undefined): HTMLTableRowElement {
    return h('tr', { 'aria-rowindex': 1 }, ...this.columns.map((column) => {
      const sorts = place && column.names === 'row' ? [column, place] : [column];
      const buttons = sorts.map((by) => h('button', {
        type: 'button', title: by.help ?? null, on: { click: () => this.sortBy(by) },
      }, by.title));
      sorts.forEach(({ id }, i) => this.buttons.set(id, buttons[i]));
      const head = h('th', { scope: 'col', class: column.number ? 'number' : '' },
        h('div', { class: 'head' }, ...buttons));
      this.heads.set(head, sorts);
      return head;
    }));
  }

  private sortBy(column: Column<T>): void {
    const desc = this.sorting.id === column.id ? !this.sorting.desc : column.number ?? column.largest ?? false;
    this.options.onSort(`${desc ? '-' : ''}${column.id}`);
  }

  private layOut(): void {
    const focused = this.items[this.focused]?.row.id;
    for (const [head, sorts] of this.heads) {
      const sorted = sorts.some(({ id }) => id === this.sorting.id);
      head.setAttribute('aria-sort', !sorted ? 'none' : this.sorting.desc ? 'descending' : 'ascending');
    }
    for (const [id, button] of this.buttons) button.setAttribute('aria-current', String(id === this.sorting.id));
    this.items = [];
    this.sorted().forEach((row, index) => {
      this.items.push({ row, index, detail: false });
      if (this.open.has(row.id)) this.items.push({ row, index, detail: true });
    });
    this.table.setAttribute('aria-rowcount', String(this.rows.length + 1));
    const at = this.items.findIndex(({ row }) => row.id === focused);
    this.focused = at >= 0 ? at : Math.min(this.focused, Math.max(0, this.items.length - 1));
    this.virtual.setOptions(this.virtualOptions(this.items.length));  // has it think about all rows anew
    this.draw();
  }

  private virtualOptions(size: number) {
    return {
      count: size,
      getScrollElement: () => this.scroller,
      estimateSize: (index: number) => (this.items[index]?.detail ? 160 : ROW_HEIGHT),
      getItemKey: (index: number) => {
        const item = this.items[index];
        return item ? `${item.row.id}${item.detail ? ' detail' : ''}` : index;
      },
      overscan: 12,
      scrollToFn: elementScroll,
      observeElementRect,
      observeElementOffset,
      onChange: () => this.draw(),
    };
  }

  private drawing = false;
  private draw(): void {
    if (this.drawing) return;  // measuring below calls back
    this.drawing = true;
    this.virtual._willUpdate();
    const hadFocus = this.body.contains(document.activeElement) || document.activeElement === this.scroller;
    const rows: HTMLElement[] = [];
    if (this.items.length === 0) {
      rows.push(h('tr', {}, h('td', { colspan: this.columns.length, class: 'empty' }, this.options.empty)));
    } else if (this.whole) {
      this.items.slice(0, PRINTED_ROWS).forEach((_, index) => rows.push(this.rowAt(index)));
      if (this.items.length > PRINTED_ROWS) {
        rows.push(h('tr', {}, h('td', { colspan: this.columns.length, class: 'empty' },
          `and ${this.items.length - PRINTED_ROWS} more rows`)));
      }
    } else {
      const visible = this.virtual.getVirtualItems();
      const before = visible[0]?.start ?? 0;
      const after = this.virtual.getTotalSize() - (visible[visible.length - 1]?.end ?? 0);
      if (before > 0) rows.push(this.gap(before));
      const inSight = visible.map(({ index }) => index);
      // There is always one that Tab comes to.
      this.tabbed = inSight.includes(this.focused) ? this.focused
        : inSight.find((index) => !this.items[index].detail) ?? -1;
      for (const index of inSight) rows.push(this.rowAt(index));
      if (after > 0) rows.push(this.gap(after));
    }
    this.replaceRows(rows);
    if (!this.whole) {
      for (const row of rows) {
        if (row.dataset.index !== undefined) this.virtual.measureElement(row);
      }
    }
    if (hadFocus && !this.body.contains(document.activeElement)) this.focusRow();
    this.drawing = false;
  }

  // Those that stay are not taken out on the way, which would take the focus from them; the others go when the new ones
  // are there, for a table that is short for a moment scrolls up.
  private replaceRows(rows: HTMLElement[]): void {
    const staying = new Set<Element>(rows), old = [...this.body.children].filter((row) => !staying.has(row));
    let at = this.body.firstElementChild;
    for (const row of rows) {
      while (at && !staying.has(at)) at = at.nextElementSibling;
      if (row === at) at = at.nextElementSibling;
      else this.body.insertBefore(row, at);
    }
    for (const row of old) row.remove();
  }

  // A row that is scrolled out of sight leaves the focus with the table, and gets it back.
  private focusRow(): void { (this.rowElement(this.focused) ?? this.scroller).focus({ preventScroll: true }); }

  private gap(height: number): HTMLElement {
    return h('tr', { 'aria-hidden': 'true', class: 'gap' },
      h('td', { colspan: this.columns.length, style: { height: `${height}px` } }));
  }

  private rowAt(index: number): HTMLElement {
    const { row, index: order, detail } = this.items[index];
    if (detail) return this.detailAt(index);
    const expandable = this.options.detail !== undefined;
    const open = this.open.has(row.id);
    const element = h('tr', {
      'data-index': index, 'aria-rowindex': order + 2, tabindex: index === this.tabbed ? '0' : '-1',
      class: open ? 'open' : '',
      'aria-expanded': expandable ? String(open) : null,
      'aria-level': expandable ? 1 : null,
      on: {
        click: () => { this.focused = index; if (expandable && !getSelection()?.toString()) this.toggle(row.id); },
      },
    });
    const place = this.narrow ? this.options.columns.find((column) => column.names === 'place') : undefined;
    this.columns.forEach((column, i) => {
      const cell = h('td', { role: 'gridcell', class: column.number ? 'number' : column.names === 'row' ? 'who' : column.names === 'place' ? 'where' : '' });
      if (i === 0 && expandable) cell.append(h('span', { class: 'twist', 'aria-hidden': 'true' }, open ? '▾' : '▸'));
      append(cell, [column.cell(row.original)]);
      if (place && column.names === 'row') append(cell, [h('div', { class: 'below' }, place.cell(row.original))]);
      element.append(cell);
    });
    return element;
  }

  // What the row above it shows, made when it is first seen.
  private detailAt(index: number): HTMLElement {
    const { row: { id, original }, index: order } = this.items[index];
    let detail = this.details.get(id);
    if (!detail) {
      const cell = h('td', {}, h('div', { class: 'opened' }, this.options.detail!(original)));
      detail = { original, cell, element: h('tr', { class: 'detail', 'aria-level': 2, tabindex: '-1' }, cell) };
      this.details.set(id, detail);
    }
    detail.element.dataset.index = String(index);
    detail.element.setAttribute('aria-rowindex', String(order + 2));
    detail.cell.setAttribute('colspan', String(this.columns.length));
    return detail.element;
  }

  private rowElement(index: number): HTMLElement | null {
    return this.body.querySelector<HTMLElement>(`tr[data-index="${index}"]`);
  }

  private toggle(id: string): void {
    if (!this.open.delete(id)) this.open.add(id);
    this.details.delete(id);
    this.layOut();
    this.focusRow();
  }

  private moveTo(index: number): void {
    const last = this.items.length - 1;
    let next = Math.max(0, Math.min(last, index));
    if (this.items[next]?.detail) next += next > this.focused && next < last ? 1 : -1;
    this.focused = Math.max(0, next);
    this.virtual.scrollToIndex(this.focused);
    this.draw();
    this.focusRow();
  }

  // Also of what an open row shows: the keys go on from there.
  private onFocus(event: FocusEvent): void {
    const row = (event.target as Element).closest<HTMLElement>('tr[data-index]');
    if (!row) return;
    const index = Number(row.dataset.index);
    this.focused = this.items[index]?.detail ? index - 1 : index;
  }

  private onKey(event: KeyboardEvent): void {
    const item = this.items[this.focused];
    if (!item || (event.target as Element).closest('a, button, input')) return;
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / ROW_HEIGHT) - 2);
    const open = this.open.has(item.row.id);
    const moves: { [key: string]: () => void } = {
      ArrowDown: () => this.moveTo(this.focused + 1),
      ArrowUp: () => this.moveTo(this.focused - 1),
      PageDown: () => this.moveTo(this.focused + page),
      PageUp: () => this.moveTo(this.focused - page),
      Home: () => this.moveTo(0),
      End: () => this.moveTo(this.items.length - 1),
    };
    if (this.options.detail) {
      moves.Enter = moves[' '] = () => this.toggle(item.row.id);
      moves.ArrowRight = () => { if (!open) this.toggle(item.row.id); };
      moves.ArrowLeft = () => { if (open) this.toggle(item.row.id); };
    }
    const move = moves[event.key];
    if (!move || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    move();
  }
}

