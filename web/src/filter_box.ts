// The field above the tables: what is typed goes into the page's state, a moment after the last key, or
// at once when something else is turned to.

import { h } from './dom';
import { patternError } from './stacks';
import type { State } from './state';

const DELAY_MS = 150;

export class FilterBox {
  readonly element: HTMLElement;
  private readonly input: HTMLInputElement;
  private readonly error = h('span', { class: 'error', id: 'filter-error', role: 'status' });
  private timer = 0;  // 0: what is in the field is in the state

  // `besides`: what else the state has then.
  constructor(private readonly state: State, private readonly besides: { [key: string]: string } = {}) {
    const flush = () => this.flush();
    this.input = h('input', {
      type: 'search', id: 'filter', placeholder: 'function, file or module; /regex/; =function', spellcheck: 'false', autocomplete: 'off',
      'aria-describedby': 'filter-error',
      on: { change: flush, blur: flush, input: () => {
        clearTimeout(this.timer);
        this.timer = window.setTimeout(flush, DELAY_MS);
      } },
    });
    this.element = h('span', { class: 'filter' }, h('label', { for: 'filter' }, 'Filter'), ' ', this.input, ' ', this.error);
  }

  update(): void {
    const query = this.state.get('q');
    if (this.timer === 0 && this.input.value !== query) this.input.value = query;
    const error = patternError(query);
    this.error.textContent = error;
    this.input.setAttribute('aria-invalid', String(error !== ''));
  }

  private flush(): void {
    if (this.timer === 0) return;
    clearTimeout(this.timer);
    this.timer = 0;
    this.state.set({ ...this.besides, q: this.input.value });
  }
}
