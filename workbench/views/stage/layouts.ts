/* Where the marks of a scene stand. Every layout is a function from a moment to a picture. */

import { h, type Kid, type VNode } from "./dom";
import { clamp, fit, fitName, sizeIn, textWidth } from "./geometry";
import { bars, numberLine } from "./lines";
import { actsOn, at, button, buttonWidth, C, diskMark, dots, fits, frameMark, G, items, knob, L, LOW, nodeBox, onWire, P, pill, R, secondLine, T, toggle, tone, TONES, valveMark, wireMark, type View, type Wire } from "./marks";
import type { Act, Gauge, Link, Node } from "./types";
import { phrase } from "./words";

const EDGE = 12;
/** Least distance of two frames on one lane, px. */
export const FRAME_GAP = 27;

interface Box { x: number; y: number; w: number; h: number }

/** A knob with a wider range is turned badly: its amount is typed. */
const WIDEST_KNOB = 1000;

/** Acts of a node that it has room for; the others stand under the picture. `room`: for a button. */
function offered(view: View, on: string, most: number, room = Infinity, besideKnob = room): { knobs: Act[]; buttons: Act[] } {
  const all = actsOn(view, on), knobs = all.filter((act) => act.kind === "knob" && (act.max ?? 10) - (act.min ?? 0) <= WIDEST_KNOB).slice(0, 2);
  return { knobs, buttons: knobs.length > 1 ? [] : all.filter((act) => act.kind === "button" && fits(act.name, knobs.length ? besideKnob : room)).slice(0, most) };
}

/** What the learner can do at a node and what it shows; the box gives the room, the pill stands on its lower edge. */
function party(view: View, node: Node, { x, y, w, h: high }: Box): Kid {
  const state = view.state.nodes?.[node.id] ?? {}, low = high < 120, besideKnob = w - (low ? 68 : 76), { knobs, buttons } = offered(view, node.id, low ? 1 : 2, low ? Infinity : w - 20, besideKnob), facts = [...(state.facts ?? [])], kids: Kid[] = [];
  kids.push(nodeBox(view, node, x, y, w, high));
  const fact = (text: string, i: number, left: number, at: number, c = ""): VNode => T(left, at, text, `s12 n m ${c}`, { key: `fact ${i}` });
  if (facts.length && textWidth(facts[0], 12) + textWidth(node.name, 13, 650) < w - 32 && (knobs.length || low || buttons.length > 1)) kids.push(fact(facts.shift()!, 9, x + w - 12, y + 25, "end"));
  const top = y + 48, floor = y + high - 14;
  if (knobs.length) {
    const column = buttons.length, beside = !low && column > 0, r = low ? 18 : beside ? 23 : knobs.length > 1 || view.small || facts.length ? 26 : 33, step = w / knobs.length, middle = low ? y + 50 : top + r + 8;
    // What stands beside a knob begins below the words of the box.
    const from = Math.max(middle - 14 - (column - 1) / 2 * 31, y + 46);
    knobs.forEach((act, i) => kids.push(knob(view, act, low ? x + w - 32 - i * 60 : beside ? x + r + 14 : x + step * (i + 0.5), middle, r, node.role, state.knobs?.[act.id] ?? act.min ?? 0, low ? 58 : beside ? 2 * r + 26 : step - 1)));
    const wide = Math.min(besideKnob, Math.max(30, ...buttons.map((act) => buttonWidth(act.name, false))));
    buttons.forEach((act, i) => kids.push(low ? button(view, act, x + 10, y + high - 36, wide) : button(view, act, x + w - wide - 8, from + i * 31, wide)));
    const label = Math.max(middle + r + (r < 28 ? 15 : 19), beside ? from + (column - 1) * 31 + 28 : 0);
    if (!low) facts.slice(0, Math.max(0, Math.floor((floor + 4 - label) / 15))).forEach((text, i) => kids.push(fact(fit(text, w - 16, 12), i, x + w / 2, label + 15 * (i + 1), "mid")));
    return G({ key: `party ${node.id}` }, kids);
  }
  const wides = buttons.map((act) => Math.min(w - 20, buttonWidth(act.name, true))), stacked = buttons.length > 1, tall = low || stacked ? 20 : typeof state.items === "number" ? 38 : 22;
  kids.push(items(state, x + 12, low ? Math.max(y + 46, y + high - 50) : top + 4, w - 24, tall));
  // A button beside facts that need the room is its plus alone.
  const plain = state.items != null && facts.some((text) => textWidth(text, 12) > w - 38 - wides[0]), one = !low && buttons.length === 1 && view.small && plain ? 34 : wides[0] ?? 0, right = stacked || low ? 0 : one + 14;
  buttons.forEach((act, i) => kids.push(low ? button(view, act, x + w - 44, y + high - 36, 34, true) : stacked ? button(view, act, x + 10, floor - 3 - 30 * (buttons.length - i), wides[i], true) : button(view, act, x + w - one - 10, y + high - 46, one, true)));
  // A box of a name and a word has no line of its own for what it counts; beside the word there may be room for one.
  if (high < LOW) facts.splice(0).slice(0, 1).filter((text) => textWidth(text, 12) + textWidth(state.sub ?? node.sub ?? "", 12) < w - 32).forEach((text) => kids.push(fact(text, 8, x + w - 12, y + secondLine(high), "end")));
  const first = state.items == null ? top + 10 : low ? y + high - 14 : top + tall + 24;
  if (!stacked) facts.slice(0, low ? 1 : 2).forEach((text, i) => { const at = first + i * 16, taken = at > y + high - 52 ? right : 0; if (textWidth(text, 12) < w - 24 - taken || !taken) kids.push(fact(fit(text, w - 24 - taken, 12), i, x + 12, at)); });
  return G({ key: `party ${node.id}` }, kids);
}

