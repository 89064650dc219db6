/* Number lines: one axis that both ends share. What may be sent is a stretch of it, so that agreement
   is alignment; it needs no subtraction by eye. */

import { h, type Kid, type VNode } from "./dom";
import { count, fit, fitName, round, textWidth, type Spot } from "./geometry";
import { at, C, G, L, P, R, T, tone, type View } from "./marks";
import type { Run } from "./run";
import type { Line, LineState } from "./types";
import { phrase } from "./words";

/** Left of the axis stand the names, right of it what no longer fits beside a band. */
const NAMES = 92;
/** A cell that is narrower than this shows no mark of its own. */
const LEAST_CELL = 15;

/** A limit that is further from its count lies beyond the line, so that what happens here can be seen. */
const FAR = 1000;

interface Extent { low: number; high: number; span: number }
const extents = new WeakMap<Run, Map<string, Extent>>();

/** How far a line is used in a run: least and greatest number, and the longest stretch at one time. */
function extent(run: Run, line: Line): Extent {
  let known = extents.get(run);
  if (!known) extents.set(run, (known = new Map()));
  let found = known.get(line.id);
  if (!found) {
    found = { low: Infinity, high: -Infinity, span: 0 };
    let before: LineState | undefined;
    for (const state of run.states) {
      const now = state.lines?.[line.id];
      if (!now || now === before) continue;
      before = now;
      let numbers = [...Object.values(now.ends ?? {}).flat(), ...Object.values(now.rules ?? {}).flatMap((rule) => [rule.at, rule.limit])];
      if (!numbers.length) continue;
      const least = Math.min(...numbers);
      numbers = numbers.filter((one) => one - least <= FAR);
      found.low = Math.min(found.low, least);
      found.high = Math.max(found.high, ...numbers);
      found.span = Math.max(found.span, Math.max(...numbers) - least);
    }
    known.set(line.id, found);
  }
  return found;
}

export interface Scale { low: number; high: number; x0: number; cell: number; X(value: number): number; cells: boolean }

/** The stretch that is shown. It stands still while it can; otherwise it moves by half of itself. */
function scale(view: View, line: Line, state: LineState, right: number): Scale {
  const used = extent(view.run, line), x0 = NAMES, width = view.W - x0 - right;
  let low = Math.min(used.low, line.range?.[0] ?? Infinity), high = Math.max(used.high, line.range?.[1] ?? -Infinity);
  if (!Number.isFinite(low)) [low, high] = [0, 10];
  for (const [id, value] of Object.entries(view.preview)) {
    const act = view.scene.acts?.find((one) => one.id === id);
    const end = act?.aims?.line === line.id ? state.ends?.[act.aims.end] : undefined;
    if (end) high = Math.max(high, end[0] + value);
  }
  low = Math.max(0, low > 3 ? low - 2 : low);
  high = line.style === "units" ? Math.max(high, low + 2) : Math.max(high + 2, low + 8);
  const most = Math.floor(width / (view.small ? 27 : 34));
  if (high - low > most && used.span + 5 <= most) {
    // The least number that counts now, on pages of half the width.
    const least = Math.min(...Object.values(state.ends ?? {}).flat(), high), page = Math.max(1, Math.floor((most - used.span) / 2));
    low += Math.max(0, Math.floor((least - 2 - low) / page) * page);
    high = low + most;
  } else if (high - low > most) {
    const step = round((high - low) / 10);
    low = Math.floor(low / step) * step;
    high = Math.ceil(high / step) * step;
  }
  const cell = width / (high - low);
  return { low, high, x0, cell, X: (value) => x0 + (Math.max(low, Math.min(high, value)) - low) * cell, cells: cell >= LEAST_CELL };
}

interface Rows { rule: number; up: number; axis: number;
  /** what belongs to the second end begins under the numbers */
  under: number; down: number; band: number; tall: number }

/** Where the rows of a line stand, from its top and height. */
function rows(top: number, height: number, rule: boolean, second: boolean): Rows {
  const tight = height < 130, least = height < 100, wide = height > 190 && !rule, band = least ? 15 : tight ? 17 : wide ? 28 : 24, tall = least ? 16 : tight ? 18 : wide ? 26 : 22, gap = least ? 8 : tight ? 10 : 16, below = least ? 3 : tight ? 6 : 14;
  const body = band + gap + tall + 17 + (second ? below + band + (tight ? 0 : 18) : 0) + (rule ? band + 6 : 0);
  const first = top + Math.max(tight ? 2 : 14, (height - body) / 2 + (tight ? 0 : 8)), up = first + (rule ? band + 6 : 0), axis = up + band + gap, under = axis + tall + 17;
  return { rule: first, up, axis, under, down: under + below, band, tall };
}

