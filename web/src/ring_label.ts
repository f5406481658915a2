// A name in a part of a ring, written along the radius. Lengths are those of the picture, in which its font has FONT_SIZE.

const FONT_SIZE = 10;  // as in style.css
const LINE = 11;       // how high it is
const MARGIN = 2;      // at both ends
const LEAST = 4;       // letters of a name that is cut

// Where a line of text lies within the part, whose sides are `angle` apart: both its corners at the outer end are inside
// of `outer`, those at the inner end between the sides. With `to` below `from` there is no room.
export function alongRadius(inner: number, outer: number, angle: number): { from: number; to: number } {
  const half = LINE / 2;
  const between = angle < Math.PI ? half / Math.tan(angle / 2) : 0;
  return { from: Math.max(inner + MARGIN, between), to: Math.sqrt(Math.max(0, outer * outer - half * half)) - MARGIN };
}

let context: CanvasRenderingContext2D | null | undefined;

// Also of what is not shown yet. In small sizes letters may be as wide as whole pixels, and a picture is drawn in any size.
function widthOf(text: string): number {
  if (context === undefined) {
    context = document.createElement('canvas').getContext('2d');
    if (context) context.font = `100px ${getComputedStyle(document.body).fontFamily}`;
  }
  return context ? (context.measureText(text).width * FONT_SIZE) / 100 : text.length * FONT_SIZE;
}

// As much of the name as is not wider than `room`; empty where that would be too little to know it by.
export function fitting(name: string, room: number): string {
  if (room <= 0) return '';
  if (widthOf(name) <= room) return name;
  const letters = [...name];
  let fits = 0;
  for (let more = letters.length; more > fits;) {
    const half = Math.ceil((fits + more) / 2);
    if (widthOf(`${letters.slice(0, half).join('')}…`) <= room) fits = half;
    else more = half - 1;
  }
  return fits >= LEAST ? `${letters.slice(0, fits).join('')}…` : '';
}
