// The document inside the page: what it holds, and how it is read. docs/report.md explains every
// key of `report`; here a "stack" is a number, see report/render/stack_numbers.h.

import type { LifetimeClass } from './lifetime_classes';
import { showHidden } from './text';

export interface Tables {
  strings: string[];
  frames: { name: number[]; module: number[]; file: number[]; line: number[]; flags: number[] };
  nodes: { parent: number[]; frame: number[] };
  stacks: { node: number[]; begin: number[]; end: number[]; caller: number[] };
}

// Of each site of `sites`, in their order: see series.ts.
export interface SeriesTable { begin_s: number; interval_s: number; points: number[][] }

// Of a sampled trace, likewise: what the estimates of a site's bytes are made of, see sampled.ts.
export type SampledPart = [seen: number, estimate: number, variance: number, every: number];
export interface Samples { bytes_allocated: SampledPart[]; live_bytes: SampledPart[] }

export interface GrowthRate {
  bytes_per_s: number; bytes_per_s_low: number; bytes_per_s_high: number; blocks_per_s: number;
  bytes_per_allocation: number; confidence: number;
}

// The growing sites of one caller together.
export interface GrowingCaller { caller: string; bytes_per_s: number; in_verdict: boolean; stack: number }

export interface Site {
  allocations: number; frees: number; bytes_allocated: number;
  live_bytes: number; live_blocks: number; peak_bytes: number; bytes_at_peak: number;
  wasted_bytes: number | null; temporary: number | null; largest_bytes: number;
  freed_by_other_thread: number; first_time_s: number; last_time_s: number;
  allocator: string; fingerprint: string; stack: number;
  growth?: string | null; growth_rate?: GrowthRate | null; held_until_exit?: boolean;
  lifetime?: Lifetimes | null; moves?: Moves | null;
  [key: string]: unknown;
}

export interface Leak {
  kind: string; bytes: number; blocks: number; allocator: string; fingerprint: string;
  first_time_s: number; last_time_s: number; stack: number;
  indirect_bytes?: number; indirect_blocks?: number; bytes_low?: number; bytes_high?: number; record?: number; is_new?: boolean; of_runtime?: boolean;
}

export interface Point {
  time_s: number; live_bytes: number; live_blocks: number; max_live_bytes: number;
  allocations: number; frees: number; bytes_allocated: number;
  rss_bytes: number | null; minor_faults: number | null; major_faults: number | null;
}

export interface Amount { bytes: number; blocks: number }

export interface LeakScan {
  number: number; reason: string; when: string; label: string; time_s: number; state: string;
  failure: string | null; notes: string[]; totals: { [kind: string]: Amount } | null; of_runtime: Amount;
  frees_unseen: boolean;
}

export interface Thread {
  tid: number; name: string; in_signal_handlers: boolean; allocations: number; frees: number;
  bytes_allocated: number; live_bytes: number; live_blocks: number; temporary: number | null;
  first_time_s: number; last_time_s: number;
}

export interface Mapping {
  kind: string; calls: number; bytes: number; live_bytes: number; file?: string; stack: number;
}

// What the program told by memtrace.h.
export interface Instant { time_s: number; live_bytes: number; live_blocks: number }
export interface Phase {
  name: string; times: number; open: number; total_s: number; allocations: number; bytes_allocated: number;
  minor_faults: number; major_faults: number; growth_bytes: number;
  first_begin: Instant; first_end: Instant; last_begin: Instant; last_end: Instant;
}
export interface Mark extends Instant { name: string }
export interface Pool {
  name: string; created: number; allocations: number; frees: number; bytes_allocated: number;
  live_bytes: number; live_blocks: number; peak_bytes: number; stack: number;
}

// The live heap by thread, as by other things that the series of the sites tell here.
export interface Stacked {
  from_s: number; interval_s: number;
  thread?: { series: { name: string; live_bytes: number[] }[]; other: number[]; others: number };
}

export interface ModuleUsage {
  module: string; callers: number; allocations: number; bytes_allocated: number; live_bytes: number;
  bytes_at_peak: number; wasted_bytes: number | null;
}
export interface Exchange { from_tid: number | null; to_tid: number | null; blocks: number; bytes: number }
export interface Lifetimes { blocks: number; p50_s: number; p90_s: number; p99_s: number }
export interface Moves {
  reallocations: number; grown: number; moved: number; copied_bytes: number; longest_chain: number;
  container_growths: number; container_copied_bytes: number;
}

