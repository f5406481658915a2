// Sites added up along their stacks, for the flame graph: from the outermost frame inwards
// (callees), or from the function that allocated outwards (callers). Branches too narrow to be seen
// are left out before anything is laid out.

import type { Stacks } from './stacks';

export interface FlameNode {
  frame: number;       // -1: the root
  value: number;
  children: FlameNode[];
}

export interface Weighed { stack: number; value: number }

// What is narrower than this share of the whole is about a pixel.
const NARROWEST = 1 / 1500;
// More boxes than these nobody looks at, and browsers grow slow; the narrowest are left out.
const MOST = 4000;

export function calleeTree(stacks: Stacks, sites: Weighed[]): FlameNode {
  const { parent, frameOf } = stacks;
  const values = new Float64Array(parent.length);
  for (const { stack, value } of sites) values[stacks.leaf(stack)] += value;
  for (let node = parent.length - 1; node > 0; --node) values[parent[node]] += values[node];
  return widest(pruned(parent, frameOf, values));
}

// Branch by branch, so that what is too narrow is not followed any further: the stacks of a
// program that recurses have hundreds of frames each.
export function callerTree(stacks: Stacks, sites: Weighed[]): FlameNode {
  const root: FlameNode = { frame: -1, value: 0, children: [] };
  const starts: Step[] = [];
  for (const { stack, value } of sites) {
    if (value <= 0) continue;
    root.value += value;
    let at = stacks.leaf(stack);
    for (let left = stacks.cut(stack).begin; left > 0; --left) at = stacks.parent[at];
    starts.push({ at, value });
  }
  const least = root.value * NARROWEST;
  const open: [FlameNode, Step[]][] = [[root, starts]];
  while (open.length > 0) {
    const [node, steps] = open.pop()!;
    const branches = new Map<number, [FlameNode, Step[]]>();
    for (const { at, value } of steps) {
      if (at === 0) continue;  // it ends here
      const frame = stacks.frameOf[at];
      let branch = branches.get(frame);
      if (!branch) branches.set(frame, branch = [{ frame, value: 0, children: [] }, []]);
      branch[0].value += value;
      branch[1].push({ at: stacks.parent[at], value });
    }
    for (const branch of branches.values()) {
      if (branch[0].value < least) continue;
      node.children.push(branch[0]);
      open.push(branch);
    }
    node.children.sort((a, b) => b.value - a.value);
  }
  return widest(root);
}

// Where a stack has been followed to: a node of the tree of stacks.
interface Step { at: number; value: number }

// `parent` of each node comes before it.
function pruned(parent: number[], frameOf: number[], values: Float64Array): FlameNode {
  const root: FlameNode = { frame: -1, value: values[0], children: [] };
  const nodes = new Map<number, FlameNode>([[0, root]]);
  const least = values[0] * NARROWEST;
  for (let i = 1; i < parent.length; ++i) {
    if (values[i] <= 0 || values[i] < least) continue;
    const above = nodes.get(parent[i]);
    if (!above) continue;
    const node = { frame: frameOf[i], value: values[i], children: [] };
    above.children.push(node);
    nodes.set(i, node);
  }
  for (const node of nodes.values()) node.children.sort((a, b) => b.value - a.value);
  return root;
}

function widest(root: FlameNode): FlameNode {
  const nodes = [root];
  for (let i = 0; i < nodes.length; ++i) nodes.push(...nodes[i].children);
  if (nodes.length <= MOST) return root;
  const least = nodes.map((node) => node.value).sort((a, b) => b - a)[MOST];
  for (const node of nodes) node.children = node.children.filter((child) => child.value > least);
  return root;
}

// Of a subtree that is looked at closely, the branches that were too narrow in the whole: the
// stacks through `path` (frames from the root on) alone.
export function through(stacks: Stacks, sites: Weighed[], path: number[], callers: boolean): Weighed[] {
  if (path.length === 0) return sites;
  return sites.filter(({ stack }) => {
    const frames = stacks.framesOf(stack);
    const along = callers ? frames.slice(stacks.cut(stack).begin) : frames.reverse();
    return path.every((frame, i) => along[i] === frame);
  });
}
