// Everything that was allocated, by caller or by stack, with how it grew.

import type { Site } from '../data';
import { h } from '../dom';
import { growthWord, VERDICTS } from '../growth_words';
import type { Model, View } from '../model';
import { moreText } from '../part_note';
import { endCell, functionCell, placeCell } from '../short_name';
import { stackList } from '../stack_list';
import { Table, type Column } from '../table';
import { bytes as exactBytes, count, plural, seconds } from '../text';

interface Group { key: string; name: string; place: string; sites: Site[]; sums: { [column: string]: number | null } }

const SUMS = ['bytes_allocated', 'allocations', 'live_bytes', 'live_blocks', 'bytes_at_peak', 'wasted_bytes', 'temporary'];
const RANGED_SUMS = ['growth_bytes', 'allocations', 'frees', 'live_bytes', 'live_blocks'];

function growthOf(group: Group): string {
  return VERDICTS.find((verdict) => group.sites.some((site) => growthWord(site) === verdict)) ?? '';
}

export class SitesView implements View {
  readonly id = 'sites';
  readonly title = 'Sites';
  readonly element: HTMLElement;
  private readonly whole: Table<Group>;
  private readonly ranged: Table<Group>;
  private readonly place = h('div');
  private readonly group: HTMLSelectElement;
  private rows: Group[] = [];
  private rowsFor = '';

  constructor(private readonly model: Model) {
    const { report, state, stacks, figures: { bytes, count, estimated } } = model;
    const sum = (id: string, title: string, text: (value: number) => string, width: string, help?: string): Column<Group> => ({
      id, title, help, number: true, width, value: (group) => group.sums[id] ?? -1,
      cell: (group) => (group.sums[id] === null ? '–' : text(group.sums[id])),
    });
    const judged = report.sites.some((site) => typeof site.growth === 'string');
    const who: Column<Group>[] = [
      ...(judged ? [{ id: 'growth', title: 'Growth', width: '7em', value: growthOf,
                      cell: (group: Group) => h('span', { class: `tag ${growthOf(group).split(',')[0]}` }, growthOf(group)) }] : []),
      { id: 'caller', names: 'row', title: 'Caller', width: 'auto', value: (group) => group.name,
        cell: (group) => (['file', 'module'].includes(state.get('group')) ? endCell(group.name) : functionCell(group.name)) },
      { id: 'place', names: 'place', title: 'Place', width: '13em', value: (group) => group.place,
        cell: (group) => group.place !== '' && placeCell(stacks, group.sites[0].stack) },
    ];
    const table = (columns: Column<Group>[], sort: string) => new Table<Group>({
      label: 'Sites', columns: [...columns, ...who], sort,
      onSort: (chosen) => state.set({ sort: chosen }), key: (group) => group.key,
      detail: (group) => this.detail(group), empty: report.sites.length === 0 ? 'No site allocated.' : 'No site is left by what was chosen.',
    });
    this.whole = table([
      sum('bytes_allocated', 'Total', bytes, estimated ? '8em' : '7em', 'Bytes of all allocations'),
      ...(estimated ? [{ id: 'interval', title: '95 % interval', help: 'Of the total, which is an estimate', number: true, width: '13em',
                         value: (group: Group) => group.sums.bytes_allocated ?? -1, cell: (group: Group) => model.interval(group.sites, 'bytes_allocated') }] : []),
      sum('allocations', 'Allocs', count, '6.5em', 'Allocations'),
      sum('live_bytes', 'Live', bytes, '6.5em', 'Bytes not freed at the end'),
      sum('live_blocks', 'Blocks', count, '5.5em', 'Blocks not freed at the end'),
      sum('bytes_at_peak', 'At peak', bytes, '6.5em', 'Bytes live at the peak of the program'),
      ...(model.report.totals.wasted_bytes === null ? []
        : [sum('wasted_bytes', 'Wasted', bytes, '6.5em', 'Usable bytes that were not asked for')]),
      sum('temporary', 'Temp.', count, '5.5em', 'Freed before the thread’s next allocation'),
    ], '-bytes_allocated');
    this.ranged = table([
      sum('growth_bytes', 'Grew by', bytes, '7.5em', 'Live bytes at the end of the chosen time, minus those at its begin'),
      sum('allocations', 'Allocs', count, '6.5em', 'Allocations in the chosen time'),
      sum('frees', 'Frees', count, '6.5em', 'Frees in the chosen time'),
      sum('live_bytes', 'Live', bytes, '6.5em', 'Bytes live at its end'),
      sum('live_blocks', 'Blocks', count, '5.5em', 'Blocks live at its end'),
    ], '-growth_bytes');
    this.group = h('select', { 'aria-label': 'Rows of the table', on: { change: () => state.set({ group: this.group.value, sort: '' }, true) } },
      ...[['caller', 'A row for each caller'], ['stack', 'A row for each stack'], ['file', 'A row for each file'], ['module', 'A row for each module']]
        .map(([value, text]) => h('option', { value }, text)));
    this.element = h('div', {}, h('p', { class: 'choice' }, this.group), this.place);
  }

