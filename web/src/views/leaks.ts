// What was not freed: by kind where the memory was scanned. And what was freed by the wrong function.
// And what was freed twice.

import type { FreeMoment, Leak } from '../data';
import { h, name, nameInParts, type Child } from '../dom';
import type { Model, View } from '../model';
import { moreText } from '../part_note';
import { plainTable } from '../plain_table';
import { callerCell, placeCell } from '../short_name';
import { stackList } from '../stack_list';
import { byPlace, Table, type Column } from '../table';
import { bytes, plural, seconds } from '../text';
import { WholeNote } from '../whole_note';

// The gravest first. What is lost indirectly is counted with what leads to it, and the runtime's own is no loss.
const KINDS = ['definite', 'possible', 'indirect', 'reachable', 'suppressed', 'unfreed'];
const gravity = (leak: Leak) => KINDS.indexOf(leak.of_runtime ? 'reachable' : leak.kind);
const withIndirect = (leak: Leak) => leak.bytes + (leak.indirect_bytes ?? 0);

export class LeaksView implements View {
  readonly id = 'leaks';
  readonly title: string;
  readonly element: HTMLElement;
  private readonly table: Table<Leak>;
  private readonly boxes: HTMLInputElement[] = [];
  private readonly amounts = new Map<string, HTMLElement>();
  private readonly notes: WholeNote[];

  constructor(private readonly model: Model) {
    const { report, stacks, state, figures } = model, { leak_kinds: kinds } = report;
    this.notes = [new WholeNote(model), new WholeNote(model)];
    const scanned = report.leak_scan !== null;
    this.title = scanned ? 'Leaks' : 'Unfreed';
    const leads = report.leaks.some((leak) => leak.indirect_bytes);
    const time = (id: 'first_time_s' | 'last_time_s', title: string): Column<Leak> => ({
      id, title, number: true, width: '6.5em', value: (leak) => leak[id], cell: (leak) => seconds(leak[id]),
    });
    const columns: Column<Leak>[] = [
      { id: 'kind', title: 'Kind', width: report.leaks.some((leak) => leak.of_runtime) ? '16em' : '10em', value: gravity,
        cell: (leak) => h('span', { class: `tag ${leak.of_runtime ? 'reachable' : leak.kind}` }, kinds[leak.kind], leak.of_runtime && ', the runtime’s') },
      ...(leads ? [{
        id: 'all', title: 'In all', help: 'Bytes, and those of the blocks that only these lead to', number: true, width: '7em',
        value: withIndirect, cell: (leak: Leak) => figures.bytes(withIndirect(leak)),
      }] : []),
      { id: 'bytes', title: 'Bytes', number: true, width: '7em', value: (leak) => leak.bytes, cell: (leak) => figures.bytes(leak.bytes) },
      ...(figures.estimated ? [{
        id: 'interval', title: '95 % interval', number: true, width: '13em', value: (leak: Leak) => leak.bytes_high ?? 0,
        cell: (leak: Leak) => figures.interval(leak.bytes_low, leak.bytes_high),
      }] : []),
      { id: 'blocks', title: 'Blocks', number: true, width: '5.5em', value: (leak) => leak.blocks, cell: (leak) => figures.count(leak.blocks) },
      ...(scanned ? [{
        id: 'indirect', title: 'Indirect', help: 'Bytes of the blocks that only these lead to', number: true, width: '7em',
        value: (leak: Leak) => leak.indirect_bytes ?? 0,
        cell: (leak: Leak) => (leak.indirect_bytes ? figures.bytes(leak.indirect_bytes) : ''),
      }] : []),
      time('first_time_s', 'First'), time('last_time_s', 'Last'),
      { id: 'caller', names: 'row', title: 'Caller', width: 'auto', value: (leak) => stacks.callerName(leak.stack),
        cell: (leak) => callerCell(stacks, leak.stack) },
      { id: 'place', names: 'place', title: 'Place', width: '14em', value: (leak) => stacks.callerPlace(leak.stack),
        cell: (leak) => placeCell(stacks, leak.stack) },
    ];
    this.table = new Table<Leak>({
      label: this.title, columns, sort: scanned ? 'kind' : '-bytes',
      onSort: (sort) => state.set({ sort }),
      key: byPlace(report.leaks),
      detail: (leak) => h('div', {},
        h('p', {}, `${leak.allocator}, fingerprint `, h('code', {}, leak.fingerprint)),
        stackList(stacks, leak.stack, (frame) => model.filterBy(frame))),
      empty: report.leaks.length > 0 ? 'None is left by what was chosen.' : report.leaks_total > 0 ? 'None of them is in this page.' : 'There is none.',
    });
    this.element = h('div', {}, ...this.invalidFrees(), this.head(), this.table.element, ...this.mismatches());
  }

