/* What is closed at first: the sequence diagram, the octets, the log, all counters, the list of acts, help. */

import { h, type Kid, type VNode } from "./dom";
import { clamp, fit, Labels, ms, round, textWidth, widest } from "./geometry";
import { actsOfFrame, at, C, G, hit, L, nameNow, P, R, standsAt, T, type View } from "./marks";
import type { Act, Frame, Kind, Parameter, Scene, Step, Value } from "./types";
import { phrase, phrases } from "./words";

export const TABS = [phrase("tab-sequence"), phrase("tab-bytes"), phrase("tab-log"), phrase("tab-counters"), phrase("tab-acts"), phrase("tab-parameters")] as const;
export const ACTS = 4;
const COLOURS: Record<Kind, string> = { message: "snd", permission: "flow", acknowledgement: "alt", write: "snd" };

/** Most frames of the sequence diagram. A jump draws others in the places of those that were there. */
const SLOTS = 160;

/** Time to the right, to scale; what was not yet known at `t` is not drawn. */
export function sequence(view: View, zero: number): VNode {
  const { scene, run, t } = view, width = view.W - 26, high = 236, left = 96, lanes = (scene.lifelines ?? scene.nodes.map((node) => node.id)).map((id) => scene.nodes.find((node) => node.id === id)).filter((node) => node !== undefined);
  const flights = run.frames.slice(0, 200).map((frame) => frame.path[frame.path.length - 1][0] - frame.path[0][0]).filter((time) => time > 0).sort((a, b) => a - b), usual = flights[flights.length >> 1] ?? 10;
  // What is drawn stands still on its paper, and the paper moves: a step changes what is new and one transform.
  const span = usual * 4.6, from = Math.max(0, t - span * 0.74), per = (width - left - 12) / span, origin = Math.floor(from / span) * span, shift = per * (origin - from), X = (time: number) => left + per * (time - origin), now = X(t) + shift, Y = (id: string) => 32 + lanes.findIndex((node) => node.id === id) * (180 / Math.max(1, lanes.length - 1));
  const labels = new Labels(width - shift, high), shown = new Set(lanes.map((node) => node.id)), drawn: Kid[] = [], texts: Kid[] = [], step = round((span / (width - left)) * 90);
  labels.take(X(t) - 4, 0, X(t) + 4, high);
  let n = 0;
  for (const [place, frame] of run.frames.entries()) {
    const begins = frame.path[0][0], [ends, part] = frame.path[frame.path.length - 1];
    if (begins > t) break;
    if (ends < from && part >= 1) continue;
    const link = scene.links?.find((one) => one.id === frame.link);
    if (!link || !shown.has(link.from) || !shown.has(link.to) || n >= SLOTS) continue;
    n++;
    const [a, b] = frame.way === "there" ? [Y(link.from), Y(link.to)] : [Y(link.to), Y(link.from)], fly = view.flying.find((one) => one.frame === frame), done = ends <= t, c = COLOURS[frame.kind];
    const points = frame.path.filter(([time]) => time <= t).map(([time, p]): [number, number] => [X(time), a + (b - a) * p]);
    if (!done) points.push([X(t), a + (b - a) * (fly?.part ?? 0)]);
    drawn.push(G({ key: place % SLOTS, "data-frame": frame.id }, h("title", {}, frame.name), P(`M${points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L")}`, `f-none w2 k-${c} ${frame.kind === "permission" ? "dashed" : ""}`, { "marker-end": done && !frame.lost ? `url(#${view.uid}arrow)` : null }),
      frame.lost && done && P(`M${points[points.length - 1][0] - 5} ${points[points.length - 1][1] - 5}l10 10m0 -10l-10 10`, "k-stop w3")));
    const text = fit(frame.short ?? frame.label ?? frame.text ?? "", 130, 11), down = b > a;
    if (!text || begins < from) continue;
    const spot = labels.place(text, 11, 500, [{ x: X(begins) + 5, y: a + (down ? 14 : -6), anchor: "start" }, { x: X(begins) - 5, y: a + (down ? 14 : -6), anchor: "end" }, { x: X(begins), y: a + (down ? -6 : 14), anchor: "middle" }]);
    if (spot) texts.push(T(spot.x, spot.y, text, `s11 halo ${spot.anchor === "middle" ? "mid" : spot.anchor}`, { key: place % SLOTS }));
  }
  return h("svg", { key: "sequence", width: "100%", height: high, viewBox: `0 0 ${width} ${high}`, role: "img", "aria-label": phrase("sequence") },
    h("defs", {}, h("clipPath", { id: `${view.uid}clip` }, R(left - 4, 0, width - left + 4, high))), lanes.map((node) => G({ key: node.id }, L(left - 6, Y(node.id), width, Y(node.id), "thin"), T(left - 14, Y(node.id) + 4, fit(node.name, left - 18, 12, 650), "end s12 b"))),
    G({ key: "drawn", "clip-path": `url(#${view.uid}clip)` }, G({ style: at(shift, 0) }, drawn, texts)), L(now, 16, now, high - 20, "k-ink w2"), T(clamp(now, left, width - 30), 11, ms(Math.max(0, t - zero), scene.untimed), "mid s11 b"),
    !scene.untimed && G({ key: "scale", style: at(width - 16 - step / span * (width - left - 12), high - 8) }, P(`M0 -4v8m0 -4h${step / span * (width - left - 12)}m0 -4v8`, "thin f-none"), T(-6, 4, phrase("to-scale", { ms: step }), "end s11 m")));
}

