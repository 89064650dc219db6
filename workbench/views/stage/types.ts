/* The contract between Python and the stage. Python alone knows protocols; this module interpolates
   and draws what it is given, and knows no rule of any protocol.

   - Times are virtual milliseconds since the run began; fractions are welcome.
   - Every id is unique in its scene, whatever it names (node, link, line, valve, gauge, disk, hop).
   - Numbers on a line are *unwrapped*: they only grow, and may be larger than `modulo`; the stage
     shows them modulo `modulo` and marks the seam where they begin again at 0.
   - Every text is plain text: it is set by textContent, never read as HTML.

   Transport. A notebook's widget has the traits `scene` (bytes: gzip of the JSON of `Scene`),
   `cursor` (int, both ways: place of the step shown, from 0, in the branch shown) and `branch`
   (int, both ways: id of the branch shown). The stage sends a `Message` by `model.send`; the kernel
   answers by a custom message that is a `Reply`, or `{"gzip": true}` with the gzip of the reply's
   JSON as its only buffer; `view` of either is that of the message. A page without a kernel calls
   `mount(element, scene)`, where `scene` is the object, its gzip as bytes, or that in base64. */

export interface Scene {
  format: "amqp-flow-workbench/stage";
  version: 1;
  /** what the picture is called; read out, and the title of a static page */
  title: string;
  /** the one idea of the picture, shown in the strip where nothing is asked */
  idea: string;
  layout: Layout;
  /** in order: the parties from left to right, replicas from top to bottom */
  nodes: Node[];
  links?: Link[];
  lines?: Line[];
  /** from the application to the queue; layout `valves` */
  valves?: Valve[];
  gauges?: Gauge[];
  disks?: Disk[];
  /** rows of dots: the credit of a hop; layout `chain` */
  hops?: Hop[];
  /** headings of pictures that lie above each other, and of their columns of numbered boxes; layout `chain` */
  groups?: { id: string; title: string; sub?: string; columns?: [number, string][] }[];
  /** what each mark in the picture means that no words beside it say, at most four: shown small */
  legend?: { mark: "memory" | "disk"; text: string }[];
  acts?: Act[];
  /** rules of learners that can be shown beside the right one */
  rules?: { id: string; name: string }[];
  /** the one of them that is shown at first; none if absent */
  rule?: string;
  /** the rules shown are the room's, and whoever looks is its trainer */
  theirs?: boolean;
  /** ids of nodes that are lifelines of the sequence diagram, from top to bottom; all of them if absent */
  lifelines?: string[];
  /** the tab *All counters*: its columns after the first, and its rows */
  counters?: { columns: string[]; rows: CounterRow[] };
  question?: Question;
  /** the run as given comes first, with id 0; the learner's branches follow in order of making */
  branches: Branch[];
  /** when the run as given ends: the timeline's length, also while steps are kept back; ms */
  ends: number;
  /** place of the step at which the lesson begins; what comes before is folded into a chip. 0 if absent */
  begin?: number;
  /** the number of the first step; 1 if absent. Steps with numbers below 1 are of the set-up */
  first?: number;
  /** the chip's words: "set up: 9 frames" */
  set_up?: string;
  /** by which the run can be begun anew, in the form */
  parameters?: Parameter[];
  /** the run has a share code: the kernel answers the act `share` with it */
  shares?: boolean;
  /** there are no times, only an order: the log of a program */
  untimed?: boolean;
  /** how much virtual time passes in 1 ms while playing; 1/120 if absent */
  pace?: number;
}

/** link: two to four parties and the wires between them, number lines below (one link, race, session).
    valves: a publisher, the valves on its way, a queue; number line below.
    quorum: a publisher, a cluster, each replica's log as a bar.
    chain: nodes at `place`, joined by links with hops; up to two groups above each other.
    gauge: one or two senders, each with its wire; the receiver, last, is a vessel with watermarks. */
export type Layout = "link" | "valves" | "quorum" | "chain" | "gauge";

export type Role = "sender" | "receiver" | "";

export interface Node {
  id: string;
  role: Role;
  name: string;
  /** second line; a step may change it */
  sub?: string;
  /** layout `chain`: column from 0, row from 0 (half rows are places between), and group; layout
      `link`, where every node has one: 0 at the left, 1 at the right */
  place?: [number, number];
  group?: string;
  /** layout `chain`: a letter's colour, 0 to 2, for a queue that frames of this tone are for */
  tone?: number;
  /** the letter, or number, in it; the last of the name if absent */
  mark?: string;
}

