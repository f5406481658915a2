// Names of functions where there is little room, as the text report shortens them.

import { h, name, type Child } from './dom';
import type { Stacks } from './stacks';

const READABLE = 40;  // what is no longer is left as it is
const ANONYMOUS = '(anonymous namespace)';
const CLOSED_BY: Record<string, string> = { '(': ')', '{': '}', '[': ']', '<': '>' };
// "operator<<" in "operator<< <int>", and "operator" in "operator bool".
const SYMBOLS = /<=>|->\*?|<<=?|>>=?|&&|\|\||\+\+|--|\(\)|\[\]|"" ?|[-+*/%^&|~!=<>,]=?/;
const OPERATOR =
  new RegExp(`^operator(${SYMBOLS.source}|( new| delete)(\\[\\])?(?!\\w)| co_await(?!\\w))?`);
const QUALIFIERS = /^( const| volatile| &&| &| noexcept| shared| inout| immutable)*/;

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

// Behind " const" and its like at `at`.
const behindQualifiers = (text: string, at: number): number =>
  at + QUALIFIERS.exec(text.slice(at))![0].length;

// Behind the parameters at `at` of a function that the rest is in: "(int) const" before
// "::{lambda()#1}", in D "(int)" before ".inner" and no clone's ".part.0". 0: nothing is in it.
function behindScope(text: string, at: number): number {
  const close = closing(text, at);
  if (close < 0) return 0;
  const inner = behindQualifiers(text, close + 1);
  const isOfD = /^\.\w/.test(text.slice(inner, inner + 2)) && text.slice(0, at).includes('.');
  return text.startsWith('::', inner) || isOfD ? inner : 0;
}

const isOperator = (text: string, at: number): boolean =>
  /^operator\W/.test(text.slice(at, at + 9)) && (at === 0 || /\W/.test(text[at - 1]));

const symbolAt = (text: string, at: number): string => OPERATOR.exec(text.slice(at, at + 20))![0];

const isConversion = (text: string, at: number): boolean =>
  text[at + 8] === ' ' && symbolAt(text, at) === 'operator';

// Whether the bracket behind it is of a type: "decltype(x)", and GCC's vectors.
const isTypeWithBracket = (word: string): boolean => word === 'decltype' || word === '__vector';

// Behind "operator int (*)(T)" in "operator int (*)(T)() const": the type, which may have brackets.
// Only one that the name of a declarator would be in has a blank before it; the parameters of a
// function that is pointed to are behind that.
function behindConversion(text: string, at: number): number {
  let word = at + 9;
  for (let i = word; i < text.length; ++i) {
    const c = text[i];
    if (text.startsWith(ANONYMOUS, i)) {
      i += ANONYMOUS.length - 1;
      continue;
    }
    if (text.startsWith(' [clone ', i)) return i;
    if (c === ' ') word = i + 1;
    if (!(c in CLOSED_BY)) continue;
    const inType = isTypeWithBracket(text.slice(word, i)) || text.slice(at, i).endsWith('decltype ');
    const isDeclarator = !inType && text[i - 1] === ' ' && text[i + 1] !== ')';
    const close = closing(text, i);
    if (close < 0 || (c === '(' && !inType && !isDeclarator)) return i;
    i = close;
    if (c !== '(' || !isDeclarator || text[i + 1] !== '(') continue;
    const end = closing(text, i + 1);
    if (end < 0) return i + 1;
    i = behindQualifiers(text, end + 1) - 1;
  }
  return text.length;
}

// Behind an operator, which has brackets and blanks of its own: "operator<< " before "<int>".
function behindOperator(text: string, at: number): number {
  if (isConversion(text, at)) return behindConversion(text, at);
  const end = at + symbolAt(text, at).length;
  return end + (text.startsWith(' <', end) ? 1 : 0);
}

// Whether the bracket at `open` has the type of a method of Go: "main.(*T).Method".
const isReceiver = (text: string, open: number): boolean =>
  text[open] === '(' && text[open - 1] === '.';

// Whether the bracket at `open` has the arguments of Go's generics: "main.Map[int]", and neither
// "-[NSString length]" nor "name[abi:cxx11]".
const hasTypeArguments = (text: string, open: number): boolean =>
  text[open] === '[' && open > 0 && /\w/.test(text[open - 1]) && !text.startsWith('[abi:', open) &&
  closing(text, open) > 0;

// Whether shortName() leaves out what is in the bracket at `open`.
function isLeftOut(text: string, open: number, inConversion: boolean): boolean {
  const c = text[open];
  if (c === '(') return !inConversion && !isReceiver(text, open);
  if (c === '[') return !inConversion && hasTypeArguments(text, open);
  return c === '<' || c === '{';
}

// Whether the name is within the bracket at `open`, before which a word ends at `begin`: in "int
// (&f(char)) [10]" and "void (*f(char))(int)", which return what is no plain type.
const opensDeclarator = (text: string, open: number, begin: number): boolean =>
  open === begin && open > 0 && !text.slice(0, open).endsWith('decltype ');

// Without what it returns and takes.
function qualifiedName(whole: string): string {
  let begin = 0, operatorEnd = 0, inDeclarator = false;
  // Of a function: of this one, or of one that it is in.
  const hasParameters = (i: number): boolean => whole[i] === '(' && !isReceiver(whole, i) && i > begin &&
    !isTypeWithBracket(whole.slice(begin, i)) && (whole[i - 1] !== '!' || i === operatorEnd);
  for (let i = 0; i < whole.length; ++i) {
    const c = whole[i];
    if (whole.startsWith(ANONYMOUS, i)) {
      i += ANONYMOUS.length - 1;
    } else if (isOperator(whole, i)) {
      operatorEnd = behindOperator(whole, i);
      i = operatorEnd - 1;
    } else if (hasParameters(i)) {
      const inner = behindScope(whole, i);
      if (inner === 0) return whole.slice(begin, i);
      i = inner - 1;
    } else if (c === '(' && !isReceiver(whole, i) && opensDeclarator(whole, i, begin)) {
      inDeclarator = true;
      begin = i + 1;
    } else if (c in CLOSED_BY) {
      const close = closing(whole, i);
      if (close < 0 && c !== '[') break;
      if (close >= 0) i = close;
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
  let short = '', conversionEnd = 0;
  for (let i = 0; i < full.length;) {
    const c = full[i];
    if (full.startsWith(ANONYMOUS, i)) {
      short += ANONYMOUS;
      i += ANONYMOUS.length;
    } else if (isOperator(full, i)) {
      const symbol = symbolAt(full, i);
      if (isConversion(full, i)) conversionEnd = behindOperator(full, i);
      short += symbol;
      i += symbol.length;
    } else if (!isLeftOut(full, i, i < conversionEnd)) {
      short += c;
      ++i;
    } else {
      const close = closing(full, i);
      if (close < 0) return full || whole;
      // "{lambda(int)#1}" is told from another by its number.
      short += c === '{' ? full.slice(i, close + 1).replace(/\(.*\)/s, '') : `${c}..${CLOSED_BY[c]}`;
      i = c === '(' ? Math.max(close + 1, behindScope(full, i)) : close + 1;
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