export interface FaultCount { minor: number; major: number }
// Code whose access took a fault; in the kernel on behalf of it there is no stack.
export interface Toucher extends FaultCount { function: string; in_kernel: boolean; stack: number | [] }
export interface FaultSite extends FaultCount {
  by_allocator: number; allocator: string; fingerprint: string; stack: number; touched_by: Toucher[];
}

export interface ResidentSite {
  resident_bytes: number; live_bytes: number; untouched_bytes: number; swapped_bytes: number; pinned_bytes: number;
  allocator: string; fingerprint: string; stack: number;
}
// What the resident memory was made of at one time.
export interface Resident {
  number: number; time_s: number; reason: string; name: string | null; peak: boolean; rss_bytes: number;
  parts: { [part: string]: number }; sites?: ResidentSite[];
}

// Samples from outside; a column is in a point only where it is known.
export interface Pressure {
  samples: number; columns: string[]; titles: string[]; notes: string[];
  points: { [column: string]: number }[];
}

// Blocks that ended by another kind of function than they came from.
export interface Mismatch {
  allocator: string; ended_by: string; times: number; allocated_at: string; ended_at: string;
}

// What was freed although it was no live block.
export interface FreeMoment { time_s: number; tid: number | null; by: string; caller: string | null; stack: number | null }
export interface InvalidFree {
  kind: string; times: number; address: number; offset: number; block_bytes: number;
  allocated: FreeMoment; freed: FreeMoment | null; again: FreeMoment;
}

export interface Report {
  process: {
    pid: number; ppid: number; command: string[]; command_line: string; executable: string; build_id: string; host: string;
    working_directory: string; start_time: string | null; duration_s: number;
    exit_work_s: number; short_run: boolean; end: string | null;
    exit_status: number | null; end_signal: number | null; forked: boolean; sample_bytes: number;
    oom_killed?: boolean | null; oom_evidence?: string | null; memory_limit_bytes?: number | null;
  };
  range: { from_s: number; to_s: number; whole: boolean; match: string; only: string[] };
  coverage: {
    events: number; dropped_events: number; recovered_events: number; unordered_events: number;
    marked_stacks: number; cross_checked: number; cross_check_differences: number;
    tool_memory_bytes: number | null; lost_blocks: number; window_begin_s: number | null; recording_end_s: number | null; live_until_s?: number | null;
    truncated: boolean; interrupted: boolean; all_recorded: boolean; unknown_frees: number;
    unseen_frees: number; inherited_frees: number; stopped_allocations?: number; untraced_children?: number; notes: string[];
    counters: { [name: string]: number };
    unseen_allocators: { module: string; allocator: string | null; way: string }[];
    [key: string]: unknown;
  };
  totals: {
    allocations: number; frees: number; bytes_allocated: number; live_bytes: number;
    live_blocks: number; peak_live_bytes: number; peak_live_blocks: number; peak_time_s: number;
    wasted_bytes: number | null; temporary_allocations: number | null; failed_allocations: number;
    reallocations: number; estimated: boolean; [key: string]: unknown;
  };
  summary: { label: string; text: string }[];  // what is told of the run as a whole
  leaks: Leak[]; leaks_total: number; leak_kinds: { [kind: string]: string };
  leak_scans: LeakScan[]; leak_scan: number | null; no_leak_scan: string | null;
  sites: Site[]; sites_total: number; growing: GrowingCaller[];
  timeline: { interval_s: number; points: Point[]; stacked?: Stacked };
  faults: {
    source: string | null; minor: number | null; major: number | null; tool_minor: number;
    attributed_minor: number | null; peak_rss_bytes: number | null;
    correlation: { live_bytes_vs_minor: number | null; allocated_bytes_vs_minor: number | null; words: string[] };
    words?: string[];  // what was found, in sentences
    thrash?: { from_s: number; to_s: number; refaults: number; live_bytes: number }[];
    account?: { [part: string]: FaultCount | number | null }; by_memory?: { [kind: string]: FaultCount };
    memory_kinds?: { [kind: string]: string };
    ns_per_minor?: number;  // 0: not measured
    sites?: FaultSite[]; places?: (FaultCount & { memory: string; name: string })[]; touched_by?: Toucher[];
    mappings?: (FaultCount & { file: string; stack: number })[];
    why_not_perf?: string | null;
    [key: string]: unknown;
  };
  threads: Thread[]; mappings: Mapping[];
  memory_map: { [key: string]: number } | null;
  sizes: { from_bytes: number; to_bytes: number; allocations: number; bytes: number;
           live_blocks: number; live_bytes: number }[];
  modules?: ModuleUsage[]; thread_exchanges?: Exchange[]; thread_exchanges_left_out?: { blocks: number; bytes: number };
  invalid_frees?: { certain: boolean; not_looked_for: number; of_unseen_blocks?: number; stories: InvalidFree[] };
  mismatches?: { frees_known: boolean; pairs: Mismatch[] };
  lifetimes?: { blocks: number; classes: LifetimeClass[] };
  resident?: Resident[]; resident_parts: { [part: string]: string }; pressure?: Pressure | null;
  phases: Phase[]; marks: Mark[]; pools: Pool[];
}

