// What the program told of itself by memtrace.h: phases, marks and pools.

import type { Mark, Phase, Pool } from '../data';
import { h, name, type Child } from '../dom';
import type { Model, View } from '../model';
import { plainTable } from '../plain_table';
import { callerCell } from '../short_name';
import { stackList } from '../stack_list';
import { byPlace, Table, type Column } from '../table';
import { count, plural, seconds } from '../text';
import { WholeNote } from '../whole_note';

type Amount = 'allocations' | 'frees' | 'bytes_allocated' | 'live_bytes' | 'peak_bytes' | 'created';

const called = (text: string) => text || '(no name)';

export class PhasesView implements View {
  readonly id = 'phases';
  readonly title: string;
  readonly element: HTMLElement;
  private readonly phases: Table<Phase> | null;
  private readonly pools: Table<Pool> | null;
  private readonly marks = h('div');
  private readonly notes: WholeNote[];
  private readonly moments: number;  // between two marks, which their times tell apart

  // Whether there is something to see.
  static has({ report: { phases, marks, pools } }: Model): boolean { return phases.length + marks.length + pools.length > 0; }

  constructor(private readonly model: Model) {
    const { phases, marks, pools } = model.report;
    this.title = phases.length > 0 ? 'Phases' : marks.length > 0 ? 'Marks' : 'Pools';  // what is first in it
    this.notes = [new WholeNote(model, ['filter']), new WholeNote(model, ['time'])];
    this.phases = phases.length === 0 ? null : this.phaseTable();
    this.pools = pools.length === 0 ? null : this.poolTable();
    this.moments = marks.slice(1).reduce((least, { time_s }, i) => Math.min(least, time_s - marks[i].time_s || least), Infinity);
    this.element = h('div', {},
      ...this.phases ? [h('h3', {}, 'Phases'), this.notes[0].element, this.phases.element] : [],
      this.marks,
      ...this.pools ? [h('h3', {}, 'Pools'), this.notes[1].element, this.pools.element] : []);
  }

  update(): void {
    const { model } = this, { report, state } = model, sort = state.sortOf(this.id);
    const phases = report.phases.filter(({ first_begin, last_end }) => model.within({ first_time_s: first_begin.time_s, last_time_s: last_end.time_s }));
    const pools = report.pools.filter((pool) => model.keeps(pool.stack));
    this.phases?.setRows(phases, `${plural(phases.length, 'phase')}; what all threads did in them, also where they overlap`, sort);
    this.pools?.setRows(pools, plural(pools.length, 'row'), sort);
    this.marks.replaceChildren(...this.markTable().filter((child) => child instanceof Node));
    for (const note of this.notes) note.update();
  }

  setWhole(whole: boolean): void {
    this.phases?.setWhole(whole);
    this.pools?.setWhole(whole);
  }

  private phaseTable(): Table<Phase> {
    const { model } = this, { bytes, count: events } = model.figures;
    const number = (id: string, title: string, width: string, value: (phase: Phase) => number, text: (value: number) => string, help?: string): Column<Phase> => ({
      id, title, help, number: true, width, value, cell: (phase) => text(value(phase)),
    });
    return new Table<Phase>({
      label: 'Phases', sort: 'begin', onSort: (sort) => model.state.set({ sort }), key: byPlace(model.report.phases),
      columns: [
        { id: 'phase', names: 'row', title: 'Phase', width: 'auto', value: (phase) => phase.name, cell: (phase) => h('span', { title: phase.name }, name(called(phase.name))) },
        { id: 'begin', title: 'From, to', help: 'Its first begin and its last end', width: '18em', value: (phase) => phase.first_begin.time_s, cell: (phase) => this.chooser(phase) },
        number('times', 'Times', '5em', (phase) => phase.times, count),
        number('time', 'Time in it', '6.5em', (phase) => phase.total_s, seconds),
        number('allocations', 'Allocs', '6em', (phase) => phase.allocations, events, 'Allocations'),
        number('bytes', 'Total', '6.5em', (phase) => phase.bytes_allocated, bytes, 'Bytes of its allocations'),
        number('before', 'Live before', '7.5em', (phase) => phase.first_begin.live_bytes, bytes, 'At its first begin'),
        number('after', 'Live after', '7em', (phase) => phase.last_end.live_bytes, bytes, 'At its last end'),
        number('growth', 'Grew by', '6.5em', (phase) => phase.growth_bytes, bytes, 'The live heap, in all of its times'),
        number('faults', 'Faults', '5.5em', (phase) => phase.minor_faults + phase.major_faults, count, 'Minor and major page faults'),
      ],
      empty: 'No phase is left by the chosen time.',
    });
  }

