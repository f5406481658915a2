// The heap over time, above all other views: a range dragged in it narrows them.

import { Chart } from '../chart';
import type { Point } from '../data';
import { h } from '../dom';
import type { Model } from '../model';
import type { ThemeChoice } from '../theme';
import { bytes, count, seconds } from '../text';
import { StackedTimeline } from './stacked';

// An interval that goes on behind the end is drawn until there; and one alone is a line, not a point.
function drawable(points: Point[], begin: number, end: number): Point[] {
  const within = points.map((point) => ({ ...point, time_s: Math.min(point.time_s, end) }));
  return within.length === 1 && begin < end ? [{ ...within[0], time_s: begin }, ...within] : within;
}

export class Timeline {
  readonly element: HTMLElement;
  private readonly charts: Chart[];
  private readonly shown: HTMLElement;
  private readonly sliders: HTMLInputElement[];
  private readonly stacked: StackedTimeline | null;
  private sliding = false;  // a slider is dragged, or its key held: one step for Back in all

  constructor(private readonly model: Model, theme: ThemeChoice) {
    const { report } = model;
    const { begin, end, step } = model.intervals, points = drawable(report.timeline.points, begin, end);
    const times = points.map((point) => point.time_s);
    const told = {
      phases: report.phases.map(({ name, times: number, first_begin, first_end, last_begin, last_end }) => ({
        name, spans: (number > 1 ? [[first_begin, first_end], [last_begin, last_end]] : [[first_begin, last_end]])
          .map(([from, to]): [number, number] => [from.time_s, to.time_s]) })),
      marks: report.marks.map((mark) => ({ name: mark.name, time: mark.time_s })),
    };
    const common = {
      times, told, sync: 'time', span: [begin, end] as [number, number],
      onRange: (from: number, to: number) => {
        const { first, behind } = model.intervals.around(from, to);
        this.choose(first, behind);
      },
    };
    const rss = points.some((point) => point.rss_bytes !== null);
    const faults = points.some((point) => point.minor_faults !== null);
    const title = faults ? 'Allocations and faults' : 'Allocations';
    const { totals } = report, { figures } = model;
    const live = new Chart({
      ...common, height: 190, text: bytes,
      label: `Live heap over time: from ${seconds(begin)} to ${seconds(end)}, the peak is ${figures.bytes(totals.peak_live_bytes)} ` +
        `at ${seconds(totals.peak_time_s)}, ${figures.bytes(totals.live_bytes)} at the end`,
      series: [
        { title: 'live, most in the interval', colour: 'live', fill: true, text: figures.bytes, values: points.map((point) => point.max_live_bytes) },
        ...(rss ? [{ title: 'resident (RSS)', colour: 'rss', steps: 'interval' as const, values: points.map((point) => point.rss_bytes) }] : []),
      ],
    });
    const rates = new Chart({
      ...common, height: 110, text: count,
      label: `${title} in each ${seconds(report.timeline.interval_s)}`,
      series: [
        { title: 'allocations', colour: 'alloc', text: figures.count, values: points.map((point) => point.allocations) },
        { title: 'frees', colour: 'free', text: figures.count, values: points.map((point) => point.frees) },
        ...(faults ? [{ title: 'minor faults', colour: 'fault', values: points.map((point) => point.minor_faults) }] : []),
      ],
    });
    this.charts = [live, rates];
    this.shown = h('span', { class: 'chip', 'aria-live': 'polite' });
    this.sliders = ['From', 'To'].map((title, i) => h('input', {
      type: 'range', min: 0, max: model.intervals.count, step: 1, 'aria-label': `${title}, time of the run`,
      on: {
        input: () => this.onSlider(i),
        change: () => { this.sliding = false; },
        keydown: (event) => { this.sliding = event.repeat; },
      },
    }));
    this.stacked = model.series ? new StackedTimeline(model) : null;
    const more = h('details', {}, h('summary', {}, title), rates.element);
    this.element = h('section', { class: 'timeline', 'aria-label': 'Timeline' },
      live.element, more, this.stacked?.element,
      h('div', { class: 'brush' },
        h('label', {}, 'From ', this.sliders[0]), h('label', {}, 'To ', this.sliders[1]), this.shown,
        model.intervals.count > 1 && h('span', { class: 'note' }, `in steps of ${seconds(step)}`),
        h('button', { type: 'button', id: 'clear-range', on: { click: () => model.state.set({ from: '', to: '' }, true) } },
          report.range.whole ? 'Whole run' : 'All of it')));
    theme.subscribe(() => this.redraw());
  }

  setWhole(whole: boolean): void {
    for (const chart of this.charts) chart.setWhole(whole);
    this.stacked?.setWhole(whole);
  }

  redraw(): void {
    for (const chart of this.charts) if (chart.element.clientWidth > 0) chart.draw();
    this.stacked?.redraw();
  }

  update(): void {
    const { chosen, intervals, ranged } = this.model;
    const [from, to] = this.sliders;
    from.value = String(chosen.first);
    to.value = String(chosen.behind);
    from.setAttribute('aria-valuetext', seconds(chosen.from, intervals.step));
    to.setAttribute('aria-valuetext', seconds(chosen.to, intervals.step));
    this.shown.textContent = intervals.text(chosen);
    this.shown.classList.toggle('active', ranged);
    for (const chart of this.charts) chart.setRange(ranged ? [chosen.from, chosen.to] : null);
    this.stacked?.update();
  }

  private choose(first: number, behind: number, step = true): void {
    this.model.state.set(this.model.intervals.choice(first, behind), step);
  }

  // The other one stays where it is, and one interval away at least.
  private onSlider(moved: number): void {
    const { first, behind } = this.model.chosen;
    const to = Number(this.sliders[moved].value);
    const next = moved === 0 ? [Math.min(to, behind - 1), behind] : [first, Math.max(to, first + 1)];
    if (next[0] === first && next[1] === behind) return this.update();  // puts the slider back
    this.choose(next[0], next[1], !this.sliding);
    this.sliding = true;
  }
}
