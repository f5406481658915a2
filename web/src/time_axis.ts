// The axis of time: where its ticks are and what they say, as in the plots of the text report.

import type uPlot from 'uplot';

const MINUTE = 60, HOUR = 3600, DAY = 86400;
const TIMES = [1, 2, 5];

// Seconds. Up to a minute steps of 1, 2, 5; from there on of a clock. Time comes in whole nanoseconds.
const STEPS = [
  ...Array.from({ length: 11 }, (_, digits) => TIMES.map((step) => Number(`${step}e${digits - 9}`))).flat()
    .filter((step) => step < MINUTE),
  ...[1, 2, 5, 10, 20, 30].map((minutes) => minutes * MINUTE),
  ...[1, 2, 4, 6, 12].map((hours) => hours * HOUR),
  ...Array.from({ length: 7 }, (_, digits) => TIMES.map((step) => step * 10 ** digits * DAY)).flat(),
];

// What a tick says of an axis that ends at `end`: in the unit of the step, or in seconds where the end is many of them, so
// that the labels read as one row, with the digits that tell times apart that are a step from each other.
export function tick(time: number, step: number, end: number): string {
  if (time === 0) return '0';
  const far = end >= 10;
  const [unit, one] = step >= HOUR ? ['h', HOUR] : step >= MINUTE ? ['min', MINUTE] : far || step >= 0.1 ? ['s', 1]
    : step >= 1e-4 ? ['ms', 1e-3] : step >= 1e-7 ? ['us', 1e-6] : ['ns', 1e-9];
  const digits = Math.max(0, Math.ceil(-Math.log10(step / one) - 1e-6));
  return `${Number((time / one).toFixed(digits))} ${unit}`;
}

// Multiples of the step, each rounded by itself: a sum of steps would be off in the end.
function ticks(from: number, to: number, step: number): number[] {
  if (!(step > 0)) return [from];
  const first = Math.ceil(from / step - 1e-6), last = Math.floor(to / step + 1e-6);
  return Array.from({ length: Math.max(0, last - first) + 1 }, (_, i) => Number(((first + i) * step).toPrecision(15)));
}

// With room for the longest label, which is at the end.
function space(from: number, to: number, width: number): number {
  const step = (to - from) / Math.max(1, width / 90);
  return Math.max(90, 7 * tick(to, step, to).length + 24);
}

export const timeAxis: uPlot.Axis = {
  incrs: STEPS,
  splits: (_, __, from, to, step) => ticks(from, to, step),
  values: (plot, times, __, ___, step) => times.map((time) => tick(time, step, plot.scales.x.max ?? 0)),
  space: (_, __, from, to, width) => space(from, to, width),
};