export function numberLine(view: View, line: Line, top: number, height: number): VNode {
  const state = view.state.lines?.[line.id] ?? {}, right = view.small ? 84 : 116;
  const rule = view.rule ? state.rules?.[view.rule] : undefined;
  const s = scale(view, line, state, right), y = rows(top, height, Boolean(rule), line.ends.length > 1 && line.style !== "units");
  view.labels.take(0, top, NAMES - 4, top + height);
  const kids: Kid[] = [axis(view, line, s, y, state)], said: Kid[] = [];
  if (line.style === "units") kids.push(units(line, state, s, y));
  else if (s.cells) kids.push(deliveries(view, line, state, s, y, said));
  kids.push(hatching(view, state, s, y));
  if (rule) kids.push(theirs(view, line, state, s, y, rule));
  line.ends.forEach((end, i) => {
    const now = state.ends?.[end.id];
    if (!now || (line.style === "units" && i)) return;
    const name = i === 0 && rule ? phrase("the-rule") : end.name;
    if (line.style === "units") { kids.push(bound(view, line, now, s, y, name)); return; }
    const [mark, words] = line.style === "brackets" ? bracket(view, line, i, now, s, y, name)
      : band(view, { key: `end ${end.id}`, c: tone(end.role), name, word: end.word ?? "", limit: line.limit ?? phrase("limit"), modulo: line.modulo, now, s, y: i ? y.down : y.up, up: i === 0, axis: y });
    kids.push(mark);
    said.push(words);
  });
  // Dashes go behind the words.
  kids.push(aims(view, line, s, y), preview(view, line, state, s, y), said);
  return G({ key: `line ${line.id}`, role: "group", "aria-label": line.unit }, kids);
}

function axis(view: View, line: Line, s: Scale, y: Rows, state: LineState): VNode {
  const step = Math.max(1, s.cells ? 1 : round((s.high - s.low) / 10)), kids: Kid[] = [];
  const words = line.unit.replace(/-(?=[a-z]+( \(\w+\))?$)/, "- ").split(" ").reduce<string[]>((all, word) => {
    const last = all[all.length - 1];
    if (last !== undefined && textWidth(`${last} ${word}`, 11) < NAMES - 22) all[all.length - 1] = last.endsWith("-") ? last + word : `${last} ${word}`;
    else all.push(word);
    return all;
  }, []);
  const shown = words.map((word) => fitName(word, NAMES - 16, 11));
  shown.forEach((word, i) => kids.push(T(12, y.axis + y.tall / 2 + 4 + (i - (words.length - 1) / 2) * 12, word, "s11 m", { key: `u${i}` })));
  if (shown.some((word, i) => word !== words[i])) kids.push(h("title", {}, line.unit));
  kids.push(R(s.x0, y.axis, (s.high - s.low) * s.cell, y.tall, "axis"));
  let free = -Infinity;
  const hidden = line.style === "units" && state.part;
  for (let value = Math.ceil(s.low / step) * step; value <= s.high; value += step) {
    const X = s.X(value), seam = line.modulo !== undefined && value > 0 && value % line.modulo === 0, text = count(value, line.modulo), w = textWidth(text, 11);
    kids.push(L(X, y.axis, X, y.axis + y.tall, seam ? "k-alt w3" : "thin", { key: `t${value}` }));
    if (X - w / 2 > free && !(hidden && value > s.high)) {
      kids.push(T(X, y.axis + y.tall + 13, text, `mid s11 n ${seam ? "c-alt b" : "m"}`, { key: `l${value}` }));
      view.labels.take(X - w / 2, y.axis + y.tall + 2, X + w / 2, y.axis + y.tall + 16);
      free = X + w / 2 + 6;
    }
  }
  view.labels.take(s.x0, y.axis, s.X(s.high), y.axis + y.tall);
  return G({ key: "axis" }, kids);
}

