/* Time: the buttons, and the timeline, which is also the tree of branches. */

import { h, type Kid, type VNode } from "./dom";
import { clamp, ms, widest } from "./geometry";
import { G, L, P, R, T } from "./marks";
import type { Run } from "./run";
import type { Branch } from "./types";
import { phrase } from "./words";

export interface Time {
  runs: Map<number, Run>; run: Run; t: number; step: number; row?: number; number: number; zero: number; from: number; ends: number; curtain: number;
  playing: boolean; slow: boolean; width: number; uid: string; folded: boolean; chip: string; untimed?: boolean;
}

const ICONS = { back: "M4 3h2v10H4zM13 3v10L6.5 8z", play: "M4 2.5v11L13.5 8z", pause: "M4 3h3v10H4zM9 3h3v10H9z", on: "M10 3h2v10h-2zM3 3v10l6.5-5z", mark: "M2 3v10l5-5zM11.5 3.2L16 8l-4.5 4.8L7 8z" };

const control = (ui: string, icon: keyof typeof ICONS, label: string, off = false): VNode =>
  h("button", { key: ui, type: "button", class: `wst-b ${ui}`, "data-ui": ui, "aria-label": label, title: label, "aria-disabled": off ? "true" : null }, h("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, h("path", { d: ICONS[icon] })));

export function transport(time: Time): VNode {
  const { playing, slow, t, row } = time, rows = rowsOf(time);
  return h("div", { class: "wst-time", key: "time", role: "toolbar", "aria-label": phrase("time") },
    control("back", "back", phrase("back"), time.step <= 0), control("play", playing ? "pause" : "play", phrase(playing ? "pause" : "play")), control("on", "on", phrase("on")), control("mark", "mark", phrase("next-interesting")),
    time.chip && h("button", { key: "chip", type: "button", class: "wst-chip", "data-ui": "fold", "aria-expanded": String(!time.folded), title: phrase(time.folded ? "unfold" : "fold") }, `${time.folded ? "▸" : "▾"} ${time.chip}`),
    Math.max(...rows.values()) >= ROWS && branchList(time),
    h("div", { class: "wst-line", key: "line" }, timeline(time, rows)),
    h("div", { class: "wst-now", key: "now", title: time.untimed ? phrase("no-times") : null, style: `min-width:${Math.max(62, widest(time.ends))}px` }, ms(Math.max(0, t - time.zero), time.untimed), h("small", {}, playing && slow ? phrase("slow-motion") : row !== undefined ? phrase("row", { number: row }) : time.number < 1 ? phrase("set-up") : phrase("step", { number: time.number }))));
}

export const timeToX = (time: Time, t: number): number => 8 + (time.width - 16) * clamp((t - time.from) / Math.max(time.ends - time.from, 1e-9), 0, 1);
export const xToTime = (time: Time, x: number): number => time.from + (time.ends - time.from) * clamp((x - 8) / (time.width - 16), 0, 1);

/** So many rows are as far from each other as a hand needs; of more branches a list is easier to hit. */
const ROWS = 3;
const LEAST_HIT = 10;

/** The branch in which another begins: its parent, unless it leaves that before any step of it. */
function origin(runs: Map<number, Run>, branch: Branch): Branch | null {
  let found = branch;
  while (found.parent !== null && found.keeps >= branch.keeps) found = runs.get(found.parent)!.branch;
  return found === branch ? null : found;
}

/** The row of each branch: that of its origin where that has ended, or the first below it that is free. */
function rowsOf(time: Time): Map<number, number> {
  const found = new Map<number, number>(), taken: [row: number, from: number, to: number][] = [];
  for (const [id, { branch, ends }] of time.runs) {
    const from = timeToX(time, branch.at), to = Math.max(timeToX(time, ends), from + LEAST_HIT);
    let row = found.get(origin(time.runs, branch)?.id ?? id) ?? 0;
    while (taken.some(([there, a, b]) => there === row && a < to && b > from + 1)) row++;
    found.set(id, row);
    taken.push([row, from, to]);
  }
  return found;
}

const nameOf = ({ id, label }: Branch): string => (id ? phrase("branch-named", { number: id, act: label }) : label);

function branchList({ runs, run }: Time): VNode {
  return h("select", { key: "branches", class: "wst-branches", "data-ui": "branches", "aria-label": phrase("branches"), value: run.branch.id }, [...runs.values()].map(({ branch }) => h("option", { key: branch.id, value: branch.id, selected: branch === run.branch }, `${branch.id}: ${branch.label}`)));
}

function timeline(time: Time, rows: Map<number, number>): VNode {
  const { runs, run, curtain, uid, width } = time, X = (t: number) => timeToX(time, t), kids: Kid[] = [], last = Math.max(...rows.values());
  // As far from each other as the height allows: what is apart is easily hit.
  const apart = Math.min(16, 25 / Math.max(1, last)), hit = Math.max(LEAST_HIT, apart), Y = (id: number) => (last ? 13 : 22) + rows.get(id)! * apart;
  // The run that is shown begins in the branches that its own comes from.
  const way: Branch[] = [];
  for (let one: Branch | null = run.branch; one; one = origin(runs, one)) way.unshift(one);
  for (const { branch, ends } of runs.values()) {
    const y = Y(branch.id), parent = Y(origin(runs, branch)?.id ?? branch.id), x = X(branch.at), name = nameOf(branch), place = way.indexOf(branch);
    // The bend is no part of the button, whose middle would otherwise lie above what can be pressed.
    const bend = parent === y ? "" : `M${x} ${parent}C${x + 5} ${parent} ${x + 2} ${y} ${x + 9} ${y}`, bar = `M${bend ? x + 9 : x} ${y}H`;
    const drawn = (d: string, theirs: string) => [P(d, "f-none round k-line2 w2"), place >= 0 && P(theirs, "f-none round k-snd w4")];
    if (bend) kids.push(G({ key: `bend ${branch.id}` }, drawn(bend, bend)));
    kids.push(G({ key: `branch ${branch.id}`, class: "hit", "data-branch": branch.id, tabindex: runs.size > 1 ? 0 : null, role: runs.size > 1 ? "button" : null, "aria-label": name, "aria-pressed": runs.size > 1 ? String(branch === run.branch) : null },
      h("title", {}, name), drawn(`${bar}${X(ends)}`, `${bar}${X(way[place + 1]?.at ?? ends)}`), R(x, y - hit / 2, Math.max(hit, X(ends) - x), hit, "f-none branch", { rx: 5 }),
      branch.acts.map((act, i) => R(X(act.t) - 3.5, y - 3.5, 7, 7, place >= 0 ? "f-rcv" : "f-line2", { key: `act ${i}`, rx: 1.5 }))));
  }
  let before = -Infinity, of = 0;
  for (const [i, step] of run.steps.entries()) {
    while (i >= (way[of + 1]?.keeps ?? Infinity)) of++;
    const x = X(step.t), y = Y(way[of].id);
    if (!step.mark || step.t > curtain || step.t < time.from || x - before < 8) continue;
    before = x;
    kids.push(P(`M${x} ${y - 5}l4.5 5l-4.5 5l-4.5 -5z`, "f-panel k-flow w2", { key: `mark ${x}` }));
  }
  if (curtain < Infinity) {
    const x = X(curtain) + 2, w = width - 8 - x;
    kids.push(G({ key: "curtain" }, R(x, 5, w, 34, "k-line2 w1", { rx: 4, style: `fill:url(#${uid}curtain)` }), R(x + w / 2 - 9, 12, 18, 20, "sunk", { rx: 9 }), T(x + w / 2, 27, "?", "mid b")));
  }
  kids.push(G({ key: "head", style: `transform:translate(${X(time.t)}px,0)` }, L(0, 4, 0, 41, "k-ink w2"), P("M-5.5 2h11l-5.5 8z", "f-ink")));
  return h("svg", { key: "timeline", "data-time": "1", tabindex: 0, role: "slider", "aria-label": phrase("virtual-time"), "aria-valuemin": 0, "aria-valuemax": Math.round(time.ends - time.from), "aria-valuenow": Math.round(time.t - time.from), "aria-valuetext": ms(Math.max(0, time.t - time.zero), time.untimed), viewBox: `0 0 ${width} 44`, width, height: 44 }, kids);
}
