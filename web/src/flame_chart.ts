// A flame graph as boxes of text: laid out by d3-hierarchy, in percent, so that it fits any width
// and prints. A tree for screen readers and the keyboard: arrows move along it, Enter looks closer,
// Escape and Backspace step back.

import { hierarchy, partition, type HierarchyRectangularNode } from 'd3-hierarchy';
import { h } from './dom';
import type { FlameNode } from './flame_tree';

export interface FlameOptions {
  label: (node: FlameNode) => string;      // within the box
  describe: (node: FlameNode) => string;   // the same, with its figures
  hue: (node: FlameNode) => string;        // a class
  onZoom: (path: number[]) => void;        // frames from the root on; [] is the whole
}

type Box = HierarchyRectangularNode<FlameNode>;
const ROW = 20;

export class FlameChart {
  readonly element: HTMLElement;
  private readonly options: FlameOptions;
  private readonly boxes: HTMLElement;
  private readonly details: HTMLElement;
  private readonly path: HTMLElement;
  private zoomed: number[] = [];
  private byElement = new Map<Element, Box>();
  private elements = new Map<Box, HTMLElement>();

  constructor(options: FlameOptions) {
    this.options = options;
    this.path = h('nav', { class: 'path', 'aria-label': 'Path in the flame graph' });
    this.boxes = h('div', { class: 'flame', role: 'tree', 'aria-label': 'Flame graph' });
    this.details = h('p', { class: 'details', 'aria-live': 'polite' });
    this.element = h('div', {}, this.path, this.details, h('div', { class: 'flame-scroller' }, this.boxes));
    this.boxes.addEventListener('click', (event) => this.onClick(event));
    this.boxes.addEventListener('keydown', (event) => this.onKey(event));
    this.boxes.addEventListener('focusin', (event) => this.tell(event.target as Element));
    this.boxes.addEventListener('pointerover', (event) => this.tell(event.target as Element));
  }

  // `root` is what `path` leads to, below it what is there; `values` are those of the boxes above it.
  draw(root: FlameNode, path: number[], pathNames: string[], values: number[]): void {
    this.zoomed = path;
    let at = root;
    const above: FlameNode[] = [];
    for (const frame of path) {
      const next = at.children.find((child) => child.frame === frame);
      if (!next) break;
      above.push({ ...at, value: values[above.length] });
      at = next;
    }
    const layout = partition<FlameNode>()(this.sized(at));
    const depth = above.length + layout.height + 1;
    this.byElement.clear();
    this.elements.clear();
    const drawn: HTMLElement[] = above.map((node, level) => this.ancestor(node, level));
    layout.each((box) => {
      const element = this.box(box, above.length);
      this.byElement.set(element, box);
      this.elements.set(box, element);
      drawn.push(element);
    });
    this.boxes.replaceChildren(...drawn);
    this.boxes.style.height = `${depth * ROW}px`;
    this.elements.get(layout)!.tabIndex = 0;
    this.drawPath(pathNames);
    this.details.textContent = this.options.describe(at);
  }

  private sized(data: FlameNode): Box {
    // A node's own value is what the rest of its width shows.
    return hierarchy(data).each((node: any) => { node.value = node.data.value; }) as Box;
  }

  private ancestor(node: FlameNode, level: number): HTMLElement {
    const element = h('div', {
      class: `box above ${this.options.hue(node)}`, role: 'presentation', title: this.options.describe(node),
      style: { left: '0', width: '100%', top: `${level * ROW}px` },
      on: { click: () => this.options.onZoom(this.zoomed.slice(0, level)) },
    }, this.options.label(node));
    return element;
  }

  private box(box: Box, offset: number): HTMLElement {
    const node = box.data;
    const siblings = box.parent?.children ?? [box];
    const width = 100 * (box.x1 - box.x0);
    return h('div', {
      class: `box ${this.options.hue(node)}`,
      role: 'treeitem', tabindex: '-1', 'aria-level': box.depth + 1,
      'aria-setsize': siblings.length, 'aria-posinset': siblings.indexOf(box) + 1,
      'aria-expanded': box.children ? 'true' : null,
      'aria-label': this.options.describe(node), title: this.options.describe(node),
      style: {
        left: `${(100 * box.x0).toFixed(4)}%`, width: `${width.toFixed(4)}%`,
        top: `${(offset + box.depth) * ROW}px`,
      },
    }, width > 0.7 ? this.options.label(node) : '');
  }

  private drawPath(names: string[]): void {
    const parts = ['all', ...names];
    this.path.replaceChildren(...parts.map((text, i) => i === parts.length - 1
      ? h('span', { 'aria-current': 'location' }, h('bdi', {}, text))
      : h('button', { type: 'button', class: 'link', on: { click: () => { this.options.onZoom(this.zoomed.slice(0, i)); this.focusFirst(); } } },
          h('bdi', {}, text))));
    this.path.hidden = names.length === 0;
  }

  private boxOf(element: Element | null): Box | undefined {
    const found = element?.closest('.box');
    return found ? this.byElement.get(found) : undefined;
  }

  private tell(element: Element): void {
    const box = this.boxOf(element);
    if (box) this.details.textContent = this.options.describe(box.data);
  }

  private zoom(box: Box): void {
    const below = box.ancestors().reverse().slice(1).map((each) => each.data.frame);
    this.options.onZoom([...this.zoomed, ...below]);
  }

  private onClick(event: Event): void {
    const box = this.boxOf(event.target as Element);
    if (box) this.zoom(box);
    this.focusFirst();  // what was clicked is gone
  }

  private onKey(event: KeyboardEvent): void {
    const box = this.boxOf(event.target as Element);
    if (!box) return;
    const siblings = box.parent?.children ?? [box];
    const place = siblings.indexOf(box);
    const goals: { [key: string]: Box | null | undefined } = {
      ArrowDown: box.children?.[0], ArrowUp: box.parent,
      ArrowRight: siblings[place + 1], ArrowLeft: siblings[place - 1],
      Home: siblings[0], End: siblings[siblings.length - 1],
    };
    if (event.key in goals) {
      event.preventDefault();
      const goal = goals[event.key];
      if (goal) this.focus(goal, box);
    } else if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      this.zoom(box);
      this.focusFirst();
    } else if (event.key === 'Escape' || event.key === 'Backspace') {
      event.preventDefault();
      if (this.zoomed.length > 0) this.options.onZoom(this.zoomed.slice(0, -1));
      this.focusFirst();
    }
  }

  private focus(goal: Box, from: Box): void {
    this.elements.get(from)!.tabIndex = -1;
    const element = this.elements.get(goal)!;
    element.tabIndex = 0;
    element.focus();
  }

  private focusFirst(): void {
    this.boxes.querySelector<HTMLElement>('[tabindex="0"]')?.focus({ preventScroll: true });
  }
}