function frames(view: View, link: Link, wire: Wire, right: boolean): (VNode | null)[] {
  return view.flying.filter(({ frame }) => frame.link === link.id).map((one) => {
    const [x, y] = onWire(wire, link.names, one.frame, one.part, right);
    return frameMark(view, one, x, y, (one.frame.way === "there") === right);
  });
}

/** How much a wire hangs through: pulled long, it takes longer. */
const sagOf = (view: View, link: Link): number => {
  const act = actsOn(view, link.id, "handle")[0], latency = (act && view.preview[act.id]) ?? view.state.links?.[link.id]?.latency ?? 10;
  return clamp((latency - 10) * 0.9, -3, 16);
};

/** Parties in columns from left to right: as they are placed; else who sends, who does both, who receives; where none does either, the first and the others.
    Where all wires lead to one party it has a column of its own, and nobody stands in the way of another's wire. */
function sides(nodes: Node[], links: Link[]): Node[][] {
  if (nodes.every((node) => node.place)) return [0, 1].map((column) => nodes.filter((node) => node.place![0] === column));
  const of = (list: Node[], ...roles: string[]) => list.filter((node) => roles.includes(node.role ?? "")), some = (...lists: Node[][]) => lists.filter((list) => list.length);
  const hub = nodes.length > 2 && nodes.find(({ id }) => links.every((one) => one.from === id || one.to === id));
  if (hub) {
    const others = nodes.filter((node) => node !== hub);
    return hub.role === "sender" ? [[hub], others] : hub.role === "receiver" ? [others, [hub]] : some(of(others, "sender", ""), [hub], of(others, "receiver"));
  }
  const by = some(of(nodes, "sender"), of(nodes, ""), of(nodes, "receiver"));
  return by.length > 1 || nodes.length < 2 ? by : [nodes.slice(0, 1), nodes.slice(1)];
}

function link(view: View): Kid[] {
  const { scene, W, H } = view, grow = Math.round((H - 392) * 0.35), columns = sides(scene.nodes, scene.links ?? []), last = columns.length - 1;
  const most = Math.max(...columns.map((list) => list.length)), w = view.small || last > 1 ? 146 : Math.round(clamp(W * 0.21, 160, 210)), lines = scene.lines ?? [];
  // Without a line below them the parties have all of the picture, and stand in its middle.
  const high = lines.length ? (most > 1 ? 186 : 154) + grow : Math.min(H - 2 * EDGE - 20, most * (170 + grow)), up = lines.length ? EDGE - 2 : (H - high) / 2 - 4;
  const place = (list: Node[], node: Node, x: number): Box => {
    // Between them is room for the half of a pill that hangs out.
    const gap = 14, tall = (high - (list.length - 1) * gap) / list.length;
    return { x, y: up + list.indexOf(node) * (tall + gap), w, h: tall };
  };
  const column = (node: Node) => columns.findIndex((list) => list.includes(node)), boxes = new Map<string, Box>(scene.nodes.map((node) => [node.id, place(columns[column(node)], node, EDGE + (W - 2 * EDGE - w) * (last ? column(node) / last : 0))] as const));
  const kids: Kid[] = [], wires: [Link, Wire, boolean][] = [], links = scene.links ?? [], tight = most > 1;
  // How far its lanes are from the middle of a wire, and how thick they are: less, the more wires there are.
  const [there, back, thick] = most > 2 ? [12, 14, 14] : tight ? [17, 21, 20] : [25, 27, 28];
  const parties = scene.nodes.map((node) => party(view, node, boxes.get(node.id)!));
  // Pills stand under the boxes where there is one box a side, else on their lower edge; one at the right may be wider than its box.
  const pills = scene.nodes.map((node) => {
    const box = boxes.get(node.id)!, state = view.state.nodes?.[node.id] ?? {}, said = state.blocked || state.going || "", right = last > 0 && column(node) === last;
    const wide = Math.min(textWidth(said, 12, 650) + 38, W / 2 - 30);
    return pill(view, `pill ${node.id}`, right ? W - EDGE - wide : box.x, box.y + box.h - 13, state, W / 2 - 30);
  });
  const top = EDGE + high + 4, room = H - top - 4;
  links.forEach((one) => {
    const a = boxes.get(one.from), b = boxes.get(one.to);
    if (!a || !b) return;
    const forward = a.x < b.x, l = forward ? a : b, r = forward ? b : a, low = l.h < r.h ? l : r;
    const middle = tight ? low.y + low.h / 2 : l.y + l.h * 0.45;
    const wire: Wire = { x1: l.x + w - 3, x2: r.x + 3, y: middle, there: middle - there, back: middle + back, sag: tight ? 0 : sagOf(view, one) };
    kids.push(wireMark(view, wire, one.id, one.names, thick, forward));
    wires.push([one, wire, forward]);
  });
  // A line of windows needs more room than one of units, and another rule beside it needs more.
  const share = lines.map((line) => (line.style === "units" ? 0.55 : 1) + (view.rule && view.state.lines?.[line.id]?.rules?.[view.rule] ? 0.3 : 0)), all = share.reduce((sum, one) => sum + one, 0);
  let y = top;
  const drawn = lines.map((line, i) => {
    const high = room * share[i] / all, made = numberLine(view, line, y, high);
    y += high;
    return made;
  });
  // Their labels come last: they move, and find room between what stands.
  const flown = wires.map(([one, wire, forward]) => frames(view, one, wire, forward));
  return [kids, parties, flown, pills, drawn];
}

