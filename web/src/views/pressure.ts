// What `memtrace run` sampled from outside: resident memory, swap, faults, and how hard the machine and the
// program's control group were pressed for memory. Columns that tell how much there is are drawn as they are, those that
// count up as what was added from sample to sample.

import { Chart, type Series } from '../chart';
import type { Pressure } from '../data';
import { h, name } from '../dom';
import type { Model, View } from '../model';
import { plainTable } from '../plain_table';
import type { ThemeChoice } from '../theme';
import { bytes, count, plural, seconds } from '../text';
import { WholeNote } from '../whole_note';

const COLOURS = ['rss', 'live', 'fault', 'alloc'];

interface Picture { title: string; text: (value: number) => string; columns: [string, string][] }
const PICTURES: Picture[] = [
  { title: 'Memory', text: bytes, columns: [
    ['rss_anon_bytes', 'anonymous'], ['rss_file_bytes', 'files'], ['rss_shmem_bytes', 'shared'], ['swap_bytes', 'in swap']] },
  { title: 'Of the control group', text: bytes, columns: [['cgroup.current_bytes', 'held by the group'], ['cgroup.limit_bytes', 'its limit']] },
  { title: 'Taken back and wanted again', text: count, columns: [
    ['major_faults', 'major faults'], ['system.pswpin', 'pages swapped in'],
    ['system.workingset_refault_anon', 'refaults, anonymous'], ['system.workingset_refault_file', 'refaults, files']] },
  { title: 'Stalled for memory', text: (us) => seconds(us / 1e6), columns: [
    ['system.stall_some_us', 'somebody on the machine'], ['cgroup.stall_some_us', 'somebody in the group']] },
];

const isAmount = (column: string) => column.endsWith('_bytes') || column === 'tree.processes';

export class PressureView implements View {
  readonly id = 'pressure';
  readonly title = 'Pressure';
  readonly element: HTMLElement;
  private readonly charts: Chart[] = [];
  private readonly note: WholeNote;

  constructor(private readonly model: Model, theme: ThemeChoice) {
    const lane = model.report.pressure!;
    const { process } = model.report;
    const killed = process.end_signal === 9 && process.oom_evidence
      ? h('p', { class: 'note' }, process.oom_killed == null ? 'Whether the OOM killer killed it is not known: '
            : process.oom_killed ? 'Killed by the OOM killer: ' : 'Not killed by the OOM killer: ',
          name(process.oom_evidence.replace(/\.?$/, '.'))) : null;
    this.note = new WholeNote(model);
    this.element = h('div', {}, this.note.element,
      h('p', {}, `${plural(lane.samples, 'sample')} of the process and of the machine, taken from outside; ${count(lane.points.length)} are here.`),
      killed,
      ...(lane.notes.length > 0 ? [h('ul', { class: 'notes' }, ...lane.notes.map((note) => h('li', {}, name(note))))] : []),
      ...PICTURES.flatMap((picture) => this.picture(picture, lane)),
      h('h3', {}, 'All that was sampled'), this.table(lane));
    theme.subscribe(() => { for (const chart of this.charts) if (chart.element.clientWidth > 0) chart.draw(); });
  }

  update(): void {
    this.note.update();
    const { ranged, chosen: { from, to } } = this.model;
    for (const chart of this.charts) chart.setRange(ranged ? [from, to] : null);
  }

  setWhole(whole: boolean): void { for (const chart of this.charts) chart.setWhole(whole); }

  private values(lane: Pressure, column: string): (number | null)[] {
    if (isAmount(column)) return lane.points.map((point) => point[column] ?? null);
    let before: number | null = null;
    return lane.points.map((point) => {
      const now = point[column] ?? null;
      const added = now === null || before === null ? null : Math.max(0, now - before);
      if (now !== null) before = now;
      return added;
    });
  }

  // None where nothing of it is known, or nothing ever happened.
  private picture({ title, text, columns }: Picture, lane: Pressure): HTMLElement[] {
    const series = columns.flatMap(([column, what], at): Series[] => {
      const values = this.values(lane, column);
      return values.some((value) => value !== null && value > 0)
        ? [{ title: what, colour: COLOURS[at % COLOURS.length], steps: isAmount(column) ? 'sample' : undefined, bars: !isAmount(column), values }] : [];
    });
    if (series.length === 0) return [];
    // As the timeline, and what was sampled before or after it.
    const times = lane.points.map((point) => point.time_s), { begin, end } = this.model.intervals;
    const chart = new Chart({
      height: 150, text, times, span: [Math.min(begin, times[0]), Math.max(end, times[times.length - 1])], sync: 'time', label: `${title}: ${series.map((one) => one.title).join(', ')}`, series,
    });
    this.charts.push(chart);
    return [h('h3', {}, title), chart.element];
  }

  private table(lane: Pressure): HTMLElement {
    const columns = lane.columns.filter((column) => lane.points.some((point) => point[column] !== undefined));
    return plainTable(['What', 'First', 'Last', 'Most, or added'], columns, (column) => {
      const known = lane.points.filter((point) => point[column] !== undefined);
      const value = (number: number) => (column.endsWith('_bytes') ? bytes(number) : column.endsWith('_us') ? seconds(number / 1e6) : count(number));
      const most = known.reduce((best, point) => (point[column] > best[column] ? point : best));
      const first = known[0][column], last = known[known.length - 1][column];
      return [h('span', { title: column }, name(lane.titles[lane.columns.indexOf(column)])), value(first), value(last),
        isAmount(column) ? `${value(most[column])} at ${seconds(most.time_s)}` : `+${value(Math.max(0, last - first))}`];
    });
  }
}
