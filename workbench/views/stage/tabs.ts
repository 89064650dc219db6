/* What is closed at first: the sequence diagram, the octets, the log, all counters, the list of acts, help. */

import { h, type Kid, type VNode } from "./dom";
import { clamp, fit, Labels, ms, round, textWidth } from "./geometry";
import { actsOfFrame, at, C, G, L, P, R, T, type View } from "./marks";
import type { Act, Frame, Kind, Scene, Step } from "./types";

export const TABS = ["Sequence diagram", "Bytes", "Log", "All counters", "Act"] as const;
const COLOURS: Record<Kind, string> = { message: "snd", permission: "flow", acknowledgement: "alt", write: "snd" };

/** Time to the right, to scale; what was not yet known at `t` is not drawn. */
export function sequence(view: View): VNode {
  const { scene, run, t } = view, width = view.W - 26, high = 236, left = 96, lanes = (scene.lifelines ?? scene.nodes.map((node) => node.id)).map((id) => scene.nodes.find((node) => node.id === id)).filter((node) => node !== undefined);
  const flights = run.frames.slice(0, 200).map((frame) => frame.path[frame.path.length - 1][0] - frame.path[0][0]).filter((time) => time > 0).sort((a, b) => a - b), usual = flights[flights.length >> 1] ?? 10;
  // What is drawn stands still on its paper, and the paper moves: a step changes what is new and one transform.
  const span = usual * 4.6, from = Math.max(0, t - span * 0.74), per = (width - left - 12) / span, origin = Math.floor(from / span) * span, shift = per * (origin - from), X = (time: number) => left + per * (time - origin), now = X(t) + shift, Y = (id: string) => 32 + lanes.findIndex((node) => node.id === id) * (180 / Math.max(1, lanes.length - 1));
  const labels = new Labels(width - shift, high), shown = new Set(lanes.map((node) => node.id)), drawn: Kid[] = [], texts: Kid[] = [], step = round((span / (width - left)) * 90);
  labels.take(X(t) - 4, 0, X(t) + 4, high);
  let n = 0;
  for (const frame of run.frames) {
    const begins = frame.path[0][0], [ends, part] = frame.path[frame.path.length - 1];
    if (begins > t) break;
    if (ends < from && part >= 1) continue;
    const link = scene.links?.find((one) => one.id === frame.link);
    if (!link || !shown.has(link.from) || !shown.has(link.to) || n > 160) continue;
    n++;
    const [a, b] = frame.way === "there" ? [Y(link.from), Y(link.to)] : [Y(link.to), Y(link.from)], fly = view.flying.find((one) => one.frame === frame), done = ends <= t, c = COLOURS[frame.kind];
    const points = frame.path.filter(([time]) => time <= t).map(([time, p]): [number, number] => [X(time), a + (b - a) * p]);
    if (!done) points.push([X(t), a + (b - a) * (fly?.part ?? 0)]);
    drawn.push(G({ key: frame.id, "data-frame": frame.id }, h("title", {}, frame.name), P(`M${points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L")}`, `f-none w2 k-${c} ${frame.kind === "permission" ? "dashed" : ""}`, { "marker-end": done && !frame.lost ? `url(#${view.uid}arrow)` : null }),
      frame.lost && done && P(`M${points[points.length - 1][0] - 5} ${points[points.length - 1][1] - 5}l10 10m0 -10l-10 10`, "k-stop w3")));
    const text = fit(frame.short ?? frame.label ?? frame.text ?? "", 130, 11), down = b > a;
    if (!text || begins < from) continue;
    const spot = labels.place(text, 11, 500, [{ x: X(begins) + 5, y: a + (down ? 14 : -6), anchor: "start" }, { x: X(begins) - 5, y: a + (down ? 14 : -6), anchor: "end" }, { x: X(begins), y: a + (down ? -6 : 14), anchor: "middle" }]);
    if (spot) texts.push(T(spot.x, spot.y, text, `s11 halo ${spot.anchor === "middle" ? "mid" : spot.anchor}`, { key: frame.id }));
  }
  return h("svg", { key: "sequence", width: "100%", height: high, viewBox: `0 0 ${width} ${high}`, role: "img", "aria-label": "sequence diagram, time to the right, to scale" },
    h("defs", {}, h("clipPath", { id: `${view.uid}clip` }, R(left - 4, 0, width - left + 4, high))), lanes.map((node) => G({ key: node.id }, L(left - 6, Y(node.id), width, Y(node.id), "thin"), T(left - 14, Y(node.id) + 4, fit(node.name, left - 18, 12, 650), "end s12 b"))),
    G({ key: "drawn", "clip-path": `url(#${view.uid}clip)` }, G({ style: at(shift, 0) }, drawn, texts)), L(now, 16, now, high - 20, "k-ink w2"), T(clamp(now, left, width - 30), 11, ms(t), "mid s11 b"),
    G({ key: "scale", style: at(width - 16 - step / span * (width - left - 12), high - 8) }, P(`M0 -4v8m0 -4h${step / span * (width - left - 12)}m0 -4v8`, "thin f-none"), T(-6, 4, `to scale: ${step} ms`, "end s11 m")));
}