/** A small vessel inside a node. */
function smallGauge(view: View, gauge: Gauge, x: number, y: number): VNode {
  const state = view.state.gauges?.[gauge.id] ?? {}, level = clamp((state.items?.length ?? state.level ?? 0) / gauge.top, 0, 1), tall = 34, words = state.text ?? gauge.name;
  return G({ key: `gauge ${gauge.id}`, ...(toggle(view, gauge.id, `${gauge.name}, ${state.text ?? phrase("level", { level: state.level ?? 0 })}`) ?? { role: "img", "aria-label": gauge.name }) },
    R(x - 8, y - 4, 42, 60, "f-none"), R(x, y, 26, tall + 2, "face", { rx: 4 }), R(x + 1, y + 1 + tall * (1 - level), 24, tall * level, state.stopped ? "" : "f-snd half", { rx: 3, style: state.stopped ? `fill:url(#${view.uid}stop)` : "" }),
    gauge.marks.map((mark) => L(x - 3, y + 1 + tall * (1 - mark.at / gauge.top), x + 29, y + 1 + tall * (1 - mark.at / gauge.top), mark.kind === "high" ? "k-stop w2" : "k-flow w2 dashes", { key: mark.text })),
    T(x + 13, y + tall + 16, words, `mid s11 ${state.stopped ? "c-stop b" : "m"}`));
}

function valves(view: View): Kid[] {
  const { scene, state, W, H, small } = view, grow = Math.round((H - 392) * 0.35), list = scene.valves ?? [], app = scene.nodes[0], queue = scene.nodes[scene.nodes.length - 1], out = scene.links?.[0], y = 104 + grow / 2;
  const aw = small ? 106 : 116, qw = small ? 106 : 132, x1 = EDGE + aw, x2 = W - EDGE - qw, va = x1 + Math.max(small ? 40 : 52, Math.min(textWidth(list[0]?.name ?? "", 12, 650), 100) / 2 + 5), vb = x2 - (small ? 40 : 100), dx = list.length > 1 ? (vb - va) / (list.length - 1) : 0, VX = (i: number) => va + dx * i, last = VX(list.length - 1), room = Math.min(100, dx - 4), size = list.some((valve) => valve.name.split(" ").some((word) => sizeIn(word, room) === 11)) ? 11 : 12;
  const closed = list.findIndex((valve) => state.valves?.[valve.id]?.closed), kids: Kid[] = [], high = 186 + grow, top = 28, back = y + 90;
  kids.push(P(`M${x1 - 4} ${y}H${x2 + 4}`, "tube", { key: "pipe", style: "stroke-width:22" }), P(`M${x1 - 4} ${back}H${x2 + 4}`, "tube", { key: "back", style: "stroke-width:20" }));
  if (out) {
    const cut = state.links?.[out.id]?.cut, middle = (last + x2) / 2 + 10, press = toggle(view, out.id, phrase("the-network"));
    kids.push(G({ key: "network", ...press }, R(last + 24, y - 18, x2 - last - 24, 36, "f-none"), cut && P(`M${middle - 4} ${y - 17}l8 11l-10 9l9 13`, "f-none k-stopfill w4"), (!small || cut) && T(middle, y - 22, phrase(cut ? "cut" : "network"), `mid s11 ${cut ? "b c-stop" : "m"}`)));
    if (!small || cut) view.labels.take(middle - 26, y - 34, middle + 26, y - 18);
    if (out.names[1]) kids.push(T((x1 + x2) / 2, back + 4, out.names[1], "mid s11 m", { key: "backname" }));
  }
  // Up to the first closed valve messages stand; where none is closed they run.
  const stands = closed < 0 ? null : VX(closed) - 26, row: Kid[] = [], clear = (x: number) => !list.some((_, i) => Math.abs(VX(i) - x) < 23);
  if (stands !== null && state.nodes?.[app.id]?.blocked) { for (let x = stands, n = 0; x > x1 + 6; x -= 13, n++) if (clear(x)) row.push(C(x, y, 5.5, "f-snd", { key: n })); }
  else if (stands === null && view.flying.some(({ frame, held }) => frame.way === "there" && !held)) for (let x = x1 + 8 + ((view.t * 26) % 26), n = 0; x < last + 20; x += 26, n++) row.push(C(x, y, 5.5, "f-snd", { key: n }));
  kids.push(G({ key: "stream" }, row), list.map((valve, i) => valveMark(view, valve.id, valve.name, VX(i), y, room, size)));
  list.forEach((_, i) => view.labels.take(VX(i) - dx / 2, y - 70, VX(i) + dx / 2, y + 66));
  const appState = state.nodes?.[app.id] ?? {}, queueState = state.nodes?.[queue.id] ?? {}, { knobs, buttons } = offered(view, app.id, 1, aw - 16);
  kids.push(nodeBox(view, app, EDGE, top, aw, high), knobs.slice(0, 1).map((act) => knob(view, act, EDGE + aw / 2, top + 78 + grow / 2, 23, "sender", appState.knobs?.[act.id] ?? act.min ?? 0, aw - 8)),
    buttons.map((act) => button(view, act, EDGE + 8, top + 124 + grow / 2, Math.min(aw - 16, buttonWidth(act.name, true)), true)),
    (appState.facts ?? []).slice(0, 2).map((fact, i, all) => T(EDGE + aw / 2, top + high - 12 - (all.length - 1 - i) * 16, fit(fact, aw - 12, 12, 650), `mid s12 n ${i ? "m" : "b"}`, { key: `af${i}` })));
  kids.push(nodeBox(view, queue, x2, top, qw, high), G({ key: "inside" },
    (scene.disks ?? []).filter((disk) => disk.on === queue.id).slice(0, 1).map((disk) => diskMark(view, disk.id, disk.name, x2 + qw * 0.27 - 20, y - 14, 40, 36, "under")),
    (scene.gauges ?? []).filter((gauge) => gauge.on === queue.id).slice(0, 1).map((gauge) => smallGauge(view, gauge, x2 + qw * 0.74 - 13, y - 14)),
    (queueState.facts ?? []).slice(0, 2).map((fact, i, all) => T(x2 + qw / 2, top + high - 12 - (all.length - 1 - i) * 16, fit(fact, qw - 12, 12, 650), `mid s12 n ${i ? "m" : "b"}`, { key: `qf${i}` }))));
  const under = top + high + 5;
  kids.push(pill(view, "pill", EDGE, under, appState, W / 2), queueState.blocked && pill(view, "queue pill", W - EDGE - Math.min(W / 2 - 20, textWidth(queueState.blocked, 12, 650) + 38), under, queueState, W / 2 - 20));
  const wire: Wire = { x1: last + 22, x2: x2 + 6, y, there: y, back, sag: 0 };
  view.flying.forEach((one) => {
    const there = one.frame.way === "there", x = there ? wire.x1 + (wire.x2 - wire.x1) * one.part : x2 - 10 - (x2 - x1 - 20) * one.part;
    kids.push(there && one.frame.kind === "message" && !one.held && !one.lost ? C(x, y, 4.5, "f-snd", { key: `frame ${one.frame.id}` }) : frameMark(view, one, x, there ? y : back, there, one.frame.kind !== "permission"));
  });
  const line = scene.lines?.[0];
  return [kids, line && numberLine(view, line, under + 24, H - under - 30)];
}

