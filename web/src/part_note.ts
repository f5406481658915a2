// Where a page does not have all sites, what is added up over sites is of some: it says so in place.

import { h } from './dom';
import type { Model } from './model';
import { count, plural } from './text';

// `shares`: of whom those are that stand beside the figures.
export function partText(model: Model, shares?: 'all' | 'these'): string {
  const { sites, sites_total } = model.report;
  if (sites_total <= sites.length) return '';
  return `Of the ${plural(sites.length, 'site')} in this page, of ${count(sites_total)}.` +
    (shares === undefined ? '' : ` Shares are of ${shares === 'all' ? `all ${count(sites_total)}` : 'these'}.`);
}

// Behind the number of rows of a table that lacks `more`.
export function moreText(more: number): string {
  return more > 0 ? `; ${count(more)} more are not in this page: memtrace report --full` : '';
}

export class PartNote {
  readonly element = h('p', { class: 'note' });

  constructor(private readonly model: Model) {}

  update(shares?: 'all' | 'these'): void {
    this.element.textContent = partText(this.model, shares);
    this.element.hidden = this.element.textContent === '';
  }
}