/** A frame's octets, and its fields; pointing at the one marks the other. */
export function octets(frame: Frame | undefined, field: number | null): Kid {
  if (!frame) return h("p", {}, "No frame yet.");
  if (!frame.octets) return h("p", {}, h("b", {}, frame.name), ": no octets are known of it, or it is work inside the broker.");
  const { hex, fields } = frame.octets, size = hex.length / 2, owner = new Array<number>(size).fill(-1);
  // Deeper fields come later and own their octets.
  fields.forEach(([, , first, after], i) => { for (let o = first; o < after && o < size; o++) owner[o] = i; });
  const runs: [number, string][] = [];
  for (let o = 0; o < Math.min(size, 2048); o++) {
    const text = hex.slice(2 * o, 2 * o + 2), last = runs[runs.length - 1];
    if (last && last[0] === owner[o]) last[1] += ` ${text}`;
    else runs.push([owner[o], text]);
  }
  return h("div", { class: "wst-bytes" }, h("p", {}, h("b", {}, frame.name), ` · ${size} octets${size > 2048 ? ", the first 2,048 shown" : ""}`),
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
  const lines: LogLines = { steps: [], names: [...new Set(steps.map((step) => step.log?.who ?? ""))].filter(Boolean) };
  for (let i = 0; i < steps.length && steps[i].t < curtain + 1e-9; i++) {
    const step = steps[i];
    if ((step.log || step.sentence) && (!who || (who === "◆" ? step.mark : step.log?.who === who))) lines.steps.push(i);
  }
  known.set(steps, { key, lines });
  return lines;
}

/** Only what the window shows is in the page. */
export function log(steps: Step[], { steps: lines, names }: LogLines, now: number, who: string, scrolled: number, from: number): Kid {
  const first = Math.max(0, Math.floor(scrolled / ROW) - 4);
  return [h("div", { key: "filter", class: "wst-filter", role: "group", "aria-label": "show" }, ["", "◆", ...names].map((name) => h("button", { key: name, type: "button", "data-ui": "who", "data-arg": name, "aria-pressed": String(who === name) }, name === "" ? "all" : name === "◆" ? "◆ interesting" : name)), h("span", {}, `${lines.length} lines`)),
    h("div", { key: "log", class: "wst-log", style: `height:${lines.length * ROW}px` }, lines.slice(first, first + 22).map((i, n) => h("button", { key: i, type: "button", class: i === now ? "now" : "", "data-ui": "step", "data-arg": i, style: `top:${(first + n) * ROW}px`, "aria-current": i === now ? "step" : null },
      h("span", { class: "t" }, ms(Math.max(0, steps[i].t - from))), h("span", { class: "who" }, steps[i].log?.who ?? ""), h("span", {}, `${steps[i].mark ? "◆ " : ""}${steps[i].mine ? "▪ " : ""}${steps[i].log?.text ?? steps[i].sentence}`))))];
}

/** How far down the line of a step, or the next after it, stands. */
export function rowOf({ steps: lines }: LogLines, step: number): number {
  const place = lines.findIndex((i) => i >= step);
  return ROW * (place < 0 ? Math.max(0, lines.length - 1) : place);
}

export function counters(scene: Scene, values: Record<string, (string | number | null)[]>): Kid {
  if (!scene.counters) return h("p", {}, "This picture has no further counters.");
  let group: string | undefined;
  const rows = scene.counters.rows.flatMap((row) => {
    const cells = values[row.id] ?? [], odd = row.compare && cells.length > 1 && cells.some((cell) => cell !== null && cells[0] !== null && cell !== cells[0]), head = row.group !== undefined && row.group !== group ? [h("tr", { key: `g ${row.group}` }, h("th", { class: "group", colspan: scene.counters!.columns.length + 1, scope: "rowgroup" }, row.group))] : [];
    group = row.group ?? group;
    return [...head, h("tr", { key: row.id, class: odd ? "odd" : "" }, h("th", { scope: "row" }, row.name), scene.counters!.columns.map((_, i) => h("td", { key: i }, `${odd && i ? "≠ " : ""}${cells[i] ?? "–"}`)))];
  });
  return h("table", {}, h("thead", {}, h("tr", {}, h("td", {}), scene.counters.columns.map((name) => h("th", { key: name, scope: "col" }, name)))), h("tbody", {}, rows));
}

/** Every act as a row: what the picture offers by pointing is here by name. */
export function actList(view: View, why: string | null): Kid {
  const rows: VNode[] = [], values = Object.assign({}, ...Object.values(view.state.nodes ?? {}).map((node) => node.knobs ?? {})) as Record<string, number>;
  const off = (act: Act) => view.state.off?.[act.id] ?? why, note = (act: Act) => off(act) && h("small", {}, off(act));
  for (const act of view.scene.acts ?? []) {
    if (act.kind === "frame") continue;
    const where = view.scene.nodes.find((node) => node.id === act.on)?.name ?? "", text = act.kind === "text", set = text || act.kind === "knob" || act.kind === "handle";
    const now = view.preview[act.id] ?? (act.kind === "handle" ? view.state.links?.[act.on]?.latency : values[act.id]) ?? act.min ?? 0, on = view.state.on?.[act.id];
    rows.push(h("div", { key: act.id, class: "act" }, h("label", {}, where ? `${where}: ` : "", h("b", {}, on ? act.undo ?? act.name : act.name)),
      text && h("input", { type: "text", class: "words", "data-set": act.id, "aria-label": act.name }), set && !text && h("input", { type: "number", min: act.min ?? 0, max: act.max ?? 1e6, "data-set": act.id, value: now, "aria-label": act.name }), h("button", { type: "button", class: "wst-btn", "data-do": act.id, "aria-disabled": off(act) ? "true" : null, "aria-label": `${set ? "send" : "do"}: ${on ? act.undo ?? act.name : act.name}` }, set ? "Send" : "Do"), note(act)));
  }
  const flights = view.flying.filter((one) => !one.lost);
  for (const { frame, held } of flights.slice(0, 40)) {
    const acts = actsOfFrame(view, frame, held);
    if (acts.length) rows.push(h("div", { key: frame.id, class: "act", "data-frame": frame.id }, h("label", {}, held ? "held: " : "in flight: ", h("b", {}, frame.name)), acts.map((act) => h("button", { key: act.id, type: "button", class: "wst-btn", "data-do": act.id, "data-value": frame.id, "aria-disabled": off(act) ? "true" : null }, act.name)), acts.slice(0, 1).map(note)));
  }
  return rows.length ? h("div", { class: "wst-acts" }, why && h("p", {}, why), rows) : h("p", {}, "There is nothing to act on in this picture.");
}

/** `own`: functions of the learner's own that are not in it; `said`: what came of copying it. */
export interface Code { text: string; own: string[]; said: string }

export function shared({ text, own, said }: Code): VNode {
  return h("div", { class: "wst-code", key: "code", role: "dialog", "aria-label": "share code" },
    h("p", {}, "Whoever gets this code runs ", h("code", {}, 'open_code("…")'), " with it, and sees this run at this step."),
    h("textarea", { readonly: "", rows: 4, spellcheck: "false", "aria-label": "share code" }, text),
    own.length > 0 && h("p", {}, `Your own code (${own.join(", ")}) is not in it: send it along.`),
    h("div", {}, h("button", { type: "button", class: "wst-btn go", "data-ui": "copy" }, "Copy"), h("button", { type: "button", class: "wst-btn", "data-ui": "share" }, "Close"), h("span", { role: "status" }, said)));
}

export function help(view: View): VNode {
  const list = (rows: [string, string][], keys: boolean) => h("dl", {}, rows.map(([name, text]) => [h("dt", { key: name }, keys ? name.split(" ").map((key) => h("kbd", {}, key)) : name), h("dd", { key: `${name} is` }, text)]));
  const marks: [string, Kid][] = [["message", C(0, 0, 11, "f-snd")], ["permission", P("M0 -13L13 0L0 13L-13 0z", "f-flow")], ["acknowledgement", P("M-11 -11L13 0L-11 11z", "f-alt")], ["write", R(-8, -8, 16, 16, "f-snd", { rx: 3 })], ["held", [C(0, 0, 8, "f-snd"), C(0, 0, 13, "ring")]], ["in flight", C(0, 0, 8, "f-panel k-snd w3")], ["received", C(0, 0, 8, "f-snd")], ["given up", P("M-6 -6l12 12m0 -12l-12 12", "thin")]];
  let x = 18;
  return h("div", { class: "wst-help", key: "help", role: "dialog", "aria-label": "help", tabindex: -1 }, h("h3", {}, "Act on the picture"),
    h("div", { class: "cols" }, list([["Knob, or the limit", "drag it; letting go sends the amount"], ["Button with a plus", "one more"], ["A frame in flight", "click to hold it, again to let it go"], ["Handle on the wire", "pull it down: more latency"], ["A node, a line, a disk", "click: crash, cut, hang; again to mend"], ["Timeline", "drag through time; an act grows a branch, what was there stays"]], false),
      list([["space", "play or pause"], ["← →", "one step"], ["n", "next interesting step"], ["Home End", "beginning, end"], ["Tab", "through all that can be acted on"], ["↑ ↓ Enter", "turn a knob, send"], ["1 – 4", "open or close a tab"], ["a", "every act by name"], ["b", "next branch"], ["? Esc", "this help; close"]], true)),
    h("svg", { width: "100%", height: 40, viewBox: `0 0 ${view.W - 48} 40`, role: "img", "aria-label": "the marks" }, marks.map(([name, mark]) => { const here = x; x += 40 + textWidth(name, 12); return G({ key: name }, G({ style: at(here, 20) }, mark), T(here + 19, 24, name, "s12")); })),
    h("button", { type: "button", class: "wst-btn", "data-ui": "help" }, "Close"));
}


