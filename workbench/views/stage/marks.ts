/* The visual grammar: one function a mark, the same in every layout and protocol. */

import { h, type Attributes, type Kid, type VNode } from "./dom";
import { clamp, fit, fitName, sizeIn, textWidth, type Labels } from "./geometry";
import type { Flying, Run } from "./run";
import type { Act, Frame, Gate, Kind, Node, NodeState, Role, Scene, State } from "./types";
import { phrase } from "./words";

/** One moment of a run, as the layouts see it. */
export interface View {
  scene: Scene; run: Run; state: State; t: number;
  flying: Flying[];
  W: number; H: number;
  /** amounts that the hand has set and not let go */
  preview: Record<string, number>;
  /** the frame that is pointed at, the rule shown, whether a question is open */
  hover: string | null; rule: string | null; asking: boolean;
  labels: Labels;
  /** in front of ids of patterns: two pictures on one page keep theirs apart */
  uid: string;
  small: boolean;
}

export const T = (x: number, y: number, text: string | number, c = "", a: Attributes = {}): VNode => h("text", { x: r1(x), y: r1(y), class: c, ...a }, String(text));
export const G = (a: Attributes, ...kids: Kid[]): VNode => h("g", a, ...kids);
export const P = (d: string, c = "", a: Attributes = {}): VNode => h("path", { d, class: c, ...a });
export const C = (x: number, y: number, r: number, c = "", a: Attributes = {}): VNode => h("circle", { cx: r1(x), cy: r1(y), r: r1(r), class: c, ...a });
export const L = (x1: number, y1: number, x2: number, y2: number, c = "", a: Attributes = {}): VNode => h("line", { x1: r1(x1), y1: r1(y1), x2: r1(x2), y2: r1(y2), class: c, ...a });
export const R = (x: number, y: number, w: number, height: number, c = "", a: Attributes = {}): VNode =>
  h("rect", { x: r1(x), y: r1(y), width: r1(Math.max(0, w)), height: r1(Math.max(0, height)), class: c, ...a });
export const at = (x: number, y: number): string => `transform:translate(${r1(x)}px,${r1(y)}px)`;
const r1 = (n: number): number => Math.round(n * 10) / 10;

/** Short name of a role's colours in the style sheet. */
export const tone = (role: Role | "permission" | undefined): string => ({ sender: "snd", receiver: "rcv", permission: "flow", "": "mute" })[role ?? ""];
const KINDS: Record<Kind, string> = { message: "snd", permission: "flow", acknowledgement: "alt", write: "snd" };
export const TONES = ["snd", "alt", "rcv"];

export function patterns(uid: string): VNode {
  const hatch = (id: string, c: string, w: number, s: number, angle: number) =>
    h("pattern", { key: id, id: uid + id, width: s, height: s, patternUnits: "userSpaceOnUse", patternTransform: `rotate(${angle})` }, h("rect", { width: w, height: s, class: `f-${c}` }));
  return h("defs", {}, hatch("stop", "stopfill", 2.5, 7, -45), hatch("alt", "alt", 2, 7, -45), hatch("curtain", "line", 2, 7, 45),
    h("marker", { id: `${uid}arrow`, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 6, markerHeight: 6, orient: "auto" }, P("M0 0L8 4L0 8z", "f-muted")));
}

/** What makes a mark something to act on. A click, Enter and space do `what`. */
export function hit(view: View, what: string, value: string | number | null, label: string, more: Attributes = {}): Attributes {
  const off = view.state.off?.[what];
  return { "data-act": what, "data-value": value, tabindex: 0, role: "button", "aria-label": off ? phrase("not-now", { name: label, why: off }) : label, "aria-disabled": off ? "true" : null, ...more, class: `hit ${more.class ?? ""}` };
}

export const actsOn = (view: View, on: string, kind?: Act["kind"]): Act[] => (view.scene.acts ?? []).filter((act) => act.on === on && (!kind || act.kind === kind));

/** What may be done to a frame that flies, or is held. */
export const actsOfFrame = (view: View, frame: Frame, held: boolean): Act[] =>
  (frame.inside ? [] : view.scene.acts ?? []).filter((act) => act.kind === "frame" && (!act.while || (act.while === "held") === held) && (!act.about || act.about === frame.kind));