/** Hollow: counted by the first end only. Full: by both. Crossed: no delivery stands for it. */
function deliveries(view: View, line: Line, state: LineState, s: Scale, y: Rows, said: Kid[]): VNode {
  const [first, second] = line.ends, kids: Kid[] = [], sent = state.ends?.[first.id]?.[0] ?? 0, got = second ? state.ends?.[second.id]?.[0] ?? sent : sent;
  const base = line.range?.[0] ?? extent(view.run, line).low, c = tone(first.role), middle = y.axis + y.tall / 2, r = Math.min(6.5, s.cell / 2 - 3);
  const marked = view.hover && view.flying.find(({ frame }) => frame.id === view.hover)?.frame.cell;
  let hollow = 0;
  for (let i = Math.max(s.low, base); i < Math.min(sent, s.high); i++) {
    const x = s.X(i) + s.cell / 2;
    if (marked && marked.line === line.id && marked.at === i) kids.push(R(s.X(i) + 2, y.axis + 1, s.cell - 4, y.tall - 2, `f-${c}soft k-focus w3`, { key: "marked", rx: 4 }));
    if (state.voids?.some(([from, to]) => i >= from && i < to)) { kids.push(P(`M${x - 5} ${middle - 5}l10 10m0 -10l-10 10`, "thin", { key: `c${i}` })); continue; }
    if (i >= got) hollow++;
    kids.push(C(x, middle, r, i >= got ? `f-panel k-${c} w3` : `f-${c}`, { key: `c${i}` }));
  }
  for (const [from, to] of state.voids ?? []) {
    if (state.ends?.[first.id]?.[1] !== to || to <= s.low) continue;
    const a = s.X(Math.max(from, s.low)), b = s.X(to), words = phrase("count-jumps", { by: to - from });
    const spot = view.labels.place(words, 11, 650, [{ x: a - 8, y: y.axis - 14, anchor: "end" }, { x: (a + b) / 2, y: y.axis - 32, anchor: "middle" }]);
    kids.push(G({ key: `jump ${from}`, class: "fade" }, P(`M${a} ${y.axis - 3}Q${(a + b) / 2} ${y.axis - 38} ${b - 5} ${y.axis - 5}`, "k-flow w2 f-none", { "marker-end": `url(#${view.uid}arrow)` })));
    if (spot) said.push(onPaper(`jumps ${from}`, spot, words, 11, "flow"));
  }
  if (hollow && y.tall > 18) {
    const words = phrase("so-many-flying", { count: hollow }), spot = view.labels.place(words, 11, 650, [{ x: (s.X(Math.max(got, s.low)) + s.X(sent)) / 2, y: y.axis - (line.style === "brackets" ? 2 : 5), anchor: "middle" }]);
    if (spot && s.X(sent) - s.X(got) > textWidth(words, 11, 650) + 10) said.push(onPaper("flight", spot, words, 11, c));
  }
  return G({ key: "deliveries" }, kids);
}

function hatching(view: View, state: LineState, s: Scale, y: Rows): VNode | null {
  if (!state.hatched || state.hatched[1] <= state.hatched[0]) return null;
  const [from, to, words] = state.hatched, a = s.X(from), b = s.X(to), w = textWidth(words, 12, 650);
  return G({ key: "hatched" }, from > s.low && !s.cells && R(s.x0, y.axis + 1, a - s.x0, y.tall - 2, "f-snd dim"),
    R(a, y.axis + 1, b - a, y.tall - 2, "glide k-alt w1", { style: `fill:url(#${view.uid}alt)` }),
    b - a > w + 24 && [R((a + b) / 2 - w / 2 - 5, y.axis + 2, w + 10, y.tall - 4, "f-panel", { rx: 4 }), T((a + b) / 2, y.axis + y.tall / 2 + 4.5, words, "mid s12 b n c-alt")]);
}

interface Band { key: string; c: string; name: string; word: string; limit: string; modulo?: number; now: number[]; s: Scale; y: number; up: boolean; axis: Rows; dashed?: boolean }

