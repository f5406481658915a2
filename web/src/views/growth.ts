// How each site's memory went over the run: the verdict of report/growth, and a picture of it.

import type { Site } from '../data';
import { h, svg } from '../dom';
import { growthWord, VERDICTS } from '../growth_words';
import type { Model, View } from '../model';
import { moreText } from '../part_note';
import { callerCell, placeCell } from '../short_name';
import { stackList } from '../stack_list';
import { Table, type Column } from '../table';
import { count, perTime as exactRate, plural } from '../text';

const WIDTH = 120, HEIGHT = 22;

export class GrowthView implements View {
  readonly id = 'growth';
  readonly title = 'Growth';
  readonly element: HTMLElement;
  private readonly table: Table<Site>;

  constructor(private readonly model: Model) {
    const { stacks, state, figures: { bytes, perTime, quotient } } = model;
    const rate = (id: string, title: string, help: string, of: (site: Site) => number | null, text: (value: number) => string): Column<Site> => ({
      id, title, help, number: true, width: '8em', value: (site) => of(site) ?? -Infinity,
      cell: (site) => (of(site) === null ? '' : text(of(site)!)),
    });
    this.table = new Table<Site>({
      label: 'Growth', sort: 'verdict', onSort: (sort) => state.set({ sort }),
      key: (site) => String(model.place(site)),
      columns: [
        { id: 'verdict', title: 'Verdict', width: '9em',
          value: (site) => (site.growth ? VERDICTS.indexOf(growthWord(site)) : VERDICTS.length) * 1e15 - Math.min(site.growth_rate?.bytes_per_s ?? 0, 1e14),
          cell: (site) => h('span', { class: `tag ${growthWord(site).split(',')[0]}` }, growthWord(site) || 'not judged', site.held_until_exit && site.growth !== 'held' && ', held') },
        ...(model.series ? [{ id: 'picture', title: 'Live over time', width: '10em', number: true, value: (site: Site) => site.peak_bytes, cell: (site: Site) => this.picture(site) }] : []),
        rate('rate', 'Rate', 'With its 95 % interval in the open row', (site) => site.growth_rate?.bytes_per_s ?? null, perTime),
        rate('each', 'Per allocation', 'Bytes that stay of each allocation', (site) => site.growth_rate?.bytes_per_allocation ?? null, (value) => quotient(value, 'bytes')),
        rate('confidence', 'Confidence', 'How unlikely such a series is without growth', (site) => site.growth_rate?.confidence ?? null, (value) => value >= 0.9995 ? '>99.9 %' : `${(100 * value).toFixed(1)} %`),
        { id: 'live', title: 'Live', number: true, width: '7em', value: (site) => site.live_bytes, cell: (site) => bytes(site.live_bytes) },
        { id: 'peak', title: 'Its peak', number: true, width: '7em', value: (site) => site.peak_bytes, cell: (site) => bytes(site.peak_bytes) },
        { id: 'caller', names: 'row', title: 'Caller', width: 'auto', value: (site) => stacks.callerName(site.stack), cell: (site) => callerCell(stacks, site.stack) },
        { id: 'place', names: 'place', title: 'Place', width: '13em', value: (site) => stacks.callerPlace(site.stack),
          cell: (site) => placeCell(stacks, site.stack) },
      ],
      detail: (site) => h('div', {}, this.details(site), stackList(stacks, site.stack, (frame) => model.filterBy(frame))),
      empty: 'No site is left by what was chosen.',
    });
    this.element = h('div', {}, this.table.element);
  }

  update(): void {
    const sites = this.model.sites(), { stacks } = this.model;
    const growing = sites.filter((site) => growthWord(site) === 'growing');
    const more = this.model.report.sites_total - this.model.report.sites.length;
    // The text counts these: a caller once, whatever called it.
    const callers = new Set(growing.map((site) => stacks.callerText(site.stack))).size;
    this.table.setRows(sites, `${plural(sites.length, 'stack')}, ${count(growing.length)} growing` +
      (growing.length > callers ? ` at ${plural(callers, 'call site')}` : '') + `; verdicts, rates, live bytes and peaks are of ${this.model.extent}` +
      moreText(more), this.model.state.sortOf(this.id));
  }

  setWhole(whole: boolean): void { this.table.setWhole(whole); }

  private details(site: Site): HTMLElement {
    const rate = site.growth_rate, { perTime, plural } = this.model.figures;
    return h('p', {}, `${plural(site.allocations, 'allocation')}, ${plural(site.frees, 'free')}. `,
      rate && `Grows by ${perTime(rate.bytes_per_s)} (${exactRate(rate.bytes_per_s_low)} to ${exactRate(rate.bytes_per_s_high)}) and ` +
        `${Number(rate.blocks_per_s.toPrecision(3))} blocks a second. `,
      growthWord(site) === 'grew, freed' && 'It went on rising, and what it held was freed shortly before the end. ',
      site.held_until_exit && 'Nothing was freed before the end, and then nearly all.');
  }

  private picture(site: Site): SVGSVGElement {
    const { model } = this;
    const values = model.series!.mostBytes(model.place(site), model.intervals.count);
    const most = Math.max(1, ...values);
    const points = values.map((value, i) => `${((WIDTH * i) / Math.max(1, values.length - 1)).toFixed(1)},${(HEIGHT - 1 - ((HEIGHT - 2) * value) / most).toFixed(1)}`);
    return svg('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: 'spark', 'aria-hidden': 'true' },
      svg('polyline', { points: points.join(' ') }));
  }
}
