// Names of functions where there is little room, as the text report shortens them.

import { h, name, type Child } from './dom';
import type { Stacks } from './stacks';

const READABLE = 40;  // what is no longer is left as it is
const ANONYMOUS = '(anonymous namespace)';
const CLOSED_BY: Record<string, string> = { '(': ')', '{': '}', '[': ']', '<': '>' };
// From the parameters of a function to what is in it: "(int) const::{lambda()#1}".
const TO_INNER = /^( const)?( volatile)?( &&)?( &)?( noexcept)?(?=::)/;

// This, qualifiedName() and shortName() are Closing() (report/names/brackets.h), QualifiedName() and
// ShortenedName() (report/names/function_name.h): a test reads one list of names for both.

// Where the bracket at `open` closes; -1: nowhere.
function closing(text: string, open: number): number {
  const expected: string[] = [];  // innermost last
  for (let i = open; i < text.length; ++i) {
    const c = text[i];
    if (c in CLOSED_BY) {
      expected.push(CLOSED_BY[c]);
    } else if (c === '>' && (expected.at(-1) !== '>' || text[i - 1] === '-')) {
      continue;  // an arrow, or a comparison within brackets of another kind
    } else if (c === ')' || c === '}' || c === ']' || c === '>') {
      while (c !== '>' && expected.at(-1) === '>') expected.pop();
      if (expected.pop() !== c) return -1;
      if (expected.length === 0) return i;
    }
  }
  return -1;
}

// Behind the parameters at `at` of a function that the rest is in; 0: nothing is in it.
function behindScope(text: string, at: number): number {
  const close = closing(text, at);
  const found = close < 0 ? null : TO_INNER.exec(text.slice(close + 1));
  return found === null ? 0 : close + 1 + found[0].length;
}

const isOperator = (text: string, at: number): boolean =>
  /^operator\W/.test(text.slice(at, at + 9)) && (at === 0 || /\W/.test(text[at - 1]));

// Behind an operator, which has brackets and blanks of its own.
function behindOperator(text: string, at: number): number {
  const call = at + (text.startsWith('operator()', at) ? 10 : 8);
  if (text.startsWith('operator()::', at)) return call;
  const parameters = text.indexOf('(', call);
  return parameters < 0 ? text.length : parameters;
}

// Whether the name is within the bracket at `open`, before which a word ends at `begin`: in "int
// (&f(char)) [10]" and "void (*f(char))(int)", which return what is no plain type.
const opensDeclarator = (text: string, open: number, begin: number): boolean =>
  open === begin && open > 0 && !text.slice(0, open).endsWith('decltype ');

// Without what it returns and takes.
function qualifiedName(whole: string): string {
  let begin = 0, inDeclarator = false;
  for (let i = 0; i < whole.length; ++i) {
    const c = whole[i];
    if (whole.startsWith(ANONYMOUS, i)) {
      i += ANONYMOUS.length - 1;
    } else if (isOperator(whole, i)) {
      const end = behindOperator(whole, i), inner = whole[end] === '(' ? behindScope(whole, end) : end;
      if (end === whole.length || inner === 0) return whole.slice(begin, end);
      i = inner - 1;
    } else if (c === '(' && i > begin && whole[i - 1] !== '!' && whole.slice(begin, i) !== 'decltype') {
      const inner = behindScope(whole, i);
      if (inner === 0) return whole.slice(begin, i);
      i = inner - 1;
    } else if (c === '(' && opensDeclarator(whole, i, begin)) {
      inDeclarator = true;
      begin = i + 1;
    } else if (c === '(' || c === '<' || c === '{') {
      const close = closing(whole, i);
      if (close < 0) break;
      i = close;
    } else if (whole.startsWith(' [', i)) {
      return whole.slice(begin, i);  // "f [clone .cold]"
    } else if (c === ' ' || (inDeclarator && (c === '*' || c === '&'))) {
      begin = i + 1;  // what it returns, or is: "vtable for"
    }
  }
  return whole.slice(begin);
}

// "void std::vector<int, A>::insert(int const&)" -> "std::vector<..>::insert": without what it returns
// and takes, and without arguments of templates. What makes two long names different is at their end.
export function shortName(whole: string): string {
  if (whole.length <= READABLE) return whole;
  const full = qualifiedName(whole);
  let short = '';
  for (let i = 0; i < full.length;) {
    const c = full[i];
    if (full.startsWith(ANONYMOUS, i)) {
      short += ANONYMOUS;
      i += ANONYMOUS.length;
    } else if (isOperator(full, i)) {
      const [symbol] = /^operator(\(\)|\[\]|[<>=!-]*)/.exec(full.slice(i))!;
      short += symbol;
      i += symbol.length;
    } else if (c === '<' || c === '(' || c === '{') {
      const close = closing(full, i);
      if (close < 0) return full || whole;
      // "{lambda(int)#1}" is told from another by its number.
      short += c === '<' ? '<..>' : c === '(' ? '(..)' : full.slice(i, close + 1).replace(/\(.*\)/s, '');
      i = c === '(' ? Math.max(close + 1, behindScope(full, i)) : close + 1;
    } else {
      short += c;
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
