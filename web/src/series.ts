// What each site did over time: the points of report/findings/series_point.h. Intervals in which
// nothing changed are left out; a site holds then what it held before.

import type { SeriesTable } from './data';

// Columns of a point, in a row after each other.
const INTERVAL = 0, ALLOCATIONS = 1, FREES = 2, LIVE_BLOCKS = 3, LIVE_BYTES = 4, MORE_BYTES = 5, WIDTH = 6;

export interface InRange {
  allocations: number;
  frees: number;
  live_bytes: number;    // at the end of the range
  live_blocks: number;
  growth_bytes: number;  // live at its end minus at its begin
}

export class Series {
  constructor(private readonly table: SeriesTable) {}

  get interval_s(): number { return this.table.interval_s; }

  // From the interval `first` until before `behind`.
  inRange(site: number, first: number, behind: number): InRange {
    const found = { allocations: 0, frees: 0, live_bytes: 0, live_blocks: 0, growth_bytes: 0 };
    const points = this.table.points[site] ?? [];
    let before = 0;
    for (let i = 0; i < points.length; i += WIDTH) {
      const interval = points[i + INTERVAL];
      if (interval >= behind) break;
      if (interval < first) {
        before = points[i + LIVE_BYTES];
      } else {
        found.allocations += points[i + ALLOCATIONS];
        found.frees += points[i + FREES];
      }
      found.live_bytes = points[i + LIVE_BYTES];
      found.live_blocks = points[i + LIVE_BLOCKS];
    }
    found.growth_bytes = found.live_bytes - before;
    return found;
  }

  // Whether it allocated from the interval `first` until before `behind`.
  allocated(site: number, first: number, behind: number): boolean {
    const points = this.table.points[site] ?? [];
    for (let i = 0; i < points.length && points[i + INTERVAL] < behind; i += WIDTH) {
      if (points[i + INTERVAL] >= first && points[i + ALLOCATIONS] > 0) return true;
    }
    return false;
  }

  // Live bytes of some sites together at the end of each interval.
  liveBytes(sites: number[], intervals: number): number[] {
    const values = new Array<number>(intervals).fill(0);
    for (const site of sites) this.forEachInterval(site, intervals, (i, live) => { values[i] += live; });
    return values;
  }

  // The most live bytes of a site in each interval.
  mostBytes(site: number, intervals: number): number[] {
    const values = new Array<number>(intervals).fill(0);
    this.forEachInterval(site, intervals, (i, live, more) => { values[i] = live + more; });
    return values;
  }

  private forEachInterval(site: number, intervals: number, take: (i: number, live: number, more: number) => void): void {
    const points = this.table.points[site] ?? [];
    let at = 0, live = 0;
    for (let i = 0; i < intervals; ++i) {
      let more = 0;
      for (; at < points.length && points[at + INTERVAL] <= i; at += WIDTH) {
        live = points[at + LIVE_BYTES];
        more = points[at + MORE_BYTES];
      }
      take(i, live, more);
    }
  }
}
