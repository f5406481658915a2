// What the resident memory was made of, at each time it was looked at, and which sites it belonged to.

import type { Resident, ResidentSite } from '../data';
import { h, name } from '../dom';
import type { Model, View } from '../model';
import { callerCell, placeCell } from '../short_name';
import { stackList } from '../stack_list';
import { byPlace, Table } from '../table';
import { bytes, plural, seconds, share } from '../text';
import { WholeNote, wholeText } from '../whole_note';

export class ResidentView implements View {
  readonly id = 'resident';
  readonly title = 'Resident';
  readonly element: HTMLElement;
  private readonly table: Table<ResidentSite>;
  private readonly at: Resident;
  private readonly note: WholeNote;

  constructor(private readonly model: Model) {
    const { stacks } = model;
    const times = model.report.resident!;
    this.at = times.findLast((one) => one.sites !== undefined) ?? times[times.length - 1];
    const { sites = [] } = this.at;
    const number = (id: 'resident_bytes' | 'live_bytes' | 'untouched_bytes' | 'swapped_bytes' | 'pinned_bytes', title: string, help: string) => ({
      id, title, help, number: true, width: '8em', value: (site: ResidentSite) => site[id], cell: (site: ResidentSite) => bytes(site[id]),
    });
    this.table = new Table<ResidentSite>({
      label: 'Resident memory by site', sort: '-resident_bytes', onSort: (sort) => model.state.set({ sort }), key: byPlace(sites),
      columns: [
        number('resident_bytes', 'Resident', 'Of its live blocks, in memory'), number('live_bytes', 'Live', 'Of its live blocks, in all'),
        number('untouched_bytes', 'Untouched', 'Never written, so without a page'), number('swapped_bytes', 'Swapped', 'In swap'),
        number('pinned_bytes', 'Pinned', 'Free memory on pages that these blocks keep'),
        { id: 'caller', names: 'row', title: 'Caller', width: 'auto', value: (site) => stacks.callerName(site.stack), cell: (site) => callerCell(stacks, site.stack) },
        { id: 'place', names: 'place', title: 'Place', width: '13em', value: (site) => stacks.callerPlace(site.stack),
          cell: (site) => placeCell(stacks, site.stack) },
      ],
      detail: (site) => stackList(stacks, site.stack, (frame) => model.filterBy(frame)),
      empty: sites.length > 0 ? 'No site is left by the filter.'
        : model.report.sites.length > 0 ? 'No site had a live block then.' : 'No site allocated.',
    });
    this.note = new WholeNote(model);
    this.element = h('div', {}, this.note.element, ...times.map((one) => this.parts(one)),
      h('h3', {}, `By site, at ${seconds(this.at.time_s)}`), this.table.element);
  }

  update(): void {
    const sites = (this.at.sites ?? []).filter((site) => this.model.keeps(site.stack));
    const whole = wholeText(this.model, ['time']);
    this.table.setRows(sites, plural(sites.length, 'site') + (whole && `; ${whole}`), this.model.state.sortOf(this.id));
    this.note.update();
  }

  setWhole(whole: boolean): void { this.table.setWhole(whole); }

  private parts(one: Resident): HTMLElement {
    const parts = Object.entries(one.parts).filter(([, value]) => value > 0).sort((a, b) => b[1] - a[1]);
    const what = one.reason === 'end' ? 'the end' : one.reason === 'mark' ? 'mark ' : 'growth';
    return h('details', { open: one === this.at },
      h('summary', {}, `${bytes(one.rss_bytes)} at ${seconds(one.time_s)}, ${what}`, one.name && name(one.name), one.peak && ', the peak'),
      h('ul', { class: 'bars' }, ...parts.map(([part, value]) => h('li', {},
        h('span', { class: 'bar', style: { width: `${(100 * value) / parts[0][1]}%` } }),
        h('span', { class: 'value' }, bytes(value), h('small', {}, ` ${share(value, one.rss_bytes)}`)),
        h('span', { class: 'what' }, this.model.report.resident_parts[part])))));
  }
}