/** A toggle's mark and words: the same for nodes, links, disks and gauges. */
export function toggle(view: View, on: string, name: string): Attributes | null {
  const act = actsOn(view, on, "toggle")[0];
  if (!act) return null;
  const is = view.state.on?.[act.id] ?? false;
  return hit(view, act.id, null, phrase("press", { name, act: is ? act.undo ?? act.name : act.name }), { "aria-pressed": String(is) });
}

/** A box lower than this has two lines of words and no more. */
export const LOW = 66;

/** Where the second line of a party's words stands: above the pill on the lower edge of a box that is low. */
export const secondLine = (height: number): number => (height < LOW ? 38 : 41);

/** A party. */
export function nodeBox(view: View, node: Node, x: number, y: number, w: number, height: number, a: Attributes = {}): VNode {
  const state = view.state.nodes?.[node.id] ?? {}, role = tone(node.role), press = toggle(view, node.id, node.name);
  const sub = state.sub ?? node.sub ?? "", second = y + secondLine(height), named = textWidth(sub, 12) > w - 20 ? sub.match(/“.+”$/)?.[0] ?? sub : sub, shown = fit(named, w - 20, 12), c = node.role ? `c-${role}` : "";
  view.labels.take(x, y, x + w, y + height);
  return G({ key: `node ${node.id}`, ...press, ...a },
    R(x, y, w, height, `node ${node.role ? `s-${role}` : ""} ${state.blocked ? "stop" : ""} ${state.down ? "down" : ""}`, { rx: 11 }),
    node.role && P(`M${x + 11} ${y}h${w - 22}a11 11 0 0 1 10 6.5h-${w - 2}a11 11 0 0 1 10 -6.5z`, `f-${role}`),
    T(x + 12, y + 25, fitName(node.name, w - 20, 13, 650), `b ${c}`), sub && T(x + 12, second, shown, "m s12"), shown !== sub && h("title", {}, sub),
    state.down && P(`M${x + w - 24} ${y + 12}l12 12m0 -12l-12 12`, "k-stop w4"));
}

/** What blocks, in words and with a square; or what goes on, with a triangle. */
export function pill(view: View, key: string, x: number, y: number, state: NodeState | { blocked?: string | null; going?: string | null }, most = 400): VNode | null {
  const said = state.blocked || state.going;
  if (!said) return null;
  const size = 12, text = fit(said, most - 38, size, 650), w = textWidth(text, size, state.blocked ? 650 : 500) + 38;
  view.labels.take(x, y, x + w, y + 26);
  return state.blocked
    ? G({ key: `${key} blocked`, class: "fade" }, R(x, y, w, 26, "f-stopfill", { rx: 13 }), R(x + 10, y + 8, 10, 10, "f-dark"), T(x + 27, y + 17.5, text, "b s12 c-dark"))
    : G({ key: `${key} going`, class: "fade" }, R(x, y, w, 26, "f-btn", { rx: 13 }), P(`M${x + 11} ${y + 8}l9 5l-9 5z`, "f-flow"), T(x + 27, y + 17.5, text, "s12"));
}

/** Where an act that sets an amount stands: what is so now. */
export function standsAt(view: View, act: Act): number {
  const knobs = Object.values(view.state.nodes ?? {}).map((node) => node.knobs?.[act.id]);
  return (act.kind === "handle" ? view.state.links?.[act.on]?.latency : knobs.find((one) => one !== undefined)) ?? act.min ?? 0;
}

/** Where its dial ends, so that what stands there can always be raised. */
export const topOf = (act: Act, now: number): number => Math.min(act.limit ?? Infinity, Math.max(act.max ?? 10, 2 * now));

