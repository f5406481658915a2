// What a site can be measured by: over the whole run, or in a range of it as far as the series of
// the sites can tell.

import type { Point, Report, Site } from './data';
import type { InRange } from './series';
import { bytes, count, type Figures } from './text';

export interface Measure {
  id: string;
  title: string;
  text: (value: number) => string;
  of: (site: Site) => number;  // less than nothing of one that shrank: such values are added up before they are compared
  all: () => number | null;  // of all sites, also of those that are not in the page; null where that is not known
  // What of the values of all that could be drawn is less than nothing, in words; empty where there is none. `who`: has it.
  besides?: (values: number[], who?: string) => string;
}

type Row = [id: string, title: string, text: 'bytes' | 'count', of?: 'kernel'];

// Which of the totals they are parts of.
const TOTALS: { [id: string]: string } = {
  live_bytes: 'live_bytes', live_blocks: 'live_blocks', bytes_at_peak: 'peak_live_bytes', bytes_allocated: 'bytes_allocated',
  allocations: 'allocations', temporary: 'temporary_allocations', wasted_bytes: 'wasted_bytes',
};

const WHOLE: Row[] = [
  ['live_bytes', 'Live bytes at the end', 'bytes'],
  ['live_blocks', 'Live blocks at the end', 'count'],
  ['bytes_at_peak', 'Bytes live at the peak', 'bytes'],
  ['bytes_allocated', 'Bytes allocated', 'bytes'],
  ['allocations', 'Allocations', 'count'],
  ['temporary', 'Temporary allocations', 'count'],
  ['wasted_bytes', 'Bytes wasted', 'bytes'],
  ['freed_by_other_thread', 'Blocks freed by another thread', 'count'],
  ['resident_bytes', 'Resident bytes', 'bytes', 'kernel'],
  ['minor_faults', 'Minor faults', 'count', 'kernel'],
  ['major_faults', 'Major faults', 'count', 'kernel'],
];

const RANGED: [keyof InRange, string, 'bytes' | 'count'][] = [
  ['growth_bytes', 'Growth in the chosen time', 'bytes'],
  ['live_bytes', 'Live bytes at its end', 'bytes'],
  ['live_blocks', 'Live blocks at its end', 'count'],
  ['allocations', 'Allocations in it', 'count'],
  ['frees', 'Frees in it', 'count'],
];

// Those of which at least one site has more than nothing.
export function measuresOf(report: Report, figures: Figures): Measure[] {
  const exact = { bytes, count };  // what the kernel counted is no estimate
  const all = (id: string) => report.totals[TOTALS[id] ?? ''];
  return WHOLE.filter(([id]) => report.sites.some((site) => Number(site[id] ?? 0) > 0))
    .map(([id, title, text, of]) => ({ id, title, text: (of === 'kernel' ? exact : figures)[text], of: (site) => Number(site[id] ?? 0),
      all: () => (typeof all(id) === 'number' ? all(id) as number : null) }));
}

export function rangedMeasures(inRange: (site: Site) => InRange, points: () => Point[], figures: Figures): Measure[] {
  return RANGED.map(([id, title, text]) => ({ id, title, text: figures[text], of: (site) => inRange(site)[id],
    all: () => ofPoints(points(), id),
    ...(id === 'growth_bytes' ? { besides: (values: number[], who?: string) => shrunk(values, figures, who) } : {}) }));
}

// What the timeline tells of all sites. How much those grew that did not shrink it does not.
function ofPoints(points: Point[], id: keyof InRange): number | null {
  if (points.length === 0 || id === 'growth_bytes') return null;
  return id === 'live_bytes' || id === 'live_blocks' ? points[points.length - 1][id] : points.reduce((sum, point) => sum + point[id], 0);
}

function shrunk(changes: number[], figures: Figures, who = 'others shrank'): string {
  const sum = (some: number[]) => some.reduce((total, one) => total + one, 0);
  const down = changes.filter((change) => change < 0);
  return down.length === 0 ? ''
    : `Not drawn: ${figures.bytes(-sum(down))} by which ${who}; all together ${sum(changes) < 0 ? 'shrank' : 'grew'} by ${figures.bytes(Math.abs(sum(changes)))}.`;
}
