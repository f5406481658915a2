// Page faults and resident memory beside the heap.

import { Chart } from '../chart';
import type { FaultCount, FaultSite } from '../data';
import { h, name, type Child } from '../dom';
import type { Model, View } from '../model';
import { plainTable } from '../plain_table';
import { callerCell, functionCell, placeCell, sentenceOf, shortened } from '../short_name';
import { stackList } from '../stack_list';
import { byPlace, Table } from '../table';
import type { ThemeChoice } from '../theme';
import { bytes, count, plural, seconds } from '../text';
import { WholeNote, wholeText } from '../whole_note';

const ACCOUNT: [string, string][] = [
  ['counted', 'counted by the kernel'], ['before', 'before the first was seen'], ['seen', 'seen, each with its address'],
  ['seen_in_kernel', 'of these, in the kernel'], ['not_seen', 'not seen'], ['lost', 'lost'],
];

const both = (faults: FaultCount) => `${count(faults.minor)} minor` + (faults.major > 0 ? `, ${count(faults.major)} major` : '');

export class FaultsView implements View {
  readonly id = 'faults';
  readonly title = 'Faults';
  readonly element: HTMLElement;
  private readonly chart: Chart | null;
  private table: Table<FaultSite> | null = null;
  private readonly notes: WholeNote[];

  constructor(private readonly model: Model, theme: ThemeChoice) {
    this.notes = [new WholeNote(model), new WholeNote(model)];
    const { faults } = model.report;
    this.chart = this.plot();
    // An imported log has none: neither figures nor what goes with them.
    this.element = faults.source === null ? h('div', {}, h('p', {}, 'The log has no page faults.'), ...this.phases())
      : h('div', {}, this.notes[0].element, ...this.figures(), ...this.words(), this.chart?.element,
          ...this.thrash(), ...this.account(), ...this.phases(), ...this.owners(), this.notes[1].element, ...this.others());
    theme.subscribe(() => { if (this.chart && this.chart.element.clientWidth > 0) this.chart.draw(); });
  }

  // Null where none was seen.
  private plot(): Chart | null {
    const { model } = this, { timeline } = model.report, { points } = timeline;
    const major = points.some((point) => (point.major_faults ?? 0) > 0);
    if (!major && !points.some((point) => (point.minor_faults ?? 0) > 0)) return null;
    return new Chart({
      height: 180, text: count, times: points.map((point) => point.time_s), sync: 'time', span: [model.intervals.begin, model.intervals.end],
      label: `Page faults in each ${seconds(timeline.interval_s)}`,
      series: [
        { title: 'minor faults', colour: 'fault', bars: true, values: points.map((point) => point.minor_faults) },
        ...(major ? [{ title: 'major faults', colour: 'rss', bars: true, values: points.map((point) => point.major_faults) }] : []),
      ],
    });
  }

  private figures(): Child[] {
    const { faults } = this.model.report;
    const rows: [string, Child][] = [
      ...(faults.minor === null ? [['Number', 'not known: the trace ends before they were counted']] as [string, Child][] : [
        ['Minor', count(faults.minor)], ['Major', count(faults.major ?? 0)],
        ['memtrace’s own', `${count(faults.tool_minor)} minor, taken off already`]] as [string, Child][]),
      ['Peak RSS', faults.peak_rss_bytes === null ? 'not known' : bytes(faults.peak_rss_bytes)], ['Source', faults.source],
    ];
    return [h('dl', { class: 'figures' }, ...rows.flatMap(([term, value]) => [h('dt', {}, term), h('dd', {}, value)]))];
  }

  // What they go with, and what was found.
  private words(): Child[] {
    const { correlation, words = [] } = this.model.report.faults;
    return [
      ...correlation.words.map((sentence) => h('p', {}, sentence)),
      words.length > 0 && h('ul', { class: 'notes' }, ...words.map((sentence) => h('li', {}, sentenceOf(`${sentence}.`, this.names())))),
    ];
  }

  private thrash(): Child[] {
    const stretches = this.model.report.faults.thrash ?? [];
    return stretches.length === 0 ? [] : [h('h3', {}, 'Pages that came and went'), h('ul', { class: 'notes' },
      ...stretches.map((one) => h('li', {}, `${seconds(one.from_s)} to ${seconds(one.to_s)}: ${plural(one.refaults, 'fault')} on pages that had been there before, ` +
        `with ${this.model.figures.bytes(one.live_bytes)} live`)))];
  }

  private account(): Child[] {
    const { account, by_memory, memory_kinds = {}, why_not_perf, minor } = this.model.report.faults;
    // Where the trace ends before they were counted, the kernel's sum is of the start alone. Null: not known, as of a part of the run.
    const parts = ACCOUNT.filter(([key]) => account && (account[key] ?? null) !== null && (key !== 'counted' || minor !== null));
    const kinds = Object.entries(by_memory ?? {}).filter(([, value]) => value.minor + value.major > 0);
    const list = (rows: [string, FaultCount | number][]) => h('dl', { class: 'figures' },
      ...rows.flatMap(([term, value]) => [h('dt', {}, term), h('dd', {}, typeof value === 'number' ? count(value) : both(value))]));
    return [
      why_not_perf && h('p', { class: 'note' }, name(`Single faults were not seen: ${why_not_perf}`)),
      ...(account ? [h('h3', {}, 'Account'), list(parts.map(([key, title]) => [title, account[key]!]))] : []),
      ...(kinds.length > 0 ? [h('h3', {}, 'By kind of memory'),
        list(kinds.map(([kind, value]): [string, FaultCount] => [memory_kinds[kind], value]))] : []),
    ];
  }

