// Time comes in intervals, of which the figures are: the shortest that is known of the sites. A chosen time is as many
// of them as it takes, and all that shows it shows these.

import type { Report } from './data';
import type { Series } from './series';
import type { State } from './state';
import { seconds } from './text';

export interface Chosen {
  first: number; behind: number;  // intervals
  from: number; to: number;       // where they begin and end
}

// What an address has of a time may be cut by this much of an interval.
const ROUNDING = 1e-3;

export class Intervals {
  readonly begin: number;
  readonly end: number;
  readonly step: number;
  readonly count: number;

  constructor(report: Report, series: Series | null) {
    this.begin = report.range.from_s;
    this.end = report.range.to_s;
    this.step = series ? series.interval_s : report.timeline.interval_s;
    this.count = this.step > 0 ? Math.max(1, Math.ceil((this.end - this.begin) / this.step - ROUNDING)) : 1;
  }

  // Those that have something of the time in them, and one at least.
  around(from: number | null, to: number | null): Chosen {
    const place = (time: number) => (time - this.begin) / this.step;
    const first = from === null ? 0 : Math.min(this.count - 1, Math.max(0, Math.floor(place(from) + ROUNDING)));
    const behind = to === null ? this.count : Math.min(this.count, Math.max(first + 1, Math.ceil(place(to) - ROUNDING)));
    return { first, behind, from: this.at(first), to: this.at(behind) };
  }

  // For the address; what is chosen by it is the same again.
  choice(first: number, behind: number): { from: string; to: string } {
    const text = (interval: number) => String(Number(this.at(interval).toPrecision(9)));
    return { from: first <= 0 ? '' : text(first), to: behind >= this.count ? '' : text(behind) };
  }

  chosen(state: State): Chosen { return this.around(state.from, state.to); }

  text({ from, to }: Chosen): string { return `${seconds(from, this.step)} to ${seconds(to, this.step)}`; }

  // Where an interval begins; the last one ends with the run.
  at(interval: number): number {
    return interval >= this.count ? this.end : interval === 0 ? this.begin : this.begin + interval * this.step;
  }
}