/** A frame's octets, and its fields; pointing at the one marks the other. */
export function octets(frame: Frame | undefined, field: number | null): Kid {
  if (!frame) return h("p", {}, phrase("no-frame"));
  if (!frame.octets) return h("p", {}, phrases("no-octets", { frame: h("b", {}, frame.name) }));
  const { hex, fields } = frame.octets, size = hex.length / 2, owner = new Array<number>(size).fill(-1);
  // Deeper fields come later and own their octets.
  fields.forEach(([, , first, after], i) => { for (let o = first; o < after && o < size; o++) owner[o] = i; });
  const runs: [number, string][] = [];
  for (let o = 0; o < Math.min(size, 2048); o++) {
    const text = hex.slice(2 * o, 2 * o + 2), last = runs[runs.length - 1];
    if (last && last[0] === owner[o]) last[1] += ` ${text}`;
    else runs.push([owner[o], text]);
  }
  return h("div", { class: "wst-bytes" }, h("p", {}, h("b", {}, frame.name), " · ", phrase(size > 2048 ? "octets-cut" : "octets", { octets: size })),
    h("div", { class: "hex" }, runs.map(([i, text], n) => h("span", { key: n, class: i >= 0 ? `o${i % 2} ${i === field ? "at" : ""}` : "", "data-field": i >= 0 ? i : null, title: i >= 0 ? `${fields[i][0]} ${fields[i][1]}` : null }, `${text} `))),
    h("div", { class: "fields" }, fields.map(([name, value, , , deep], i) => h("div", { key: i, tabindex: 0, "data-field": i, class: i === field ? "at" : "", style: `padding-left:${6 + deep * 12}px` }, h("span", {}, name), h("b", {}, value)))));
}

const ROW = 25;

export interface LogLines { steps: number[]; names: string[] }
const known = new WeakMap<Step[], { key: string; lines: LogLines }>();

/** Places of the steps that the log has a line for, up to the curtain, and who says something in it. */
export function logLines(steps: Step[], curtain: number, who: string): LogLines {
  const key = `${who} ${curtain}`, found = known.get(steps);
  if (found?.key === key) return found.lines;
  const lines: LogLines = { steps: [], names: [...new Set(steps.map((step) => step.who ?? ""))].filter(Boolean) };
  for (let i = 0; i < steps.length && steps[i].t < curtain + 1e-9; i++) {
    const step = steps[i];
    if (step.sentence && (!who || (who === "◆" ? step.mark : step.who === who))) lines.steps.push(i);
  }
  known.set(steps, { key, lines });
  return lines;
}

/** Only what the window shows is in the page. */
export function log(steps: Step[], { steps: lines, names }: LogLines, now: number, who: string, scrolled: number, zero: number, untimed?: boolean): Kid {
  const first = Math.max(0, Math.floor(scrolled / ROW) - 4), said = ({ mark, mine, sentence }: Step) => `${mark ? "◆ " : ""}${mine ? "▪ " : ""}${sentence}`, time = widest((steps[steps.length - 1]?.t ?? 0) - zero), named = clamp(Math.ceil(Math.max(...names.map((name) => textWidth(name, 13)))) + 2, 92, 150);
  return [h("div", { key: "filter", class: "wst-filter", role: "group", "aria-label": phrase("show") }, ["", "◆", ...names].map((name) => h("button", { key: name, type: "button", "data-ui": "who", "data-arg": name, "aria-pressed": String(who === name) }, name === "" ? phrase("all") : name === "◆" ? phrase("interesting") : name)), h("span", {}, phrase("lines", { lines: lines.length }))),
    h("div", { key: "log", class: "wst-log", style: `height:${lines.length * ROW}px` }, lines.slice(first, first + 22).map((i, n) => h("button", { key: i, type: "button", class: i === now ? "now" : "", "data-ui": "step", "data-arg": i, style: `top:${(first + n) * ROW}px`, "aria-current": i === now ? "step" : null },
      h("span", { class: "t", style: `width:${time}px` }, ms(Math.max(0, steps[i].t - zero), untimed)), h("span", { class: "who", style: `width:${named}px` }, steps[i].who ?? ""), h("span", { class: "said", title: steps[i].sentence ?? null }, said(steps[i])))))];
}