/** An amount that the learner sets. */
export function knob(view: View, act: Act, x: number, y: number, r: number, role: Role, value: number, width = 120): VNode {
  const c = tone(act.tone ?? role), min = act.min ?? 0, max = topOf(act, value), set = view.preview[act.id], now = set ?? value;
  const angle = (q: number) => (135 + 270 * clamp((q - min) / (max - min), 0, 1)) * Math.PI / 180;
  const arc = (q: number) => {
    const A = angle(min), B = angle(q), X = (a: number) => (x + r * Math.cos(a)).toFixed(1), Y = (a: number) => (y + r * Math.sin(a)).toFixed(1);
    return `M${X(A)} ${Y(A)}A${r} ${r} 0 ${B - A > Math.PI ? 1 : 0} 1 ${X(B)} ${Y(B)}`;
  };
  const B = angle(now), changed = set !== undefined && set !== value, off = view.state.off?.[act.id];
  const name = changed ? phrase("let-go") : act.name, size = sizeIn(name, width, 500), words = phrase("turn-it", { value: `${now}${act.unit ? ` ${act.unit}` : ""}` });
  return G({ key: `knob ${act.id}`, class: "knob hit", "data-knob": act.id, "data-now": value, tabindex: 0, role: "slider", "aria-label": off ? phrase("not-now", { name: act.name, why: off }) : act.name, "aria-disabled": off ? "true" : null, "aria-valuemin": min, "aria-valuemax": max, "aria-valuenow": now, "aria-valuetext": words },
    C(x, y, r + 7, "f-none"), P(arc(max), "k-tube2 w7 round"), now > min && P(arc(now), `k-${c} w7 round`, { style: changed ? "stroke-dasharray:3 8" : "" }),
    C(x, y, r - 8, "face"), C(x + r * Math.cos(B), y + r * Math.sin(B), 6.5, `f-panel k-${c} w3`),
    T(x, y + (r < 28 ? 5 : 8.5), now, `mid n ${r < 28 || now > 999 ? "b" : "xl"}`),
    T(x, y + r + (r < 28 ? 15 : 19), fit(name, width, size), `mid s${size} m`));
}

/** What an act is called now: of a toggle that is on, how it is undone. */
export const nameNow = (view: View, act: Act): string => (act.kind === "toggle" && view.state.on?.[act.id] ? act.undo ?? act.name : act.name);

/** A button in the picture: a plus before what adds, unless the name takes all of the room; where there is none for a name, alone. */
export function button(view: View, act: Act, x: number, y: number, w: number, adds = false): VNode {
  const on = Boolean(view.state.on?.[act.id]), name = nameNow(view, act);
  view.labels.take(x, y, x + w, y + 28);
  const plus = adds && (w <= 56 || textWidth(name, sizeIn(name, w - 34), 650) <= w - 34);
  const room = w - (plus ? 34 : 14), size = sizeIn(name, room), text = room > 22 ? fit(name, room, size, 650) : "";
  return G({ key: `button ${act.id}`, ...hit(view, act.id, null, name, act.kind === "toggle" ? { "aria-pressed": String(on) } : {}) },
    R(x, y, w, 28, "face", { rx: adds ? 14 : 8 }), plus && P(`M${x + (text ? 16 : w / 2)} ${y + 8}v12m-6 -6h12`, "k-ink w2"),
    text && T(x + (plus ? 28 + room / 2 : w / 2), y + 18.5, text, `mid s${size} b`), text !== name && h("title", {}, name));
}

/** Whether a button of that width has room for a name. */
export const fits = (name: string, width: number): boolean => textWidth(name, 11, 650) <= width - 14;

/** How wide a button must be. */
export const buttonWidth = (name: string, plus: boolean): number => Math.ceil(textWidth(name, 12, 650)) + (plus ? 40 : 20);

