import type { Thread } from '../data';
import { h, name, type Child } from '../dom';
import type { Model, View } from '../model';
import { plainTable } from '../plain_table';
import { byPlace, Table, type Column } from '../table';
import { plural, seconds } from '../text';
import { WholeNote } from '../whole_note';

export class ThreadsView implements View {
  readonly id = 'threads';
  readonly title = 'Threads';
  readonly element: HTMLElement;
  private readonly table: Table<Thread>;
  private readonly note: WholeNote;

  constructor(private readonly model: Model) {
    const { figures } = model;
    this.note = new WholeNote(model);
    type Key = 'allocations' | 'frees' | 'bytes_allocated' | 'live_bytes' | 'live_blocks' | 'temporary' | 'first_time_s' | 'last_time_s';
    const number = (id: Key, title: string, text: (value: number) => string): Column<Thread> => ({
      id, title, number: true, width: '8em', value: (thread) => thread[id] ?? 0,
      cell: (thread) => (thread[id] === null ? '–' : text(thread[id]!)),
    });
    const time = (id: 'first_time_s' | 'last_time_s', title: string): Column<Thread> => ({
      ...number(id, title, seconds), cell: (thread) => (thread.allocations + thread.frees > 0 ? seconds(thread[id]) : '–'),
    });
    this.table = new Table<Thread>({
      label: 'Threads', sort: '-bytes_allocated',
      onSort: (sort) => model.state.set({ sort }),
      key: byPlace(model.report.threads),
      columns: [
        { id: 'tid', title: 'tid', number: true, width: '6em', value: (thread) => thread.tid, cell: (thread) => String(thread.tid) },
        { id: 'name', names: 'row', title: 'Name', width: 'auto', value: (thread) => thread.name,
          cell: (thread) => h('span', {}, name(thread.name), thread.in_signal_handlers && ' (signal handlers)') },
        number('bytes_allocated', 'Total', figures.bytes), number('allocations', 'Allocations', figures.count), number('frees', 'Frees', figures.count),
        number('live_bytes', 'Live', figures.bytes), number('live_blocks', 'Blocks', figures.count), number('temporary', 'Temporary', figures.count),
        time('first_time_s', 'First'), time('last_time_s', 'Last'),
      ],
      empty: model.report.threads.length > 0 ? 'No thread is left by the chosen time.' : 'There is none.',
    });
    this.element = h('div', {}, this.note.element, this.table.element, ...this.exchanges(), ...this.modules());
  }

  update(): void {
    const threads = this.model.report.threads.filter((thread) => this.model.within(thread));
    this.table.setRows(threads, plural(threads.length, 'thread') + (this.model.ranged ? ' that may have done something in the chosen time' : ''), this.model.state.sortOf(this.id));
    this.note.update();
  }

  private exchanges(): Child[] {
    const { thread_exchanges: rows = [], thread_exchanges_left_out: rest } = this.model.report;
    const { bytes, count, plural } = this.model.figures;
    const thread = (tid: number | null) => (tid === null ? 'another' : name(this.nameOf(tid)));
    return rows.length === 0 ? [] : [h('h3', {}, 'Blocks that another thread freed'),
      plainTable(['Allocated by', 'Freed by', 'Blocks', 'Bytes'],
        rows, (row) => [thread(row.from_tid), thread(row.to_tid), count(row.blocks), bytes(row.bytes)], [1]),
      rest !== undefined && rest.blocks > 0 && h('p', {},
        `Between pairs of threads that were not told apart: ${plural(rest.blocks, 'block')}, ${bytes(rest.bytes)}`)];
  }

  // "worker 13801": without a name where several threads had the number one after the other.
  private nameOf(tid: number): string {
    const names = new Set(this.model.report.threads.filter((thread) => thread.tid === tid).map((thread) => thread.name));
    const [first] = names;
    return names.size === 1 && first !== '' ? `${first} ${tid}` : String(tid);
  }

  private modules(): Child[] {
    const { bytes, count } = this.model.figures;
    const rows = this.model.report.modules ?? [];
    return rows.length === 0 ? [] : [h('h3', {}, 'Modules'),
      plainTable(['Module', 'Total', 'Allocations', 'Live', 'At peak', 'Wasted'], rows, (row) =>
        [name(row.module || '[no module]'), bytes(row.bytes_allocated), count(row.allocations), bytes(row.live_bytes), bytes(row.bytes_at_peak), row.wasted_bytes === null ? '–' : bytes(row.wasted_bytes)])];
  }

  setWhole(whole: boolean): void { this.table.setWhole(whole); }
}