/** How far down the line of a step, or the next after it, stands. */
export function rowOf({ steps: lines }: LogLines, step: number): number {
  const place = lines.findIndex((i) => i >= step);
  return ROW * (place < 0 ? Math.max(0, lines.length - 1) : place);
}

export function counters(scene: Scene, values: Record<string, (string | number | null)[]>): Kid {
  if (!scene.counters) return h("p", {}, phrase("no-counters"));
  let group: string | undefined;
  const rows = scene.counters.rows.flatMap((row) => {
    const cells = values[row.id] ?? [], known = cells.filter((cell) => cell !== null && cell !== "?"), odd = row.compare && known.some((cell) => cell !== known[0]), head = row.group !== undefined && row.group !== group ? [h("tr", { key: `g ${row.group}` }, h("th", { class: "group", colspan: scene.counters!.columns.length + 1, scope: "rowgroup" }, row.group))] : [];
    group = row.group ?? group;
    return [...head, h("tr", { key: row.id, class: odd ? "odd" : "" }, h("th", { scope: "row" }, row.name), scene.counters!.columns.map((_, i) => h("td", { key: i }, `${odd && i ? "≠ " : ""}${cells[i] ?? "–"}`)))];
  });
  return h("table", {}, h("thead", {}, h("tr", {}, h("td", {}), scene.counters.columns.map((name) => h("th", { key: name, scope: "col" }, name)))), h("tbody", {}, rows));
}

/** Ids of the acts that have a mark in a picture. */
function marked(node: VNode, found = new Set<unknown>()): Set<unknown> {
  found.add(node.a["data-act"] ?? node.a["data-knob"]);
  node.kids.forEach((kid) => typeof kid !== "string" && marked(kid, found));
  return found;
}

const partyOf = (view: View, act: Act): string => view.scene.nodes.find((one) => one.id === act.on)?.name ?? "";
/** Whether an act needs a value: an amount, or words. */
const isSet = (act: Act): boolean => ["knob", "handle", "text"].includes(act.kind);

/** What may be done and has no mark in the picture: one row of buttons, as many as `width` has room for; all are in the list of acts. */
export function actRow(view: View, drawn: VNode, width: number): VNode[] {
  const there = marked(drawn), rest = (view.scene.acts ?? []).filter((act) => act.kind !== "frame" && !there.has(act.id)), row: VNode[] = [];
  // What is done to the whole comes first: behind a party's name it would be one of its acts.
  const place = (act: Act) => (act.on === "stage" ? -1 : rest.findIndex((one) => one.on === act.on));
  // Of the width, the margins and the button for more; of each button, its own margins and the gap behind it.
  let left = width - 24 - 40, last = "";
  for (const act of [...rest].sort((a, b) => place(a) - place(b))) {
    const name = nameNow(view, act), text = isSet(act) ? `${name}…` : name, party = partyOf(view, act);
    const heads = party !== "" && party !== last && !name.split(" ").includes(party.split(" ").pop()!);
    left -= textWidth(text, 13, 600) + 29 + (heads ? textWidth(`${party}:`, 12) + 12 : 0);
    if (left < 0) return [...row, h("button", { key: "more", type: "button", class: "wst-btn", "data-ui": "tab", "data-arg": 4, "aria-label": phrase("more-acts") }, "…")];
    if (heads) row.push(h("span", { key: `of ${party}` }, `${party}:`));
    last = party;
    const does = isSet(act) ? { "data-ui": "set", "data-arg": act.id } : hit(view, act.id, null, name, { "aria-pressed": act.kind === "toggle" ? String(Boolean(view.state.on?.[act.id])) : null });
    row.push(h("button", { key: act.id, ...does, type: "button", class: "wst-btn" }, text));
  }
  return row;
}

