// The heap over time, above all other views: a range dragged in it narrows them.

import { Chart } from '../chart';
import { h } from '../dom';
import type { Model } from '../model';
import type { ThemeChoice } from '../theme';
import { bytes, count, seconds } from '../text';
import { StackedTimeline } from './stacked';

export class Timeline {
  readonly element: HTMLElement;
  private readonly charts: Chart[];
  private readonly shown: HTMLElement;
  private readonly sliders: HTMLInputElement[];
  private readonly stacked: StackedTimeline | null;
  private readonly end: number;

  constructor(private readonly model: Model, theme: ThemeChoice) {
    const { report } = model;
    const { points } = report.timeline;
    const times = points.map((point) => point.time_s);
    this.end = times[times.length - 1] ?? 0;
    const marks = [
      ...report.phases.map((phase) => ({ name: phase.name, time: phase.first_begin.time_s })),
      ...report.marks.map((mark) => ({ name: mark.name, time: mark.time_s })),
    ];
    const common = {
      times, marks, sync: 'time',
      onRange: (from: number, to: number) => this.choose(from, to),
    };
    const rss = points.some((point) => point.rss_bytes !== null);
    const { totals } = report, { figures } = model;
    const live = new Chart({
      ...common, height: 190, text: bytes,
      label: `Live heap over time: from 0 to ${seconds(this.end)}, the peak is ${figures.bytes(totals.peak_live_bytes)} ` +
        `at ${seconds(totals.peak_time_s)}, ${figures.bytes(totals.live_bytes)} at the end`,
      series: [
        { title: 'live, most in the interval', colour: 'live', fill: true, text: figures.bytes, values: points.map((point) => point.max_live_bytes) },
        ...(rss ? [{ title: 'resident (RSS)', colour: 'rss', steps: 'interval' as const, values: points.map((point) => point.rss_bytes) }] : []),
      ],
    });
    const rates = new Chart({
      ...common, height: 110, text: count,
      label: `Allocations and faults in each ${seconds(report.timeline.interval_s)}`,
      series: [
        { title: 'allocations', colour: 'alloc', text: figures.count, values: points.map((point) => point.allocations) },
        { title: 'frees', colour: 'free', text: figures.count, values: points.map((point) => point.frees) },
        { title: 'minor faults', colour: 'fault', values: points.map((point) => point.minor_faults) },
      ],
    });
    this.charts = [live, rates];
    this.shown = h('span', { class: 'chip', 'aria-live': 'polite' });
    this.sliders = ['From', 'To'].map((title, i) => h('input', {
      type: 'range', min: 0, max: 1000, step: 1, 'aria-label': `${title}, time of the run`,
      on: { input: () => this.onSlider(i) },
    }));
    this.stacked = model.series ? new StackedTimeline(model) : null;
    const more = h('details', {}, h('summary', {}, 'Allocations and faults'), rates.element);
    this.element = h('section', { class: 'timeline', 'aria-label': 'Timeline' },
      live.element, more, this.stacked?.element,
      h('div', { class: 'brush' },
        h('label', {}, 'From ', this.sliders[0]), h('label', {}, 'To ', this.sliders[1]), this.shown,
        h('button', { type: 'button', id: 'clear-range', on: { click: () => model.state.set({ from: '', to: '' }, true) } },
          'Whole run')));
    theme.subscribe(() => this.redraw());
  }

  redraw(): void {
    for (const chart of this.charts) if (chart.element.clientWidth > 0) chart.draw();
    this.stacked?.redraw();
  }

  update(): void {
    const { from, to, ranged } = this.model.state;
    const begin = Math.max(0, from ?? 0), end = Math.min(this.end, to ?? this.end);
    this.sliders[0].value = String(this.end > 0 ? Math.round((1000 * begin) / this.end) : 0);
    this.sliders[1].value = String(this.end > 0 ? Math.round((1000 * end) / this.end) : 1000);
    this.sliders[0].setAttribute('aria-valuetext', seconds(begin));
    this.sliders[1].setAttribute('aria-valuetext', seconds(end));
    this.shown.textContent = `${seconds(begin)} to ${seconds(end)}`;
    this.shown.classList.toggle('active', ranged);
    for (const chart of this.charts) chart.setRange(ranged ? [begin, end] : null);
    this.stacked?.update();
  }

  private choose(from: number, to: number): void {
    const text = (value: number) => String(Number(value.toPrecision(6)));
    this.model.state.set({
      from: from <= 0 ? '' : text(from), to: to >= this.end ? '' : text(to),
    }, true);
  }

  private onSlider(moved: number): void {
    const at = this.sliders.map((slider) => (Number(slider.value) * this.end) / 1000);
    if (at[0] > at[1]) at[1 - moved] = at[moved];
    this.choose(at[0], at[1]);
  }
}