  // What the series of the sites tell of a range is less than what is known of the whole run.
  private get table(): Table<Group> { return this.model.figuresOfRange ? this.ranged : this.whole; }

  update(): void {
    const { report, state } = this.model;
    this.group.value = state.get('group');
    const { table } = this;
    if (this.place.firstChild !== table.element) this.place.replaceChildren(table.element);
    const sites = this.model.sites();
    const more = report.sites_total - report.sites.length;
    // The same rows as long as the same is chosen: what is open stays as it is.
    const { chosen: { first, behind }, ranged } = this.model;
    const wanted = JSON.stringify([state.get('group'), state.get('q'), ranged && [first, behind]]);
    if (wanted !== this.rowsFor) this.rows = this.groups(sites);
    this.rowsFor = wanted;
    const by = state.get('group'), noun = ['stack', 'file', 'module'].includes(by) ? by : 'caller';
    table.setRows(this.rows,
      `${plural(this.rows.length, noun)} with ${plural(sites.length, 'site')}` + (this.model.figuresOfRange ? ' that did or held something in the chosen time'
        : this.model.ranged ? ' that may have allocated in the chosen time; the figures are of the whole run' : '') +
      moreText(more), state.sortOf(this.id));
  }

  setWhole(whole: boolean): void { this.table.setWhole(whole); }

  private groups(sites: Site[]): Group[] {
    const { stacks } = this.model;
    const by = this.model.state.get('group');
    const columns = this.model.figuresOfRange ? RANGED_SUMS : SUMS;
    const groups = new Map<string, Group>();
    for (const site of sites) {
      const caller = stacks.caller(site.stack);
      const file = caller < 0 ? '' : by === 'module' ? stacks.module(caller) : stacks.file(caller);
      const key = by === 'stack' ? `${site.stack} ${site.allocator}`
        : by === 'file' || by === 'module' ? file : String(caller);
      let group = groups.get(key);
      if (!group) {
        group = { key, sites: [], sums: Object.fromEntries(columns.map((id) => [id, null])),
                  name: by === 'file' || by === 'module' ? file || `(${by} not known)` : stacks.callerName(site.stack),
                  place: by === 'file' || by === 'module' ? '' : stacks.callerPlace(site.stack) };
        groups.set(key, group);
      }
      group.sites.push(site);
      const figures = this.model.figuresOfRange ? this.model.inRange(site) : site;
      for (const id of columns) {
        const value = (figures as { [id: string]: unknown })[id];
        if (typeof value === 'number') group.sums[id] = (group.sums[id] ?? 0) + value;  // null: not known of a sample
      }
    }
    return [...groups.values()];
  }

  // How long its blocks lived, and how often they moved.
  private life(site: Site): HTMLElement | null {
    const { lifetime, moves } = site;
    if (!lifetime && !moves) return null;
    return h('p', {},
      lifetime && `Half of the freed blocks lived at most ${seconds(lifetime.p50_s)}, nine of ten ${seconds(lifetime.p90_s)}. `,
      moves && moves.reallocations > 0 && `${plural(moves.reallocations, 'realloc')}, of which ${count(moves.moved)} moved and copied ${exactBytes(moves.copied_bytes)}; ` +
        `the longest chain had ${count(moves.longest_chain)}. `,
      moves && moves.container_growths > 0 && `Containers grew ${count(moves.container_growths)} times and copied ${exactBytes(moves.container_copied_bytes)}.`);
  }

  private detail(group: Group): HTMLElement {
    const { stacks, figures: { bytes, plural: heap } } = this.model;
    const most = 5;
    const shown = group.sites.slice(0, most);
    return h('div', {}, ...shown.map((site) => h('div', { class: 'site' },
      h('p', {}, `${site.allocator}${this.model.figuresOfRange ? `, in ${this.model.extent}` : ''}: ${heap(site.allocations, 'allocation')}, ${bytes(site.bytes_allocated)}${this.model.interval([site], 'bytes_allocated')}, ` +
        `largest ${exactBytes(site.largest_bytes)}, live ${bytes(site.live_bytes)}${site.live_bytes > 0 ? this.model.interval([site], 'live_bytes') : ''}; from ${seconds(site.first_time_s)} to ${seconds(site.last_time_s)}; fingerprint `,
        h('code', {}, site.fingerprint)),
      this.life(site),
      stackList(stacks, site.stack, (frame) => this.model.filterBy(frame)))),
      group.sites.length > most && h('p', {}, this.model.state.get('group') === 'stack' ? `and ${plural(group.sites.length - most, 'more site')} with this stack`
        : `and ${plural(group.sites.length - most, 'more stack')}: choose “A row for each stack”`));
  }
}