/** What is said of something tried, and where: in a row of the list of acts, or at a place of the stage. */
export interface Note { text: string; row: string | null; x: number; y: number }

/** Every act as a row: what the picture offers by pointing is here by name. */
export function actList(view: View, why: string | null, said: Note | null): Kid {
  const rows: VNode[] = [];
  const off = (act: Act) => view.state.off?.[act.id] ?? why, note = (act: Act, row = act.id) => (said?.row === row ? h("small", { key: "said", role: "alert" }, said.text) : off(act) && h("small", {}, off(act)));
  for (const act of view.scene.acts ?? []) {
    if (act.kind === "frame") continue;
    const where = partyOf(view, act), text = act.kind === "text", set = isSet(act), name = nameNow(view, act);
    const now = view.preview[act.id] ?? standsAt(view, act);
    rows.push(h("div", { key: act.id, class: "act", "data-row": act.id }, h("label", {}, where ? `${where}: ` : "", h("b", {}, name)),
      text && h("input", { type: "text", class: "words", "data-set": act.id, placeholder: act.hint ?? null, "aria-label": act.name }), set && !text && h("input", { type: "number", min: act.min ?? 0, max: act.limit ?? 1e9, "data-set": act.id, value: now, "aria-label": act.unit ? `${act.name}, ${act.unit}` : act.name }), set && act.unit && h("span", {}, act.unit), h("button", { type: "button", class: "wst-btn", "data-do": act.id, "aria-disabled": off(act) ? "true" : null, "aria-label": phrase(set ? "send-act" : "do-act", { act: name }) }, phrase(set ? "send" : "do")), note(act)));
  }
  const flights = view.flying.filter((one) => !one.lost);
  for (const { frame, held } of flights.slice(0, 40)) {
    const acts = actsOfFrame(view, frame, held);
    if (acts.length) rows.push(h("div", { key: frame.id, class: "act", "data-row": frame.id, "data-frame": frame.id }, h("label", {}, phrases(held ? "frame-held" : "frame-flying", { frame: h("b", {}, frame.name) })), acts.map((act) => h("button", { key: act.id, type: "button", class: "wst-btn", "data-do": act.id, "data-value": frame.id, "aria-disabled": off(act) ? "true" : null }, act.name)), acts.slice(0, 1).map((act) => note(act, frame.id))));
  }
  return rows.length ? h("div", { class: "wst-acts" }, why && h("p", {}, why), rows) : h("p", {}, phrase("no-acts"));
}

/** How a value stands in its field. */
const shownAs = (value: Value): string => (typeof value === "boolean" ? phrase(value ? "yes" : "no") : String(value ?? ""));

/** What a field says. Of a number nothing is null: it is left out. */
export function said(parameter: Parameter, text: string): Value {
  if (parameter.choices) return parameter.choices.find((one) => shownAs(one) === text) ?? text;
  return parameter.min === undefined ? text : text === "" ? null : Number(text);
}

/** Parameters of which another value is wanted than the run has that is shown. */
export const wanted = (parameters: Parameter[], typed: Record<string, string>): [string, Value][] => parameters.flatMap((one): [string, Value][] => (typed[one.id] === undefined || typed[one.id] === shownAs(one.value) ? [] : [[one.id, said(one, typed[one.id])]]));

/** The form by which a run is begun anew. `typed` is what stands in its fields, `wrong` why that is no run. */
export function form(parameters: Parameter[], typed: Record<string, string>, wrong: string | null): Kid {
  const other = parameters.some((one) => one.value !== one.given), field = (one: Parameter): Kid => {
    const text = typed[one.id] ?? shownAs(one.value), same = { "data-value-of": one.id, "aria-label": one.name };
    if (one.choices) return h("select", { ...same, value: text }, one.choices.map((choice) => h("option", { key: String(choice), value: shownAs(choice), selected: shownAs(choice) === text }, shownAs(choice))));
    if (one.min === undefined) return h("input", { ...same, type: "text", value: text });
    const slides = one.top !== undefined && one.top - one.min > 1, step = slides ? Math.max(1, round((one.top! - one.min) / 200)) : 1;
    return [h("input", { ...same, key: "number", type: "number", min: one.min, max: one.max ?? null, step: 1, required: !one.free, placeholder: one.free ? phrase("left-out") : null, value: text }),
      h("span", { key: "unit" }, one.unit ?? ""), slides && h("input", { ...same, key: "slider", type: "range", min: one.min, max: one.top!, step, value: text === "" ? one.min : text, "aria-valuetext": `${text} ${one.unit ?? ""}` })];
  };
  return h("div", { class: "wst-form" }, h("div", { key: "do", class: "do" }, h("button", { type: "button", class: "wst-btn go", "data-ui": "begin", "aria-disabled": wanted(parameters, typed).length ? null : "true" }, phrase("begin-anew")), (other || Object.keys(typed).length > 0) && h("button", { key: "given", type: "button", class: "wst-btn", "data-ui": "begin", "data-arg": "given" }, phrase("as-given")),
      h("p", { class: wrong ? "wrong" : "", role: wrong ? "alert" : null }, wrong ?? phrase("begin-how"))),
    parameters.map((one) => h("div", { key: one.id, class: one.value === one.given ? "" : "other" }, h("b", {}, one.name), field(one), h("small", {}, one.doc, one.value === one.given ? "" : ` (${phrase("given-was", { value: shownAs(one.given) || phrase("left-out") })})`))));
}

