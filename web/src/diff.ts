// The page of `memtrace diff`: what is new, grown, shrunk, gone.

import type { DiffDocument, DiffRow } from './data';
import { h, name, type Child } from './dom';
import { about } from './shell';
import { endCell, functionCell, shortName } from './short_name';
import type { State } from './state';
import { baseName, count, dateTime, Figures, plural, seconds } from './text';
import type { ThemeChoice } from './theme';
import { besides, Rows } from './two_runs';
import { card } from './verdicts';

const lineOf = ({ line }: DiffRow) => (line ? `:${line}` : '');

// Which of the sites that read the same it is.
const byWhom = (row: DiffRow): string => (row.called_by_depth === 1 ? 'called by' : 'on behalf of');
const callerOf = (row: DiffRow): string => (row.called_by === null ? row.caller : `${row.caller}, ${byWhom(row)} ${row.called_by}`);
function callerCell(row: DiffRow): HTMLElement {
  if (row.called_by === null) return functionCell(row.caller);
  const [by, place = ''] = row.called_by.split('  ');
  return endCell(`${shortName(row.caller)}, ${byWhom(row)} ${shortName(by)}${place && ` ${baseName(place)}`}`, callerOf(row));
}

const COUNTED = new Set(['live-blocks', 'allocations', 'temporary']);

// Which of the amounts `diff.by` is.
const MEASURED: { [by: string]: string } = {
  live: 'live_bytes', 'live-blocks': 'live_blocks', peak: 'peak_bytes', allocated: 'bytes_allocated', allocations: 'allocations',
  temporary: 'temporary', definite: 'definite_bytes', indirect: 'indirect_bytes', possible: 'possible_bytes', reachable: 'reachable_bytes',
};

const AMOUNTS: [string, string, 'bytes' | 'count'][] = [
  ['live_bytes', 'Live at the end', 'bytes'], ['live_blocks', 'Blocks at the end', 'count'], ['peak_bytes', 'At the peak', 'bytes'],
  ['bytes_allocated', 'Bytes allocated', 'bytes'], ['allocations', 'Allocations', 'count'], ['temporary', 'Temporary', 'count'],
  ['definite_bytes', 'Definitely lost', 'bytes'], ['indirect_bytes', 'Indirectly lost', 'bytes'],
  ['possible_bytes', 'Possibly lost', 'bytes'], ['reachable_bytes', 'Still reachable', 'bytes'],
];

