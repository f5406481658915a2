// What the views show: the report, narrowed by the reader's choice. One model, one choice; a view
// asks again when it is told that something changed.

import type { Leak, Point, Report, ReportDocument, Site } from './data';
import { measuresOf, rangedMeasures, type Measure } from './measures';
import { Series, type InRange } from './series';
import { functionQuery, Stacks } from './stacks';
import { Intervals, type Chosen } from './intervals';
import { interval95 } from './sampled';
import type { State } from './state';
import { Figures, seconds } from './text';

const allocatedBy = ({ stack, allocator }: Site | Leak) => `${stack} ${allocator}`;

export class Model {
  readonly report: Report;
  readonly stacks: Stacks;
  readonly series: Series | null;
  readonly intervals: Intervals;
  readonly figures: Figures;  // how those of the heap are written
  private readonly ofWhole: Measure[];
  private readonly ofRange: Measure[];
  private readonly places: Map<Site, number>;
  private readonly sitesAt = new Map<string, number[]>();  // by stack and function: one mostly
  private known = new Map<Site, InRange>();
  private knownFor = '';

  constructor(readonly document: ReportDocument, readonly state: State) {
    this.report = document.report;
    this.stacks = new Stacks(document);
    this.series = document.series ? new Series(document.series) : null;
    this.intervals = new Intervals(this.report, this.series);
    this.figures = new Figures(this.report.totals.estimated);
    this.ofWhole = measuresOf(this.report, this.figures);
    this.ofRange = rangedMeasures((site) => this.inRange(site), () => this.points(), this.figures);
    this.places = new Map(this.report.sites.map((site, i) => [site, i]));
    this.report.sites.forEach((site, i) => {
      const key = allocatedBy(site), others = this.sitesAt.get(key);
      if (others) others.push(i);
      else this.sitesAt.set(key, [i]);
    });
  }

  // Whether figures of sites are of the chosen time, and not of the whole run.
  get figuresOfRange(): boolean { return this.ranged && this.series !== null; }

  // What a page is of that was made of a part of the run.
  get extent(): string {
    const { whole, from_s, to_s } = this.report.range;
    return whole ? 'the whole run' : `${seconds(from_s)} to ${seconds(to_s)}`;
  }

  get chosen(): Chosen { return this.intervals.chosen(this.state); }

  // Whether that is less than all.
  get ranged(): boolean { return this.state.ranged && this.chosen.behind - this.chosen.first < this.intervals.count; }

  get measures(): Measure[] { return this.figuresOfRange ? this.ofRange : this.ofWhole; }

  get measure(): Measure | undefined {
    const wanted = this.state.get('measure');
    return this.measures.find((measure) => measure.id === wanted) ?? this.measures[0];
  }

  // What shares are of, where that is more than the sites in the page have together: these are not all, and neither a
  // filter leaves some of them nor a time of which only the whole figures are known.
  all(measure: Measure): number | null {
    const { sites, sites_total } = this.report;
    const narrowed = this.state.get('q') !== '' || (this.ranged && !this.figuresOfRange);
    return sites_total > sites.length && !narrowed ? measure.all() : null;
  }

  // What the site did in the chosen time.
  inRange(site: Site): InRange {
    const { first, behind } = this.chosen;
    const range = `${first} ${behind}`;
    if (range !== this.knownFor) {
      this.known.clear();
      this.knownFor = range;
    }
    let found = this.known.get(site);
    if (!found) {
      found = this.series!.inRange(this.place(site), first, behind);
      this.known.set(site, found);
    }
    return found;
  }

  // Of the sum over some sites, where it is an estimate: " [4.45 KiB to 41.1 KiB]".
  interval(sites: Site[], of: 'bytes_allocated' | 'live_bytes'): string {
    const { samples } = this.document;
    if (!samples) return '';
    return this.figures.interval(...interval95(sites.map((site) => samples[of][this.place(site)])));
  }

  place(site: Site): number { return this.places.get(site)!; }

  // Whether the filter leaves it.
  keeps(stack: number): boolean {
    const query = this.state.get('q');
    return query === '' || this.stacks.matchingNodes(query)[this.stacks.leaf(stack)] === 1;
  }

  // Filters by the function of a frame. A flame graph that looked at a part closely shows all that is left.
  filterBy(frame: number): void {
    this.state.set({ q: functionQuery(this.stacks.name(frame)), frame: '' }, true);
  }

  // Whether the chosen time is between its first and its last: it may have done something in it.
  within(row: { first_time_s: number; last_time_s: number }): boolean {
    const { from, to } = this.chosen;
    return !this.ranged || (row.last_time_s >= from && row.first_time_s <= to);
  }

  // Did something in the chosen time, or held something then.
  private active(site: Site): boolean {
    if (!this.figuresOfRange) return this.within(site);
    const { allocations, frees, live_bytes } = this.inRange(site);
    return allocations > 0 || frees > 0 || live_bytes > 0;
  }

  // Of the whole run, whatever time is chosen.
  filteredSites(): Site[] {
    return this.report.sites.filter((site) => this.keeps(site.stack));
  }

  sites(): Site[] {
    return this.filteredSites().filter((site) => this.active(site));
  }

  // Whether its blocks may be of the chosen time, and its site allocated in that as far as the series tell.
  leakWithin(leak: Leak): boolean {
    if (!this.ranged || !this.within(leak)) return !this.ranged;
    const { first, behind } = this.chosen, sites = this.sitesAt.get(allocatedBy(leak));
    return !this.series || !sites || sites.some((site) => this.series!.allocated(site, first, behind));
  }

  // What leakWithin() is sure of for all that are in the page.
  get leaksAreKnown(): boolean {
    return this.series !== null && this.report.leaks.every((leak) => this.sitesAt.has(allocatedBy(leak)));
  }

  // Of the chosen time, whenever they were lost.
  leaks(): Leak[] {
    const kinds = this.state.get('kinds');
    const wanted = new Set(kinds === '' ? [] : kinds.split(','));
    return this.report.leaks.filter((leak) => (wanted.size === 0 || wanted.has(leak.kind)) &&
      this.keeps(leak.stack) && this.leakWithin(leak));
  }

  points(): Point[] {
    const { points, interval_s } = this.report.timeline, { first, behind } = this.chosen, { intervals } = this;
    // A point tells of the interval that it ends: several of them are one of a site's, and end with it.
    const from = intervals.at(first) + interval_s / 2, to = behind >= intervals.count ? Infinity : intervals.at(behind) + interval_s / 2;
    return points.filter((point) => point.time_s > from && point.time_s < to);
  }
}

export interface View {
  id: string;
  title: string;
  element: HTMLElement;
  // Draws what the model says now. Called while it is shown, and before printing.
  update(): void;
  // For paper: everything that can be shown at once.
  setWhole?(whole: boolean): void;
}
