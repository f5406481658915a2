// Elements without markup: text from a trace only ever becomes a text node. The page's policy
// (trusted types) has the browser refuse everything else.

export type Child = Node | string | number | null | undefined | false;
type Props = {
  class?: string;
  style?: Partial<Record<string, string>>;
  on?: { [event: string]: (event: any) => void };
  [attribute: string]: unknown;
};

function fill<E extends Element>(element: E, props: Props, children: Child[]): E {
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === 'on') {
      for (const [event, handler] of Object.entries(props.on!)) {
        element.addEventListener(event, handler);
      }
    } else if (name === 'style') {
      const style = (element as unknown as HTMLElement).style;
      for (const [property, text] of Object.entries(props.style!)) {
        style.setProperty(property, text ?? '');
      }
    } else {
      element.setAttribute(name, value === true ? '' : String(value));
    }
  }
  append(element, children);
  return element;
}

export function append(element: Element, children: Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K, props: Props = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  return fill(document.createElement(tag), props, children);
}

export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K, props: Props = {}, ...children: Child[]): SVGElementTagNameMap[K] {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', tag), props, children);
}

// A name from the trace, set apart so that its writing direction reorders nothing around it.
export function name(text: string, cls = ''): HTMLElement {
  return h('bdi', { class: `name ${cls}` }, text);
}

// One in little room that has to be all there: it is broken between its parts, and within them only where one has no room.
export function nameInParts(text: string, cls = ''): HTMLElement {
  const [first, ...others] = text.split(/(?<=::|\w[/_,(])/);
  return h('bdi', { class: `name ${cls}` }, first, ...others.flatMap((part) => [h('wbr'), part]));
}
