// What a reader wants to know first, in sentences.

import type { Amount, LeakScan, Report } from './data';
import { h, name } from './dom';
import type { Model } from './model';
import { shortCaller } from './short_name';
import type { Stacks } from './stacks';
import { bytes, count, Figures, plural, seconds, share } from './text';

interface Card {
  kind: 'good' | 'bad' | 'warning' | 'unknown';
  title: string;
  text: string;
}

interface Verdict extends Card {
  view: string;  // that tells more
}

// What a page that was made of a part says of it: nothing is known of the rest.
function ofSelection(report: Report): { words: string; remark: string } | null {
  const { only, match, whole, from_s, to_s } = report.range, { live_until_s } = report.coverage;
  // Of a process at work the whole range ends where its trace was opened.
  const all = whole || (live_until_s != null && from_s === 0 && to_s >= live_until_s);
  if (only.length === 0 && !match && all) return null;
  const chosen = only.join('; ') || (match && `sites that match /${match}/`);
  const parts = [chosen, !all && `blocks allocated from ${seconds(from_s)} to ${seconds(to_s)}`].filter((part) => part);
  return { words: ' of the selection', remark: ` Only ${parts.join('; ')}: the rest is not in this page.` };
}

// "Nothing" is good news only where everything was recorded.
const good = (report: Report) => (report.totals.estimated || !report.coverage.all_recorded ? 'unknown' : 'good');
const ofWhat = (report: Report) =>
  (report.totals.estimated ? ' of what was sampled' : report.coverage.all_recorded ? '' : ' of what was recorded');
const rest = (report: Report) =>
  (report.totals.estimated ? ' That is little of all.' : report.coverage.all_recorded ? '' : ' That is not all.');

// As in the text: of blocks without bytes their number says more.
const amount = ({ bytes: size, blocks }: Amount) => (size === 0 ? `${plural(blocks, 'block')} of 0 bytes` : bytes(size));
const atScan = ({ number, reason }: LeakScan) => (reason.startsWith('exit-') ? '' : `, at scan ${number}`);

function leakVerdict(report: Report, stacks: Stacks): Verdict {
  const part = ofSelection(report);
  const scan = report.leak_scans.find((one) => one.number === report.leak_scan);
  const { totals } = report;
  const figures = new Figures(totals.estimated);
  if (scan?.totals) {
    const { definite, indirect } = scan.totals;
    // Without what the C runtime keeps by design.
    const possible = { bytes: scan.totals.possible.bytes - scan.of_runtime.bytes, blocks: scan.totals.possible.blocks - scan.of_runtime.blocks };
    const lost = { bytes: definite.bytes + indirect.bytes, blocks: definite.blocks + indirect.blocks };
    if (definite.blocks > 0) {
      const worst = report.leaks.find((leak) => leak.kind === 'definite');
      return {
        kind: 'bad', view: 'leaks',
        title: `${amount(lost)} lost${scan.frees_unseen ? ', if it was not freed where frees are not seen' : ' for certain'}` + (indirect.blocks > 0 ? `, ${bytes(definite.bytes)} of it directly` : '') + atScan(scan),
        text: `${plural(definite.blocks, 'block')} that nothing points to any more` +
          (indirect.blocks > 0 ? `, and ${count(indirect.blocks)} that only these lead to` : '') +
          (worst ? `; most in ${shortCaller(stacks, worst.stack)}` : '') +
          (possible.blocks > 0 ? `. ${amount(possible)} more possibly.` : '.'),
      };
    }
    if (possible.blocks > 0) {
      return { kind: 'warning', view: 'leaks', title: `${amount(possible)} possibly lost${atScan(scan)}`,
               text: `Only pointers into the middle of ${plural(possible.blocks, 'block')} were found.` };
    }
    return { kind: part ? 'unknown' : good(report), view: 'leaks',
             title: part ? `Nothing${part.words} is lost` : `Nothing${ofWhat(report)} is lost`,
             text: `Every block that was still there at ${seconds(scan.time_s)} could be reached` +
               ` (${bytes(scan.totals.reachable.bytes)})` +
               (scan.of_runtime.blocks > 0 ? `, or is the C runtime’s own (${bytes(scan.of_runtime.bytes)})` : '') + `.${part?.remark ?? ''}${rest(report)}` };
  }
  if (totals.live_blocks === 0) {
    return totals.allocations === 0
      ? { kind: 'unknown', view: 'coverage', title: 'No allocation was recorded', text: 'See what the trace covers.' }
      : { kind: part ? 'unknown' : good(report), view: 'leaks', title: `Every block${part?.words ?? ofWhat(report)} was freed`,
          text: `${figures.plural(totals.allocations, 'allocation')}, and nothing was left.${part?.remark ?? ''}${rest(report)}` };
  }
  return {
    kind: 'unknown', view: 'leaks',
    title: `${figures.bytes(totals.live_bytes)}${figures.interval(totals.live_bytes_low, totals.live_bytes_high)} not freed`,
    text: `In ${figures.plural(totals.live_blocks, 'block')}. Whether they are leaks is not known without a memory scan: ${report.no_leak_scan ?? 'there was none'}.`,
  };
}

