// What the program told of itself, above a plot over time: a phase as a bar with its name over it, a mark as a dashed
// line through the plot with its name at its head. A name has the room to itself or is left out: the view of the phases
// has all of them.

import type uPlot from 'uplot';
import { colour } from './theme';

export interface Told {
  phases: { name: string; spans: [number, number][] }[];  // its first time, and its last where that is another
  marks: { name: string; time: number }[];
}

type Span = [number, number];
interface Row { top: number; taken: Span[] }

// In CSS pixels, from the left of the plot and from the top of the strip.
export interface Strip {
  height: number;
  bars: { y: number; spans: Span[] }[];
  lines: { x: number; y: number | null }[];  // from where its name is; null: it has none
  names: { text: string; left: number; y: number }[];
}

const FONT_SIZE = 11, FONT = 'system-ui, sans-serif';
const ROW = 17, BAR = 3, BASELINE = 11, GAP = 6;
const PHASE_ROWS = 3, MARK_ROWS = 2, LONGEST = 30;

let canvas: CanvasRenderingContext2D | null = null;
function widthOf(text: string): number {
  canvas ??= document.createElement('canvas').getContext('2d')!;
  canvas.font = `${FONT_SIZE}px ${FONT}`;
  return canvas.measureText(text).width;
}

// Whole characters, however many units of text one takes.
function cut(name: string, width: number): string {
  const characters = [...(name || '(no name)')], most = Math.min(LONGEST, Math.floor(width / 15));
  return characters.length > most ? `${characters.slice(0, most - 1).join('')}…` : characters.join('');
}

const free = (row: Row, [from, to]: Span) => row.taken.every((other) => to <= other[0] || from >= other[1]);

// `count` rows at most, the first at `top`; those that nothing is in are not there in the end.
class Rows {
  private readonly rows: Row[];

  constructor(top: number, count: number) {
    this.rows = Array.from({ length: count }, (_, i) => ({ top: top + i * ROW, taken: [] }));
  }

  // The first with room for the span; below it, if given, nothing may be at `x`, for a line goes down there.
  take(span: Span, x: number | null = null): Row | null {
    const row = this.rows.find((each, i) => free(each, span) &&
      (x === null || this.rows.slice(i + 1).every((below) => free(below, [x, x]))));
    row?.taken.push(span);
    return row ?? null;
  }

  get bottom(): number { return this.rows.filter((row) => row.taken.length > 0).reduce((most, row) => Math.max(most, row.top + ROW), this.rows[0].top); }
}

export function layOut({ phases, marks }: Told, [begin, end]: Span, width: number): Strip {
  const toX = (time: number) => (end > begin ? (width * (time - begin)) / (end - begin) : 0);
  const strip: Strip = { height: 0, bars: [], lines: [], names: [] };
  const of = new Rows(0, PHASE_ROWS);
  for (const phase of phases) {
    const spans = phase.spans.filter(([from, to]) => to >= begin && from <= end)
      .map(([from, to]): Span => [toX(Math.max(begin, from)), Math.max(toX(Math.min(end, to)), toX(Math.max(begin, from)) + 2)]);
    if (spans.length === 0) continue;
    const text = cut(phase.name, width), size = widthOf(text), from = spans[0][0], to = spans[spans.length - 1][1];
    const left = Math.max(0, Math.min(from, width - size));
    const named = of.take([Math.min(left, from), Math.max(left + size + GAP, to)]);
    const row = named ?? of.take([from, to]);
    if (!row) continue;
    strip.bars.push({ y: row.top + ROW - BAR - 1, spans });
    if (named) strip.names.push({ text, left, y: row.top + BASELINE });
  }
  const below = new Rows(of.bottom, MARK_ROWS);
  for (const mark of marks) {
    if (mark.time < begin || mark.time > end) continue;
    const text = cut(mark.name, width), size = widthOf(text), x = toX(mark.time);
    const left = x + 4 + size <= width ? x + 4 : x - 4 - size;
    const row = left < 0 ? null : below.take([Math.min(x, left) - GAP, Math.max(x, left + size)], x);
    const last = strip.lines[strip.lines.length - 1];
    if (row || !last || x - last.x >= 1) strip.lines.push({ x, y: row && row.top });  // one on the other is one
    if (row) strip.names.push({ text, left, y: row.top + BASELINE });
  }
  strip.height = below.bottom;
  return strip;
}

// Over the plot, which has room for the strip above it.
export function drawStrip({ ctx, bbox }: uPlot, strip: Strip): void {
  const scale = devicePixelRatio, top = bbox.top - (strip.height + 2) * scale, bottom = bbox.top + bbox.height;
  const x = (css: number) => bbox.left + css * scale, y = (css: number) => top + css * scale;
  const line = (at: number, from: number, to = bottom) => {
    ctx.beginPath();
    ctx.moveTo(x(at), from);
    ctx.lineTo(x(at), to);
    ctx.stroke();
  };
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = colour('dim');
  ctx.lineWidth = scale;
  for (const bar of strip.bars) {
    const [from, to] = [bar.spans[0][0], bar.spans[bar.spans.length - 1][1]];
    ctx.fillRect(x(from), y(bar.y + BAR / 2 - 0.5), (to - from) * scale, scale);  // it may have been there in between
    for (const [begin, end] of bar.spans) ctx.fillRect(x(begin), y(bar.y), (end - begin - 1) * scale, BAR * scale);  // apart from the next
    ctx.globalAlpha = 0.35;
    for (const edge of bar.spans.flat()) line(edge, bbox.top);
    ctx.globalAlpha = 1;
  }
  // So many that they would hide the plot are faint, and without a name they only begin.
  const room = bbox.width / scale / Math.max(1, strip.lines.length);
  ctx.globalAlpha = Math.max(0.25, Math.min(0.9, room / 25));
  ctx.setLineDash([4 * scale, 4 * scale]);
  for (const { x: at, y: from } of strip.lines) {
    if (from !== null) line(at, y(from));
    else line(at, bbox.top, room < 6 ? bbox.top + 4 * scale : bottom);
  }
  ctx.globalAlpha = 1;
  ctx.font = `${FONT_SIZE * scale}px ${FONT}`;
  ctx.textAlign = 'left';
  ctx.textBaseline = 'alphabetic';
  for (const { text, left, y: base } of strip.names) ctx.fillText(text, x(left), y(base));
  ctx.restore();
}