/** A frame: disc, diamond, triangle or square; numbered, labelled, ringed where it is held. */
export function frameMark(view: View, { frame, held, lost, behind }: Flying, x: number, y: number, right: boolean, small = false): VNode | null {
  if (behind) return null;
  const r = small ? 7.5 : 12.5, c = frame.tone !== undefined && frame.kind !== "permission" ? TONES[frame.tone % 3] : KINDS[frame.kind];
  const place = { key: `frame ${frame.id}`, style: at(x, y) };
  if (lost) return G({ ...place, class: "fade" }, P("M-8 -8l16 16m0 -16l-16 16", "k-stop w4 round"));
  const shape = frame.kind === "message" ? C(0, 0, r, `disc f-${c}`)
    : frame.kind === "permission" ? P(`M0 ${-r - 3}L${r + 3} 0L0 ${r + 3}L${-r - 3} 0z`, `disc f-${c}`)
      : frame.kind === "acknowledgement" ? P(right ? `M${-r} ${-r}L${r + 2} 0L${-r} ${r}z` : `M${r} ${-r}L${-r - 2} 0L${r} ${r}z`, `disc f-${c}`)
        : R(-r + 1, -r + 1, 2 * r - 2, 2 * r - 2, `disc f-${c}`, { rx: 3 });
  const first = actsOfFrame(view, frame, held)[0];
  const is = phrase("frame-is", { frame: frame.name, how: phrase(held ? "held" : "in-flight") }), said = first ? phrase("press", { name: is, act: first.name }) : is;
  const a = first ? hit(view, first.id, frame.id, said) : { role: "img", "aria-label": said };
  const text = frame.text && frame.kind !== "permission" && frame.kind !== "acknowledgement" ? T(0, 4.5, frame.text, `mid n b c-on ${small || frame.text.length > 2 ? "s11" : "s12"}`) : null;
  const spot = frame.label ? view.labels.place(frame.label, 12, 650, [-1, 1].flatMap((side) => [0, -26, 26, -52, 52].map((dx) => ({ x: x + dx, y: y + side * (r + 19) + 4, anchor: "middle" as const }))), 9) : null;
  const w = frame.label ? textWidth(frame.label, 12, 650) + 16 : 0;
  const heldSpot = held ? view.labels.place(phrase("held"), 11, 650, [r + 20, -r - 14].map((dy) => ({ x, y: y + dy, anchor: "middle" as const }))) : null;
  return G({ ...place, ...a, "data-frame": frame.id },
    C(0, 0, r + 9, "f-none"), held && C(0, 0, r + 7, "ring"), view.hover === frame.id && C(0, 0, r + 5, "k-focus w2 f-none"), shape, text,
    spot && G({ style: at(spot.x - x, spot.y - y) }, R(-w / 2, -14, w, 19, `f-panel k-${c} w1`, { rx: 9.5 }), T(0, 0, frame.label!, "mid s12 n b")),
    heldSpot && T(heldSpot.x - x, heldSpot.y - y, phrase("held"), "mid s11 b halo"));
}

/** Valve: hollow and a handle along the pipe when open, solid and barred when closed; ringed if it limits. */
export function valveMark(view: View, id: string, name: string, x: number, y: number, w: number, size: 11 | 12): VNode {
  const state = view.state.valves?.[id] ?? { closed: false, read: "" }, { closed, limiting } = state, c = closed ? "stop" : "flow";
  const lines = textWidth(name, 12, 650) > w ? name.split(" ") : [name], read = textWidth(state.read, 12) > w ? 11 : 12;
  return G({ key: `valve ${id}`, role: "img", "aria-label": phrase(limiting ? "valve-limits" : "valve", { name, how: phrase(closed ? "closed" : "open"), read: state.read }) },
    limiting && C(x, y, 27, "f-stopsoft k-stopfill w3 fade", { key: "ring" }),
    P(`M${x - 17} ${y - 12}L${x + 17} ${y + 12}V${y - 12}L${x - 17} ${y + 12}z`, `${closed ? "f-stopfill" : "f-panel"} k-${c} w2 joined`),
    closed ? L(x, y - 21, x, y + 21, "k-stop w5 round") : L(x - 9, y - 18, x + 9, y - 18, "k-flow w3 round"),
    lines.slice(0, 2).map((line, i) => T(x, y - 52 - 14 * (Math.min(lines.length, 2) - 1 - i), fit(line, w + 8, size, 650), `mid s${size} b ${limiting ? "c-stop" : ""}`)),
    T(x, y - 36, phrase(closed ? "closed" : "open"), `mid s11 ${closed ? "c-stop b" : "m"}`), T(x, y + 46, fit(state.read, w + 2, read), `mid s${read} n`),
    state.of !== undefined && state.left !== undefined && [R(x - w / 2 + 6, y + 55, w - 12, 7, "f-tube2", { rx: 3.5 }), R(x - w / 2 + 6, y + 55, (w - 12) * clamp(state.left / state.of, 0, 1), 7, `glide f-${closed ? "stopfill" : "snd"}`, { rx: 3.5 })]);
}

