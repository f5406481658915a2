// Light or dark: what the system says, until the reader says otherwise. Kept for this page's
// visit only; a file has no storage of its own.

type Theme = 'auto' | 'light' | 'dark';
const NEXT: { [theme in Theme]: Theme } = { auto: 'light', light: 'dark', dark: 'auto' };
const dark = matchMedia('(prefers-color-scheme: dark)');

export class ThemeChoice {
  private theme: Theme = 'auto';
  readonly button: HTMLButtonElement;
  private readonly listeners: (() => void)[] = [];

  constructor(makeButton: (onClick: () => void) => HTMLButtonElement) {
    this.button = makeButton(() => this.choose(NEXT[this.theme]));
    dark.addEventListener('change', () => this.tell());
    window.addEventListener('beforeprint', () => this.show('light'));  // paper is
    window.addEventListener('afterprint', () => this.show(this.theme));
    this.choose('auto');
  }

  subscribe(listener: () => void): void { this.listeners.push(listener); }

  private choose(theme: Theme): void {
    this.theme = theme;
    this.button.textContent = { auto: '◐ Auto', light: '☀ Light', dark: '☾ Dark' }[theme];
    this.button.setAttribute('aria-label', `Colours: ${theme}; press for ${NEXT[theme]}`);
    this.show(theme);
  }

  private show(theme: Theme): void {
    if (theme === 'auto') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    this.tell();
  }

  private tell(): void { for (const listener of this.listeners) listener(); }
}

// A colour of style.css, for what is drawn on a canvas.
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
