// The field above the tables: what is typed goes into the page's state, a moment after the last key.

import { h } from './dom';
import { patternError } from './stacks';
import type { State } from './state';

const DELAY_MS = 150;

export class FilterBox {
  readonly element: HTMLElement;
  private readonly input: HTMLInputElement;
  private readonly error = h('span', { class: 'error', id: 'filter-error', role: 'status' });
  private timer = 0;

  // `besides`: what else the state has then.
  constructor(private readonly state: State, besides: { [key: string]: string } = {}) {
    this.input = h('input', {
      type: 'search', id: 'filter', placeholder: 'function, file or module; /regex/; =function', spellcheck: 'false', autocomplete: 'off',
      'aria-describedby': 'filter-error',
      on: { input: () => {
        clearTimeout(this.timer);
        this.timer = window.setTimeout(() => state.set({ ...besides, q: this.input.value }), DELAY_MS);
      } },
    });
    this.element = h('span', {}, h('label', { for: 'filter' }, 'Filter'), ' ', this.input, ' ', this.error);
  }

  update(): void {
    const query = this.state.get('q');
    if (document.activeElement !== this.input) this.input.value = query;
    const error = patternError(query);
    this.error.textContent = error;
    this.input.setAttribute('aria-invalid', String(error !== ''));
  }
}