// Undefined by the language, and mostly the program's end.
function freeVerdict(report: Report): Verdict | null {
  const stories = report.invalid_frees?.stories ?? [];
  const times = (kinds: string[]) => stories.filter((story) => kinds.includes(story.kind)).reduce((sum, story) => sum + story.times, 0);
  const twice = times(['double_free']), inside = times(['inside_live_block', 'inside_freed_block']);
  if (twice + inside === 0) return null;
  const parts = [twice > 0 && plural(twice, 'double free'), inside > 0 && `${plural(inside, 'free')} of an address inside of a block`];
  const { allocated } = stories[0];
  const sure = report.invalid_frees!.certain ? '' : ', if all allocations are in the trace';
  return { kind: 'bad', view: 'leaks', title: parts.filter((part) => part !== false).join(' and ') + sure,
           text: `${stories.length > 1 ? 'Most of' : 'Of'} a block${allocated.caller === null ? '' : ` of ${allocated.caller}`}.` };
}

function growthVerdict(report: Report, stacks: Stacks): Verdict | null {
  const { totals } = report;
  const { bytes, perTime, plural: heap } = new Figures(totals.estimated);
  if (totals.peak_live_bytes === 0) return null;
  const growing = report.growing.filter((caller) => caller.in_verdict);
  if (growing.length > 0) {
    const rate = growing.reduce((sum, caller) => sum + caller.bytes_per_s, 0);
    const short = report.process.short_run;
    return { kind: short ? 'unknown' : 'bad', view: 'growth',
             title: `${plural(growing.length, 'call site')} ${short ? 'rose until the end of a short run' : 'grew without an end'}`,
             text: `By ${perTime(rate)}${growing.length > 1 ? ' together' : ''}; ` +
               `fastest ${shortCaller(stacks, growing[0].stack)}.` };
  }
  return {
    kind: 'unknown', view: 'sites',
    title: `Peak ${bytes(totals.peak_live_bytes)}`,
    text: `At ${seconds(totals.peak_time_s)} of ${seconds(report.process.duration_s)}, in ` +
      `${heap(totals.peak_live_blocks, 'block')}; at the end ${share(totals.live_bytes, totals.peak_live_bytes)} of it was live.`,
  };
}

// The note that begins so says how, and where the file ends.
const INCOMPLETE = 'the trace is incomplete';

const sentence = (words: string) => `${words[0].toUpperCase()}${words.slice(1)}.`;

const allThere = (number: number, noun: string, nouns: string) =>
  (number === 0 ? `There was no ${noun}` : number === 1 ? `The only ${noun} is in the trace` : `All ${count(number)} ${nouns} are in the trace`);