/** A wire, or a way inside the broker. `names` say what goes there and what goes back; a second lane
    is drawn where there is a second name. */
export interface Link { id: string; from: string; to: string; names: [string] | [string, string] | [] }

/** A number line. `ends` above the line first; at most two, except for `bars`.
    cells: one cell a delivery (or frame), counts on the ticks, bands from count to limit.
    brackets: the same cells, and a window that slides.
    units: one box a credit, filled as parts of the delivery leave.
    bars: layout `quorum`; one bar a replica, `ends` are ids of nodes. */
export interface Line {
  id: string;
  style: "cells" | "brackets" | "units" | "bars";
  /** at the left of the axis: "delivery-count" */
  unit: string;
  /** where the count begins again at 0: 4294967296 */
  modulo?: number;
  /** least and greatest number that the whole run reaches, where known; keeps the axis still */
  range?: [number, number];
  ends: { id: string; name: string; role: Role;
    /** before the size of the band or window: "link-credit", "room for", "window" */
    word?: string }[];
  /** before the number where a band ends; "limit" if absent */
  limit?: string;
  /** `bars`: how many make a majority */
  majority?: number;
}

export interface Valve { id: string; name: string }

/** A vessel. Layout `gauge` draws the one of its receiver large; elsewhere it stands small in its node.
    `top` is the level at which it is full to the brim. */
export interface Gauge {
  id: string; on: string; name: string; top: number;
  marks: { at: number; text: string; kind: "high" | "low" }[];
}

/** A disk of a node. */
export interface Disk { id: string; on: string; name: string }

/** The credit of a hop: so many dots over the link of this id, and the number beside them. */
export interface Hop { id: string; link: string; of: number }

/** What a learner may do. In order of weight: the picture shows what it has room for (of a node, two knobs
   or one and two buttons), a row under it the rest, and the list of acts all.
    knob: sets an amount from `min` to `max`; `aims` names the line and the end whose limit it sets
      (dashes stand at the end's count + amount before it is sent, and that limit can be dragged).
    button: does it. toggle: does it, and undoes it (what is so now: `State.on[id]`).
    handle: on a link; sets `LinkState.latency`, in ms.
    text: words that the learner types, in the list of acts; `hint` stands in the field while it is empty.
    frame: on a frame in flight; `while` says whether it must fly or be held, `about` of which kind it
      is. The first that fits is what a click does; the others are in the menu. */
export interface Act {
  id: string;
  kind: "knob" | "button" | "toggle" | "handle" | "frame" | "text";
  /** id of the node, link, gauge, disk that it is done to, "frames", or "stage" (a button under the picture); a gate
      of a link is its id and "there" or "back" */
  on: string;
  /** on the button, under the knob, in the menu: "link credit", "publish", "crash n1" */
  name: string;
  /** of a toggle that is on: "start n1 again" */
  undo?: string;
  min?: number;
  /** where its dial ends, or further where it stands beyond the middle; `limit`: what it may not exceed */
  max?: number;
  limit?: number;
  unit?: string;
  hint?: string;
  aims?: { line: string; end: string };
  /** of a knob: colour of what it stands for; its node's role if absent */
  tone?: "sender" | "receiver" | "permission";
  while?: "flying" | "held";
  about?: Kind;
  /** a key that does it */
  key?: string;
}

export type Value = number | string | boolean | null;

/** A parameter of the run: a choice where there are `choices`, a whole number where there is `min`, else a text.
    `value` is the run's that is shown, `given` that of the run as given. A number without `max` has no end;
    `top`: where its slider ends. free: it may be left out. */
export interface Parameter {
  id: string;
  name: string;
  /** what it means */
  doc: string;
  value: Value;
  given: Value;
  choices?: (string | boolean)[];
  min?: number;
  max?: number;
  top?: number;
  unit?: string;
  free?: boolean;
}

/** message: transfer, publish. permission: flow, grant. acknowledgement: disposition, confirm,
    completion. write: append, write to a store. */
export type Kind = "message" | "permission" | "acknowledgement" | "write";

