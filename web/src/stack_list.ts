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
  const list = h('ol', { class: 'stack', start: 0, 'aria-label': 'Stack, innermost frame first' });
  const fill = (whole: boolean) => {
    const shown = whole ? frames : frames.slice(cut.begin, cut.end);
    const first = whole ? 0 : cut.begin;
    list.replaceChildren(...shown.map((frame, i) =>
      frameItem(stacks, frame, first + i === cut.caller, onFrame)));
    const hidden = frames.length - shown.length;
    if (hidden > 0) {
      list.append(h('li', { class: 'more' }, h('button', {
        type: 'button', class: 'link',
        on: { click: (event) => { event.stopPropagation(); fill(true); } },
      }, `show all ${frames.length} frames`)));
    }
  };
  fill(false);
  return list;
}
