// What names and numbers look like.

// Code units that do not show what they are: controls, marks that reorder or hide text, tags.
const HIDDEN = /^(00[01].|007f|00[89].|00ad|061c|180e|200[b-f]|202[89a-e]|206.|d83b|db40|feff|fff[9ab])$/;
const SHORT: { [letter: string]: string } =
  { b: '08', t: '09', n: '0a', f: '0c', r: '0d' };

// JSON text in ASCII, with every escape of a character that would not show made visible: the
// string "a\u202eb" becomes one that reads a\u202eb. So it holds for everything in the document.
export function showHidden(json: string): string {
  return json.replace(/\\(?:u([0-9a-fA-F]{4})|(.))/g, (all, code, letter) => {
    if (letter !== undefined) return letter in SHORT ? `\\\\x${SHORT[letter]}` : all;
    const lower = code.toLowerCase();
    if (!HIDDEN.test(lower)) return all;
    return lower.startsWith('00') ? `\\\\x${lower.slice(2)}` : `\\\\u${lower}`;
  });
}

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

function threeDigits(value: number): string {
  return value >= 99.95 ? value.toFixed(0) : value >= 9.995 ? value.toFixed(1) : value.toFixed(2);
}

export function bytes(value: number): string {
  const size = Math.abs(value);
  if (size < 1024) return `${Math.round(value)} B`;
  let unit = 0, scaled = size;
  while (scaled >= 1023.5 && unit < UNITS.length - 1) {
    scaled /= 1024;
    ++unit;
  }
  return `${value < 0 ? '-' : ''}${threeDigits(scaled)} ${UNITS[unit]}`;
}

const COUNT = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });
export function count(value: number): string {
  return COUNT.format(value);
}

export function plural(value: number, noun: string, nouns = `${noun}s`): string {
  return `${count(value)} ${value === 1 ? noun : nouns}`;
}

// "999", "36.4k", "1.23M".
function shortCount(value: number): string {
  let unit = 0, scaled = Math.abs(value);
  while (unit < THOUSANDS.length - 1 && (unit === 0 ? scaled >= 1000 : scaled >= 999.5)) {
    scaled /= 1000;
    ++unit;
  }
  return `${value < 0 ? '-' : ''}${unit === 0 ? Math.round(scaled) : threeDigits(scaled)}${THOUSANDS[unit]}`;
}
const THOUSANDS = ['', 'k', 'M', 'G', 'T', 'P'];

// A slow rate is told by the hour or by the day, as in the text report.
export function perTime(perSecond: number): string {
  const size = Math.abs(perSecond);
  const [unit, scale] = size >= 1 ? ['s', 1] : size * 3600 >= 1 ? ['h', 3600] : ['d', 86400];
  return `${bytes(Math.round(perSecond * scale))}/${unit}`;
}

// What was divided by time or by allocations: a little of it is not nothing, as in the text reports.
export function quotient(value: number, of: 'bytes' | 'count'): string {
  if (Math.abs(value) < 1000) return `${Number(value.toPrecision(3))}${of === 'bytes' ? ' B' : ''}`;
  return of === 'bytes' ? bytes(value) : shortCount(value);
}

// Figures of the heap. Of a sample they are estimates, and look so: "~36.4k", as in the text report.
export class Figures {
  constructor(readonly estimated: boolean) {}

  readonly bytes = (value: number): string => this.about(value, bytes(value));
  readonly count = (value: number): string => (this.estimated ? this.about(value, shortCount(value)) : count(value));
  readonly perTime = (value: number): string => this.about(value, perTime(value));
  readonly quotient = (value: number, of: 'bytes' | 'count'): string => this.about(value, quotient(value, of));
  readonly plural = (value: number, noun: string): string => `${this.count(value)} ${noun}${value === 1 ? '' : 's'}`;
  // Behind a figure; nothing where it is no estimate.
  readonly interval = (low: unknown, high: unknown): string =>
    (this.estimated && typeof low === 'number' && typeof high === 'number' ? ` [${bytes(low)} to ${bytes(high)}]` : '');

  private about(value: number, text: string): string {
    return !this.estimated || value === 0 ? text : value < 0 ? `-~${text.slice(1)}` : `~${text}`;
  }
}

// As the text report writes it. `step`: the digits are enough to tell times apart that are one from each other.
export function seconds(value: number, step = 0): string {
  if (value === 0) return '0 s';
  const size = Math.abs(value);
  if (size < 999.5e-9) return `${Math.round(value * 1e9)} ns`;
  if (size >= 119.5) return longTime(value);
  const [unit, scale] = size < 999.5e-6 ? ['us', 1e6] : size < 0.9995 ? ['ms', 1e3] : ['s', 1];
  const short = threeDigits(value * scale), digits = step > 0 ? Math.ceil(-Math.log10(step * scale)) : 0;
  return `${digits > (short.split('.')[1] ?? '').length ? (value * scale).toFixed(digits) : short} ${unit}`;
}

function longTime(value: number): string {
  const whole = Math.round(value);
  if (whole < 7200) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  const minutes = Math.floor((whole + 30) / 60);
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export function share(part: number, whole: number): string {
  if (whole <= 0 || part === 0) return '0 %';
  const percent = (100 * part) / whole;
  if (percent < 0.05) return '<0.1 %';
  if (percent >= 99.95 && part < whole) return '>99.9 %';
  return `${percent.toFixed(percent >= 99.95 ? 0 : 1)} %`;
}

export function baseName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

// "2026-11-28T22:31:26.026194116Z" as one reads it.
export const dateTime = (iso: string) => iso.replace(/^(.*)T(\d\d:\d\d:\d\d).*Z$/, '$1 $2 UTC');