/** A band from the count (triangle) to the limit (bar); past its limit it is hatched. And the words beside it. */
function band(view: View, { key, c, name, word, limit, modulo, now, s, y, up, axis: rows, dashed }: Band): [VNode, Kid] {
  const [from, to] = now, size = to - from, past = size < 0, a = s.X(from), b = s.X(to), high = rows.band, edge = up ? rows.axis : rows.under;
  const left = Math.min(a, b), wide = Math.abs(b - a), middle = y + high / 2 + 4.5;
  const amount = `${word} ${Math.max(0, size)}`.trim(), inside = !past && wide > textWidth(amount, 13, 650) + 18;
  view.labels.take(left - 7, y - 4, left + wide + 7, y + high + 4);
  view.labels.take(a - 8, Math.min(y, edge), a + 8, Math.max(y + high, edge));
  view.labels.take(b - 4, Math.min(y, edge), b + 4, Math.max(y + high, edge));
  const bound = `${limit} ${count(to, modulo)}`;
  const inPast = past && wide > textWidth(bound, 12, 650) + 24;
  const said = past ? [phrase("past-amount", { amount, count: -size, limit }), phrase("past-limit", { count: -size, limit }), phrase("past", { count: -size })] : inside ? [bound, count(to, modulo)] : [`${amount} · ${bound}`, amount];
  const outer = Math.max(a, b) + 11, inner = left - 11;
  let words = "", spot: Spot | null = null;
  for (words of said) if ((spot = view.labels.place(words, 12, 650, [{ x: outer, y: middle, anchor: "start" }, { x: inner, y: middle, anchor: "end" }]))) break;
  const wall = up ? [y - 5, rows.axis] : [rows.under, y + high + 5];
  const tip = up ? `M-7 ${y + high - 6}h14l-7 ${edge - y - high + 6}z` : `M-7 ${y + 6}h14l-7 ${edge - y - 6}z`;
  return [G({ key }, T(NAMES - 10, middle, name, `end s12 b c-${c}`),
    R(left, y, wide, high, `glide ${past ? "k-stop" : `f-${c}soft k-${c}`} w2`, { rx: 4, style: past ? `fill:url(#${view.uid}stop);stroke-dasharray:4 3` : dashed ? "stroke-dasharray:5 3" : "" }),
    G({ class: "glide", style: at(a, 0) }, P(tip, `f-${c}`)),
    to <= s.high && G({ class: "glide", style: at(b, 0) }, R(-3, wall[0], 6, wall[1] - wall[0], `f-${c}`, { rx: 2 })),
    inside && G({ class: "glide", style: at((a + b) / 2, 0) }, T(0, middle, amount, "mid b n")),
    inPast && G({ class: "glide", style: at(b + 8, 0) }, R(0, y + 3, textWidth(bound, 12, 650) + 8, high - 6, "f-panel", { rx: 4 }), T(4, middle, bound, `s12 b n c-${c}`))), beside(key, spot, words, middle, c)];
}

/** Words on paper: what is drawn before them goes behind them. */
function onPaper(key: string, { x, y, anchor }: Spot, words: string, size: 11 | 12, c: string): VNode {
  const w = textWidth(words, size, 650) + 4, left = { start: -2, middle: -w / 2, end: 2 - w }[anchor];
  return G({ key: `${key} ${anchor}`, class: "glide", style: at(x, 0) }, R(left, y - size, w, size + 4, "f-panel"), T(0, y, words, `s${size} b n c-${c} ${anchor === "middle" ? "mid" : anchor}`));
}

const beside = (key: string, spot: Spot | null, words: string, y: number, c: string): Kid => spot && onPaper(key, { ...spot, y }, words, 12, c);

/** A learner's rule beside the right one: its band, and how it differs on the line. */
function theirs(view: View, line: Line, state: LineState, s: Scale, y: Rows, rule: { at: number; limit: number }): VNode {
  const right = state.ends?.[line.ends[0].id]?.[1] ?? rule.limit, d = rule.limit - right, a = s.X(Math.min(right, rule.limit)), b = s.X(Math.max(right, rule.limit));
  const words = d > 0 ? phrase("too-many", { count: d }) : phrase("too-few", { count: -d }), w = textWidth(words, 12, 650) + 18, x = Math.max(a, Math.min((a + b) / 2 - w / 2, view.W - w - 8));
  return G({ key: "theirs" }, d !== 0 && G({ key: "differs", class: "fade" }, R(a, y.axis, b - a, y.tall, "k-alt w2", { style: `fill:url(#${view.uid}alt)` }),
    R(x, y.axis + 2, w, y.tall - 4, "f-alt", { rx: 8 }), T(x + w / 2, y.axis + y.tall / 2 + 4.5, words, "mid s12 b c-on")),
    band(view, { key: "band", c: "alt", name: phrase(view.scene.theirs ? "their-rule" : "your-rule"), word: line.ends[0].word ?? "", limit: line.limit ?? phrase("limit"), modulo: line.modulo, now: [rule.at, rule.limit], s, y: y.rule, up: true, axis: y, dashed: true }));
}