/** Where the nodes and the wires of a group stand. */
function quorumPlan({ scene, state, H, small }: View) {
  const publisher = scene.nodes.find((node) => node.role === "sender"), replicas = scene.nodes.filter((node) => node !== publisher), n = replicas.length;
  const foot = 58, pitch = Math.min(72, (H - foot - 26) / Math.max(3, n)), rowY = (i: number) => 34 + (H - foot - 34 - pitch * n) / 2 + pitch * (i + 0.5), ch = 42;
  const pw = small ? 104 : 112, px = EDGE + pw, lx = px + (small ? 26 : 52), cw = small ? 80 : 124, nx = lx + cw + (small ? 40 : 64), dx = nx + cw + 10, bx = dx + (small ? 46 : 54), leads = replicas.findIndex((node) => state.nodes?.[node.id]?.leads && !state.nodes?.[node.id]?.down), middle = rowY((n - 1) / 2);
  const ly = leads < 0 ? middle : rowY(leads), place = new Map<string, [number, number]>(replicas.map((node, i) => [node.id, [i === leads ? lx : nx, rowY(i)]]));
  const ends = (link: Link): [number, number, number, number] | null => {
    const a = link.from === publisher?.id ? [px, middle] : place.get(link.from), b = link.to === publisher?.id ? [px, middle] : place.get(link.to);
    if (!a || !b) return null;
    // From the side of a box that looks at the other one.
    const out = (p: number[], q: number[], id: string) => (id === publisher?.id ? p[0] : p[0] < q[0] ? p[0] + cw : p[0]);
    return a[0] === b[0] ? [a[0], a[1], b[0], b[1]] : [out(a, b, link.from), a[1], out(b, a, link.to), b[1]];
  };
  // A frame stays clear of the boxes.
  const inner = (link: Link): number => (link.from === publisher?.id ? 10 : 6);
  return { publisher, replicas, pw, lx, ly, cw, ch, nx, dx, bx, leads, middle, rowY, ends, inner };
}

/** How long the way of a link's frames is, px: where a wire has what the boxes leave of the picture, about so long. */
export function wireLength(view: View, id: string): number {
  const link = view.scene.links?.find((one) => one.id === id), plan = view.scene.layout === "quorum" && link ? quorumPlan(view) : null, e = plan?.ends(link!);
  return e ? Math.max(1, Math.hypot(Math.abs(e[2] - e[0]) - 2 * plan!.inner(link!), e[3] - e[1])) : Math.max(200, view.W - 380);
}

