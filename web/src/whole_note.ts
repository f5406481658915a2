// Figures that the tools above do not narrow say so, while something is chosen there.

import { h } from './dom';
import type { Model } from './model';

type Tool = 'filter' | 'time';

export class WholeNote {
  readonly element = h('p', { class: 'note' });

  constructor(private readonly model: Model, private readonly ignored: Tool[] = ['filter', 'time']) {}

  update(): void {
    const text = wholeText(this.model, this.ignored);
    this.element.hidden = text === '';
    this.element.textContent = text === '' ? '' : `${text[0].toUpperCase()}${text.slice(1)}.`;
  }
}

// The same for the line below a table; empty where nothing is chosen that would narrow them.
export function wholeText(model: Model, ignored: Tool[] = ['filter', 'time']): string {
  const { state, ranged } = model;
  const tools = [
    ignored.includes('filter') && state.get('q') !== '' && 'the filter', ignored.includes('time') && ranged && 'the chosen time',
  ].filter((tool) => tool !== false);
  return tools.length === 0 ? ''
    : `figures of ${model.extent}, which ${tools.join(' and ')} ${tools.length > 1 ? 'do' : 'does'} not narrow`;
}