/** A window that slides: brackets round it, and a triangle where the next one goes. And the words beside it. */
function bracket(view: View, line: Line, i: number, now: number[], s: Scale, y: Rows, name: string): [VNode, Kid] {
  const end = line.ends[i], up = i === 0, c = tone(end.role), [next, to, from = next] = now, a = s.X(from), b = s.X(to), top = up ? y.up + 4 : y.down, high = y.band, room = to - next;
  const edge = up ? y.axis : y.under, middle = top + high / 2 + 4.5, words = room > 0 || !up ? `${end.word ?? ""} ${Math.max(0, room)}`.trim() : phrase("full");
  view.labels.take(s.X(next) - 8, top, s.X(next) + 8, edge);
  // In the window where there is no room beside it.
  const spot = view.labels.place(words, 12, 650, [{ x: b + 12, y: middle, anchor: "start" }, { x: a - 12, y: middle, anchor: "end" }, { x: (a + b) / 2, y: middle, anchor: "middle" }]);
  view.labels.take(a, top, b, top + high);
  const hook = (x: number, d: number) => G({ class: "glide", style: at(x, 0) }, P(`M${d * 9} ${top}H${d * 1.5}V${top + high}H${d * 9}`, `f-none k-${c} w4`));
  return [G({ key: `end ${end.id}` }, T(NAMES - 10, middle, name, `end s12 b c-${c}`), R(a, top, b - a, high, `glide f-${c}soft`, { rx: 3 }), hook(a, 1), to <= s.high && hook(b, -1),
    G({ class: "glide", style: at(s.X(next), 0) }, P(up ? `M-7 ${edge - 13}h14l-7 13z` : `M-7 ${edge + 13}h14l-7 -13z`, `f-${c}`))), beside(`end ${end.id}`, spot, words, middle, c)];
}

/** One box a credit; it fills as parts of the delivery leave. */
function units(line: Line, state: LineState, s: Scale, y: Rows): VNode {
  const [sent, limit] = state.ends?.[line.ends[0].id] ?? [0, 0], c = tone(line.ends[0].role), kids: Kid[] = [];
  const [gone, whole, what] = state.part ?? [0, 0, ""], now = state.part ? sent - 1 : -1, of = whole === null ? phrase("part-so-far", { gone, what }) : phrase("part-of", { gone, whole, what });
  for (let i = Math.max(s.low, 0); i < Math.min(Math.max(limit, sent), s.high); i++) {
    const x = s.X(i), part = i === now ? gone / (whole ?? gone + 1) : i < sent ? 1 : 0;
    const texts = i === now ? [phrase("credit-in-use", { part: of }), of, ""] : i < sent ? [phrase("used"), ""] : [phrase("one-credit"), "1", ""];
    const text = texts.find((one) => textWidth(one, 12, 650) < s.cell - 10) ?? "";
    kids.push(R(x + 1, y.axis + 1, s.cell - 2, y.tall - 2, i < limit ? `f-${c}soft k-${c} w2` : "axis", { key: `b${i}`, rx: 4 }), R(x + 3, y.axis + 3, (s.cell - 6) * part, y.tall - 6, `glide f-${c} half`, { key: `f${i}`, rx: 3 }),
      text && T(x + s.cell / 2, y.axis + y.tall / 2 + 4.5, text, "mid s12 b n halo", { key: `x${i}` }));
  }
  return G({ key: "units" }, kids);
}

/** Where the boxes end. */
function bound(view: View, line: Line, [sent, limit]: number[], s: Scale, y: Rows, name: string): VNode {
  const end = line.ends[0], x = s.X(limit), c = tone(end.role), size = limit - sent, words = `${end.word ?? ""} ${Math.max(0, size)} · ${line.limit ?? phrase("limit")} ${count(limit, line.modulo)}`.trim(), middle = y.axis - 9;
  const spot = view.labels.place(words, 12, 650, [{ x: x + 10, y: middle, anchor: "start" }, { x: x - 10, y: middle, anchor: "end" }]);
  return G({ key: `end ${end.id}` }, T(NAMES - 10, middle, name, `end s12 b c-${c}`), G({ class: "glide", style: at(x, 0) }, R(-3, y.axis - 8, 6, y.tall + 9, `f-${c}`, { rx: 2 })),
    spot && G({ key: spot.anchor, class: "glide", style: at(spot.x, 0) }, T(0, middle, words, `s12 b n halo c-${c} ${spot.anchor === "end" ? "end" : ""}`)));
}