function quorum(view: View): Kid[] {
  const { scene, state, W, H } = view, { publisher, replicas, pw, lx, ly, cw, ch, nx, dx, bx, leads, middle, rowY, ends, inner } = quorumPlan(view), kids: Kid[] = [];
  for (const link of scene.links ?? []) {
    const e = ends(link), cut = state.links?.[link.id]?.cut;
    const leader = leads < 0 ? undefined : replicas[leads].id, busy = view.flying.some(({ frame }) => frame.link === link.id);
    // A line that does not touch the leader is drawn only while something flies on it, or while it is cut.
    if (!e || (link.from !== leader && link.to !== leader && !busy && !cut)) continue;
    const wide = link.from === publisher?.id || link.to === publisher?.id ? 18 : 7, d = `M${e[0]} ${e[1]}L${e[2]} ${e[3]}`, mx = (e[0] + e[2]) / 2, my = (e[1] + e[3]) / 2;
    kids.push(G({ key: `link ${link.id}`, ...toggle(view, link.id, phrase("line-of", { name: link.names[0] ?? "" })) }, P(d, "wide"), P(d, cut ? "k-stopfill w3 f-none" : "tube", { style: cut ? "stroke-dasharray:3 8" : `stroke-width:${wide}` }), cut && P(`M${mx - 7} ${my - 7}l14 14m0 -14l-14 14`, "k-stop w4 round")));
  }
  if (leads >= 0) kids.push(L(lx + cw, ly, dx, ly, "tube", { key: "own", style: "stroke-width:7" }));
  if (publisher) {
    const own = state.nodes?.[publisher.id] ?? {}, acts = actsOn(view, publisher.id, "button"), tall = 126, y = middle - tall / 2;
    kids.push(nodeBox(view, publisher, EDGE, y, pw, tall), acts.slice(0, 1).map((act) => button(view, act, EDGE + (pw - 34) / 2, y + 52, 34, true)),
      (own.facts ?? []).slice(0, 2).map((fact, i, all) => T(EDGE + pw / 2, y + tall - 12 - (all.length - 1 - i) * 16, fit(fact, pw - 12, 12, 650), "mid s12 n b", { key: `pf${i}` })), pill(view, "pill", EDGE, y + tall + 8, own, nx - EDGE - 6));
  }
  replicas.forEach((node, i) => {
    const own = state.nodes?.[node.id] ?? {}, leader = i === leads, x = leader ? lx : nx, y = rowY(i), disk = scene.disks?.find((one) => one.on === node.id), sub = own.down ? phrase("down") : own.sub ?? node.sub ?? "";
    view.labels.take(x, y - ch / 2, x + cw, y + ch / 2);
    kids.push(G({ key: `replica ${node.id}`, class: "glide", style: at(x, y - ch / 2) }, G(toggle(view, node.id, `${node.name}, ${sub}`) ?? {},
      R(0, 0, cw, ch, `node ${own.down ? "down" : leader ? "s-snd" : ""} ${own.blocked ? "stop" : ""}`, { rx: 10 }),
      own.down ? P(`M9 ${ch / 2 - 6}l12 12m0 -12l-12 12`, "k-stop w4 round") : leader ? P("M15 10l2.9 6 6.6.8-4.9 4.5 1.3 6.5-5.9-3.3-5.9 3.3 1.3-6.5L5.5 16.8l6.6-.8z", "f-snd") : C(15, ch / 2, 6, "f-panel k-muted w2"),
      T(30, ch / 2 - 1, fitName(node.name, cw - 34, 13, 650), "b"), T(30, ch / 2 + 13, textWidth(sub, 11) > cw - 34 ? fit(sub.split(", ")[0], cw - 34, 11) : sub, "s11 m"))),
      disk && diskMark(view, disk.id, disk.name, dx, y - 17, 36, 32, "under"));
  });
  const line = scene.lines?.find((one) => one.style === "bars");
  if (line) kids.push(bars(view, line, bx, W - bx - EDGE, (i) => rowY(replicas.findIndex((node) => node.id === line.ends[i].id)), H));
  let x = EDGE;
  for (const { mark, text } of scene.legend ?? []) {
    kids.push(G({ key: `legend ${text}` }, R(x, H - 27, 13, 11, mark === "memory" ? "f-panel k-snd w1" : "f-snd", { rx: 2, style: mark === "memory" ? "stroke-dasharray:3 2" : "" }), T(x + 18, H - 17, text, "s11 m")));
    x += textWidth(text, 11) + 36;
  }
  const lost: [number, number][] = [];
  for (const one of view.flying) {
    const link = scene.links?.find((l) => l.id === one.frame.link), e = link && ends(link);
    if (!e) continue;
    const p = one.frame.way === "there" ? one.part : 1 - one.part, room = inner(link!), along = (a: number, b: number) => a + (b - a) * p;
    const fx = along(e[0] + Math.sign(e[2] - e[0]) * room, e[2] - Math.sign(e[2] - e[0]) * room), fy = along(e[1], e[3]);
    // What a crash loses all at once is lost in one place: one cross.
    if (one.lost && lost.some(([x, y]) => Math.hypot(x - fx, y - fy) < 16)) continue;
    if (one.lost) lost.push([fx, fy]);
    kids.push(frameMark(view, one, fx, fy, (e[2] > e[0]) === (one.frame.way === "there"), one.frame.kind !== "message"));
  }
  return kids;
}

