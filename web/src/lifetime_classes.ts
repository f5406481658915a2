// The classes of lifetimes from the shortest to the longest that has a block, of half an octave each as in
// report/findings/lifetime_histogram.h, with those that have none.

export interface LifetimeClass { from_s: number; to_s: number; blocks: number }

// In nanoseconds: where a class ends that begins here. The first is of all below 2.
function endOf(begin: number): number {
  if (begin < 2) return 2;
  const octave = 2 ** Math.floor(Math.log2(begin));
  return begin < 1.5 * octave ? 1.5 * octave : 2 * octave;
}

export function allClasses(known: LifetimeClass[]): LifetimeClass[] {
  const all: LifetimeClass[] = [];
  let next = Infinity;
  for (const one of known) {
    const begin = Math.round(one.from_s * 1e9);
    for (let end; next < begin; next = end) {
      end = endOf(next);
      all.push({ from_s: next / 1e9, to_s: end / 1e9, blocks: 0 });
    }
    all.push(one);
    next = endOf(begin);
  }
  return all;
}
