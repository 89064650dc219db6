/* Numbers only: places on paths and scales, widths of texts, and labels that keep out of each other's way. */

export const clamp = (value: number, low: number, high: number): number => Math.max(low, Math.min(high, value));

/** Part of its way that a frame has gone at `t`. */
export function partAt(path: [number, number][], t: number): number {
  let before = path[0];
  for (const point of path) {
    if (point[0] > t) return before[0] === point[0] ? point[1] : before[1] + (point[1] - before[1]) * (t - before[0]) / (point[0] - before[0]);
    before = point;
  }
  return before[1];
}

/** Whether it stands still at `t`, held. */
export function heldAt(path: [number, number][], t: number): boolean {
  for (let i = 1; i < path.length; i++) {
    const last = i === path.length - 1;
    if (path[i][1] === path[i - 1][1] && t >= path[i - 1][0] && (t < path[i][0] || (last && path[i][1] < 1))) return true;
  }
  return false;
}

const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

/** A count as it is written: modulo, and near the seam by its distance from it. */
export function count(value: number, modulo?: number): string {
  if (!modulo) return String(value);
  const shown = ((value % modulo) + modulo) % modulo;
  const power = Math.log2(modulo);
  if (modulo - shown > 1000 || shown < 1000 || !Number.isInteger(power)) return String(shown);
  return `2${[...String(power)].map((digit) => SUPERSCRIPTS[Number(digit)]).join("")}−${modulo - shown}`;
}

/** A round distance of at least `least`: 1, 2 or 5 times a power of ten. */
export function round(least: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= least) ?? power * 10;
}

/** A time, or that there is none; what is long in seconds, to the same digit. */
export const ms = (t: number, untimed = false): string => untimed ? "?" : t >= 100_000 ? `${(t / 1000).toFixed(4)} s` : `${t < 10 || Math.round(t * 10) % 10 ? t.toFixed(1) : Math.round(t)} ms`;

const widths = new Map<string, number>();
let pen: CanvasRenderingContext2D | null = null;

export function textWidth(text: string, size = 13, weight = 500): number {
  const key = `${weight} ${size}px ${text}`;
  let width = widths.get(key);
  if (width === undefined) {
    pen ??= document.createElement("canvas").getContext("2d");
    if (pen) pen.font = `${weight} ${size}px system-ui, "Segoe UI", "Noto Sans", sans-serif`;
    width = pen ? pen.measureText(text).width : text.length * size * 0.55;
    if (widths.size > 5000) widths.clear();
    widths.set(key, width);
  }
  return width;
}

/** Room for every time up to `ends`: what stands beside it keeps its place. */
export const widest = (ends: number): number => Math.ceil(textWidth(`${Math.floor(ends)}.0 ms`, 13, 650)) + 1;

/** The whole text, or as many of its characters as fit, as `cut` shortens it. */
function fitted(text: string, width: number, size: number, weight: number, cut: (kept: number) => string): string {
  if (textWidth(text, size, weight) <= width) return text;
  let kept = Math.max(1, text.length - 1);
  while (kept > 1 && textWidth(cut(kept), size, weight) > width) kept--;
  return cut(kept);
}

/** What fits of a text, with an ellipsis. */
export const fit = (text: string, width: number, size = 13, weight = 500): string =>
  fitted(text, width, size, weight, (kept) => `${text.slice(0, kept).trimEnd()}…`);

/** What fits of a name: both its ends, for names may differ in either. */
export const fitName = (name: string, width: number, size = 13, weight = 500): string =>
  fitted(name, width, size, weight, (kept) => `${name.slice(0, Math.ceil(kept / 2))}…${name.slice(name.length - Math.floor(kept / 2))}`);

/** Size of a label: 12, and where that is too wide 11. */
export const sizeIn = (text: string, width: number, weight = 650): 11 | 12 => (textWidth(text, 12, weight) > width ? 11 : 12);

export type Anchor = "start" | "middle" | "end";
export interface Spot { x: number; y: number; anchor: Anchor }
interface Box { x1: number; y1: number; x2: number; y2: number }

/** Who has claimed which part of the picture. A label takes the first of its spots that is free. */
export class Labels {
  private boxes: Box[] = [];

  constructor(private width: number, private height: number) {}

  take(x1: number, y1: number, x2: number, y2: number): void { this.boxes.push({ x1, y1, x2, y2 }); }

  free(x1: number, y1: number, x2: number, y2: number): boolean {
    return x1 >= 2 && x2 <= this.width - 2 && y1 >= 0 && y2 <= this.height && !this.boxes.some((box) => x1 < box.x2 && x2 > box.x1 && y1 < box.y2 && y2 > box.y1);
  }

  /** `pad`: free room beside the text. */
  place(text: string, size: number, weight: number, spots: Spot[], pad = 2): Spot | null {
    const width = textWidth(text, size, weight);
    for (const spot of spots) {
      const x1 = spot.anchor === "start" ? spot.x : spot.anchor === "end" ? spot.x - width : spot.x - width / 2;
      const box: [number, number, number, number] = [x1 - pad, spot.y - size * 0.95, x1 + width + pad, spot.y + size * 0.35];
      if (this.free(...box)) { this.take(...box); return spot; }
    }
    return null;
  }
}
