// The figures of the run, and who has most.

import type { Site } from '../data';
import { h, name } from '../dom';
import type { Model, View } from '../model';
import { plural as exactPlural, share } from '../text';
import { partText } from '../part_note';
import { shortened } from '../short_name';
import { wholeText } from '../whole_note';

export class SummaryView implements View {
  readonly id = 'summary';
  readonly title = 'Summary';
  readonly element = h('div', { class: 'summary' });

  constructor(private readonly model: Model) {}

  update(): void {
    this.element.replaceChildren(
      this.range() ?? '', this.filtered() ?? '',
      h('div', { class: 'columns' }, this.figures(), this.largest()));
  }

  // What happened in the time that is chosen.
  private range(): HTMLElement | null {
    if (!this.model.ranged) return null;
    const points = this.model.points();
    if (points.length === 0) return null;
    const sum = (of: (point: (typeof points)[0]) => number) => points.reduce((total, point) => total + of(point), 0);
    const { bytes, plural } = this.model.figures;
    // A point tells what was live at its end: where the time begins, the one before does.
    const { points: all } = this.model.report.timeline;
    const before = all[all.indexOf(points[0]) - 1], last = points[points.length - 1];
    return h('section', { class: 'range' }, h('h3', {}, 'In the chosen time'), this.model.state.get('q') !== '' && h('p', { class: 'note' }, 'Of all sites, whatever the filter leaves.'),
      h('p', {}, `${plural(sum((p) => p.allocations), 'allocation')} of ${bytes(sum((p) => p.bytes_allocated))}, ` +
        `${plural(sum((p) => p.frees), 'free')}; live from ${bytes(before?.live_bytes ?? 0)} to ${bytes(last.live_bytes)}, ` +
        `at most ${bytes(points.reduce((most, point) => Math.max(most, point.max_live_bytes), 0))}` +
        (points[0].minor_faults === null ? '' : `; ${exactPlural(sum((p) => p.minor_faults ?? 0), 'minor fault')}`) + '.'));
  }

  // What the filter leaves, of the chosen time where one is.
  private filtered(): HTMLElement | null {
    const { model } = this, { bytes, plural } = model.figures;
    if (model.state.get('q') === '') return null;
    const sites = model.sites(), part = partText(model), note = part && h('p', { class: 'note' }, part);
    if (model.figuresOfRange) {
      const sum = (of: 'allocations' | 'frees' | 'live_bytes' | 'growth_bytes') => sites.reduce((total, site) => total + model.inRange(site)[of], 0);
      return h('section', { class: 'filtered' }, h('h3', {}, 'What the filter leaves, in the chosen time'), note,
        h('p', {}, `${exactPlural(sites.length, 'site')}: ${plural(sum('allocations'), 'allocation')}, ${plural(sum('frees'), 'free')}; ` +
          `live from ${bytes(sum('live_bytes') - sum('growth_bytes'))} to ${bytes(sum('live_bytes'))}.`));
    }
    const sum = (of: 'allocations' | 'frees' | 'bytes_allocated' | 'live_bytes' | 'live_blocks' | 'bytes_at_peak') =>
      sites.reduce((total, site) => total + site[of], 0);
    return h('section', { class: 'filtered' }, h('h3', {}, 'What the filter leaves'), note,
      h('p', {}, `${exactPlural(sites.length, 'site')}: ${plural(sum('allocations'), 'allocation')} of ${bytes(sum('bytes_allocated'))}, ` +
        `${plural(sum('frees'), 'free')}; live at the end ${bytes(sum('live_bytes'))} in ${plural(sum('live_blocks'), 'block')}, ` +
        `at the peak ${bytes(sum('bytes_at_peak'))}.`));
  }

  // The words of the text report. What one label says in two sentences stands below each other.
  private figures(): HTMLElement {
    const { report, document } = this.model;
    const [program, ...facts] = report.summary;
    // Its words hold escapes of their own: data.ts.
    const rows = [{ ...program, text: report.process.command_line || program.text }, { label: 'Trace', text: document.file }, ...facts];
    const whole = wholeText(this.model);
    return h('section', {}, h('h3', {}, 'Figures'), whole && h('p', { class: 'note' }, `${whole[0].toUpperCase()}${whole.slice(1)}.`),
      h('dl', { class: 'figures' }, ...rows.flatMap(({ label, text }, at) =>
        [label !== rows[at - 1]?.label && h('dt', {}, label), h('dd', {}, name(text))])));
  }

  private largest(): HTMLElement {
    const { model } = this;
    const { measure } = model;
    if (!measure) return h('section', {}, h('h3', {}, 'Sites'), h('p', {}, 'No site allocated.'));
    const byCaller = new Map<number, { value: number; sites: Site[] }>();
    for (const site of model.sites()) {
      const caller = model.stacks.caller(site.stack), value = measure.of(site);
      const group = byCaller.get(caller) ?? { value: 0, sites: [] };
      group.value += value;
      group.sites.push(site);
      byCaller.set(caller, group);
    }
    const values = [...byCaller.values()].map(({ value }) => value);
    const sum = values.reduce((total, value) => total + Math.max(0, value), 0);
    const known = model.all(measure), all = Math.max(sum, known ?? 0);
    const part = partText(model, known === null ? 'these' : 'all');
    const largest = [...byCaller].filter(([, { value }]) => value > 0).sort((a, b) => b[1].value - a[1].value).slice(0, 8);
    const interval = (sites: Site[]) => (!model.figuresOfRange && (measure.id === 'bytes_allocated' || measure.id === 'live_bytes') ? model.interval(sites, measure.id) : '');
    const besides = measure.besides?.(values);
    return h('section', {}, h('h3', {}, `Who has most: ${measure.title.toLowerCase()}`), part && h('p', { class: 'note' }, part), besides && h('p', { class: 'note' }, besides),
      largest.length === 0 ? h('p', { class: 'empty' }, byCaller.size === 0 ? 'No site is left by what was chosen.' : 'No site has anything of it.')
      : h('ol', { class: 'bars' }, ...largest.map(([caller, { value, sites }]) => h('li', {},
        h('span', { class: 'bar', style: { width: `${(100 * value) / largest[0][1].value}%` } }),
        h('span', { class: 'value' }, measure.text(value), h('small', {}, ` ${share(value, all)}`)),
        caller < 0 ? '[no stack]'
          : h('span', { class: 'what' }, shortened(model.stacks.name(caller)), ' ',
              h('span', { class: 'place' }, name(model.stacks.place(caller)), h('small', {}, interval(sites))))))));
  }
}