export function showDiff(root: HTMLElement, { diff, version }: DiffDocument, state: State, theme: ThemeChoice): void {
  document.title = 'memtrace diff';
  const unit = diff.per === 'run' ? '' : ` per ${diff.per}`;
  const estimated = diff.old.estimated || diff.new.estimated;
  const figures = new Figures(estimated);
  const kind = COUNTED.has(diff.by) ? 'count' : 'bytes';
  const amountBy = (by: Figures) => (value: number): string => (diff.per === 'run' ? by[kind](value) : by.quotient(value, kind)) + unit;
  const amount = amountBy(figures), oldAmount = amountBy(new Figures(diff.old.estimated)), newAmount = amountBy(new Figures(diff.new.estimated));
  const signed = (value: number): string => (value > 0 ? '+' : '') + amount(value);
  const sum = diff.sites.reduce((all, row) => all + row.change, 0), most = diff.sites.reduce((all, row) => all + Math.abs(row.change), 0);
  const change = Math.abs(sum) < 1e-9 * most ? 0 : sum;  // what quotients that cancel out leave
  const key = MEASURED[diff.by] ?? '';
  const before = diff.old.totals[key], after = diff.new.totals[key];
  // Divided, a run has no totals here, and a sum of what its sites in the page have is not one.
  const whole = diff.per === 'run' && before != null && after != null;
  const shown = `${plural(diff.sites.length, 'site')} in this page`;
  const { counts } = diff;

  const rows = new Rows<DiffRow>({
    rows: diff.sites, label: 'Sites that changed', sort: '-change',
    columns: [
      { id: 'verdict', title: 'Verdict', width: '7em', value: (row) => row.verdict,
        cell: (row) => h('span', { class: `tag ${row.verdict}` }, row.verdict) },
      { id: 'change', title: 'Change', number: true, largest: unit !== '', width: '9em', value: (row) => row.change, cell: (row) => signed(row.change) },
      { id: 'old', title: 'Old', number: true, largest: unit !== '', width: '9em', value: (row) => row.old, cell: (row) => oldAmount(row.old) },
      { id: 'new', title: 'New', number: true, largest: unit !== '', width: '9em', value: (row) => row.new, cell: (row) => newAmount(row.new) },
      { id: 'caller', names: 'row', title: 'Caller', width: 'auto', value: (row) => callerOf(row), cell: callerCell },
      { id: 'place', names: 'place', title: 'Place', width: '16em', value: (row) => `${row.file ?? ''}:${row.line ?? ''}`,
        cell: (row) => row.file && endCell(baseName(row.file) + lineOf(row), row.file + lineOf(row), 'place') },
    ],
    detail: (row) => h('div', {},
      h('p', {}, `${row.allocator}, fingerprint `, h('code', {}, row.fingerprint), row.executable && h('span', {}, ' of ', name(row.executable))),
      besides(['Old', 'New'], AMOUNTS.filter(([key]) => [row.old_amounts, row.new_amounts].some((side) => side?.[key] != null && side[key] !== 0))
        .map(([key, title, text]): [string, Child, Child] => [title, side(diff.old, row.old_amounts, key, text), side(diff.new, row.new_amounts, key, text)])),
      h('ol', { class: 'stack', start: 0, 'aria-label': 'Stack, innermost frame first' }, ...row.stack.map((frame) => h('li', {}, name(frame))))),
    texts: (row) => [row.caller, row.file ?? '', row.executable ?? '', ...row.stack.flatMap((frame) => [frame, frame.split('  ')[0]])],
    verdicts: { new: 'new', grown: 'grown', shrunk: 'shrunk', gone: 'gone' },
    note: diff.sites_total > diff.sites.length
      ? `; ${count(diff.sites_total - diff.sites.length)} more are not in this page: memtrace diff --full` : '',
  }, state);

  const run = (text: (run: DiffDocument['diff']['old']) => Child): [Child, Child] => [text(diff.old), text(diff.new)];
  const grew = counts.new + counts.grown;
  // What a diff of some sites says of them is not good news of all.
  const sites = diff.only.length > 0 ? ` Only ${diff.only.join('; ')}: the others are not in this page.` : '';
  const part = sites + (diff.new.only.length > 0 ? ` Only ${diff.new.only.join('; ')}.` : '');
  // Nor is what another sample might have shown.
  const chance = counts.by_chance === 0 ? ''
    : ` ${plural(counts.by_chance, 'more site')} ${counts.by_chance === 1 ? 'differs' : 'differ'} by no more than another sample might.`;
  // Nor is it where not everything was recorded, or of a sample.
  const recorded = [diff.old, diff.new].every((one) => one.all_recorded);
  const ofWhat = estimated ? ' of what was sampled' : recorded ? '' : ' of what was recorded';
  const sure = !part && !chance && !ofWhat;
  const nothing = sure ? 'Nothing is new, nothing grew'
    : `Nothing${sites ? ' that matches' : part ? ' of these blocks' : ofWhat} is new or grew${chance ? ' by more than chance' : ''}`;
  root.replaceChildren(h('div', { class: 'page' },
    h('header', {}, h('h1', {}, 'memtrace diff', h('small', {}, ' ', name(diff.old.name), ' → ', name(diff.new.name))), theme.button),
    h('section', { class: 'verdicts', 'aria-label': 'Verdict' },
      card({ kind: diff.grew ? 'bad' : sure ? 'good' : 'unknown',
             title: diff.grew ? `${plural(grew, 'site')} new or grown` : nothing,
             text: `By ${diff.by}${unit}: ${counts.new} new, ${counts.grown} grown, ${counts.shrunk} shrunk, ${counts.gone} gone, ${counts.same} the same.${chance}${part}` }),
      card(whole ? { kind: 'unknown', title: `${signed(after - before)} in all`, text: `From ${oldAmount(before)} to ${newAmount(after)}; the ${shown}: ${signed(change)}.` }
        : { kind: 'unknown', title: `${signed(change)} over the sites below`, text: `These are the ${shown}, not all.` }),
      ...[diff.old, diff.new].filter((one) => one.notes.length > 0 || !one.all_recorded).map((one) =>
        card({ kind: 'warning', title: !one.all_recorded ? 'Not everything was recorded' : one.notes.length > 1 ? 'Notes' : 'Note', text: `${one.name}: ${one.notes.map((note) => without(`${one.name}: `, note)).join('; ')}` }))),
    h('main', {},
      h('h2', {}, 'Runs'),
      besides([diff.old.name, diff.new.name], [
        ['Command', ...run((one) => name(one.command))], ['Ended', ...run((one) => name(one.end))],
        ['Started', ...run((one) => one.start_time === null ? 'not in the log' : dateTime(one.start_time))], ['Took', ...run((one) => seconds(one.duration_s))],
        ...([diff.old, diff.new].some((one) => one.only.length > 0) ? [['Only', ...run((one) => name(one.only.join('; ')))] as [string, Child, Child]] : []),
        ['Processes', ...run((one) => count(one.processes))],
        ...AMOUNTS.filter(([key]) => [diff.old, diff.new].some((one) => one.totals[key] != null))
          .map(([key, title, text]): [string, Child, Child] => [title, ...run((one) => side(one, one.totals, key, text))]),
      ]),
      h('h2', {}, 'Sites'), rows.element),
    about(version)));
  state.subscribe(() => rows.update());
  rows.update();
}

// Some notes begin with the name already.
const without = (begin: string, text: string) => (text.startsWith(begin) ? text.slice(begin.length) : text);

function side(run: { estimated: boolean }, amounts: { [key: string]: number | null } | null, key: string, text: 'bytes' | 'count'): string {
  const value = amounts?.[key];
  return amounts === null ? '–' : value == null ? 'not known' : new Figures(run.estimated)[text](value);
}
