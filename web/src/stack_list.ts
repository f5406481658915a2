// A stack as a list, innermost frame first; the frames that are rarely read are folded away.

import { h, name } from './dom';
import { ROLE, type Stacks } from './stacks';

function frameItem(stacks: Stacks, frame: number, caller: boolean, onFrame?: (frame: number) => void): HTMLElement {
  const marker = stacks.role(frame) === ROLE.marker;
  const text = name(stacks.name(frame), caller ? 'caller' : '');
  return h('li', { class: marker ? 'marker' : '' },
    onFrame && !marker
      ? h('button', { type: 'button', class: 'link', title: 'Only stacks through this function',
                      on: { click: (event) => { event.stopPropagation(); onFrame(frame); } } }, text)
      : text,
    stacks.inlined(frame) && h('span', { class: 'tag' }, 'inlined'),
    h('span', { class: 'place' }, name(stacks.place(frame, true))));
}

export function stackList(stacks: Stacks, stack: number, onFrame?: (frame: number) => void): HTMLElement {
  const frames = stacks.framesOf(stack);
  if (frames.length === 0) return h('p', {}, 'No stack was recorded.');
  const cut = stacks.cut(stack);
  const items = frames.map((frame, i) => frameItem(stacks, frame, i === cut.caller, onFrame));
  const list = h('ol', { class: 'stack', start: 0, 'aria-label': 'Stack, innermost frame first' }, ...items.slice(cut.begin, cut.end));
  const showAll = () => {
    list.replaceChildren(...items);
    // The button is gone; who used it by keys goes on with what was folded away.
    const first = items[cut.begin > 0 ? 0 : cut.end];
    first.tabIndex = -1;
    first.focus({ preventScroll: true });
  };
  if (cut.end - cut.begin < frames.length) {
    list.append(h('li', { class: 'more' }, h('button', {
      type: 'button', class: 'link', on: { click: (event) => { event.stopPropagation(); showAll(); } },
    }, `show all ${frames.length} frames`)));
  }
  return list;
}