/** A cylinder that fills while it syncs. */
export function diskMark(view: View, id: string, name: string, x: number, y: number, w: number, height: number, text: "under" | "beside"): VNode {
  const state = view.state.disks?.[id] ?? {}, e = 6, syncing = state.t0 != null && state.t1 != null && view.t < state.t1;
  const part = state.hung ? 1 : syncing ? clamp((view.t - state.t0!) / Math.max(state.t1! - state.t0!, 1e-9), 0, 1) : 0;
  const cylinder = (top: number, tall: number) => `M${x} ${top + e}a${w / 2} ${e} 0 0 1 ${w} 0v${tall - 2 * e}a${w / 2} ${e} 0 0 1 ${-w} 0z`;
  const tall = 2 * e + (height - 2 * e) * part, words = state.hung ? phrase("hangs") : state.text ?? (syncing ? phrase("syncs") : "");
  return G({ key: `disk ${id}`, ...(toggle(view, id, `${name}, ${words || phrase("idle")}`) ?? { role: "img", "aria-label": `${name}, ${words || phrase("idle")}` }) },
    R(x - 5, y - 4, w + 10, height + 20, "f-none"), P(cylinder(y, height), "face", {}),
    part > 0 && P(cylinder(y + height - tall, tall), state.hung ? "" : "f-sky", state.hung ? { style: `fill:url(#${view.uid}stop)` } : {}),
    P(`M${x} ${y + e}a${w / 2} ${e} 0 0 0 ${w} 0`, "thin"),
    words && (text === "under" ? T(x + w / 2, y + height + 14, words, `mid s11 n ${state.hung ? "c-stop b" : "m"}`) : T(x + w + 6, y + height / 2 + 4, words, `s11 n ${state.hung ? "c-stop b" : "m"}`)));
}

/** Cells in a node: ready messages, frames of a message, places of a window. At most two rows. */
export function items(state: NodeState, x: number, y: number, w: number, height: number): VNode | null {
  if (state.items == null) return null;
  if (typeof state.items === "number") {
    const cols = Math.floor((w - 8) / 16), rows = Math.max(1, Math.floor(height / 17)), most = cols * rows, shown = Math.min(state.items, most);
    return G({ key: "items" }, P(`M${x} ${y}h${w}v${height}h${-w}`, "thin f-none"), Array.from({ length: shown }, (_, i) =>
      C(x + w - 12 - (i % cols) * 16, y + height / 2 + (Math.floor(i / cols) - (Math.min(rows, Math.ceil(shown / cols)) - 1) / 2) * 16, 6, "f-sndsoft k-snd w2", { key: i })));
  }
  const list = state.items, cell = Math.min(26, w / Math.max(1, list.length)), tall = Math.min(22, height);
  const numbered = list.some(([text]) => textWidth(text, 11, 650) > cell - 5) ? false : true;
  return G({ key: "items" }, list.map(([text, how], i) => {
    const left = x + i * cell;
    return G({ key: i }, R(left, y, cell - 3, tall, how === "full" ? "f-sndsoft k-snd w2" : "f-tube2", { rx: 4 }),
      how === "hollow" && C(left + cell / 2 - 1.5, y + tall / 2, Math.min(9, cell / 2 - 3), "f-panel k-snd w2"),
      how === "held" && C(left + cell / 2 - 1.5, y + tall / 2, Math.min(9, cell / 2 - 3), "f-panel k-stop w2"),
      text && numbered && how !== "empty" && T(left + cell / 2 - 1.5, y + tall / 2 + 4, text, "mid s11 n b"));
  }));
}

/** The credit of a hop: so many dots of so many, ringed when none is left, and the number if it is told. */
export function dots(id: string, x: number, y: number, credit: number, of: number, text = ""): VNode {
  const step = of > 6 ? 8 : 10;
  return G({ key: `hop ${id}`, role: "img", "aria-label": phrase("credit", { credit: text || phrase("so-many-of", { have: credit, all: of }) }) },
    text && T(x + of * step + 1, y + 4, text, `s11 n ${credit <= 0 ? "c-stop b" : "m"}`),
    Array.from({ length: of }, (_, i) => C(x + i * step, y, 3.8, i < credit ? "f-flow" : "f-panel k-line2 w1", { key: i })), credit <= 0 && R(x - 7, y - 7, of * step + 4, 14, "f-none k-stopfill w2", { rx: 7 }));
}

/** A wire that sags with its latency, with a lane each way, and the handle for its latency. */
export interface Wire { x1: number; x2: number; y: number; there: number; back: number; sag: number }

