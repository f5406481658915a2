// Of a sampled trace: what an estimate of bytes is made of, and its 95 % interval, as report/findings/sampling.h has it.
// Intervals of two sites do not add up; what they are made of does.

import type { SampledPart } from './data';

const Z = 1.959964;  // of 97.5 %

// Of the chi-square distribution, where the standard normal one has `z`.
function quantile(z: number, degrees: number): number {
  const a = 2 / (9 * degrees);
  return degrees * Math.max(0, 1 - a + z * Math.sqrt(a)) ** 3;
}

// Of the gamma distribution with this mean and variance.
function gamma(mean: number, variance: number, z: number): number {
  return variance > 0 ? (variance / (2 * mean)) * quantile(z, (2 * mean * mean) / variance) : mean;
}

export function interval95(parts: SampledPart[]): [low: number, high: number] {
  let seen = 0, estimate = 0, variance = 0, every = 0;
  for (const part of parts) {
    seen += part[0];
    estimate += part[1];
    variance += part[2];
    every = Math.max(every, part[3]);
  }
  if (every === 0) return [estimate, estimate];
  const low = gamma(estimate, variance, -Z);
  const high = seen + gamma(estimate - seen + every, variance + every * every, Z);
  return [Math.min(Math.max(low, seen), estimate), Math.max(high, estimate)];
}
