// The page of `memtrace compare`: each leak here and under Valgrind.

import type { Amount, CompareDocument, ComparedLeak, ComparedRun, Side } from './data';
import { h, name, type Child } from './dom';
import { about } from './shell';
import type { State } from './state';
import { baseName, bytes, count, plural, seconds } from './text';
import type { ThemeChoice } from './theme';
import { besides, Rows } from './two_runs';
import { card } from './verdicts';

const KINDS = ['definite', 'indirect', 'possible', 'reachable', 'unfreed'];

function sideText(one: Side): string {
  const parts = KINDS.filter((kind) => one[kind] !== undefined).map((kind) => {
    const amount = one[kind] as Amount;
    return `${kind} ${bytes(amount.bytes)} in ${plural(amount.blocks, 'block')}`;
  });
  return parts.join(', ') || 'nothing';
}
// Of several kinds it may be more than there is room for: all of it is in the tooltip, and in the open row.
function sideCell(one: Side): HTMLElement {
  const text = sideText(one);
  return h('span', { title: text }, text);
}
function sideBytes(one: Side): number {
  return KINDS.reduce((all, kind) => all + ((one[kind] as Amount | undefined)?.bytes ?? 0), 0);
}

const BY: { [stage: string]: string } = {
  calls: 'paired by calls: inlined functions differ',
  places: 'paired by files and lines: names of functions differ',
  functions: 'paired by functions: lines differ', files: 'paired by files where the system’s code has no names',
  project: 'paired by the project’s own functions alone',
};

export function showCompare(root: HTMLElement, { compare, version }: CompareDocument, state: State, theme: ThemeChoice): void {
  const { here, there, counts } = compare;
  document.title = 'memtrace compare';
  const unexpected = compare.leaks.filter((leak) => leak.verdict !== 'agree' && !leak.expected).length;
  // Without a name: the offset in the file, and of Valgrind's frames the address as it is in the XML.
  const frameText = (frame: ComparedLeak['stack'][0]) => {
    if (frame.function) return frame.function;
    const module = baseName(frame.module ?? '');
    if (frame.offset !== undefined) return `${module && `${module}+`}0x${frame.offset.toString(16)}`;
    if (frame.address !== undefined) return `0x${frame.address.toString(16).toUpperCase()}`;
    return module || '?';
  };
  const place = (frame: ComparedLeak['stack'][0]) =>
    frame.file ? `${frame.file}${frame.line ? `:${frame.line}` : ''}` : baseName(frame.module ?? '');

  const rows = new Rows<ComparedLeak>({
    rows: compare.leaks, label: 'Leaks', sort: '-here',
    columns: [
      { id: 'verdict', title: 'Verdict', width: '12em', value: (leak) => leak.verdict,
        cell: (leak) => h('span', { class: `tag ${leak.verdict === 'agree' ? 'agree' : leak.expected ? '' : 'definite'}` }, leak.verdict + (leak.expected ? ', expected' : '')) },
      { id: 'here', title: 'Here', width: '18em', largest: true, value: (leak) => sideBytes(leak.here), cell: (leak) => sideCell(leak.here) },
      { id: 'there', title: 'Under Valgrind', width: '18em', largest: true, value: (leak) => sideBytes(leak.there), cell: (leak) => sideCell(leak.there) },
      { id: 'caller', names: 'row', title: 'Stack', width: 'auto', value: (leak) => leak.stack.map(frameText).join(' '),
        cell: (leak) => name(leak.stack.slice(0, 3).map(frameText).join(' < ')) },
    ],
    detail: (leak) => h('div', {},
      ...leak.reasons.map((reason) => h('p', { class: 'warning' }, name(reason))),
      BY[leak.matched_by] && h('p', {}, BY[leak.matched_by]),
      h('p', {}, `Here: ${sideText(leak.here)}. Under Valgrind: ${sideText(leak.there)}.`),
      h('ol', { class: 'stack', start: 0, 'aria-label': 'Stack, innermost frame first' },
        ...leak.stack.map((frame) => h('li', {}, name(frameText(frame)), h('span', { class: 'place' }, name(place(frame))))))),
    texts: (leak) => leak.stack.flatMap((frame) => [frame.function ?? '', frame.file ?? '', frame.module ?? '']),
    verdicts: Object.fromEntries(Object.keys(counts).filter((verdict) => verdict !== 'expected').map((verdict) => [verdict, verdict])),
    note: '',
  }, state);

  const known = (value: number | null, text: (value: number) => string): Child => (value === null ? 'not known' : text(value));
  const both = (text: (one: ComparedRun) => Child): [Child, Child] => [text(here), text(there)];
  root.replaceChildren(h('div', { class: 'page' },
    h('header', {}, h('h1', {}, 'memtrace compare', h('small', {}, ' ', name(here.file))), theme.button),
    h('section', { class: 'verdicts', 'aria-label': 'Verdict' },
      card({ kind: unexpected > 0 ? 'bad' : 'good', title: unexpected > 0 ? `${plural(unexpected, 'leak')} not as under Valgrind` : 'As under Valgrind',
             text: `${plural(compare.leaks.length, 'leak')}: ` + Object.entries(counts).filter(([, number]) => number > 0).map(([verdict, number]) => `${number} ${verdict}`).join(', ') + '.' }),
      ...compare.notes.map((note) => card({ kind: 'warning', title: 'Note', text: note })),
      there.damage && card({ kind: 'warning', title: 'Valgrind’s file is damaged', text: there.damage })),
    h('main', {},
      h('h2', {}, 'Runs'),
      besides(['Here', `Under ${there.version || 'Valgrind'}`], [
        ['Command', ...both((one) => name(one.command.join(' ')))],
        ['Took', ...both((one) => known(one.duration_s, seconds))],
        ['Peak RSS', ...both((one) => known(one.peak_rss_bytes, bytes))],
        ['Allocations', ...both((one) => known(one.allocations, count))],
        ['Frees', ...both((one) => known(one.frees, count))],
        ...KINDS.filter((kind) => [here, there].some((one) => one.leaks[kind]?.blocks > 0))
          .map((kind): [string, Child, Child] => [kind, ...both((one) => `${bytes(one.leaks[kind]?.bytes ?? 0)} in ${plural(one.leaks[kind]?.blocks ?? 0, 'block')}`)]),
      ]),
      h('h2', {}, 'Leaks'), rows.element),
    about(version)));
  state.subscribe(() => rows.update());
  rows.update();
}
