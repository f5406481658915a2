// Names of functions where there is little room, as the text report shortens them.

import { h, name, type Child } from './dom';
import type { Stacks } from './stacks';

const READABLE = 40;  // what is no longer is left as it is
const ANONYMOUS = '(anonymous namespace)';
const OPEN = '<({[', CLOSE = '>)}]';

// Behind the bracket that ends what begins at `at`.
function behind(text: string, at: number): number {
  let depth = 0;
  for (let i = at; i < text.length; ++i) {
    if (OPEN.includes(text[i])) ++depth;
    else if (CLOSE.includes(text[i]) && text[i - 1] !== '-' && --depth === 0) return i + 1;
  }
  return text.length;
}

// "void std::vector<int, A>::insert(int const&)" -> "std::vector<..>::insert": without what it returns
// and takes, and without arguments of templates. What makes two long names different is at their end.
export function shortName(whole: string): string {
  if (whole.length <= READABLE) return whole;
  let short = '';
  for (let i = 0; i < whole.length;) {
    const c = whole[i];
    if (whole.startsWith(ANONYMOUS, i)) {
      short += ANONYMOUS;
      i += ANONYMOUS.length;
    } else if (/(^|\W)operator$/.test(short) && /\W/.test(c)) {
      const parameters = whole.indexOf('(', whole.startsWith('()', i) ? i + 2 : i);
      return short + whole.slice(i, parameters < 0 ? undefined : parameters);
    } else if (c === '(') {
      const end = behind(whole, i);
      if (short !== '' && short !== 'decltype' && !whole.startsWith('::', end)) break;  // what it takes
      short += '(..)';
      i = end;
    } else if (c === '<') {
      short += '<..>';
      i = behind(whole, i);
    } else if (c === '{' || c === '[') {
      const end = behind(whole, i);
      short += whole.slice(i, end).replace(/\(.*\)/, '');
      i = end;
    } else if (whole.startsWith(' [', i)) {
      break;  // "f [clone .cold]"
    } else {
      short = c === ' ' ? '' : short + c;  // what it returns, or is: "vtable for"
      ++i;
    }
  }
  return short || whole;
}

// In a sentence: a long name without what a reader does not look for there.
export function shortCaller(stacks: Stacks, stack: number): string {
  const place = stacks.callerPlace(stack);
  return shortName(stacks.callerName(stack)) + (place ? ` ${place}` : '');
}

// A sentence of the report, which has names as they are. `names`: those that it may have.
export function sentenceOf(whole: string, names: string[]): HTMLElement {
  const longestFirst = [...new Set(names)].sort((a, b) => b.length - a.length);
  const short = longestFirst.reduce((text, one) => {
    const shorter = shortName(one);
    return shorter === one ? text : text.replaceAll(one, () => shorter);
  }, whole);
  return h('span', { title: short === whole ? null : whole }, name(short));
}

// What a row is of: all of it is in the tooltip.
export function shortened(whole: string): HTMLElement {
  return h('span', { title: whole }, name(shortName(whole)));
}

// In a table, where there may be less room than it needs: its begin is cut, for what tells it from
// others, be it a function, a file or a line, is at its end.
export function endCell(text: string, whole = text, cls = ''): HTMLElement {
  return h('span', { class: `end ${cls}`, title: whole }, name(text));
}

export function functionCell(whole: string): HTMLElement { return endCell(shortName(whole), whole); }

export function placeCell(stacks: Stacks, stack: number): Child {
  const place = stacks.callerPlace(stack);
  return place !== '' && endCell(place, stacks.callerPlace(stack, true), 'place');
}

export function callerCell(stacks: Stacks, stack: number): HTMLElement {
  return functionCell(stacks.callerName(stack));
}
