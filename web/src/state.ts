// What the reader chose, kept in the fragment of the address: who gets the address sees the same.

export interface Choice {
  view: string;
  measure: string;
  from: string;    // seconds; empty: from the beginning
  to: string;
  q: string;       // the filter
  direction: string;  // of the flame graph: "callees" (from main down) or "callers"
  frame: string;   // what the flame graph is zoomed to
  group: string;   // rows of the table of sites
  sort: string;    // "column" or "-column", of the table that is shown
  kinds: string;   // of leaks, separated by commas; empty: all
  folder: string;  // of the source tree
  by: string;      // whose the live heap over time is; empty: that is folded away
}

const DEFAULTS: Choice = {
  view: 'summary', measure: '', from: '', to: '', q: '', direction: 'callees', frame: '',
  group: 'caller', sort: '', kinds: '', folder: '', by: '',
};

type Listener = (changed: Set<keyof Choice>) => void;

export class State {
  private choice: Choice = { ...DEFAULTS };
  private readonly listeners: Listener[] = [];
  private readonly sorts = new Map<string, string>();  // by view, to come back to

  constructor() {
    this.choice = this.read();
    this.sorts.set(this.choice.view, this.choice.sort);
    window.addEventListener('hashchange', () => this.apply(this.read()));
  }

  get<K extends keyof Choice>(key: K): Choice[K] { return this.choice[key]; }

  get from(): number | null { return this.choice.from === '' ? null : Number(this.choice.from); }
  get to(): number | null { return this.choice.to === '' ? null : Number(this.choice.to); }
  get ranged(): boolean { return this.choice.from !== '' || this.choice.to !== ''; }

  // `step`: one that the browser's Back takes back.
  set(change: Partial<Choice>, step = false): void {
    const next = { ...this.choice, ...change };
    const fragment = State.fragment(next);
    if (fragment !== location.hash.slice(1)) {
      const address = `#${fragment}`;
      if (step) history.pushState(null, '', address);
      else history.replaceState(null, '', address);
    }
    this.apply(next);
  }

  // With its table as it was when it was shown before.
  show(view: string): void { this.set({ view, sort: this.sortOf(view) }, true); }

  sortOf(view: string): string { return this.sorts.get(view) ?? ''; }

  subscribe(listener: Listener): void { this.listeners.push(listener); }

  private apply(next: Choice): void {
    const changed = new Set<keyof Choice>();
    for (const key of Object.keys(DEFAULTS) as (keyof Choice)[]) {
      if (next[key] !== this.choice[key]) changed.add(key);
    }
    this.choice = next;
    this.sorts.set(next.view, next.sort);
    if (changed.size > 0) for (const listener of this.listeners) listener(changed);
  }

  private read(): Choice {
    const params = new URLSearchParams(location.hash.slice(1));
    const choice = { ...DEFAULTS };
    for (const key of Object.keys(DEFAULTS) as (keyof Choice)[]) {
      const value = params.get(key);
      if (value !== null) choice[key] = value;
    }
    for (const key of ['from', 'to'] as const) {
      if (choice[key] !== '' && !Number.isFinite(Number(choice[key]))) choice[key] = '';
    }
    return choice;
  }

  private static fragment(choice: Choice): string {
    const params = new URLSearchParams();
    for (const key of Object.keys(DEFAULTS) as (keyof Choice)[]) {
      if (choice[key] !== DEFAULTS[key]) params.set(key, choice[key]);
    }
    return params.toString();
  }
}
