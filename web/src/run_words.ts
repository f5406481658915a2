// What became of the run and of its memory, in the words of the text report.

import type { Report } from './data';
import { h, name, type Child } from './dom';
import { bytes as exactBytes, count, Figures, plural as exactPlural, seconds } from './text';

// Of Linux, by number from 1 on.
const SIGNALS = ('HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT ' +
  'CHLD CONT STOP TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH POLL PWR SYS').split(' ');

const signalName = (signal: number) =>
  (SIGNALS[signal - 1] ? `SIG${SIGNALS[signal - 1]}` : `signal ${signal}`);

function end({ process, coverage }: Report): string {
  if (coverage.live_until_s != null) return 'not yet: it is at work';
  const { oom_evidence: evidence, oom_killed: oom } = process;
  switch (process.end) {
    case 'exit': return `exit status ${process.exit_status}`;
    case 'exec': return 'replaced itself by exec';
    case 'signal': return evidence == null ? `killed by ${signalName(process.end_signal!)}`
      : oom == null ? 'killed by SIGKILL, perhaps by the OOM killer'
      : oom ? 'killed by the OOM killer (SIGKILL)' : 'killed by SIGKILL, not by the OOM killer';
    default: return 'not in the trace (killed, still running, or it could no longer write)';
  }
}

// How it ended, and until when there is something to see.
export function endedWords(report: Report): string {
  const { process, coverage } = report, { duration_s: duration, exit_work_s: work } = process;
  const recorded = coverage.recording_end_s;
  if (process.end === null) return `not in the log, which is of ${seconds(duration)}`;
  if (process.end === 'cut') return `${end(report)}; the last event is after ${seconds(duration)}`;
  if (recorded !== null) {
    return `${end(report)}; the recording, before it, after ${seconds(recorded)}`;
  }
  const worked = work >= Math.max(0.001, duration / 20);
  return `${end(report)}, after ${seconds(duration)}` +
    (worked ? `, ${seconds(work)} of it memtrace’s work at the exit` : '');
}

// What there was when it was killed, where that may have been for lack of memory.
export function killedWords({ process, totals }: Report): Child {
  if (process.oom_evidence == null || process.oom_killed === false) return false;
  const { bytes, plural } = new Figures(totals.estimated), limit = process.memory_limit_bytes;
  return h('span', {},
    `the heap held ${bytes(totals.live_bytes)} in ${plural(totals.live_blocks, 'block')}` +
    (limit == null ? '. ' : `, the memory limit was ${exactBytes(limit)}. `),
    name(process.oom_evidence));
}

// "2026-11-28T22:31:26.026194116Z" as one reads it.
export const dateTime = (iso: string) => iso.replace(/^(.*)T(\d\d:\d\d:\d\d).*Z$/, '$1 $2 UTC');

export function startedWords({ process }: Report): Child {
  const { start_time: time, pid, ppid, host, forked } = process;
  return time !== null && h('span', {}, h('span', { title: time }, dateTime(time)), `, pid ${pid}`,
    host && ' on ', name(host), forked && `, forked by ${ppid}`);
}

export function peakWords({ totals }: Report): string {
  const { bytes, plural } = new Figures(totals.estimated);
  return totals.peak_live_bytes === 0 ? 'nothing was ever live'
    : `${bytes(totals.peak_live_bytes)} in ${plural(totals.peak_live_blocks, 'block')} at ` +
      seconds(totals.peak_time_s);
}

export function unfreedWords({ totals, coverage, range }: Report): string {
  const { bytes, plural, interval, estimated } = new Figures(totals.estimated);
  const all = coverage.all_recorded;
  if (totals.live_blocks > 0) {
    return bytes(totals.live_bytes) + interval(totals.live_bytes_low, totals.live_bytes_high) +
      ` in ${plural(totals.live_blocks, 'block')}` +
      (!range.whole ? ' at the end of the range'
        : coverage.recording_end_s !== null ? ' when the recording ended' : ' at the end');
  }
  if (estimated) return 'nothing of what was sampled, which is little of all';
  if (totals.allocations === 0) return all ? 'nothing: nothing was allocated' : NO_ALLOCATION;
  return all ? 'nothing: every block was freed'
    : 'nothing of what was recorded, which is not all: see Coverage';
}

const NO_ALLOCATION = 'not known: no allocation was recorded, see Coverage';

// Only a scan tells which blocks are lost; a block that was freed cannot be.
export function lostWords(report: Report): string | false {
  const { totals, coverage } = report;
  const scan = report.leak_scans.find((one) => one.number === report.leak_scan);
  if (!scan?.totals) {
    return totals.live_blocks > 0 && 'not known: no scan told what is reachable, see Unfreed';
  }
  const { definite, indirect, possible } = scan.totals, runtime = scan.of_runtime;
  const rest = { bytes: possible.bytes - runtime.bytes, blocks: possible.blocks - runtime.blocks };
  const kinds = [
    [definite, 'definitely'], [indirect, 'indirectly'], [rest, 'possibly'],
  ] as const;
  const parts = kinds.filter(([{ blocks }]) => blocks > 0).map(([{ bytes, blocks }, how]) =>
    `${exactBytes(bytes)} in ${exactPlural(blocks, 'block')} ${how} lost`);
  const nothing = parts.length === 0;
  if (nothing && totals.allocations === 0 && !coverage.all_recorded) return NO_ALLOCATION;
  return (nothing ? 'nothing' : parts.join(', ')) +
    (scan.reason.startsWith('exit') ? ' at the exit' : ` at scan ${scan.number}`) +
    (runtime.blocks > 0 ? `; ${exactBytes(runtime.bytes)} that look so are the runtime’s own` : '') +
    (scan.frees_unseen && definite.blocks > 0 ? '; some frees are not seen' : '') +
    (coverage.all_recorded ? '' : '; not all was recorded: see Coverage');
}

export function faultWords({ process, faults }: Report): string {
  const { minor, major, tool_minor: own } = faults;
  if (process.end === null) return 'not in the log';
  return minor === null ? 'not known: the trace ends before they were counted'
    : `${count(minor)} minor, ${count(major ?? 0)} major, without memtrace’s own ${count(own)} minor`;
}

export function memoryWords({ faults, coverage }: Report): string {
  const { peak_rss_bytes: peak } = faults, own = coverage.tool_memory_bytes;
  if (peak === null) return 'peak RSS not known';
  // Its own is counted in address space, which may be more than all that is resident.
  return `peak RSS ${exactBytes(peak)}` + (own === 0 ? ''
    : own <= peak ? `, of which memtrace’s own at most ${exactBytes(own)}`
    : `, some of it of memtrace’s own mappings of ${exactBytes(own)}`);
}
