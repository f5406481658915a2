// A plot over time by uPlot, in the page's colours, with a text for those who do not see it.

import uPlot from 'uplot';
import { h } from './dom';
import { bytes, count, seconds } from './text';
import { colour } from './theme';
import { timeAxis } from './time_axis';
import { drawStrip, layOut, type Strip, type Told } from './told_strip';

const PAPER_WIDTH = 720;
const AXIS_WIDTH = 74, RIGHT = 25;  // beside the plot

// Steps of an axis of bytes: 512 KiB and 1 MiB are round, 500 KiB and 1,000 KiB are not.
const BINARY = Array.from({ length: 60 }, (_, power) => 2 ** power);

// And of one that counts: there is no half of a fault.
const WHOLE = Array.from({ length: 15 }, (_, digits) => [1, 2, 5].map((step) => step * 10 ** digits)).flat();

export interface Series {
  title: string;
  colour: string;         // a variable of style.css, or a colour as hsl(...)
  values: (number | null)[];
  fill?: boolean;
  opaque?: boolean;       // what is below is hidden by it
  told?: number[];        // what the legend says instead of the values
  text?: (value: number) => string;  // in the legend, where it differs from the axis
  steps?: 'interval' | 'sample';  // a value is of the time before it, or until the next
  bars?: boolean;
}

// `colour` is a variable of style.css, or a colour.
function shade(series: Series): string {
  return series.colour.includes('(') ? series.colour : colour(series.colour);
}

// What a canvas that was not seen when the colours changed has to be compared with.
const theme = () => ['dim', 'line', 'shade'].map(colour).join();

export interface ChartOptions {
  label: string;          // what it shows, in a sentence
  height: number;
  text: (value: number) => string;
  times: number[];
  series: Series[];
  told?: Told;            // shown above the plot
  span?: [number, number];  // what the axis shows of time
  sync?: string;          // charts of one name share the cursor
  onRange?: (from: number, to: number) => void;  // dragged along the time
}

export class Chart {
  readonly element: HTMLElement;
  private plot: uPlot | null = null;
  private strip: Strip | null = null;
  private range: [number, number] | null = null;
  private drawnIn = '';  // what its colours were
  private onPaper = false;

  constructor(private readonly options: ChartOptions) {
    this.element = h('div', { class: 'chart', role: 'img', 'aria-label': options.label });
    new ResizeObserver(() => this.resize()).observe(this.element);
  }

  // Shades the time that is chosen.
  setRange(range: [number, number] | null): void {
    this.range = range;
    if (this.plot && this.drawnIn === theme()) this.plot.redraw(false);
    else this.resize();  // for paper, which does not wait for an observer
  }

  // For paper in a width of its own, which the style fits to the page: how wide that is, nobody knows before.
  setWhole(whole: boolean): void {
    this.onPaper = whole;
    this.resize();
  }

  private get plotWidth(): number { return Math.max(this.width, 200); }

  private get width(): number { return this.onPaper ? PAPER_WIDTH : this.element.clientWidth; }

  // From one time to the next, on average.
  private get step(): number {
    const { times } = this.options;
    return times.length > 1 ? (times[times.length - 1] - times[0]) / (times.length - 1) : 0;
  }

  // Anew, in the colours of now.
  draw(): void {
    const { told, span } = this.options;
    this.drawnIn = theme();
    this.plot?.destroy();
    this.strip = told && span ? layOut(told, span, this.plotWidth - AXIS_WIDTH - RIGHT) : null;
    this.plot = new uPlot(this.plotOptions(), [
      this.options.times, ...this.options.series.map((series) => series.values),
    ] as uPlot.AlignedData, this.element);
  }

  private resize(): void {
    const { plotWidth: width } = this;
    if (this.width === 0) return;
    if (!this.plot || this.drawnIn !== theme() || (this.strip && this.plot.width !== width)) this.draw();
    else if (this.plot.width !== width) this.plot.setSize({ width, height: this.options.height });
  }

  private plotOptions(): uPlot.Options {
    const { options } = this, strip = this.strip?.height ?? 0;
    const axis = { stroke: colour('dim'), grid: { stroke: colour('line'), width: 1 }, ticks: { stroke: colour('line'), width: 1 },
                   font: '12px system-ui, sans-serif' };
    return {
      width: this.plotWidth, height: options.height + strip, padding: [strip > 0 ? strip + 6 : null, RIGHT, null, null],
      scales: { x: { time: false, ...(options.span && options.span[1] > options.span[0] ? { range: options.span } : {}) }, y: { range: (_, __, max) => [0, max > 0 ? max * 1.05 : 1] } },
      axes: [
        { ...axis, ...timeAxis, size: 34 },
        { ...axis, values: (_, values) => values.map(options.text), size: AXIS_WIDTH, space: 32, ...(options.text === bytes ? { incrs: BINARY } : options.text === count ? { incrs: WHOLE } : {}) },
      ],
      legend: { live: true },
      cursor: {
        drag: { x: options.onRange !== undefined, y: false, setScale: false },
        ...(options.sync ? { sync: { key: options.sync } } : {}),
      },
      series: [
        { label: 'time', value: (_, value) => (value === null ? '' : seconds(value, this.step)) },
        ...options.series.map((series): uPlot.Series => ({
          label: series.title, stroke: shade(series), width: series.opaque ? 0.5 : 1.5, points: { show: false },
          ...(series.fill ? { fill: series.opaque ? shade(series) : `${colour(series.colour)}33` } : {}),
          ...(series.steps ? { paths: uPlot.paths.stepped!({ align: series.steps === 'sample' ? 1 : -1 }) } : {}),
          ...(series.bars ? { paths: uPlot.paths.bars!({ size: [0.9, 40] }), fill: colour(series.colour), width: 0 } : {}),
          value: (_, value, __, index) => (value === null || index === null ? '–' : (series.text ?? options.text)(series.told?.[index] ?? value)),
        })),
      ],
      hooks: {
        draw: [(plot) => this.drawOver(plot)],
        setSelect: [(plot) => {
          if (!options.onRange || plot.select.width < 3) return;
          options.onRange(plot.posToVal(plot.select.left, 'x'),
                          plot.posToVal(plot.select.left + plot.select.width, 'x'));
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        }],
      },
    };
  }

  private drawOver(plot: uPlot): void {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    if (this.range) {
      const left = plot.valToPos(this.range[0], 'x', true);
      const right = plot.valToPos(this.range[1], 'x', true);
      ctx.fillStyle = colour('shade');
      ctx.fillRect(bbox.left, bbox.top, left - bbox.left, bbox.height);
      ctx.fillRect(right, bbox.top, bbox.left + bbox.width - right, bbox.height);
    }
    ctx.restore();
    if (this.strip) drawStrip(plot, this.strip);
  }
}
