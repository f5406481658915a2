// Memory that came from the kernel, by who asked; the memory map; sizes.

import type { Mapping } from '../data';
import { h, name, type Child } from '../dom';
import type { Model, View } from '../model';
import { plainTable } from '../plain_table';
import { callerCell } from '../short_name';
import { stackList } from '../stack_list';
import { Table } from '../table';
import { bytes, count, plural, seconds } from '../text';

const MAP_ROWS: [string, string][] = [
  ['heap_bytes', 'heap (brk) at the end'], ['heap_at_start_bytes', 'heap (brk) at the start'],
  ['heap_growth_seen_bytes', 'growth of the heap that was seen'], ['anonymous_bytes', 'anonymous mappings at the end'],
  ['anonymous_at_start_bytes', 'anonymous mappings at the start'], ['mapped_blocks_bytes', 'blocks with a mapping of their own'],
  ['arena_bytes', 'other arenas of malloc'], ['thread_stack_bytes', 'stacks of threads'],
  ['program_mmap_bytes', 'the program’s own mmap'], ['tool_bytes', 'memtrace’s own'],
  ['program_other_mmap_bytes', 'its mmap that is shared or not writable'],
  ['unexplained_bytes', 'growth that no event explains'],
];

export class MappingsView implements View {
  readonly id = 'mappings';
  readonly title = 'Sizes and mappings';
  readonly element: HTMLElement;
  private readonly table: Table<Mapping>;

  constructor(private readonly model: Model) {
    const { stacks, state, report } = model;
    this.table = new Table<Mapping>({
      label: 'Mappings', sort: '-bytes', key: (mapping) => `${mapping.kind} ${mapping.stack} ${mapping.file ?? ''}`,
      columns: [
        { id: 'kind', title: 'Kind', width: '9em', value: (mapping) => mapping.kind, cell: (mapping) => mapping.kind.replace('_', ' ') },
        { id: 'calls', title: 'Calls', number: true, width: '6em', value: (mapping) => mapping.calls, cell: (mapping) => count(mapping.calls) },
        { id: 'bytes', title: 'Bytes', number: true, width: '7em', value: (mapping) => mapping.bytes, cell: (mapping) => bytes(mapping.bytes) },
        { id: 'live', title: 'Mapped at the end', number: true, width: '9em', value: (mapping) => mapping.live_bytes, cell: (mapping) => bytes(mapping.live_bytes) },
        { id: 'caller', title: 'Caller', width: 'auto', value: (mapping) => stacks.callerName(mapping.stack),
          cell: (mapping) => h('span', {}, callerCell(stacks, mapping.stack), mapping.file && h('span', { class: 'place' }, ' ', name(mapping.file))) },
      ],
      detail: (mapping) => stackList(stacks, mapping.stack, (frame) => state.set({ q: stacks.name(frame) }, true)),
      empty: 'Nothing was mapped that the trace shows.',
    });
    const widest = Math.max(1, ...report.sizes.map((size) => size.allocations));
    this.element = h('div', {},
      h('h3', {}, 'Sizes asked for'),
      h('table', { class: 'plain' }, h('thead', {}, h('tr', {}, ...['Bytes', 'Allocations', 'Total', 'Live'].map((title) => h('th', { scope: 'col' }, title)), h('td'))),
        h('tbody', {}, ...report.sizes.map((size) => h('tr', {},
          h('th', { scope: 'row' }, size.from_bytes === size.to_bytes ? count(size.from_bytes) : `${count(size.from_bytes)} to ${count(size.to_bytes)}`),
          h('td', { class: 'number' }, count(size.allocations)), h('td', { class: 'number' }, bytes(size.bytes)),
          h('td', { class: 'number' }, bytes(size.live_bytes)),
          h('td', {}, h('span', { class: 'inline-bar', style: { width: `${(12 * size.allocations) / widest}em` } })))))),
      ...this.lifetimes(),
      h('h3', {}, 'Memory from the kernel, by who asked'), this.table.element, this.memoryMap() ?? '');
  }

  update(): void {
    const mappings = this.model.report.mappings.filter((mapping) => this.model.keeps(mapping.stack));
    this.table.setRows(mappings, plural(mappings.length, 'row'));
  }

  setWhole(whole: boolean): void { this.table.setWhole(whole); }

  private lifetimes(): Child[] {
    const classes = this.model.report.lifetimes?.classes ?? [];
    if (classes.length === 0) return [];
    const most = Math.max(...classes.map((one) => one.blocks));
    return [h('h3', {}, 'Lifetimes of blocks that were freed'),
      plainTable(['Lived', 'Blocks', 'Part'], classes, (one) => [`${seconds(one.from_s)} to ${seconds(one.to_s)}`, count(one.blocks),
        h('span', { class: 'inline-bar', style: { width: `${(12 * one.blocks) / most}em` } })])];
  }

  private memoryMap(): HTMLElement | null {
    const map = this.model.report.memory_map;
    return map && h('div', {}, h('h3', {}, 'Memory map'), h('dl', { class: 'figures' },
      ...MAP_ROWS.filter(([key]) => key in map).flatMap(([key, title]) => [h('dt', {}, title), h('dd', {}, bytes(map[key]))])));
  }
}
