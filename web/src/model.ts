// What the views show: the report, narrowed by the reader's choice. One model, one choice; a view
// asks again when it is told that something changed.

import type { Leak, Point, Report, ReportDocument, Site } from './data';
import { measuresOf, rangedMeasures, type Measure } from './measures';
import { Series, type InRange } from './series';
import { Stacks } from './stacks';
import { interval95 } from './sampled';
import type { State } from './state';
import { Figures } from './text';

export class Model {
  readonly report: Report;
  readonly stacks: Stacks;
  readonly series: Series | null;
  readonly figures: Figures;  // how those of the heap are written
  private readonly whole: Measure[];
  private readonly ranged: Measure[];
  private readonly places: Map<Site, number>;
  private known = new Map<Site, InRange>();
  private knownFor = '';

  constructor(readonly document: ReportDocument, readonly state: State) {
    this.report = document.report;
    this.stacks = new Stacks(document);
    this.series = document.series ? new Series(document.series) : null;
    this.figures = new Figures(this.report.totals.estimated);
    this.whole = measuresOf(this.report, this.figures);
    this.ranged = rangedMeasures((site) => this.inRange(site), this.figures);
    this.places = new Map(this.report.sites.map((site, i) => [site, i]));
  }

  // Whether figures of sites are of the chosen time, and not of the whole run.
  get figuresOfRange(): boolean { return this.state.ranged && this.series !== null; }

  get measures(): Measure[] { return this.figuresOfRange ? this.ranged : this.whole; }

  get measure(): Measure | undefined {
    const wanted = this.state.get('measure');
    return this.measures.find((measure) => measure.id === wanted) ?? this.measures[0];
  }

  // What the site did in the chosen time.
  inRange(site: Site): InRange {
    const { from, to } = this.state;
    const range = `${from} ${to}`;
    if (range !== this.knownFor) {
      this.known.clear();
      this.knownFor = range;
    }
    let found = this.known.get(site);
    if (!found) {
      found = this.series!.inRange(this.place(site), from ?? 0, to ?? Infinity);
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

  // Had an allocation within the chosen time.
  private within(row: { first_time_s: number; last_time_s: number }): boolean {
    const { from, to } = this.state;
    return (from === null || row.last_time_s >= from) && (to === null || row.first_time_s <= to);
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

  leaks(): Leak[] {
    const kinds = this.state.get('kinds');
    const wanted = new Set(kinds === '' ? [] : kinds.split(','));
    return this.report.leaks.filter((leak) => (wanted.size === 0 || wanted.has(leak.kind)) &&
      this.keeps(leak.stack) && this.within(leak));
  }

  points(): Point[] {
    const { from, to } = this.state;
    return this.report.timeline.points.filter((point) =>
      (from === null || point.time_s >= from) && (to === null || point.time_s <= to));
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
