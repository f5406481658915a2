// Of a sampled trace: what an estimate of bytes is made of, and its 95 % interval, as report/findings/sampling.h has it.
// Intervals of two sites do not add up; what they are made of does.

import type { SampledPart } from './data';

const Z = 1.959964;  // of 97.5 %

// Of the chi-square distribution, where the standard normal one has `z`.
function quantile(z: number, degrees: number): number {
  const a = 2 / (9 * degrees);
  return degrees * Math.max(0, 1 - a + z * Math.sqrt(a)) ** 3;
}

export function interval95(parts: SampledPart[]): [low: number, high: number] {
  let seen = 0, estimate = 0, variance = 0, largest = 0;
  for (const part of parts) {
    seen += part[0];
    estimate += part[1];
    variance += part[2];
    largest = Math.max(largest, part[3]);
  }
  if (!(variance > 0)) return [estimate, estimate];
  const low = (variance / (2 * estimate)) * quantile(-Z, (2 * estimate * estimate) / variance);
  const mean = estimate + largest, spread = variance + largest * largest;
  const high = (spread / (2 * mean)) * quantile(Z, (2 * mean * mean) / spread);
  return [Math.min(Math.max(low, seen), estimate), Math.max(high, estimate)];
}
