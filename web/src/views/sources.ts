// The source tree as rings: a folder around its parent, a file around its folder, a function around
// its file. Beside it the same as a list, for the keyboard and for those who want the numbers.

import { hierarchy, partition, type HierarchyRectangularNode } from 'd3-hierarchy';
import { arc } from 'd3-shape';
import { h, name, svg } from '../dom';
import type { Measure } from '../measures';
import type { Model, View } from '../model';
import { drawnOf, find, sourceTree, type SourceNode } from '../source_tree';
import { PartNote } from '../part_note';
import { alongRadius, fitting } from '../ring_label';
import { share } from '../text';

type Ring = HierarchyRectangularNode<SourceNode>;
const RADIUS = 240;
const RINGS = 6;         // of the tree, at one time
const NARROWEST = 0.004;  // of the circle

const nothing = (text: string) => h('li', {}, h('span', { class: 'empty', style: { 'grid-column': '1 / -1' } }, text));

export class SourcesView implements View {
  readonly id = 'sources';
  readonly title = 'Source tree';
  readonly element: HTMLElement;
  private readonly path = h('nav', { class: 'path', 'aria-label': 'Path in the source tree' });
  private readonly rings = svg('svg', { viewBox: `${-RADIUS} ${-RADIUS} ${2 * RADIUS} ${2 * RADIUS}`, class: 'rings', role: 'img' });
  private readonly list = h('ul', { class: 'bars' });
  private readonly details = h('p', { class: 'details' });

  private readonly part: PartNote;

  constructor(private readonly model: Model) {
    this.part = new PartNote(model);
    this.element = h('div', {}, this.part.element, this.path, h('div', { class: 'columns' },
      h('div', {}, this.rings, this.details), this.list));
  }

  update(): void {
    const { model } = this;
    const { measure, state } = model;
    this.part.update('these');
    this.rings.toggleAttribute('hidden', !measure);
    if (!measure) {
      this.list.replaceChildren(nothing('No site allocated.'));
      return;
    }
    const root = sourceTree(model.stacks, model.sites(), measure.of);
    const way = find(root, state.get('folder'));
    const at = way[way.length - 1];
    this.path.replaceChildren(...way.map((each, i) => i === way.length - 1
      ? h('span', { 'aria-current': 'location' }, name(each.name))
      : this.button(each)));
    const children = [...at.children.values()].sort((a, b) => b.value - a.value), drawn = drawnOf(at);
    this.list.replaceChildren(...children.slice(0, 200).map((each) => h('li', {},
      h('span', { class: 'bar', style: { width: `${each.value > 0 ? (100 * each.value) / children[0].value : 0}%` } }),
      h('span', { class: 'value' }, measure.text(each.value), each.value > 0 && h('small', {}, ` ${share(each.value, drawn)}`)),
      h('span', { class: 'what' }, each.children.size > 0 ? this.button(each) : name(each.name)))));
    this.rings.toggleAttribute('hidden', drawn === 0);
    if (drawn > 0) this.drawRings(at, drawn, measure);
    if (children.length === 0) this.list.append(nothing('No site has anything of it.'));
    const besides = measure.besides?.([drawn, at.value - drawn]) ?? '';
    this.details.textContent = `${at.name}: ${measure.text(at.value)}${besides && `. ${besides}`}`;
  }

  // The name along the radius, where there is room for some of it.
  private label({ x0, x1, depth, data }: Ring, radius: (level: number) => number): SVGTextElement | '' {
    if (depth === 0) return svg('text', {}, fitting(data.name, 2 * alongRadius(0, radius(1) - 1, 2 * Math.PI).to));
    const { from, to } = alongRadius(radius(depth), radius(depth + 1) - 1, x1 - x0);
    const text = fitting(data.name, to - from);
    if (text === '') return '';
    const angle = (x0 + x1) / 2 - Math.PI / 2, middle = (from + to) / 2, degrees = angle * (180 / Math.PI);
    const upright = degrees > 90 ? degrees + 180 : degrees;
    return svg('text', { transform: `translate(${middle * Math.cos(angle)},${middle * Math.sin(angle)}) rotate(${upright})` }, text);
  }

  private button(to: SourceNode): HTMLElement {
    return h('button', { type: 'button', class: 'link', on: { click: () => this.go(to) } }, name(to.name));
  }

  private go(to: SourceNode): void { this.model.state.set({ folder: to.path }, true); }

  private drawRings(at: SourceNode, drawn: number, { text, title, besides }: Measure): void {
    const root = hierarchy(at, (each) => [...each.children.values()].filter((one) => one.value > 0 && one.value >= drawn * NARROWEST))
      // Where some of a folder shrank, the others have its part of the ring by what they have of all that grew in it.
      .eachBefore((each: any) => {
        each.value = each.parent ? (each.parent.value * each.data.value) / Math.max(each.parent.data.value, drawnOf(each.parent.data)) : 1;
      })
      .sort((a, b) => b.data.value - a.data.value) as Ring;
    partition<SourceNode>().size([2 * Math.PI, root.height + 1])(root);
    const levels = Math.min(root.height + 1, RINGS);
    const radius = (level: number) => (RADIUS * Math.min(level, levels)) / levels;
    const shape = arc<Ring>().startAngle((each) => each.x0).endAngle((each) => each.x1)
      .innerRadius((each) => radius(each.depth)).outerRadius((each) => radius(each.depth + 1) - 1).padAngle(0.002);
    this.rings.setAttribute('aria-label', `${title} by source folder, file and function; the list beside it has the figures`);
    this.rings.replaceChildren(...root.descendants().filter((each) => each.depth < levels).map((each) => {
      const hue = Math.round(((each.x0 + each.x1) / (4 * Math.PI)) * 360);
      const path = svg('path', {
        d: shape(each) ?? '', class: each.depth === 0 ? 'middle' : each.data.children.size > 0 ? 'folder' : 'leaf',
        style: { '--hue': String(hue), '--depth': String(each.depth) },
        on: {
          click: () => { if (each.data.children.size > 0) this.go(each.data); },
          pointerover: () => { this.details.textContent = `${each.data.path || 'all'}: ${text(each.data.value)}${besides ? '' : `, ${share(each.data.value, drawn)}`}`; },
        },
      });
      path.append(svg('title', {}, `${each.data.path || 'all'}: ${text(each.data.value)}`));
      return path;
    }), ...root.descendants().filter((each) => each.depth < levels).map((each) => this.label(each, radius)));
  }
}
