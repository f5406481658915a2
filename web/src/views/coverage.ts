// What the trace does not contain, so that nobody believes more than it says.

import { h, name } from '../dom';
import type { Model, View } from '../model';
import { bytes, count } from '../text';
import { WholeNote } from '../whole_note';

const ROWS: [string, string][] = [
  ['events', 'events'], ['dropped_events', 'events lost: the library could not write them'],
  ['recovered_events', 'events recovered from the rings of a process without an end'],
  ['unordered_events', 'events whose order across threads could not be decided'],
  ['lost_blocks', 'blocks of the file that are damaged or absent'],
  ['marked_stacks', 'allocations whose stack is not complete'],
  ['unknown_frees', 'frees of blocks whose allocation the trace does not have'],
  ['unseen_frees', 'blocks whose free was not seen'],
  ['inherited_frees', 'frees of blocks that the parent process allocated'],
  ['cross_checked', 'stacks compared with libunwind’s'],
  ['cross_check_differences', 'of these, different'],
  ['stops', 'times the program stopped the recording'],
  ['stopped_allocations', 'allocations while it was stopped, in no figure'],
  ['untraced_children', 'forked children that could not create a trace'],
];

const WAYS: { [way: string]: string } = {
  comes_first: 'its malloc is found before memtrace’s: nothing of it is recorded',
  hidden: 'it is inside a module that does not export it',
  own_names: 'it has functions of its own beside malloc',
};

export class CoverageView implements View {
  readonly id = 'coverage';
  readonly title = 'Coverage';
  readonly element: HTMLElement;
  private readonly note: WholeNote;

  constructor(model: Model) {
    const { coverage } = model.report;
    const counters = Object.entries(coverage.counters);
    this.note = new WholeNote(model);
    this.element = h('div', {}, this.note.element,
      h('ul', { class: 'notes' },
        ...coverage.notes.map((note) => h('li', {}, name(note))),
        ...coverage.unseen_allocators.map((one) => h('li', {}, name(one.module), one.allocator && `, ${one.allocator}`, `: ${WAYS[one.way] ?? one.way}`))),
      h('dl', { class: 'figures' },
        ...ROWS.filter(([key]) => typeof coverage[key] === 'number')
          .flatMap(([key, title]) => [h('dt', {}, title), h('dd', {}, count(coverage[key] as number))]),
        ...coverage.tool_memory_bytes === null ? []
          : [h('dt', {}, 'memtrace’s own memory'), h('dd', {}, `at most ${bytes(coverage.tool_memory_bytes)}`)]),
      counters.length > 0 && h('details', {}, h('summary', {}, 'Counters of the library'),
        h('dl', { class: 'figures' }, ...counters.flatMap(([key, value]) => [h('dt', {}, name(key)), h('dd', {}, count(value))]))));
  }

  update(): void { this.note.update(); }
}