export function wireMark(view: View, wire: Wire, id: string, names: readonly string[], thick: number, right = true): VNode {
  const { x1, x2, sag } = wire, middle = (x1 + x2) / 2, state = view.state.links?.[id] ?? {}, press = toggle(view, id, phrase("the-wire")), handle = actsOn(view, id, "handle")[0], y = wire.back + sag + thick / 2 + 6;
  const latency = (handle && view.preview[handle.id]) ?? state.latency, time = `${latency} ms`, half = Math.max(46, textWidth(time, 12, 650) / 2 + 18), lanes = names.length > 1 ? [wire.there, wire.back] : [wire.there];
  const lane = (at: number) => P(`M${x1} ${at}Q${middle} ${at + 2 * sag} ${x2} ${at}`, "tube", { style: `stroke-width:${thick}` });
  // What goes to the right is named at the left, where it comes from.
  const named = lanes.map((at, i) => {
    const rightward = (i === 0) === right, x = rightward ? x1 + 10 : x2 - 10, w = textWidth(names[i] ?? "", 11);
    view.labels.take(x1, at - thick / 2 + 1, x2, at + thick / 2 + sag - 1);
    if (names[i]) view.labels.take(rightward ? x : x - w, at - thick / 2 - 17, rightward ? x + w : x, at - thick / 2);
    return names[i] ? [P(rightward ? `M${x} ${at - 5}l6 5l-6 5` : `M${x} ${at - 5}l-6 5l6 5`, "thin f-none"), T(x, at - thick / 2 - 5, names[i], `s11 m ${rightward ? "" : "end"}`)] : null;
  });
  if (handle && latency !== undefined) view.labels.take(middle - half, y, middle + half, y + 26);
  const gates = state.gates && lanes.map((at, i) => gateMark(view, `${id} ${i ? "back" : "there"}`, names[i] ?? "", i ? state.gates!.back : state.gates!.there, middle, at + sag, thick, i ? 1 : -1, (i === 0) === right));
  return G({ key: `wire ${id}` },
    G({ ...press }, lanes.map(lane), state.cut && P(`M${middle + 2} ${wire.there - thick * 0.7}l7 ${thick * 0.5}l-9 ${thick * 0.4}l8 ${thick * 0.5}`, "f-none k-stopfill w4"), state.cut && T(middle + 14, wire.there - thick / 2 - 5, phrase("cut"), "s11 b c-stop")),
    named, gates,
    handle && latency !== undefined && G({ key: "handle", class: "knob hit", "data-knob": handle.id, "data-now": state.latency, "data-pull": "down", tabindex: 0, role: "slider", "aria-label": handle.name, "aria-valuemin": handle.min ?? 0, "aria-valuemax": topOf(handle, state.latency ?? 0), "aria-valuenow": latency, "aria-valuetext": phrase("turn-it", { value: time }) },
      R(middle - half, y, 2 * half, 26, "face", { rx: 13 }), P(`M${middle - half + 12} ${y + 10}l4 -4l4 4m-8 6l4 4l4 -4`, "k-muted w2 f-none"), T(middle + 8, y + 17.5, time, "mid s12 b n")));
}

/** A gate behind the middle of a lane, where frames wait: two posts, and a bar between them while it is closed. */
function gateMark(view: View, id: string, name: string, { closed, text }: Gate, x: number, y: number, thick: number, side: 1 | -1, rightward: boolean): VNode {
  const r = thick / 2 + 5, bar = x + (rightward ? 27 : -27), at = y + side * (r + 13) + 4, w = textWidth(text, 11);
  view.labels.take(bar - 12, y - r - 4, bar + 12, y + r + 4);
  view.labels.take(x - w / 2, at - 11, x + w / 2, at + 3);
  return G({ key: `gate ${id}`, ...(toggle(view, id, phrase("gate", { name, how: phrase(closed ? "closed" : "open"), text })) ?? {}) },
    R(bar - 12, y - r - 4, 24, 2 * r + 8, "disc f-none"), closed ? L(bar, y - r, bar, y + r, "k-stop w5 round") : [L(bar, y - r, bar, y - r + 8, "k-flow w5 round"), L(bar, y + r - 8, bar, y + r, "k-flow w5 round")],
    T(x, at, text, `mid s11 n ${closed ? "b c-stop" : "m"}`));
}

/** Where on a wire a frame is. */
export function onWire(wire: Wire, names: readonly string[], frame: Frame, part: number, right: boolean): [number, number] {
  const inset = 17, way = frame.way === "there" ? part : 1 - part, p = right ? way : 1 - way;
  const y = frame.way === "back" && names.length > 1 ? wire.back : wire.there;
  return [wire.x1 + inset + (wire.x2 - wire.x1 - 2 * inset) * p, y + wire.sag * 4 * p * (1 - p)];
}
