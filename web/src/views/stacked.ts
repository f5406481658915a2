// The live heap over time, by who holds it: the largest callers, files or modules on top of each
// other, and the rest.

import { Chart } from '../chart';
import { h } from '../dom';
import type { Model } from '../model';
import type { Site } from '../data';
import { PartNote } from '../part_note';
import { bytes } from '../text';
import { WholeNote } from '../whole_note';

const LARGEST = 7;
const BY: [string, string][] = [['caller', 'caller'], ['file', 'source file'], ['folder', 'source folder'], ['module', 'module']];

export class StackedTimeline {
  readonly element: HTMLElement;
  private readonly select: HTMLSelectElement;
  private readonly offered: string[];
  private readonly place = h('div');
  private readonly note: WholeNote;
  private readonly part: PartNote;
  private chart: Chart | null = null;
  private drawn = '';

  constructor(private readonly model: Model) {
    this.note = new WholeNote(model, ['filter']);
    this.part = new PartNote(model);
    const by = model.report.timeline.stacked?.thread ? [...BY, ['thread', 'thread']] : BY;
    this.offered = by.map(([value]) => value);
    this.select = h('select', { on: { change: () => model.state.set({ by: this.select.value }, true) } },
      ...by.map(([value, title]) => h('option', { value }, title)));
    const details = h('details', { on: { toggle: () => model.state.set({ by: details.open ? this.select.value : '' }) } },
      h('summary', {}, 'Live heap by who holds it'), h('label', {}, 'by ', this.select), this.note.element, this.part.element, this.place);
    this.element = details;
  }

  setWhole(whole: boolean): void { this.chart?.setWhole(whole); }

  redraw(): void { if (this.chart && this.chart.element.clientWidth > 0) this.chart.draw(); }

  update(): void {
    const details = this.element as HTMLDetailsElement, by = this.model.state.get('by');
    details.open = by !== '';
    if (details.open) this.select.value = this.offered.includes(by) ? by : this.offered[0];
    const wanted = `${this.select.value} ${this.model.state.get('q')}`;
    if (!details.open || wanted === this.drawn) return;
    this.drawn = wanted;
    this.note.update();
    this.part.update();
    // Of the threads the report tells itself, of all sites.
    (this.select.value === 'thread' ? this.part : this.note).element.hidden = true;
    const { times, groups } = this.groups();
    if (groups.length === 0) {
      this.chart = null;
      this.place.replaceChildren(h('p', { class: 'empty' }, this.model.report.sites.length > 0 ? 'No site is left by the filter.' : 'No site allocated.'));
      return;
    }
    // Each on top of those before it; the highest is drawn first.
    const sums = new Array<number>(times.length).fill(0);
    const series = groups.map(({ title, values }, i) => {
      values.forEach((value, at) => { sums[at] += value; });
      return { title, colour: `hsl(${(i * 47 + 210) % 360} 55% 55%)`, fill: true, opaque: true, steps: 'interval' as const, text: this.model.figures.bytes, values: [...sums], told: values };
    }).reverse();
    this.chart = new Chart({
      height: 200, text: bytes, times, series, sync: 'time', span: [this.model.intervals.begin, this.model.intervals.end],
      label: `Live heap by ${this.select.value}: most hold ${groups.slice(0, 3).map((group) => group.title).join(', ')}`,
    });
    this.place.replaceChildren(this.chart.element);
  }

  private keyOf(site: Site): string {
    const { stacks } = this.model;
    const caller = stacks.caller(site.stack);
    if (caller < 0) return '[no stack]';
    const file = stacks.file(caller);
    switch (this.select.value) {
      case 'file': return file || '[no file]';
      case 'folder': return file.slice(0, file.lastIndexOf('/')) || '[no file]';
      case 'module': return stacks.module(caller) || '[no module]';
      default: return stacks.name(caller);
    }
  }

  // What is known is at the end of each interval, and drawn over the interval.
  private steps(groups: { title: string; values: number[] }[]): { times: number[]; groups: { title: string; values: number[] }[] } {
    const { intervals } = this.model;
    return {
      times: [intervals.begin, ...(groups[0]?.values ?? []).map((_, i) => intervals.at(i + 1))],
      groups: groups.map(({ title, values }) => ({ title, values: [values[0], ...values] })),
    };
  }

  // Told by the report, and so not narrowed by the filter.
  private threads(): { times: number[]; groups: { title: string; values: number[] }[] } {
    const { thread } = this.model.report.timeline.stacked!;
    const groups = thread!.series.map((one) => ({ title: one.name, values: one.live_bytes }));
    if (thread!.others > 0) groups.push({ title: `${thread!.others} others`, values: thread!.other });
    return this.steps(groups);
  }

  private groups(): { times: number[]; groups: { title: string; values: number[] }[] } {
    const { model } = this;
    if (this.select.value === 'thread') return this.threads();
    const members = new Map<string, number[]>();
    for (const site of model.filteredSites()) {
      const key = this.keyOf(site);
      const sites = members.get(key);
      if (sites) sites.push(model.place(site));
      else members.set(key, [model.place(site)]);
    }
    const all = [...members].map(([title, sites]) => ({ title, values: model.series!.liveBytes(sites, model.intervals.count) }));
    // What is large at the end or at the peak has a colour of its own, however short it was there.
    const sums = (all[0]?.values ?? []).map((_, at) => all.reduce((sum, one) => sum + one.values[at], 0));
    const peak = sums.indexOf(Math.max(...sums));
    const size = (values: number[]) => Math.max(values[values.length - 1], values[peak]);
    all.sort((a, b) => size(b.values) - size(a.values));
    const groups = all.slice(0, LARGEST).map(({ title, values }) => ({ title, values }));
    const rest = all.slice(LARGEST);
    if (rest.length > 0) {
      groups.push({ title: `${rest.length} others`, values: rest[0].values.map((_, at) => rest.reduce((sum, one) => sum + one.values[at], 0)) });
    }
    return this.steps(groups);
  }
}
