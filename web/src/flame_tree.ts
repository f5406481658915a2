// Sites added up along their stacks, for the flame graph: from the outermost frame inwards
// (callees), or from the function that allocated outwards (callers). A function has one box among its
// neighbours, whatever lines of it call. Branches too narrow to be seen are left out before anything
// is laid out, and counted.

import type { Stacks } from './stacks';

export interface FlameNode {
  frame: number;       // that stands for its function, see Stacks.functionOf(); -1: the root
  value: number;
  children: FlameNode[];
}

export interface FlameTree { root: FlameNode; leftOut: number }

export interface Weighed { stack: number; value: number }

// What is narrower than this share of the whole is about a pixel.
const NARROWEST = 1 / 1500;
// More boxes than these nobody looks at, and browsers grow slow; the narrowest are left out.
const MOST = 4000;

// How far stacks have been followed: to a node of the tree of stacks, with what goes through it.
interface Step { at: number; value: number }
type Follow = (step: Step, to: (frame: number, next: Step) => void) => void;

export function calleeTree(stacks: Stacks, sites: Weighed[]): FlameTree {
  const { parent, frameOf } = stacks;
  const values = new Float64Array(parent.length);
  for (const { stack, value } of sites) values[stacks.leaf(stack)] += value;
  for (let node = parent.length - 1; node > 0; --node) values[parent[node]] += values[node];
  // Of each node the first below it, and of each the next beside it.
  const first = new Int32Array(parent.length), next = new Int32Array(parent.length);
  for (let node = parent.length - 1; node > 0; --node) {
    if (values[node] <= 0) continue;
    next[node] = first[parent[node]];
    first[parent[node]] = node;
  }
  return grown(stacks, [{ at: 0, value: values[0] }], ({ at }, to) => {
    for (let node = first[at]; node !== 0; node = next[node]) to(frameOf[node], { at: node, value: values[node] });
  });
}

export function callerTree(stacks: Stacks, sites: Weighed[]): FlameTree {
  const starts: Step[] = [];
  for (const { stack, value } of sites) {
    if (value <= 0) continue;
    let at = stacks.leaf(stack);
    for (let left = stacks.cut(stack).begin; left > 0; --left) at = stacks.parent[at];
    starts.push({ at, value });
  }
  return grown(stacks, starts, ({ at, value }, to) => {
    if (at !== 0) to(stacks.frameOf[at], { at: stacks.parent[at], value });
  });
}

// Branch by branch, so that what is too narrow is not followed any further: the stacks of a
// program that recurses have hundreds of frames each.
function grown(stacks: Stacks, starts: Step[], follow: Follow): FlameTree {
  const root: FlameNode = { frame: -1, value: starts.reduce((sum, { value }) => sum + value, 0), children: [] };
  const least = root.value * NARROWEST;
  let leftOut = 0;
  const open: [FlameNode, Step[]][] = [[root, starts]];
  while (open.length > 0) {
    const [node, steps] = open.pop()!;
    const branches = new Map<number, [FlameNode, Step[]]>();
    for (const step of steps) {
      follow(step, (of, next) => {
        const frame = stacks.functionOf(of);
        let branch = branches.get(frame);
        if (!branch) branches.set(frame, branch = [{ frame, value: 0, children: [] }, []]);
        branch[0].value += next.value;
        branch[1].push(next);
      });
    }
    for (const branch of branches.values()) {
      if (branch[0].value < least) {
        ++leftOut;
        continue;
      }
      node.children.push(branch[0]);
      open.push(branch);
    }
    node.children.sort((a, b) => b.value - a.value);
  }
  return { root, leftOut: leftOut + narrowed(root) };
}

// How many are left out so that not too many are there.
function narrowed(root: FlameNode): number {
  const nodes = [root];
  for (let i = 0; i < nodes.length; ++i) nodes.push(...nodes[i].children);
  if (nodes.length <= MOST) return 0;
  const least = nodes.map((node) => node.value).sort((a, b) => b - a)[MOST];
  let leftOut = 0;
  for (const node of nodes) {
    if (node !== root && node.value <= least) continue;  // is left out itself
    const kept = node.children.filter((child) => child.value > least);
    leftOut += node.children.length - kept.length;
    node.children = kept;
  }
  return leftOut;
}

// Of a subtree that is looked at closely, the branches that were too narrow in the whole: the
// stacks through `path` (functions from the root on) alone.
export function through(stacks: Stacks, sites: Weighed[], path: number[], callers: boolean): Weighed[] {
  if (path.length === 0) return sites;
  return sites.filter(({ stack }) => {
    const frames = stacks.framesOf(stack);
    const along = callers ? frames.slice(stacks.cut(stack).begin) : frames.reverse();
    return path.every((frame, i) => i < along.length && stacks.functionOf(along[i]) === frame);
  });
}