function coverageVerdict(report: Report): Verdict {
  const { coverage } = report;
  const problems = [
    coverage.dropped_events > 0 && `${plural(coverage.dropped_events, 'event')} lost`,
    coverage.lost_blocks > 0 && `${plural(coverage.lost_blocks, 'block')} of the file missing`,
    coverage.window_begin_s !== null && `what was before ${seconds(coverage.window_begin_s)} was not kept`,
    coverage.recording_end_s !== null && `the recording ended after ${seconds(coverage.recording_end_s)}`,
    coverage.interrupted && 'the reading was interrupted',
    coverage.stopped_allocations! > 0 && `the program stopped the recording: ${plural(coverage.stopped_allocations!, 'allocation')} then ${coverage.stopped_allocations === 1 ? 'is' : 'are'} in no figure`,
    coverage.untraced_children! > 0 && `${count(coverage.untraced_children!)} forked ${coverage.untraced_children === 1 ? 'child' : 'children'} could not create a trace`,
    coverage.unseen_allocators.length > 0 && 'an allocator was not seen',
    coverage.cross_check_differences > 0 && `${plural(coverage.cross_check_differences, 'stack')} doubtful`,
    coverage.unordered_events > 0 && `${plural(coverage.unordered_events, 'event')} in doubtful order`,
  ].filter((problem): problem is string => typeof problem === 'string');
  const cut = coverage.truncated ? [coverage.notes.find((note) => note.startsWith(INCOMPLETE)) ?? INCOMPLETE] : [];
  if (problems.length + cut.length === 0 && !coverage.all_recorded) problems.push('the notes of the trace say what');
  if (problems.length + cut.length > 0) {
    return { kind: 'warning', view: 'coverage', title: 'Not everything was recorded',
             text: [...cut, problems.join(', ')].filter((words) => words !== '').map(sentence).join(' ') };
  }
  const lostFaults = report.faults.account?.lost;
  if (!report.totals.estimated && typeof lostFaults === 'number' && lostFaults > 0) {
    return { kind: 'warning', view: 'faults', title: 'Not all page faults were seen',
             text: `${allThere(coverage.events, 'event of the heap', 'events of the heap')}; ${plural(lostFaults, 'page fault')} ${lostFaults === 1 ? 'was' : 'were'} lost.` };
  }
  return { kind: report.totals.estimated ? 'unknown' : 'good', view: 'coverage',
           title: report.totals.estimated ? 'A sample' : 'Complete',
           text: report.totals.estimated
             ? `One of every ${bytes(report.process.sample_bytes)} was recorded: all figures are estimates.`
             : `${allThere(coverage.events, 'event', 'events')}.` };
}

const SIGN = { good: '✓', bad: '✗', warning: '!', unknown: '?' };

export function card({ kind, title, text }: Card, more?: HTMLElement): HTMLElement {
  return h('div', { class: `verdict ${kind}` },
    h('span', { class: 'sign', 'aria-hidden': 'true' }, SIGN[kind]),
    h('div', {}, h('h2', {}, title), h('p', {}, name(text))), more);
}

// On a low or a narrow screen the view is out of sight.
function reveal(view: string): void {
  const tab = document.getElementById(`tab-${view}`)!;
  tab.focus({ preventScroll: true });
  if (tab.getBoundingClientRect().bottom > innerHeight / 2) tab.parentElement!.scrollIntoView();
}

// Above everything else: each with a way to the view that tells more.
export function verdictCards(model: Model): HTMLElement {
  const { report, stacks, state } = model;
  const verdicts = [freeVerdict(report), leakVerdict(report, stacks), growthVerdict(report, stacks), coverageVerdict(report)];
  return h('section', { class: 'verdicts', 'aria-label': 'Verdict' },
    ...verdicts.filter((verdict) => verdict !== null).map((verdict) =>
      card(verdict, h('button', {
        type: 'button', class: 'link', 'aria-label': `Show more: ${verdict.title}`,
        on: { click: () => {
          state.show(verdict.view);
          reveal(verdict.view);
        } },
      }, 'Show'))));
}