/** Where a permission in flight will put the limit. Not while a question is open: it gives the answer away. */
function aims(view: View, line: Line, s: Scale, y: Rows): Kid[] {
  if (view.asking) return [];
  return view.flying.filter(({ frame, lost }) => frame.aims?.line === line.id && !lost).map(({ frame }) => {
    const { limit, from } = frame.aims!, x = s.X(limit), words = phrase(from === undefined ? "will-set" : "will-slide"), top = y.up - 8;
    const spot = view.labels.place(words, 11, 650, [{ x, y: top - 4, anchor: "middle" }, { x: x - 8, y: top - 4, anchor: "end" }, { x: x + 8, y: top - 4, anchor: "start" }]);
    return G({ key: `aims ${frame.id}`, class: "fade" },
      from === undefined ? [L(x, top, x, y.axis, "k-flow w2 dashes"), P(`M${x} ${y.axis + y.tall / 2 - 10}l9 10l-9 10l-9 -10z`, "f-flow")]
        : P(`M${s.X(from) + 9} ${top}H${s.X(from) + 1}V${y.axis - 2}M${x - 9} ${top}H${x - 1}V${y.axis - 2}`, "k-flow w3 dashes f-none"),
      spot && T(spot.x, spot.y, words, `${spot.anchor === "middle" ? "mid" : spot.anchor} s11 b c-flow halo`));
  });
}

/** What the hand has set and not let go, and the grip at the limit. */
function preview(view: View, line: Line, state: LineState, s: Scale, y: Rows): Kid {
  const act = (view.scene.acts ?? []).find((one) => one.kind === "knob" && one.aims?.line === line.id), i = act ? line.ends.findIndex((end) => end.id === act.aims!.end) : -1;
  const now = act && state.ends?.[act.aims!.end];
  if (!act || i < 0 || !now || !s.cells || line.style === "units") return null;
  const set = view.preview[act.id], c = tone(line.ends[i].role), up = i === 0, top = up ? y.up : y.down;
  const from = now[0], to = set === undefined ? now[1] : from + set, x = s.X(to), grip = up ? top - 18 : top + y.band + 3;
  const text = `${count(from, line.modulo)} + ${set}`;
  const spot = set !== undefined ? view.labels.place(text, 12, 650, [{ x: x + 14, y: grip + 12, anchor: "start" }, { x: x - 14, y: grip + 12, anchor: "end" }]) : null;
  const node = Object.keys(view.state.nodes ?? {}).find((id) => view.state.nodes?.[id].knobs?.[act.id] !== undefined), value = node ? view.state.nodes![node].knobs![act.id] : now[1] - now[0];
  return G({ key: "preview" },
    set !== undefined && [R(s.X(from), top, x - s.X(from), y.band, `f-none k-${c} w2`, { rx: 4, style: "stroke-dasharray:5 3" }), L(x, up ? top : y.under, x, up ? y.axis : grip, `k-${c} w2 dashes`), spot && T(spot.x, spot.y, text, `s12 b n halo c-${c} ${spot.anchor === "end" ? "end" : ""}`)],
    y.band > 20 && G({ key: "grip", class: "grip", "data-knob": act.id, "data-now": value, "data-cell": s.cell, "aria-hidden": "true" }, R(x - 14, Math.min(top, grip) - 2, 28, y.band + 24, "f-none"),
      R(x - 10, grip, 20, 15, "face", { rx: 7.5 }), P(`M${x - 3} ${grip + 4}l-3.5 3.5l3.5 3.5m6 -7l3.5 3.5l-3.5 3.5`, `f-none k-${c} w2`)));
}

