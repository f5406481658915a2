// A measure by source folder, file and function.

import type { Site } from './data';
import type { Stacks } from './stacks';
import { baseName } from './text';

export interface SourceNode {
  name: string;
  path: string;   // from the root on, with "/"; tells a node from all others
  value: number;  // of all that is in it, also of what is left out
  children: Map<string, SourceNode>;
}

function node(name: string, path: string): SourceNode {
  return { name, path, value: 0, children: new Map() };
}

function child(of: SourceNode, name: string): SourceNode {
  let found = of.children.get(name);
  if (!found) {
    found = node(name, of.path === '' ? name : `${of.path}/${name}`);
    of.children.set(name, found);
  }
  return found;
}

// By the frame that a table names; where no file is known, by module. What shrank is left out, but for folders and files in
// which something grew.
export function sourceTree(stacks: Stacks, sites: Site[], of: (site: Site) => number): SourceNode {
  const root = node('all', '');
  for (const site of sites) {
    const value = of(site);
    if (value === 0) continue;
    const caller = stacks.caller(site.stack);
    const file = caller < 0 ? '' : stacks.file(caller);
    const parts = caller < 0 ? ['[no stack]']
      : file !== '' ? file.split('/').filter((part) => part !== '' && part !== '.')
      : ['[no file]', baseName(stacks.module(caller)) || '[no module]'];
    if (caller >= 0) parts.push(stacks.name(caller));
    root.value += value;
    let at = root;
    for (const part of parts) {
      at = child(at, part);
      at.value += value;
    }
  }
  leaveOut(root);
  return joined(root);
}

function leaveOut(at: SourceNode): void {
  for (const [name, each] of at.children) {
    leaveOut(each);
    if (each.value <= 0 && each.children.size === 0) at.children.delete(name);
  }
}

// What the parts of it that can be drawn have together: more than it has itself, where others of them shrank.
export function drawnOf(at: SourceNode): number {
  return [...at.children.values()].reduce((sum, each) => sum + Math.max(0, each.value), 0);
}

// Folders that have one folder and nothing else in them are one.
function joined(at: SourceNode): SourceNode {
  const children = new Map<string, SourceNode>();
  for (const each of at.children.values()) {
    let below = each;
    while (below.children.size === 1) {
      const [only] = below.children.values();
      if (only.children.size === 0) break;
      below = { ...only, name: `${below.name}/${only.name}` };
    }
    const done = joined(below);
    children.set(done.name, done);
  }
  return { ...at, children };
}

export function find(root: SourceNode, path: string): SourceNode[] {
  const way = [root];
  let at = root;
  while (at.path !== path) {
    const children = [...at.children.values()];
    const next = children.find((each) => path === each.path || path.startsWith(`${each.path}/`));
    if (!next) {
      // It may be one with the only folder that is left in it.
      const longer = children.find((each) => path !== '' && each.path.startsWith(`${path}/`));
      return longer ? [...way, longer] : [root];
    }
    way.push(next);
    at = next;
  }
  return way;
}
