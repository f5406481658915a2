// The stacks of the document: a tree of frames, its root above the outermost frames.

import type { Tables } from './data';
import { baseName } from './text';

export const ROLE = { project: 0, system: 1, allocator: 2, start: 3, invoker: 4, marker: 5 } as const;

export class Stacks {
  readonly parent: number[];
  readonly frameOf: number[];
  readonly frames: number;
  private readonly functions: Int32Array;   // by frame
  private readonly severalLines = new Set<number>();  // functions
  private matched = new Map<string, Uint8Array>();

  constructor(private readonly tables: Tables) {
    this.parent = tables.nodes.parent;
    this.frameOf = tables.nodes.frame;
    this.frames = tables.frames.name.length;
    this.functions = new Int32Array(this.frames);
    const { name, file, module, line } = tables.frames;
    const known = new Map<string, number>();
    for (let i = 0; i < this.frames; ++i) {
      const key = `${name[i]} ${file[i]} ${module[i]}`;
      const first = known.get(key) ?? i;
      if (first === i) known.set(key, i);
      else if (line[first] !== line[i]) this.severalLines.add(first);
      this.functions[i] = first;
    }
  }

  leaf(stack: number): number { return this.tables.stacks.node[stack]; }
  name(frame: number): string { return this.text(this.tables.frames.name[frame]); }
  module(frame: number): string { return this.text(this.tables.frames.module[frame]); }
  file(frame: number): string { return this.text(this.tables.frames.file[frame]); }
  line(frame: number): number { return this.tables.frames.line[frame]; }
  role(frame: number): number { return this.tables.frames.flags[frame] & 7; }
  inlined(frame: number): boolean { return (this.tables.frames.flags[frame] & 8) !== 0; }

  // The first frame of the same function, whatever its line.
  functionOf(frame: number): number { return this.functions[frame]; }

  // As place(), without a line where the function has several.
  functionPlace(frame: number): string {
    return this.severalLines.has(this.functionOf(frame)) ? baseName(this.file(frame)) : this.place(frame);
  }

  // "file.c:12", or the module where no file is known.
  place(frame: number, whole = false): string {
    const file = this.file(frame), line = this.line(frame);
    if (file) return (whole ? file : baseName(file)) + (line ? `:${line}` : '');
    const module = baseName(this.module(frame));
    return module && !this.name(frame).startsWith(`${module}+`) ? module : '';
  }

  // Innermost first.
  framesOf(stack: number): number[] {
    const frames = [];
    for (let node = this.leaf(stack); node !== 0; node = this.parent[node]) {
      frames.push(this.frameOf[node]);
    }
    return frames;
  }

  // The part of framesOf() that is worth reading, and the frame that a table names.
  cut(stack: number): { begin: number; end: number; caller: number } {
    const { begin, end, caller } = this.tables.stacks;
    return { begin: begin[stack], end: end[stack], caller: caller[stack] };
  }

  // -1: there is no stack.
  caller(stack: number): number {
    let node = this.leaf(stack);
    if (node === 0) return -1;
    for (let i = this.tables.stacks.caller[stack]; i > 0; --i) node = this.parent[node];
    return this.frameOf[node];
  }

  callerName(stack: number): string {
    const frame = this.caller(stack);
    return frame < 0 ? '[no stack]' : this.name(frame);
  }

  callerPlace(stack: number, whole = false): string {
    const frame = this.caller(stack);
    return frame < 0 ? '' : this.place(frame, whole);
  }

  // What a table of callers tells apart.
  callerText(stack: number): string {
    const place = this.callerPlace(stack);
    return this.callerName(stack) + (place ? ` ${place}` : '');
  }

  // By node: whether it or a frame further out has the text in its function, file or module.
  // /.../ is a regular expression, =... the whole name of a function, all else is looked for as it is; case matters
  // for the name of a function alone.
  matchingNodes(query: string): Uint8Array {
    const known = this.matched.get(query);
    if (known) return known;
    const test = matcher(query), named = isFunction(query);
    const frames = new Uint8Array(this.frames);
    for (let i = 0; i < this.frames; ++i) {
      frames[i] = test(this.name(i)) || (!named && (test(this.file(i)) || test(this.module(i)))) ? 1 : 0;
    }
    const nodes = new Uint8Array(this.parent.length);
    for (let i = 1; i < nodes.length; ++i) {
      nodes[i] = frames[this.frameOf[i]] | nodes[this.parent[i]];
    }
    this.matched.clear();
    this.matched.set(query, nodes);
    return nodes;
  }

  private text(index: number): string { return this.tables.strings[index]; }
}

// The query for all stacks through a function, whatever its name looks like.
export function functionQuery(name: string): string { return `=${name}`; }

function isFunction(query: string): boolean { return query.length > 1 && query.startsWith('='); }

// The expression of /.../, or why it is none; null: the query is no such.
function expressionOf(query: string): RegExp | string | null {
  const pattern = /^\/(.+)\/$/.exec(query);
  if (!pattern) return null;
  try {
    return new RegExp(pattern[1], 'i');
  } catch (error) {
    return (error as Error).message;
  }
}

// Empty: it is a pattern, or the query is no such.
export function patternError(query: string): string {
  const expression = expressionOf(query);
  return typeof expression === 'string' ? `${expression}; it is looked for as it is` : '';
}

export function matcher(query: string): (text: string) => boolean {
  if (isFunction(query)) return (text) => text === query.slice(1);
  const expression = expressionOf(query);
  if (expression instanceof RegExp) return (text) => expression.test(text);
  const lower = query.toLowerCase();  // also of an expression that is half typed
  return (text) => text.toLowerCase().includes(lower);
}