  update(): void {
    const wanted = this.model.state.get('kinds');
    const kinds = wanted.split(',');
    for (const box of this.boxes) box.checked = wanted === '' || kinds.includes(box.value);
    this.drawAmounts();
    for (const note of this.notes) note.update();
    // Of a kind first is what most was lost with: the head of a list may have few bytes itself.
    const leaks = this.model.leaks().sort((a, b) => withIndirect(b) - withIndirect(a));
    const more = this.model.report.leaks_total - this.model.report.leaks.length;
    this.table.setRows(leaks, plural(leaks.length, 'row') + (!this.model.ranged ? ''
      : this.model.leaksAreKnown ? ' whose site allocated in the chosen time' : ' that may be of the chosen time') +
      moreText(more), this.model.state.sortOf(this.id));
  }

  setWhole(whole: boolean): void { this.table.setWhole(whole); }

  private invalidFrees(): Child[] {
    const stories = this.model.report.invalid_frees?.stories ?? [];
    const what: { [kind: string]: string } = {
      double_free: 'freed before', inside_live_block: 'inside of a block', inside_freed_block: 'inside of a block that was freed before' };
    const moment = (one: FreeMoment | null) => one === null ? '' :
      h('span', {}, one.caller === null ? 'not recorded' : nameInParts(one.caller), ` at ${seconds(one.time_s)}`);
    return stories.length === 0 ? [] : [h('h3', {}, 'Invalid frees'), this.notes[0].element,
      plainTable(['What', 'Block', 'Times', 'Allocated', 'Freed', 'Freed again'], stories, (story) =>
        [what[story.kind] ?? story.kind, bytes(story.block_bytes), this.model.figures.count(story.times),
          moment(story.allocated), moment(story.freed), moment(story.again)], [0, 3, 4, 5])];
  }

  private mismatches(): Child[] {
    const pairs = this.model.report.mismatches?.pairs ?? [];
    return pairs.length === 0 ? [] : [h('h3', {}, 'Ended by another kind of function than they came from'), this.notes[1].element,
      plainTable(['Allocated at', 'by', 'Ended at', 'by', 'Times'], pairs, (pair) =>
        [nameInParts(pair.allocated_at), nameInParts(pair.allocator, 'words'), nameInParts(pair.ended_at),
          nameInParts(pair.ended_by, 'words'), this.model.figures.count(pair.times)], [1, 2, 3])];
  }

  // Of each kind what the filter and the chosen time leave, of how much.
  private drawAmounts(): void {
    const { model } = this, { report, state } = model;
    const { totals } = report.leak_scans.find((one) => one.number === report.leak_scan) ?? { totals: null };
    const narrowed = state.get('q') !== '' || model.ranged;
    for (const [kind, element] of this.amounts) {
      const all = totals![kind], rows = report.leaks.filter((leak) => leak.kind === kind);
      const left = narrowed ? rows.filter((leak) => model.keeps(leak.stack) && model.leakWithin(leak)) : rows;
      const sum = (of: 'bytes' | 'blocks') => left.reduce((total, leak) => total + leak[of], 0);
      element.textContent = all.blocks > 0 && rows.length === 0 ? `${bytes(all.bytes)} in ${plural(all.blocks, 'block')}, not in this page`
        : narrowed ? `${bytes(sum('bytes'))} in ${plural(sum('blocks'), 'block')}, of ${bytes(all.bytes)}`
        : `${bytes(all.bytes)} in ${plural(all.blocks, 'block')}`;
    }
  }

  private head(): HTMLElement {
    const { report, state } = this.model;
    if (report.leak_scan === null) {
      return h('p', { class: 'note' },
        `Nothing is known about what is reachable: ${report.no_leak_scan}. No scan is not the same as no leaks.`);
    }
    const scan = report.leak_scans.find((one) => one.number === report.leak_scan)!;
    const boxes = Object.keys(report.leak_kinds).filter((kind) => scan.totals && kind in scan.totals).map((kind) => {
      const text = h('span');
      this.amounts.set(kind, text);
      const box = h('input', { type: 'checkbox', value: kind, on: { change: () => {
        const on = this.boxes.filter((each) => each.checked).map((each) => each.value);
        state.set({ kinds: on.length === this.boxes.length ? '' : on.join(',') || 'none' }, true);
      } } });
      this.boxes.push(box);
      return h('label', { class: 'kind' }, box, ' ', h('span', { class: `tag ${kind}` }, report.leak_kinds[kind]),
        ' ', text);
    });
    return h('div', {},
      h('p', { class: 'note' }, `Scan ${scan.number}, ${scan.when}`, scan.label && h('span', {}, ' (', name(scan.label), ')'), `, at ${seconds(scan.time_s)}.`,
        ...scan.notes.map((note) => h('span', { class: 'warning' }, ` ${note}.`))),
      h('fieldset', { class: 'choice' }, h('legend', {}, 'Kinds'), ...boxes));
  }
}
