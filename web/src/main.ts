// The page begins: reads the document that is in it, and shows it.

import { showCompare } from './compare';
import { readDocument } from './data';
import { h } from './dom';
import { showDiff } from './diff';
import { showReport } from './report';
import { State } from './state';
import { ThemeChoice } from './theme';

async function begin(root: HTMLElement): Promise<void> {
  const theme = new ThemeChoice((onClick) =>
    h('button', { type: 'button', class: 'theme', on: { click: onClick } }));
  try {
    const data = await readDocument(document.getElementById('data')!.textContent!.trim());
    document.getElementById('data')!.remove();
    const state = new State();
    switch (data.kind) {
      case 'report': showReport(root, data, state, theme); break;
      case 'diff': showDiff(root, data, state, theme); break;
      case 'compare': showCompare(root, data, state, theme); break;
    }
    document.documentElement.dataset.ready = 'true';
  } catch (error) {
    root.replaceChildren(h('p', { role: 'alert', class: 'failure' },
      `This report cannot be shown: ${error instanceof Error ? error.message : error}`));
    throw error;
  }
}

void begin(document.getElementById('app')!);