  // Who allocated what was touched, and who touched it.
  private owners(): Child[] {
    const { model } = this;
    const { stacks } = model;
    const { sites, ns_per_minor } = model.report.faults;
    if (!sites || sites.length === 0) return [];
    const go = (frame: number) => model.filterBy(frame);
    this.table = new Table<FaultSite>({
      label: 'Faults by site', sort: '-minor', onSort: (sort) => model.state.set({ sort }), key: byPlace(sites),
      columns: [
        { id: 'minor', title: 'Minor', number: true, width: '7em', value: (site) => site.minor, cell: (site) => count(site.minor) },
        { id: 'major', title: 'Major', number: true, width: '7em', value: (site) => site.major, cell: (site) => count(site.major) },
        ...(ns_per_minor ? [{ id: 'time', title: 'Time', number: true, width: '7em', help: 'Of the minor faults, by what one took at the start of the process',
          value: (site: FaultSite) => site.minor, cell: (site: FaultSite) => seconds((site.minor * ns_per_minor) / 1e9) }] : []),
        { id: 'caller', names: 'row', title: 'Allocated by', width: 'auto', value: (site) => stacks.callerName(site.stack), cell: (site) => callerCell(stacks, site.stack) },
        { id: 'place', names: 'place', title: 'Place', width: '13em', value: (site) => stacks.callerPlace(site.stack),
          cell: (site) => placeCell(stacks, site.stack) },
        { id: 'touched', title: 'Touched most by', width: '26%', value: (site) => site.touched_by[0]?.function ?? '', cell: (site) => functionCell(site.touched_by[0]?.function ?? '') },
      ],
      detail: (site) => h('div', {}, h('p', {}, `${site.allocator}, fingerprint `, h('code', {}, site.fingerprint)), stackList(stacks, site.stack, go),
        ...site.touched_by.slice(0, 5).map((one) => h('div', {}, h('p', {}, `${both(one)} by `, name(one.function), one.in_kernel && ' (kernel)'),
          typeof one.stack === 'number' && stackList(stacks, one.stack, go)))),
      empty: 'None is left by the filter.',
    });
    return [h('h3', {}, 'Who owns the faults'), this.table.element];
  }

  // With what the heap did in the same phase.
  private phases(): Child[] {
    const { phases } = this.model.report, { figures } = this.model;
    return phases.length === 0 ? [] : [h('h3', {}, 'By phase'),
      plainTable(['Phase', 'Times', 'Minor', 'Major', 'Allocated', 'Live heap grew by'], phases, (phase) => [
        name(phase.name), count(phase.times), count(phase.minor_faults), count(phase.major_faults), figures.bytes(phase.bytes_allocated),
        figures.bytes(phase.growth_bytes)])];
  }

  // Of those that the sentences are about.
  private names(): string[] {
    const { stacks } = this.model;
    return (this.model.report.faults.sites ?? []).flatMap((site) =>
      [stacks.callerName(site.stack), ...site.touched_by.map((one) => one.function)]);
  }

  // What lies in no block: mappings of the program by who asked for them, and all other memory.
  private others(): Child[] {
    const { stacks } = this.model;
    const { mappings, places, memory_kinds = {} } = this.model.report.faults;
    const rows = [
      ...(mappings ?? []).map((one) => ({ ...one, what: h('span', {}, 'mapping of ', shortened(stacks.callerName(one.stack)),
        one.file && name(`, ${one.file}`)) })),
      ...(places ?? []).map((one) => ({ ...one, what: name(`${memory_kinds[one.memory]}${one.name ? ` of ${one.name}` : ''}`) })),
    ].sort((a, b) => b.minor + b.major - a.minor - a.major);
    return rows.length === 0 ? [] : [h('h3', {}, 'Other memory'),
      plainTable(['Memory', 'Minor', 'Major'], rows, (one) => [one.what, count(one.minor), count(one.major)])];
  }

  setWhole(whole: boolean): void {
    this.table?.setWhole(whole);
    this.chart?.setWhole(whole);
  }

  update(): void {
    const { model } = this;
    if (this.table) {
      const rows = model.report.faults.sites!.filter((site) => model.keeps(site.stack));
      const whole = wholeText(model, ['time']);
      this.table.setRows(rows, plural(rows.length, 'site') + (whole && `; ${whole}`), model.state.sortOf(this.id));
    }
    for (const note of this.notes) note.update();
    const { ranged, chosen: { from, to } } = this.model;
    this.chart?.setRange(ranged ? [from, to] : null);
  }
}