/** Of a box in a chain. */
const TALLEST = 94;

function chain(view: View): Kid[] {
  const { scene, state, W, H, small } = view, groups = scene.groups?.length ? scene.groups : [{ id: "", title: "" }], kids: Kid[] = [], flown: Kid[] = [], tall = H / groups.length;
  groups.forEach((group, g) => {
    const nodes = scene.nodes.filter((node) => (node.group ?? "") === group.id), top = tall * g + (group.title ? 33 : 4), room = tall - (group.title ? 39 : 10), cols = Math.max(1, ...nodes.map((node) => node.place?.[0] ?? 0)), rowsUsed = Math.max(1, ...nodes.map((node) => (node.place?.[1] ?? 0) + 1));
    const wide = nodes.some((node) => node.mark) ? 108 : 90, width = (node: Node) => (small ? (node.role || node.mark ? 98 : 80) : node.role ? 108 : node.mark ? wide : 90), ww = Math.max(...nodes.map((node) => (node.place?.[0] === cols ? width(node) : 80))), pitch = room / Math.max(2.6, rowsUsed), X = (col: number) => EDGE + (W - 2 * EDGE - ww) * col / cols, Y = (row: number) => top + room / 2 + (row - (rowsUsed - 1) / 2) * pitch;
    const box = new Map(nodes.map((node) => { const linked = (scene.links ?? []).filter((link) => link.from === node.id || link.to === node.id).length; const high = node.role === "sender" && linked > 1 ? Math.min(room - 8, pitch * (rowsUsed - 0.2)) : Math.min(node.role ? (actsOn(view, node.id, "button").length ? TALLEST : 74) : 50, room - 8, node.tone === undefined ? TALLEST : 34); return [node.id, { x: X(node.place?.[0] ?? 0), y: Y(node.place?.[1] ?? 0) - high / 2, w: width(node), h: high }] as const; }));
    if (g) kids.push(L(EDGE, tall * g - 2, W - EDGE, tall * g - 2, "rule", { key: `rule ${g}` }));
    if (group.title) {
      const sub = fit(group.sub ?? "", W - textWidth(group.title, 13, 650) - 60, 12);
      view.labels.take(EDGE, tall * g + 4, EDGE + textWidth(group.title, 13, 650) + 20 + textWidth(sub, 12), tall * g + 21);
      kids.push(T(EDGE, tall * g + 17, group.title, "b", { key: `title ${g}` }), sub && T(EDGE + textWidth(group.title, 13, 650) + 12, tall * g + 17, sub, "s12 m", { key: `sub ${g}` }));
    }
    const waysOf: Record<string, (p: number) => [number, number]> = {}, marked: [number, number][] = [];
    for (const link of scene.links ?? []) {
      const a = box.get(link.from), b = box.get(link.to);
      if (!a || !b) continue;
      const x1 = a.x + a.w - 2, x2 = b.x + 2, yb = b.y + b.h / 2, ya = a.h > pitch * 1.5 ? yb : a.y + a.h / 2, cx = (x2 - x1) * 0.4, own = state.links?.[link.id] ?? {}, hop = scene.hops?.find((one) => one.link === link.id), narrow = pitch < 54;
      const bez = (p0: number, p1: number, p2: number, p3: number, u: number) => (1 - u) ** 3 * p0 + 3 * (1 - u) ** 2 * u * p1 + 3 * (1 - u) * u * u * p2 + u ** 3 * p3;
      // A disc stays between the boxes, also on a short way.
      const within = Math.min(0.4, 11 / Math.max(1, x2 - x1));
      waysOf[link.id] = (way) => { const p = within + (1 - 2 * within) * way; return [bez(x1, x1 + cx, x2 - cx, x2, p), bez(ya, ya, yb, yb, p)]; };
      const named = textWidth(link.names[0] ?? "", 11);
      if (named) view.labels.take(x1 + 12, ya - 27, x1 + 12 + named, ya - 11);
      kids.push(G({ key: `link ${link.id}`, ...toggle(view, link.id, phrase("the-connection")) }, P(`M${x1} ${ya}C${x1 + cx} ${ya} ${x2 - cx} ${yb} ${x2} ${yb}`, "tube", { style: `stroke-width:${narrow ? 16 : 20}` }), link.names[0] && T(x1 + 12, ya - 15, link.names[0], "s11 m")));
      (own.waiting ?? []).forEach(([text, t], i) => { const x = x2 - 16 - i * 20; if (x <= x1 + 11) return; marked.push([x, yb]); flown.push(G({ key: `waits ${link.id} ${i}` }, C(x, yb, 7.5, `f-${TONES[t % 3]}`), T(x, yb + 4, text, "mid s11 b c-on"))); });
      if (hop) {
        // Where lines part the dots stand at the far end, where they meet at the near one.
        const credit = state.hops?.[hop.id]?.credit ?? 0, text = state.hops?.[hop.id]?.text, wide = hop.of * (hop.of > 6 ? 8 : 10) + (text ? textWidth(text, 11, 650) + 3 : 0), meet = (scene.links ?? []).filter((one) => one.to === link.to).length > 1;
        const x = meet ? x1 + 8 : ya !== yb || (scene.links ?? []).filter((one) => one.from === link.from).length > 1 && !named ? x2 - wide - 2 : named ? x1 + 26 + named : (x1 + x2 - wide) / 2 + 4;
        const y = (meet ? ya : yb) - (narrow && ya !== yb ? 16 : !named && x2 - x1 < wide + 16 ? 36 : 19);
        view.labels.take(x - 7, y - 7, x + wide, y + 7);
        flown.push(dots(hop.id, x, y, credit, hop.of, text));
      }
    }
    for (const node of nodes) {
      const b = box.get(node.id)!, own = state.nodes?.[node.id] ?? {}, fact = own.facts?.[0], says = own.blocked ?? fact ?? node.sub ?? "", crowded = nodes.filter((one) => one.role).length > 1 && pitch < TALLEST + 32, told = crowded && !node.role ? b.y - 7 : b.y + b.h + 15;
      view.labels.take(b.x, b.y, b.x + b.w, b.y + b.h);
      if (fact && node.tone === undefined) view.labels.take(b.x, told - 11, b.x + b.w, told + 4);
      if (node.tone === undefined) {
        const buttons = actsOn(view, node.id, "button");
        kids.push(nodeBox(view, node, b.x, b.y, b.w, b.h), fact && T(b.x + b.w / 2, told, fact, `mid s11 b ${own.blocked ? "c-stop" : "m"}`, { key: `fact ${node.id}` }), buttons.slice(0, 1).map((act) => button(view, act, b.x + b.w - 42, b.y + b.h - 36, 34, true)));
      } else kids.push(G({ key: `node ${node.id}`, ...toggle(view, node.id, `${node.name}, ${own.blocked ?? fact ?? ""}`) }, R(b.x, b.y, b.w, b.h, `node ${own.blocked ? "stop" : ""} ${own.down ? "down" : ""}`, { rx: 9 }), C(b.x + 17, b.y + b.h / 2, 9, `f-${TONES[node.tone % 3]}`), T(b.x + 17, b.y + b.h / 2 + 4, node.mark ?? node.name.slice(-1), "mid s11 b c-on"), T(b.x + 31, b.y + b.h / 2 + 4.5, fit(says, b.w - 34, sizeIn(says, b.w - 34), 650), `s${sizeIn(says, b.w - 34)} n ${own.blocked ? "c-stop b" : ""}`)));
      // Beside the heading where a box is as high as its lanes.
      const over = b.h > pitch * 1.5 && (scene.links ?? []).filter((link) => link.from === node.id).length > 1, said = EDGE + textWidth(group.title, 13, 650) + textWidth(group.sub ?? "", 12) + 32;
      // Beside the box where the next one leaves no room under it; below its neighbour in the row, where the rows leave room.
      const [px, py] = over ? [said, tall * g] : crowded ? [b.x + b.w + 8, pitch > 80 ? b.y + b.h / 2 + 28 : b.y + b.h - 20] : [EDGE, Math.min(b.y + b.h + 6, tall * (g + 1) - 32)];
      if (node.role) kids.push(pill(view, `pill ${node.id}`, px, py, own, over ? W - said - EDGE : W * (crowded ? 0.3 : 0.5)));
    }
    for (const [col, text] of group.columns ?? []) {
      const first = nodes.find((node) => node.mark && node.place?.[0] === col), b = first && box.get(first.id);
      if (!b) continue;
      const x = Math.min(b.x + b.w / 2, W - EDGE - textWidth(text, 11) / 2), spot = view.labels.place(text, 11, 400, [{ x, y: b.y - 6, anchor: "middle" }, { x, y: tall * g + 17, anchor: "middle" }]);
      if (spot) kids.push(T(x, spot.y, text, "mid s11 m", { key: `column ${g} ${col}` }));
    }
    for (const one of view.flying) {
      const way = waysOf[one.frame.link];
      if (!way) continue;
      const there = one.frame.way === "there", [x, lane] = way(there ? one.part : 1 - one.part), y = lane + (there ? 0 : 12);
      // Of marks that lie on each other the first says what it is, and lies on top.
      const hidden = marked.some(([a, b]) => Math.abs(a - x) < 15 && Math.abs(b - y) < 15);
      if (!hidden && one.frame.text) marked.push([x, y]);
      const mark = frameMark(view, hidden ? { ...one, frame: { ...one.frame, text: "" } } : one, x, y, there, true);
      if (hidden) flown.unshift(mark);
      else flown.push(mark);
    }
  });
  return [kids, flown];
}