/** `own`: functions of the learner's own that are not in it; `said`: what came of copying it. */
export interface Code { text: string; own: string[]; said: string }

export function shared({ text, own, said }: Code): VNode {
  return h("div", { class: "wst-code", key: "code", role: "dialog", "aria-label": phrase("share-code") },
    h("p", {}, phrases("share-how", { call: h("code", {}, 'open_code("…")') })),
    h("textarea", { readonly: "", rows: 4, spellcheck: "false", "aria-label": phrase("share-code") }, text),
    own.length > 0 && h("p", {}, phrase("own-code", { names: own.join(", ") })),
    h("div", {}, h("button", { type: "button", class: "wst-btn go", "data-ui": "copy" }, phrase("copy")), h("button", { type: "button", class: "wst-btn", "data-ui": "share" }, phrase("close")), h("span", { role: "status" }, said)));
}

export function help(view: View): VNode {
  const list = (rows: [string, string][], keys: boolean) => h("dl", {}, rows.map(([name, text]) => [h("dt", { key: name }, keys ? name.split(" ").map((key) => h("kbd", {}, key)) : name), h("dd", { key: `${name} is` }, text)]));
  const marks: [string, Kid][] = [[phrase("mark-message"), C(0, 0, 11, "f-snd")], [phrase("mark-permission"), P("M0 -13L13 0L0 13L-13 0z", "f-flow")], [phrase("mark-acknowledgement"), P("M-11 -11L13 0L-11 11z", "f-alt")], [phrase("mark-write"), R(-8, -8, 16, 16, "f-snd", { rx: 3 })], [phrase("held"), [C(0, 0, 8, "f-snd"), C(0, 0, 13, "ring")]], [phrase("in-flight"), C(0, 0, 8, "f-panel k-snd w3")], [phrase("mark-received"), C(0, 0, 8, "f-snd")], [phrase("mark-given-up"), P("M-6 -6l12 12m0 -12l-12 12", "thin")]];
  let x = 18;
  return h("div", { class: "wst-help", key: "help", role: "dialog", "aria-label": phrase("help"), tabindex: -1 }, h("h3", {}, phrase("help-head")),
    h("div", { class: "cols" }, list([[phrase("help-knob"), phrase("help-knob-is")], [phrase("help-plus"), phrase("help-plus-is")], [phrase("help-frame"), phrase("help-frame-is")], [phrase("help-handle"), phrase("help-handle-is")], [phrase("help-node"), phrase("help-node-is")], [phrase("help-timeline"), phrase("help-timeline-is")]], false),
      list([[phrase("key-space"), phrase("key-space-is")], ["← →", phrase("key-arrows-is")], ["n", phrase("key-n-is")], [phrase("key-home"), phrase("key-home-is")], ["Tab", phrase("key-tab-is")], [phrase("key-turn"), phrase("key-turn-is")], ["1 – 4", phrase("key-numbers-is")], ["a p", phrase("key-a-is")], ["b", phrase("key-b-is")], ["? Esc", phrase("key-help-is")]], true)),
    h("svg", { width: "100%", height: 40, viewBox: `0 0 ${view.W - 48} 40`, role: "img", "aria-label": phrase("the-marks") }, marks.map(([name, mark]) => { const here = x; x += 40 + textWidth(name, 12); return G({ key: name }, G({ style: at(here, 20) }, mark), T(here + 19, 24, name, "s12")); })),
    h("button", { type: "button", class: "wst-btn", "data-ui": "help" }, phrase("close")));
}