export interface Frame {
  /** the same frame has the same id in every branch */
  id: string;
  link: string;
  /** there: from the link's `from` to its `to` */
  way: "there" | "back";
  kind: Kind;
  /** in the mark, at most 3 characters: "7" */
  text?: string;
  /** on a pill over the mark: "20 + 6" */
  label?: string;
  /** in full, for the ear and for the tab *Bytes*: "flow: delivery-count 20, link-credit 6" */
  name: string;
  /** beside the line in the sequence diagram: "flow 20 + 6"; `text` if absent */
  short?: string;
  /** layout `chain`: colour of the queue it is for, 0 to 2 */
  tone?: number;
  /** [time, part of its way from 0 to 1], in order; two points with one part: held. The last point is
      where it is at the end of what is known: part 1 when it has arrived */
  path: [number, number][];
  /** its last point is where it was lost */
  lost?: true;
  /** what replicas say to each other: no frame of the protocol, which could be held */
  inside?: true;
  /** from then on it stands among what waits at the end of its link, and not on its path; ms */
  waits?: number;
  /** the limit (and a window's beginning) that it will set when it lands */
  aims?: { line: string; end: string; limit: number; from?: number };
  /** its cell: pointing at the frame marks it */
  cell?: { line: string; at: number };
  octets?: Octets;
}

/** A frame as it is on the wire. `fields` in order of place: name, value in words, first octet, octet
    after the last, how deep it lies (0: of the frame itself). */
export interface Octets { hex: string; fields: [string, string, number, number, number][] }

export interface CounterRow {
  /** key of `State.counters` */
  id: string;
  name: string;
  /** heading above the first row of a group */
  group?: string;
  /** cells that disagree are marked: where the disagreement is the subject */
  compare?: boolean;
}

/** A branch keeps the first `keeps` steps of its parent, and those of the parent's frames that had
    ended by `at`; its own `frames` are all others, also those that were in flight at `at`. */
export interface Branch {
  id: number;
  parent: number | null;
  keeps: number;
  /** when it leaves its parent; 0 for the run as given */
  at: number;
  /** "the run as given"; what the learner did: "credit 4, hold transfer 0" */
  label: string;
  /** what the learner did in it, and when: marked on the timeline */
  acts: { t: number; label: string }[];
  frames: Frame[];
  steps: Step[];
  /** when it ends; the last step or arrival if absent */
  ends?: number;
}

/** A moment at which something changes. Steps are in order of `t`; several may have one `t`. The
    fields of `State` hold changes only: they are merged into the state before, objects key by key at
    every depth; arrays, strings, numbers, booleans and null replace what was there. The first step of
    the run as given holds the whole state. */
export interface Step extends State {
  t: number;
  /** the row of a trace that it shows: told in place of the step's number */
  row?: number;
  /** interesting: play slows down, `n` stops, the timeline has a mark */
  mark?: boolean;
  /** what happened. Absent: too small a step for the buttons; the sentence before stays */
  sentence?: string;
  /** the whole state in words, for those who do not see the picture */
  in_words?: string;
  formula?: Formula | null;
  /** whose step it is: the tab *Log* can show his alone */
  who?: string;
  /** the frame it is about */
  frame?: string;
  /** by the learner */
  mine?: true;
}

/** `note` in words: "limit − delivery-count"; `href` (https) opens the clause's text */
export interface Formula { text: string; note?: string; clause?: string; href?: string }

export interface State {
  nodes?: Record<string, NodeState>;
  links?: Record<string, LinkState>;
  lines?: Record<string, LineState>;
  valves?: Record<string, ValveState>;
  gauges?: Record<string, GaugeState>;
  disks?: Record<string, DiskState>;
  /** dots that are full, and the number in words: "−200" */
  hops?: Record<string, { credit: number; text?: string }>;
  counters?: Record<string, (string | number | null)[]>;
  /** toggles: what is so now */
  on?: Record<string, boolean>;
  /** acts that are not legal now: what would be, in one sentence. null: legal */
  off?: Record<string, string | null>;
}

export interface NodeState {
  sub?: string;
  /** short lines, at most three: "3 ready", "1 received" */
  facts?: string[];
  /** small cells: messages that are ready, frames of a message, places of a window. A number: so many
      full ones; null: not known. Otherwise text and state of each */
  items?: number | [string, "full" | "hollow" | "empty" | "held"][] | null;
  /** what blocks it, in words; takes the place of `going` */
  blocked?: string | null;
  /** what it does when nothing blocks it: "may send" */
  going?: string | null;
  /** the amount at which each of its knobs stands */
  knobs?: Record<string, number>;
  down?: boolean;
  leads?: boolean;
}

