/* Branches made whole: the steps, states and frames of what is shown. */

import { heldAt, partAt } from "./geometry";
import type { Branch, Frame, Scene, State, Step } from "./types";

const STATE = ["nodes", "links", "lines", "valves", "gauges", "disks", "hops", "counters", "on", "off"] as const;

export interface Run { branch: Branch; steps: Step[]; states: State[]; frames: Frame[]; ends: number }
/** `behind`: there is no room for it on the wire behind a held one; it is not drawn. */
export interface Flying { frame: Frame; part: number; held: boolean; lost: boolean; behind: boolean }

type Tree = { [key: string]: unknown };
const isTree = (value: unknown): value is Tree => typeof value === "object" && value !== null && !Array.isArray(value);

/** `before` with the changes of `step`; what did not change is shared. */
export function merge<T extends object>(before: T, step: object): T {
  const after: Tree = { ...(before as Tree) };
  for (const [key, value] of Object.entries(step)) {
    if (key === "__proto__") continue;
    const old = after[key];
    after[key] = isTree(value) && isTree(old) ? merge(old, value) : value;
  }
  return after as T;
}

function advance(state: State, step: Step): State {
  let after = state;
  for (const key of STATE) if (step[key]) after = { ...after, [key]: merge(after[key] ?? {}, step[key]) };
  return after;
}

const start = (frame: Frame): number => frame.path[0][0];
const stop = (frame: Frame): number => frame.path[frame.path.length - 1][0];
const over = (frame: Frame): boolean => Boolean(frame.lost) || frame.path[frame.path.length - 1][1] >= 1;

/** Every branch with all its steps, states and frames. */
export function resolve(scene: Scene): Map<number, Run> {
  const runs = new Map<number, Run>();
  for (const branch of scene.branches) {
    const parent = branch.parent === null ? undefined : runs.get(branch.parent);
    const steps = parent ? parent.steps.slice(0, branch.keeps) : [];
    const states = parent ? parent.states.slice(0, branch.keeps) : [];
    for (const step of branch.steps) {
      states.push(advance(states[states.length - 1] ?? {}, step));
      steps.push(step);
    }
    const own = new Set(branch.frames.map((frame) => frame.id));
    const kept = parent ? parent.frames.filter((frame) => over(frame) && stop(frame) <= branch.at && !own.has(frame.id)) : [];
    const frames = [...kept, ...branch.frames].sort((a, b) => start(a) - start(b));
    const last = Math.max(steps.length ? steps[steps.length - 1].t : 0, ...frames.map(stop));
    runs.set(branch.id, { branch, steps, states, frames, ends: branch.ends ?? (branch.id === 0 ? Math.max(scene.ends, last) : last) });
  }
  return runs;
}

/** Place of the last step that is not after `t`; -1 before the first. */
export function stepAt(steps: Step[], t: number): number {
  let low = 0, high = steps.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (steps[middle].t <= t + 1e-6) low = middle + 1; else high = middle;
  }
  return low - 1;
}

/** For how long the place where a frame was lost is marked, ms. */
const LOST_MS = 2.5;

/** What is on the way at `t`. What follows a held frame stands behind it: `gap` is a part of the way. */
export function flying(run: Run, t: number, gap: (frame: Frame) => number): Flying[] {
  const found: Flying[] = [];
  const ahead = new Map<string, number>();
  for (const frame of run.frames) {
    if (start(frame) > t) break;
    const ended = t >= stop(frame) && over(frame);
    if (ended && !(frame.lost && t < stop(frame) + LOST_MS)) continue;
    if (frame.waits !== undefined && t >= frame.waits) continue;
    const lane = `${frame.link} ${frame.way}`;
    let part = partAt(frame.path, t), behind = false;
    if (!ended) {
      const most = ahead.get(lane);
      if (most !== undefined) part = Math.min(part, most - gap(frame));
      ahead.set(lane, part);
      behind = part < -1e-9;
    }
    found.push({ frame, part: Math.max(0, part), held: heldAt(frame.path, t), lost: ended, behind });
  }
  return found;
}