  private chooser(phase: Phase): HTMLElement {
    const { intervals, report, state } = this.model, { first_begin, last_end, open } = phase;
    const { first, behind } = intervals.around(first_begin.time_s, last_end.time_s);
    const step = Math.max(last_end.time_s - first_begin.time_s, 0) / 10;  // its ends look different
    const ends = open > 0 && report.range.whole ? 'the end' : seconds(last_end.time_s, step);
    const time = `${seconds(first_begin.time_s, step)} to ${ends}`;
    return h('button', { type: 'button', class: 'link', title: `Choose this time: ${time}`, on: { click: () => state.set(intervals.choice(first, behind), true) } }, time);
  }

  private poolTable(): Table<Pool> {
    const { model } = this, { stacks, figures: { bytes, count: events } } = model;
    const number = (id: string, title: string, of: Amount, text: (value: number) => string, help?: string): Column<Pool> => ({
      id, title, help, number: true, width: '7em', value: (pool) => pool[of], cell: (pool) => text(pool[of]),
    });
    return new Table<Pool>({
      label: 'Pools', sort: '-pool_bytes', onSort: (sort) => model.state.set({ sort }), key: byPlace(model.report.pools),
      columns: [
        number('pool_bytes', 'Total', 'bytes_allocated', bytes, 'Bytes of the blocks that it gave out'),
        number('pool_live', 'Live', 'live_bytes', bytes), number('pool_peak', 'Peak', 'peak_bytes', bytes),
        number('pool_allocations', 'Allocs', 'allocations', events, 'Blocks that it gave out'), number('pool_frees', 'Frees', 'frees', events),
        number('pool_created', 'Created', 'created', count, 'How often one of this name was made there'),
        { id: 'pool', names: 'row', title: 'Name', width: '16em', value: (pool) => pool.name, cell: (pool) => h('span', { title: pool.name }, name(called(pool.name))) },
        { id: 'pool_caller', title: 'Created by', width: 'auto', value: (pool) => stacks.callerName(pool.stack), cell: (pool) => callerCell(stacks, pool.stack) },
        { id: 'pool_place', names: 'place', title: 'Place', width: '13em', value: (pool) => stacks.callerPlace(pool.stack),
          cell: (pool) => h('span', { class: 'place' }, name(stacks.callerPlace(pool.stack))) },
      ],
      detail: (pool) => stackList(stacks, pool.stack, (frame) => model.filterBy(frame)),
      empty: 'No pool is left by the filter.',
    });
  }

  // Those of the chosen time: of very many, a reader has others by choosing another.
  private markTable(): Child[] {
    const { report, figures } = this.model;
    if (report.marks.length === 0) return [];
    const marks = report.marks.filter(({ time_s }) => this.model.within({ first_time_s: time_s, last_time_s: time_s }));
    return [h('h3', {}, 'Marks'), marks.length === 0 ? h('p', { class: 'empty' }, 'No mark is left by the chosen time.')
      : plainTable<Mark>(['Mark', 'At', 'Live heap', 'Blocks'], marks, (mark) => [
        name(called(mark.name)), seconds(mark.time_s, this.moments), figures.bytes(mark.live_bytes), figures.count(mark.live_blocks)])];
  }
}
