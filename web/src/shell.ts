// Tabs: a list of views of which one is shown, all of them on paper.

import { h } from './dom';
import type { View } from './model';
import type { State } from './state';

interface Parts { header: HTMLElement; above: HTMLElement[]; below: HTMLElement }

// Above the views, and printed with them.
interface Above { setWhole(whole: boolean): void }

export class Shell {
  readonly element: HTMLElement;
  private readonly tabs = new Map<View, HTMLButtonElement>();
  private readonly panels = new Map<View, HTMLElement>();
  private printing = false;

  constructor(private readonly views: View[], private readonly state: State, parts: Parts, private readonly above: Above) {
    const list = h('div', { role: 'tablist', 'aria-label': 'Views', on: { keydown: (event) => this.onKey(event) } });
    const panels: HTMLElement[] = [];
    for (const view of views) {
      const tab = h('button', {
        type: 'button', role: 'tab', id: `tab-${view.id}`, 'aria-controls': `panel-${view.id}`,
        on: { click: () => state.show(view.id) },
      }, view.title);
      const panel = h('div', { role: 'tabpanel', id: `panel-${view.id}`, 'aria-labelledby': `tab-${view.id}` },
        h('h2', {}, view.title), view.element);
      this.tabs.set(view, tab);
      this.panels.set(view, panel);
      list.append(tab);
      panels.push(panel);
    }
    this.element = h('div', { class: 'page' }, parts.header, ...parts.above, h('main', {}, list, ...panels),
      parts.below);
    window.addEventListener('beforeprint', () => this.print(true));
    window.addEventListener('afterprint', () => this.print(false));
  }

  private get shown(): View {
    return this.views.find((view) => view.id === this.state.get('view')) ?? this.views[0];
  }

  update(): void {
    const shown = this.shown;
    for (const view of this.views) {
      const tab = this.tabs.get(view)!;
      tab.setAttribute('aria-selected', String(view === shown));
      tab.tabIndex = view === shown ? 0 : -1;
      this.panels.get(view)!.hidden = !this.printing && view !== shown;
      if (this.printing || view === shown) view.update();
    }
  }

  private print(printing: boolean): void {
    this.printing = printing;
    for (const view of [this.above, ...this.views]) view.setWhole?.(printing);
    this.update();
  }

  private onKey(event: KeyboardEvent): void {
    const at = this.views.indexOf(this.shown);
    const goals: { [key: string]: number } = {
      ArrowRight: (at + 1) % this.views.length,
      ArrowLeft: (at + this.views.length - 1) % this.views.length,
      Home: 0, End: this.views.length - 1,
    };
    if (!(event.key in goals)) return;
    event.preventDefault();
    const view = this.views[goals[event.key]];
    this.state.show(view.id);
    this.tabs.get(view)!.focus();
  }
}

interface Licence { name: string; version: string; license: string; text: string }

export function about(version: string): HTMLElement {
  const licences: Licence[] = JSON.parse(document.getElementById('licences')!.textContent!);
  return h('footer', {}, `memtrace ${version}. The address of this page holds what was chosen. `,
    h('details', {}, h('summary', {}, 'Licences of what the page is made with'),
      ...licences.map((one) => h('section', {}, h('h3', {}, `${one.name} ${one.version} (${one.license})`), h('pre', {}, one.text)))));
}
