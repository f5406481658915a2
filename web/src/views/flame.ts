// The flame graph, both ways, by the measure that is chosen.

import { h, name } from '../dom';
import { FlameChart } from '../flame_chart';
import { calleeTree, callerTree, through, type FlameNode, type Weighed } from '../flame_tree';
import type { Model, View } from '../model';
import { PartNote } from '../part_note';
import { ROLE } from '../stacks';
import { plural, share } from '../text';

const HUES = ['project', 'system', 'allocator', 'start', 'start', 'marker'];

// What the colours mean.
const LEGEND: [string, string][] = [
  ['project', 'the program and its libraries'], ['system', 'libraries of the system'], ['allocator', 'allocates for its caller'],
  ['start', 'starts main or a thread'], ['marker', 'where a stack ends, and why'],
];

const added = (sites: Weighed[]) => sites.reduce((sum, site) => sum + site.value, 0);

export class FlameView implements View {
  readonly id = 'flame';
  readonly title = 'Flame graph';
  readonly element: HTMLElement;
  private readonly chart: FlameChart;
  private readonly empty = h('p', { class: 'empty' });
  private readonly buttons: [string, HTMLInputElement][];
  private readonly besides = h('p', { class: 'note' });
  private readonly gone = h('p', { class: 'note', role: 'status' });
  private readonly leftOut = h('p', { class: 'note' });
  private readonly part: PartNote;
  private total = 0;  // of "all"

  constructor(private readonly model: Model) {
    const { stacks, state } = model;
    this.part = new PartNote(model);
    this.chart = new FlameChart({
      label: (node) => (node.frame < 0 ? 'all' : stacks.name(node.frame)),
      describe: (node) => this.describe(node),
      hue: (node) => (node.frame < 0 ? 'start' : HUES[stacks.role(node.frame)]),
      onZoom: (path) => state.set({ frame: path.join('.') }, true),
    });
    const radio = (value: string, text: string) => {
      const input = h('input', { type: 'radio', name: 'direction', value,
                                 on: { change: () => state.set({ direction: value, frame: '' }, true) } });
      this.buttons.push([value, input]);
      return h('label', {}, input, ` ${text}`);
    };
    this.buttons = [];
    this.element = h('div', {},
      h('fieldset', { class: 'choice' }, h('legend', {}, 'Direction'),
        radio('callees', 'from main down to the allocation'), radio('callers', 'from the allocation up to its callers')),
      this.empty, this.part.element, this.besides, this.gone, this.chart.element, this.leftOut, this.legend());
  }

  // Of the colours that stacks of the page have.
  private legend(): HTMLElement {
    const { stacks } = this.model, used = new Set<string>();
    for (let frame = 0; frame < stacks.frames; ++frame) used.add(HUES[stacks.role(frame)]);
    return h('ul', { class: 'legend', 'aria-label': 'Colours of the flame graph' }, ...LEGEND.filter(([hue]) => used.has(hue))
      .map(([hue, words]) => h('li', {}, h('span', { class: `swatch ${hue}`, 'aria-hidden': 'true' }), words)));
  }

  update(): void {
    const { model } = this;
    const { state, stacks, measure } = model;
    const callers = state.get('direction') === 'callers';
    for (const [value, input] of this.buttons) input.checked = (value === 'callers') === callers;
    const changes = measure ? model.sites().map((site) => ({ stack: site.stack, value: measure.of(site) })) : [];
    // No box can be narrower than nothing, so that what shrank is left out stack by stack.
    const besides = measure?.besides?.(changes.map(({ value }) => value), 'other stacks shrank, which may be of functions that are drawn') ?? '';
    this.besides.textContent = besides;
    this.besides.hidden = besides === '';
    const sites = changes.map(({ stack, value }) => ({ stack, value: Math.max(0, value) }));
    const sum = added(sites);
    this.chart.element.hidden = this.leftOut.hidden = sum === 0;
    this.empty.hidden = sum > 0;
    this.empty.textContent = measure ? 'No site has anything of it.' : 'No site allocated.';
    this.gone.hidden = true;
    const known = measure && model.all(measure);
    this.part.update(known == null ? 'these' : 'all');
    this.part.element.hidden ||= sum === 0;
    if (sum === 0) return;
    this.total = Math.max(sum, known ?? 0);
    const path = state.get('frame').split('.').filter((part) => part !== '').map(Number)
      .filter((frame) => Number.isInteger(frame) && frame >= 0 && frame < stacks.frames).map((frame) => stacks.functionOf(frame));
    const wanted = [...path];
    // What was looked at closely may have nothing of another measure, of another time or behind a filter.
    while (path.length > 0 && added(through(stacks, sites, path, callers)) === 0) path.pop();
    const within = through(stacks, sites, path, callers);
    const { root, leftOut } = (callers ? callerTree : calleeTree)(stacks, within);
    this.gone.hidden = path.length === wanted.length;
    if (!this.gone.hidden) {
      this.gone.replaceChildren('Nothing of it is left in ', name(stacks.name(wanted[wanted.length - 1])), ', which was looked at closely: this is what is around it.');
    }
    this.leftOut.textContent = leftOut === 0 ? '' : `Too narrow to be drawn: ${plural(leftOut, 'branch', 'branches')}.`;
    if (path.length === 0) root.value = this.total;  // the sites that are not in the page have the rest of its width
    // Of the boxes above, what they have in all, not what leads through the path.
    const above = path.map((_, level) => (level === 0 ? this.total : added(through(stacks, sites, path.slice(0, level), callers))));
    this.chart.draw(root, path, path.map((frame) => stacks.name(frame)), above);
  }

  private describe(node: FlameNode): string {
    const { stacks, measure } = this.model;
    const figures = `${measure!.text(node.value)}, ${share(node.value, this.total)}`;
    if (node.frame < 0) return `all: ${measure!.title.toLowerCase()} ${measure!.text(node.value)}`;
    const place = stacks.functionPlace(node.frame);
    const role = stacks.role(node.frame) === ROLE.marker ? ', where the stack ends' : '';
    return `${stacks.name(node.frame)}${place ? ` (${place})` : ''}: ${figures}${role}`;
  }
}
