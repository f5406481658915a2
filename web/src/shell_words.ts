// A command as one would type it, quoted as in report/render/shell_words.h: plainly, or with $'...' where it has what
// would not show. So a word is needed as it was, and not as the page shows it.

import { isHidden } from './text';

const PLAIN = /^[\w@%+=:,./-]+$/;

// "\xe2\x80\xae": a shell has bytes.
function escaped(character: string): string {
  const bytes = new TextEncoder().encode(character);
  return Array.from(bytes, (byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('');
}

function shellWord(word: string): string {
  if (PLAIN.test(word)) return word;
  const characters = [...word], hidden = (character: string) => isHidden(character.charCodeAt(0));
  if (!characters.some(hidden)) return `'${word.replaceAll("'", "'\\''")}'`;
  return `$'${characters.map((one) => (hidden(one) ? escaped(one) : /[\\']/.test(one) ? `\\${one}` : one)).join('')}'`;
}

export const shellCommand = (words: string[]) => words.map(shellWord).join(' ');

// The words of the command of a report, from its document as text: there the first member of this name is that, for a
// quote within a string has a backslash before it.
export function commandOf(json: string): string[] {
  const found = /"command":\s*(\[(?:[^"\]]|"(?:[^"\\]+|\\.)*")*\])/.exec(json);
  return found ? JSON.parse(found[1]) : [];
}
