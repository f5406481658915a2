// Memory that came from the kernel, by who asked; the memory map; sizes.

import type { Mapping } from '../data';
import { h, name, type Child } from '../dom';
import { allClasses } from '../lifetime_classes';
import type { Model, View } from '../model';
import { plainTable } from '../plain_table';
import { callerCell, placeCell } from '../short_name';
import { stackList } from '../stack_list';
import { byPlace, Table } from '../table';
import { bytes, count, plural, seconds, share } from '../text';
import { WholeNote, wholeText } from '../whole_note';

const MAP_ROWS: [string, string][] = [
  ['heap_bytes', 'heap (brk) at the end'], ['heap_at_start_bytes', 'heap (brk) at the start'],
  ['heap_growth_seen_bytes', 'growth of the heap that was seen'], ['anonymous_bytes', 'anonymous mappings at the end'],
  ['anonymous_at_start_bytes', 'anonymous mappings at the start'], ['mapped_blocks_bytes', 'blocks with a mapping of their own'],
  ['arena_bytes', 'other arenas of malloc'], ['thread_stack_bytes', 'stacks of threads'],
  ['program_mmap_bytes', 'the program’s own mmap'], ['tool_bytes', 'memtrace’s own'],
  ['program_other_mmap_bytes', 'its mmap that is shared or not writable'],
  ['unexplained_bytes', 'growth that no event explains'],
];

const SHARE = 2;  // its column

// Of one of `all`, its share of them as a number and as a bar.
function parts(all: number[]): (one: number) => HTMLElement {
  const sum = all.reduce((total, one) => total + one, 0), most = Math.max(1, ...all);
  return (one) => h('span', { class: 'part' }, h('span', { class: 'share' }, share(one, sum)), one > 0 && h('span', { class: 'inline-bar', style: { '--part': String(one / most) } }));
}

export class MappingsView implements View {
  readonly id = 'mappings';
  readonly title = 'Sizes and mappings';
  readonly element: HTMLElement;
  private readonly table: Table<Mapping>;
  private readonly notes: WholeNote[];

  constructor(private readonly model: Model) {
    const { stacks, figures, report: { mappings } } = model;
    this.notes = [new WholeNote(model), new WholeNote(model)];
    // The kernel's own are known; those of malloc's blocks are known of the sample.
    const of = (mapping: Mapping) => (mapping.kind === 'mapped_block' ? figures : { bytes, count });
    this.table = new Table<Mapping>({
      label: 'Mappings', sort: '-bytes', onSort: (sort) => model.state.set({ sort }), key: byPlace(mappings),
      columns: [
        { id: 'kind', title: 'Kind', width: '11em', value: (mapping) => mapping.kind, cell: (mapping) => mapping.kind.replace('_', ' ') },
        { id: 'calls', title: 'Calls', number: true, width: '6em', value: (mapping) => mapping.calls, cell: (mapping) => of(mapping).count(mapping.calls) },
        { id: 'bytes', title: 'Bytes', number: true, width: '7em', value: (mapping) => mapping.bytes, cell: (mapping) => of(mapping).bytes(mapping.bytes) },
        { id: 'live', title: 'Mapped at the end', number: true, width: '9em', value: (mapping) => mapping.live_bytes, cell: (mapping) => of(mapping).bytes(mapping.live_bytes) },
        { id: 'caller', names: 'row', title: 'Caller', width: 'auto', value: (mapping) => stacks.callerName(mapping.stack),
          cell: (mapping) => h('span', {}, callerCell(stacks, mapping.stack), mapping.file && h('span', { class: 'place' }, ' ', name(mapping.file))) },
        { id: 'place', names: 'place', title: 'Place', width: '13em', value: (mapping) => stacks.callerPlace(mapping.stack),
          cell: (mapping) => placeCell(stacks, mapping.stack) },
      ],
      detail: (mapping) => stackList(stacks, mapping.stack, (frame) => model.filterBy(frame)),
      empty: mappings.length > 0 ? 'None is left by the filter.' : 'Nothing was mapped that the trace shows.',
    });
    this.element = h('div', {}, this.notes[0].element,
      ...this.sizes(),
      ...this.lifetimes(),
      h('h3', {}, 'Memory from the kernel, by who asked'), this.table.element, ...this.memoryMap());
  }

  update(): void {
    const mappings = this.model.report.mappings.filter((mapping) => this.model.keeps(mapping.stack));
    const whole = wholeText(this.model, ['time']);
    this.table.setRows(mappings, plural(mappings.length, 'row') + (whole && `; ${whole}`), this.model.state.sortOf(this.id));
    for (const note of this.notes) note.update();
  }

  setWhole(whole: boolean): void { this.table.setWhole(whole); }

  private sizes(): Child[] {
    const { sizes } = this.model.report, { bytes, count: events } = this.model.figures;
    const part = parts(sizes.map((size) => size.allocations));
    return [h('h3', {}, 'Sizes asked for'),
      plainTable(['Bytes', 'Allocations', 'Share', 'Total', 'Live'], sizes, (size) => [
        size.from_bytes === size.to_bytes ? count(size.from_bytes) : `${count(size.from_bytes)} to ${count(size.to_bytes)}`,
        events(size.allocations), part(size.allocations), bytes(size.bytes), bytes(size.live_bytes)], [SHARE])];
  }

  private lifetimes(): Child[] {
    const classes = allClasses(this.model.report.lifetimes?.classes ?? []);
    if (classes.length === 0) return [];
    const part = parts(classes.map((one) => one.blocks));
    return [h('h3', {}, 'Lifetimes of blocks that were freed'),
      plainTable(['Lived', 'Blocks', 'Share'], classes, (one) => [`${seconds(one.from_s)} to ${seconds(one.to_s)}`,
        this.model.figures.count(one.blocks), part(one.blocks)], [SHARE])];
  }

  private memoryMap(): Child[] {
    const map = this.model.report.memory_map;
    return map === null ? [] : [h('h3', {}, 'Memory map'), this.notes[1].element, h('dl', { class: 'figures' },
      ...MAP_ROWS.filter(([key]) => key in map).flatMap(([key, title]) => [h('dt', {}, title), h('dd', {}, bytes(map[key]))]))];
  }
}