export interface LinkState {
  latency?: number;
  cut?: boolean;
  /** gates in the middle of its lanes, open or closed, and what is to be said of each */
  gates?: { there: Gate; back: Gate };
  /** what waits at its far end: text and tone, the nearest to the end first; layout `chain` */
  waiting?: [string, number][];
}

export interface Gate { closed: boolean; text: string }

export interface LineState {
  /** by end: [count, limit]; brackets: [next, end, begin]; bars: [on disk, in memory] */
  ends?: Record<string, [number, number] | [number, number, number]>;
  /** numbers that no delivery stands for (given up by drain): [first, after the last] */
  voids?: [number, number][];
  /** hatched: [first, after the last, words]: "255 unconfirmed" */
  hatched?: [number, number, string] | null;
  /** units: how much of the delivery before the first end's count has left: [3, 10, "frames"]; of how
      much is null where nobody knows */
  part?: [number, number | null, string] | null;
  /** bars: how far it is committed */
  commit?: number;
  /** by rule: where the first end's band would lie by it; `differs`: in words, from the step at which
      the two rules part */
  rules?: Record<string, { at: number; limit: number; differs?: string | null }>;
}

export interface ValveState {
  closed: boolean;
  /** the one that counts now */
  limiting?: boolean;
  /** under it: "255 of 400" */
  read: string;
  /** bar under it: how much is left, and of how much */
  left?: number;
  of?: number;
}

/** `items` from the bottom; those of `held` are kept back. Without `items` it is filled up to `level` */
export interface GaugeState {
  /** `held`: which of the items, or how many of the level, uppermost */
  level?: number; items?: string[]; held?: string[] | number; stopped?: boolean;
  /** beside or under it: "flow stopped: 5 held" */
  text?: string | null;
}

/** Fills from `t0` to `t1` while it syncs the entries after `from` up to `to`; null times: idle */
export interface DiskState { from?: number; to?: number; t0?: number | null; t1?: number | null; hung?: boolean; text?: string }

/** Before the answer is committed the run as given ends just before the step `decides` (static pages
    have all of it, and the curtain hides it); the timeline has a curtain from there on. */
export interface Question {
  text: string;
  options: (string | number)[];
  /** another number may be typed */
  free?: boolean;
  /** place of the step that decides */
  decides: number;
  /** ids of acts that may be done before the answer */
  acts?: string[];
  /** what was committed before: the stage opens with it */
  answer?: string | number | null;
  verdict?: Verdict | null;
  /** without a kernel: by answer, "*" for any other */
  verdicts?: Record<string, Verdict>;
}

export interface Verdict {
  right: boolean;
  /** the right answer, as it is read in "it is 5" */
  answer: string | number;
  /** why; for a misconception, why not */
  why: string;
  /** id of the rule that this answer stands for: both are then shown */
  rule?: string;
}

/** What the stage sends. `t`, `branch` and `step` (its place, from 0) tell where the cursor stands.
    value: the amount of a knob or handle, the words of a text, the id of a frame, whether a toggle shall be on; for
    `commit` the answer, for `begin` what is to be other than it is in the run shown, by the parameter's id;
    otherwise null. */
export interface Message {
  act: string | "commit" | "skip" | "share" | "begin";
  value: Value | Record<string, Value>;
  t: number;
  branch: number;
  step: number;
  /** the view of a widget that asks; its answer says so, too */
  view?: string;
}

/** branch: `branch` is new, or takes the place of the one with its id, and is shown.
    verdict: on `commit` and `skip`; `branches` take the place of those with their ids.
    code: on `share`; the code of the branch at the step, and the names of functions of the learner's
      own that are not in it.
    done: the next scene shows it.
    illegal: nothing has changed; why, and what would be legal. It is shown where it was tried. */
export type Reply =
  | { type: "branch"; branch: Branch }
  | { type: "verdict"; verdict: Verdict | null; branches?: Branch[] }
  | { type: "code"; text: string; own: string[] }
  | { type: "done" }
  | { type: "illegal"; act: string; why: string };