function gauge(view: View): Kid[] {
  const { scene, state, W, H, small } = view, senders = scene.nodes.slice(0, -1), b = scene.nodes[scene.nodes.length - 1], one = scene.gauges?.[0], w = small ? 166 : 176, qw = small ? 112 : 150, side = small ? 126 : 138, qx = W - EDGE - qw - side, kids: Kid[] = [], flown: Kid[] = [];
  // One has the height of the picture; of two each has half of it, and the vessel's words stand below them.
  const several = senders.length > 1, row = several ? (H - 12) / senders.length : 0, high = several ? row - 60 : 196;
  view.labels.take(qx, 0, qx + qw, H);
  senders.forEach((a, i) => {
    const box: Box = { x: EDGE, y: several ? 8 + i * row : 28, w, h: high }, own = state.nodes?.[a.id] ?? {}, { knobs, buttons } = offered(view, a.id, 1), wireLink = scene.links?.find((each) => each.from === a.id || each.to === a.id);
    const waits = pill(view, `pill ${a.id}`, EDGE, box.y + box.h + 6, own, qx - EDGE - 10);
    if (wireLink) {
      const there = several ? box.y + 34 : 100, wire: Wire = { x1: box.x + w - 3, x2: qx + 3, y: there + 30, there, back: there + (several ? 52 : 62), sag: several ? 0 : sagOf(view, wireLink) };
      kids.push(wireMark(view, wire, wireLink.id, wireLink.names, several ? 22 : 28));
      flown.push(frames(view, wireLink, wire, true));
    }
    kids.push(nodeBox(view, a, box.x, box.y, w, box.h), knobs.slice(0, 1).map((act) => knob(view, act, box.x + w / 2, box.y + 88, several ? 22 : 30, a.role, own.knobs?.[act.id] ?? act.min ?? 0, w - 90)), items(own, box.x + 12, box.y + box.h - 40, w - 24, 22),
      (own.facts ?? []).slice(0, 1).map((fact) => T(box.x + 12, box.y + 57, fit(fact, w - 60, 12), "s12 n m", { key: "fact" })), buttons.map((act, n) => button(view, act, box.x + w - 44, box.y + 52 + n * 32, 34, true)), waits);
  });
  if (one && b) {
    const vessel = state.gauges?.[one.id] ?? {}, list = vessel.items ?? [], held = new Set(typeof vessel.held === "number" ? [] : vessel.held), part = typeof vessel.held === "number" ? vessel.held : 0, kept = held.size || part, base = H - 26, unit = (base - 54) / (one.top + 0.4), level = (v: number) => base - v * unit, c = vessel.stopped ? "stopfill" : tone(b.role), every = Math.ceil(15 / unit);
    kids.push(G({ key: "vessel", role: "img", "aria-label": phrase(kept ? "vessel-held" : "vessel", { name: one.name, level: list.length || vessel.level || 0, held: kept }) }, T(qx + qw / 2, 30, b.name, `mid b c-${tone(b.role)}`), P(`M${qx} ${level(one.top + 0.4)}V${base}H${qx + qw}V${level(one.top + 0.4)}`, `sunk k-${c} ${vessel.stopped ? "w3" : "w2"}`),
      vessel.items === undefined && R(qx + 3, level((vessel.level ?? 0) - part), qw - 6, Math.max(0, ((vessel.level ?? 0) - part) * unit - 2), "glide f-snd half"),
      part > 0 && [R(qx + 3, level(vessel.level ?? 0), qw - 6, part * unit - 1, "glide k-stop w1", { rx: 4, style: `fill:url(#${view.uid}stop)` }), part * unit > 14 && T(qx + qw - 13, level((vessel.level ?? 0) - part / 2) + 4, phrase("held"), "end s11 b halo c-stop")],
      list.map((text, i) => {
        const its = held.has(text), y = level(i + 1) + 2;
        return G({ key: `item ${text}`, class: "fade" }, R(qx + 8, y, qw - 16, unit - 4, `glide ${its ? "k-stop w1" : "f-snd"}`, { rx: 4, style: its ? `fill:url(#${view.uid}stop)` : "" }),
          i % every === 0 && unit > 12 && [its && R(qx + qw / 2 - 15, y + 1, 30, unit - 6, "f-panel", { rx: 3 }), T(qx + qw / 2, y + unit / 2 + 2.5, text, `mid s12 b n ${its ? "" : "c-on"}`)], its && unit > 14 && T(qx + qw - 13, y + unit / 2 + 2.5, phrase("held"), "end s11 b halo c-stop"));
      })));
    let low = Infinity;
    for (const mark of [...one.marks].sort((p, q) => p.at - q.at)) {
      const y = level(mark.at), label = Math.min(y + 4.5, low - 16);
      low = label;
      kids.push(G({ key: `mark ${mark.text}` }, L(qx - 12, y, qx + qw + 12, y, `w3 ${mark.kind === "high" ? "k-stopfill" : "k-flow dashes"}`), T(qx + qw + 16, label, fit(mark.text, side - 4, 12, 650), `s12 b ${mark.kind === "high" ? "c-stop" : "c-flow"}`)));
    }
    const words = vessel.text ?? "", most = qx - EDGE - 20;
    if (words) kids.push(pill(view, "vessel pill", qx - 16 - Math.min(most, textWidth(words, 12, 650) + 38), several ? H - 27 : H - 70, vessel.stopped ? { blocked: words } : { going: words }, most));
    actsOn(view, b.id).filter((act) => (act.kind === "toggle" || act.kind === "button") && fits(act.name, side - 16)).slice(0, 2).forEach((act, i) => kids.push(button(view, act, qx + qw + 16, H - 84 - i * 34, side - 16)));
    (state.nodes?.[b.id]?.facts ?? []).slice(0, 2).forEach((fact, i) => kids.push(T(qx + qw + 16, H - 38 + i * 16, fit(fact, side - 16, 12), "s12 n m", { key: `qf${i}` })));
  }
  return [kids, flown];
}

const LAYOUTS = { link, valves, quorum, chain, gauge };

/** The picture of a moment. */
export const picture = (view: View): VNode => h("g", { key: "picture" }, LAYOUTS[view.scene.layout](view));