/** Each replica's log as a bar: dashed in memory, solid on disk; the commit is an upright line. */
export function bars(view: View, line: Line, x: number, width: number, rowY: (i: number) => number, bottom: number): VNode {
  const state = view.state.lines?.[line.id] ?? {}, used = extent(view.run, line), most = Math.max(5, Math.min(9, Math.floor(width / 44)));
  const logs = line.ends.map((end) => state.ends?.[end.id] ?? [0, 0]), top = Math.max(0, ...logs.map((log) => log[1])), all = Math.max(5, Math.min(most, (Number.isFinite(used.high) ? used.high : 0) + 1));
  const low = Math.max(0, Math.ceil((top + 1 - all) / 2) * 2), high = low + all, cell = Math.min(66, width / all), X = (v: number) => x + (v - low) * cell, kids: Kid[] = [];
  line.ends.forEach((end, i) => {
    const [disk, memory] = logs[i], y = rowY(i), down = view.state.nodes?.[end.id]?.down, sync = Object.entries(view.state.disks ?? {}).find(([id]) => view.scene.disks?.find((one) => one.id === id)?.on === end.id)?.[1];
    const part = sync && sync.t0 != null && sync.t1 != null && !sync.hung && view.t < sync.t1 ? Math.max(0, Math.min(1, (view.t - sync.t0) / Math.max(sync.t1 - sync.t0, 1e-9))) : 0;
    const cells: Kid[] = [R(X(low), y - 13, all * cell, 26, "axis", { key: "all", rx: 3 })];
    for (let v = low + 1; v <= Math.min(high, memory); v++) {
      const a = X(v - 1), text = fit(String(v), cell - 6, 12, 650);
      cells.push(R(a + 1.5, y - 11.5, cell - 3, 23, v <= disk ? `f-snd ${down ? "dim" : ""}` : "f-panel k-snd w2", { key: `c${v}`, rx: 3, style: v <= disk ? "" : "stroke-dasharray:4 3" }));
      if (v > disk && part > 0 && v <= (sync?.to ?? 0)) cells.push(R(a + 2.5, y - 10.5, (cell - 5) * part, 21, "f-snd half", { key: `p${v}`, rx: 2 }));
      cells.push(T(a + cell / 2, y + 4.5, text, `mid s12 b n ${v <= disk ? "c-on" : "halo"}`, { key: `t${v}` }));
    }
    kids.push(G({ key: `log ${end.id}`, role: "img", "aria-label": phrase("log-of", { name: end.name, disk, memory }) }, cells));
  });
  const index = state.commit ?? 0, committed = Math.max(low, index), flip = committed - low > all * 0.6, words = phrase("commit-at", { index });
  // A commit before the entries that are shown is where its arrow points, not at the first of them.
  const mark = index < low ? P("M7 9v14l-12 -7z", "f-flow") : [L(0, 18, 0, bottom - 44, "k-flow w4"), P("M-7 9h14v8l-7 6l-7 -6z", "f-flow")];
  kids.push(G({ key: "commit", class: "glide", style: at(X(committed), 0) }, mark, T(flip ? -12 : 12, 20, words, `s12 b n c-flow halo ${flip ? "end" : ""}`)));
  const mine = view.rule ? state.rules?.[view.rule] : undefined;
  if (mine) kids.push(G({ key: "theirs", class: "glide", style: at(X(Math.max(low, Math.min(high, mine.limit))), 0) }, L(0, 26, 0, bottom - 44, "k-alt w4 dashes"), T(10, 40, phrase(view.scene.theirs ? "their-rule-at" : "your-rule-at", { index: mine.limit }), "s12 b n c-alt halo")));
  const foot: Kid[] = [], n = logs.length;
  for (let v = low + 1; v <= Math.min(high, top); v++) {
    const have = logs.filter((log) => log[0] >= v).length, a = X(v - 1) + cell / 2, enough = have >= (line.majority ?? n);
    for (let q = 0; q < n; q++) foot.push(C(a + (q - (n - 1) / 2) * Math.min(8.5, cell / (n + 0.7)), bottom - 28, Math.min(3.3, cell / (2.4 * n)), q < have ? `f-${enough ? "flow" : "snd"}` : "f-none k-line2 w1", { key: `o${v} ${q}` }));
    const words = [phrase("so-many-of", { have, all: n }), `${have}/${n}`].find((one) => textWidth(one, 11, 650) < cell - 4) ?? "";
    foot.push(T(a, bottom - 11, words, `mid s11 n ${enough ? "b c-flow" : "m"}`, { key: `f${v}` }));
  }
  kids.push(h("g", { key: "foot" }, T(x - 8, bottom - 24, phrase("disks-that"), "end s11 m"), T(x - 8, bottom - 12, phrase("have-it"), "end s11 m"), foot));
  return G({ key: `line ${line.id}` }, kids);
}
