// What is said of how a site's memory went over the run.

import type { Site } from './data';

// The worst first.
export const VERDICTS = ['growing', 'grew, freed', 'sawtooth', 'burst', 'held', 'bounded'];

// That of the report; but what grew and was freed after all, and not only by the end of the program, is no alarm: as in
// the headline, see GrowingGroup::in_verdict(). Empty: not judged.
export function growthWord({ growth, live_bytes, held_until_exit }: Site): string {
  return growth === 'growing' && live_bytes === 0 && !held_until_exit ? 'grew, freed' : growth ?? '';
}