export interface ReportDocument extends Tables {
  kind: 'report'; file: string; version: string; report: Report; series?: SeriesTable; samples?: Samples;
}

// `memtrace diff`.
export interface DiffRow {
  verdict: string; fingerprint: string; executable: string | null; old: number; new: number; change: number;
  old_amounts: { [key: string]: number | null } | null; new_amounts: { [key: string]: number | null } | null;
  allocator: string; caller: string; file: string | null; line: number | null; called_by: string | null;
  called_by_depth: number | null; stack: string[];
}
interface DiffRun {
  name: string; estimated: boolean; all_recorded: boolean; command: string; end: string; start_time: string | null; duration_s: number; processes: number;
  only: string[]; notes: string[]; totals: { [key: string]: number | null };
}
export interface DiffDocument {
  kind: 'diff'; version: string;
  diff: {
    by: string; per: string; grew: boolean; only: string[]; old: DiffRun; new: DiffRun; sites: DiffRow[]; sites_total: number;
    counts: { new: number; grown: number; shrunk: number; gone: number; same: number; by_chance: number };
  };
}

// `memtrace compare`.
export interface Side { [kind: string]: Amount | number }
export interface ComparedLeak {
  verdict: string; expected: boolean; matched_by: string; reasons: string[]; here: Side; there: Side;
  stack: { function?: string; module?: string; offset?: number; address?: number; file?: string; line?: number }[];
}
export interface ComparedRun {
  command: string[]; duration_s: number | null; peak_rss_bytes: number | null; allocations: number | null;
  frees: number | null; leaks: { [kind: string]: Amount };
}
export interface CompareDocument {
  kind: 'compare'; version: string;
  compare: {
    here: ComparedRun & { file: string }; there: ComparedRun & { version: string; damage: string | null };
    counts: { [verdict: string]: number }; notes: string[]; leaks: ComparedLeak[];
  };
}

export type AnyDocument = ReportDocument | DiffDocument | CompareDocument;

function decoded(base64: string): Uint8Array<ArrayBuffer> {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; ++i) bytes[i] = text.charCodeAt(i);
  return bytes;
}

// The words of a shell hold escapes of their own where something would not show: they stay as they are. In the document
// as text the first member of this name is that of the process, for a quote within a string has a backslash before it.
function commandLine(json: string): string {
  const found = /"command_line":\s*("(?:[^"\\]+|\\.)*")/.exec(json);
  return found ? JSON.parse(found[1]) : '';
}

export async function readDocument(base64: string): Promise<AnyDocument> {
  if (typeof DecompressionStream === 'undefined') {
    throw new Error('this browser is too old for the report: it needs Chrome 103, Firefox 113 or Safari 16.4');
  }
  const stream = new Blob([decoded(base64)]).stream()
    .pipeThrough(new DecompressionStream('deflate-raw'));
  const json = await new Response(stream).text(), document = JSON.parse(showHidden(json));
  if (document.kind === 'report') document.report.process.command_line = commandLine(json);
  return document;
}
