// The stepper: ledgers, wire, formula, ladder, fields, octets and transcript of one StepperDoc.
//
// Rules of this file:
// 1. It knows no protocol rule. What a number means, which numbers are comparable, what a step
//    changes and why were worked out in Python and stand in the document.
// 2. Text from the document enters the page as text nodes only, never as markup.
// 3. A step costs the same in a document of five rows and of fifty thousand: state is replayed
//    from the last keyframe, and ladder and transcript draw only what is in sight.
//
// Homes: `render` for anywidget, `mount(el, doc, options)` for a page without a kernel.

// ---------------------------------------------------------------- document and state

const KEYFRAME_EVERY = 64;
// What a row does to a frame (4 lets a held one go), and the places of a row's head.
const DEPARTS = 1, ARRIVES = 2, HELD = 3, SEEN = 5;
const EVENT = 0, KIND = 2, CONNECTION = 3, LINK = 4, CLAUSE = 5, LANE = 6, OP = 7, QUEUE = 8;

/** A document opened for reading: step k is the state after k rows; step 0 is the start. */
export class Trace {
  constructor(doc) {
    if (!doc || doc.format !== "amqp-flow-workbench/stepper" || doc.version !== 1) {
      throw new Error(`this stepper reads documents of version 1, not ${doc && doc.version}`);
    }
    this.doc = doc;
    this.length = doc.rows.length;
    this.t = new Float64Array(this.length + 1);
    this.sentAt = new Int32Array(doc.frames.length).fill(-1); // step that put it on the wire
    this.arrivesAt = new Int32Array(doc.frames.length).fill(-1);
    this.interesting = [];
    this.slotOfCell = [];
    doc.slots.forEach((slot, n) => {
      for (let i = 4; i < slot.length; i++) this.slotOfCell[slot[3] + i - 4] = n;
    });
    this.keyframes = [];
    this.state = { step: 0, cells: new Array(doc.cells), flights: new Map(), before: new Map() };
    pairs(doc.start.cells, (cell, value) => (this.state.cells[cell] = value));
    pairs(doc.start.flights, (frame, held) => this.state.flights.set(frame, !!held));
    this.t[0] = doc.t0_us;
    for (let step = 0; step <= this.length; step++) {
      if (step) {
        this.#apply(step);
        const row = doc.rows[step - 1];
        this.t[step] = this.t[step - 1] + (row[1] || 0);
        const op = this.head(step)[OP], frame = this.frameOf(step);
        if (frame >= 0) {
          if (op === DEPARTS || op === SEEN) this.sentAt[frame] = step;
          if (op === ARRIVES || op === SEEN) this.arrivesAt[frame] = step;
        }
        if (row[6]) this.interesting.push(step);
      }
      if (step % KEYFRAME_EVERY === 0) {
        this.keyframes.push([this.state.cells.slice(), [...this.state.flights]]);
      }
    }
    this.state.before = new Map();
    this.#restore(0);
  }

  head(step) { return this.doc.heads[this.doc.rows[step - 1][0]]; }
  row(step) { return this.doc.rows[step - 1]; }
  frameOf(step) { return (this.row(step)[2] || 0) - 1; }

  text(ref) {
    if (!ref || !ref.length) return "";
    const pieces = this.doc.texts[ref[0]];
    let text = pieces[0];
    for (let i = 1; i < pieces.length; i++) text += ref[i] + pieces[i];
    return text;
  }

  sentence(step) { return step ? this.text(this.row(step)[4]) : "The start: nothing has happened yet."; }
  reason(step) { return step ? this.text(this.row(step)[6]) : ""; }

  /** State after `step` rows; `before` holds the old values of the cells this step changed. */
  at(step) {
    const state = this.state;
    if (step === state.step) return state;
    if (step === 0) { this.#restore(0); return state; }
    if (step - 1 !== state.step) {
      const from = Math.floor((step - 1) / KEYFRAME_EVERY);
      if (step - 1 < state.step || from * KEYFRAME_EVERY > state.step) this.#restore(from);
      while (state.step < step - 1) this.#apply(state.step + 1);
    }
    this.#apply(step);
    return state;
  }

  #restore(keyframe) {
    const [cells, flights] = this.keyframes[keyframe];
    this.state.cells = cells.slice();
    this.state.flights = new Map(flights);
    this.state.before = new Map();
    this.state.step = keyframe * KEYFRAME_EVERY;
  }

  #apply(step) {
    const row = this.row(step), { cells, flights } = this.state;
    const before = new Map();
    pairs(row[3] || [], (cell, value) => { before.set(cell, cells[cell]); cells[cell] = value; });
    const op = this.head(step)[OP], frame = this.frameOf(step);
    if (op === DEPARTS) flights.set(frame, false);
    else if (op === ARRIVES) flights.delete(frame);
    pairs(row[7] || [], (what, which) => flights.set(which, what === HELD));
    this.state.before = before;
    this.state.step = step;
  }

  frame(n) {
    const packed = this.doc.frames[n];
    const [kind, style, from, to, connection, link, peer, glyph] = this.doc.frame_heads[packed[0]];
    return { n, kind, style, from, to, connection, link, peer, glyph,
      summary: this.text(packed[1]), size: packed[2] || 0 };
  }

  octets(n) {
    const stored = this.doc.frames[n][3];
    if (!stored) return new Uint8Array(0);
    if (typeof stored === "string") return fromBase64(stored);
    const bytes = fromBase64(this.doc.frames[stored[0]][3]);
    for (let i = 1; i < stored.length; i += 2) {
      const hex = stored[i + 1];
      for (let k = 0; k < hex.length; k += 2) bytes[stored[i] + k / 2] = parseInt(hex.substr(k, 2), 16);
    }
    return bytes;
  }

  fields(n) {
    const packed = this.doc.frames[n];
    if (!packed[4]) return [];
    const layout = this.doc.layouts[packed[4] - 1];
    const values = layout.map((field) => field[5]);
    pairs(packed[5] || [], (place, value) => (values[place] = value));
    return layout.map(([path, type, code, start, end], i) => ({ path, type, code, start, end, value: String(values[i]) }));
  }
}

function pairs(flat, use) {
  for (let i = 0; i < flat.length; i += 2) use(flat[i], flat[i + 1]);
}

function fromBase64(text) {
  const raw = atob(text), bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

// ---------------------------------------------------------------- page helpers

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) {
    if (child === null || child === undefined || child === "") continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return node;
}
const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const s = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

// Drawn, not written: few fonts have all of these signs.
const ICONS = {
  first: ["M4 3v10", "M13 3 6 8l7 5Z"], last: ["M12 3v10", "M3 3l7 5-7 5Z"], back: ["M11 3 5 8l6 5Z"], next: ["M5 3l6 5-6 5Z"],
  play: ["M2 3l6 5-6 5Z", "M8 3l6 5-6 5Z"], pause: ["M5 3v10", "M11 3v10"],
  before: ["M7 3 1 8l6 5Z", "M12 4.5 15.500 8 12 11.500 8.500 8Z"], after: ["M9 3l6 5-6 5Z", "M4 4.500 7.500 8 4 11.500 .5 8Z"],
};
function icon(name) {
  return s("svg", { viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": "true", class: "wbs-icon" }, ...ICONS[name].map((d) => s("path", { d })));
}

function setText(node, text) { if (node.textContent !== text) node.textContent = text; }
function flag(node, name, on) { node.classList.toggle(name, !!on); }

function shown(value) {
  if (value === undefined) return "–";
  if (value === null) return "?";
  return String(value);
}

/** Microseconds in the unit a person would choose: `850 µs`, `1.234 ms`, `2.5 s`. */
export function duration(us) {
  if (us < 1000) return `${us} µs`;
  if (us < 1e6) return `${trim(us / 1000)} ms`;
  return `${trim(us / 1e6)} s`;
}
function trim(x) { return String(Math.round(x * 1000) / 1000); }

function lowerBound(sorted, value) {
  let lo = 0, hi = sorted.length;
  while (lo < hi) { const mid = (lo + hi) >> 1; if (sorted[mid] < value) lo = mid + 1; else hi = mid; }
  return lo;
}

/** A scrolled box that is asked for its size and place only when they change: reading them back
 *  after every change to the page would make the browser lay it out many times a step. */
class View {
  constructor(box, usual, draw) {
    this.box = box;
    this.top = 0;
    this.height = usual;
    this.width = 0;
    let pending = 0;
    box.addEventListener("scroll", () => {
      this.top = box.scrollTop;
      if (!pending) pending = requestAnimationFrame(() => { pending = 0; draw(); });
    });
  }
  measure() {
    this.height = this.box.clientHeight || this.height;
    this.width = this.box.clientWidth;
    this.top = this.box.scrollTop;
  }
  to(top, whole) {
    this.top = Math.max(0, Math.min(top, whole - this.height));
    this.box.scrollTop = this.top;
  }
}

const SAME_SCREEN = new Map(); // session-wide choices: theme, more counters

// ---------------------------------------------------------------- ledgers and wire

class Ledgers {
  constructor(ui) {
    this.ui = ui;
    this.el = h("div", { class: "wbs-ends" });
    this.more = h("details", { class: "wbs-more" });
    this.moreOpen = SAME_SCREEN.get("more") ?? !!ui.trace.doc.more_open;
    this.more.addEventListener("toggle", () => { SAME_SCREEN.set("more", this.moreOpen = this.more.open); });
  }

  build(link) {
    this.link = link;
    this.cells = new Map(); // cell -> [{td, value, was, mark}]
    this.pairs = [];
    this.el.replaceChildren();
    this.more.replaceChildren();
    if (!link) return;
    const one = !!link.one;
    flag(this.el, "one", one);
    this.sender = this.#side(link, "sender", one);
    this.el.append(this.sender, this.ui.wire.el);
    if (!one) this.el.append(this.#side(link, "receiver", one));
    const summary = h("summary", {}, "Session windows and more counters");
    this.more.append(summary, this.#wide(link, one));
    const inside = this.#inside();
    if (inside) this.more.append(inside);
    this.more.open = this.moreOpen;
  }

  #side(link, side, one) {
    const end = link[side], column = side === "sender" ? 1 : 2;
    const title = one ? "Sender's entitlement at the capture point" : side === "sender" ? "Sender's ledger" : "Receiver's ledger";
    const table = h("table", {}, h("caption", { class: "wbs-sr" }, `${title}, ${end ? end.who : "not seen"}`),
      h("thead", { class: "wbs-sr" }, h("tr", {}, h("th", { scope: "col" }, "counter"), h("th", { scope: "col" }, "value"), h("th", { scope: "col" }, "before"))));
    const body = h("tbody");
    for (const row of link.rows) body.append(this.#line(row, column, "wbs-big"));
    table.append(body);
    const box = h("section", { class: `wbs-card wbs-ledger ${side}`, "aria-label": title },
      h("header", {}, h("h3", {}, title), h("span", { class: "wbs-who" }, end ? end.who : "not seen")), table);
    if (end && end.source === "shadow") {
      box.append(h("p", { class: "wbs-source" }, "◐ computed by our shadow endpoint: this end shows no counters of its own"));
    }
    if (one) {
      box.append(h("p", { class: "wbs-source" }, "One vantage: a capture sees frames pass, not what either end thinks. A ? is what this capture cannot tell."));
    }
    if (side === "sender" && link.brake >= 0) {
      const value = h("b", { class: "wbs-brake-word" });
      box.append(h("p", { class: "wbs-brake" }, h("span", { "aria-hidden": "true", class: "wbs-brake-icon" }), "held by: ", value));
      this.brake = { cell: link.brake, value, box: box.lastChild };
    } else if (side === "sender") this.brake = null;
    return box;
  }

  #line(row, column, size) {
    const [label, , , compared] = row, cell = row[column];
    const value = h("span", { class: "v" }), mark = h("span", { class: "ne", "aria-hidden": "true" });
    const was = h("td", { class: "was" }), spoken = h("span", { class: "wbs-sr" });
    const td = h("td", { class: "num" }, mark, value, spoken);
    if (cell >= 0) {
      const place = { td, value, was, mark, spoken, cell };
      if (!this.cells.has(cell)) this.cells.set(cell, []);
      this.cells.get(cell).push(place);
      if (compared) this.pairs.push([place, row[1], row[2]]);
    } else setText(value, "–");
    return h("tr", { class: size }, h("th", { scope: "row" }, label), td, was);
  }

  #wide(link, one) {
    const table = h("table", { class: "wbs-wide" });
    table.append(h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "counter"),
      ...(one ? [h("th", { scope: "col", colspan: 2 }, "at the capture point")]
        : [h("th", { scope: "col", colspan: 2 }, "sender's end"), h("th", { scope: "col", colspan: 2 }, "receiver's end")]))));
    const body = h("tbody");
    for (const row of [...link.more, ...link.window]) {
      if (row[1] < 0 && row[2] < 0) continue;
      const left = this.#line(row, 1, "");
      if (!one) left.append(...[...this.#line(row, 2, "").children].slice(1));
      body.append(left);
    }
    table.append(body);
    return table;
  }

  #inside() {
    const doc = this.ui.trace.doc, actors = doc.slots.filter((slot) => slot[1] === "actor");
    if (!actors.length) return null;
    const body = h("tbody");
    for (const slot of actors) {
      for (let i = 4; i < slot.length; i++) {
        const line = this.#line([slot[i], slot[3] + i - 4, -1, 0], 1, "");
        line.prepend(h("td", { class: "wbs-who" }, i === 4 ? slot[0] : ""));
        line.setAttribute("data-cell", slot[3] + i - 4);
        body.append(line);
      }
    }
    return h("table", { class: "wbs-wide" }, h("caption", {}, "Inside the broker"), body);
  }

  update(state) {
    for (const [cell, places] of this.cells) {
      const value = state.cells[cell], changed = state.before.has(cell);
      for (const place of places) {
        setText(place.value, shown(value));
        flag(place.td, "unknown", value === null);
        flag(place.td, "changed", changed);
        const old = state.before.get(cell);
        setText(place.was, changed && old !== undefined ? `was ${shown(old)}` : changed ? "new" : "");
        place.says = value === null ? ", unknown" : changed ? ", changed" : "";
        place.differs = false;
      }
    }
    for (const [place, left, right] of this.pairs) {
      const a = state.cells[left], b = state.cells[right];
      place.differs = a !== undefined && b !== undefined && a !== null && b !== null && a !== b;
    }
    for (const places of this.cells.values()) {
      for (const place of places) {
        flag(place.td, "differs", place.differs);
        setText(place.mark, place.differs ? "≠" : "");
        setText(place.spoken, (place.differs ? ", differs from the other end" : "") + place.says);
      }
    }
    if (this.brake) {
      const brake = state.cells[this.brake.cell], held = brake && brake !== "none";
      const words = this.ui.trace.doc.brakes[brake];
      setText(this.brake.value, held ? (words ? `${brake} – ${words}` : brake) : "nothing – free to send");
      flag(this.brake.box, "on", held);
      flag(this.brake.box, "blank", brake === undefined);
    }
  }
}

class Wire {
  constructor(ui) {
    this.ui = ui;
    this.right = h("ul", { class: "wbs-way right", "aria-label": "frames from sender to receiver" });
    this.left = h("ul", { class: "wbs-way left", "aria-label": "frames from receiver to sender" });
    this.title = h("h3", {}, "On the wire");
    this.count = h("span", { class: "wbs-who" });
    this.el = h("section", { class: "wbs-card wbs-wire", "aria-label": "frames on the wire" },
      h("header", {}, this.title, this.count), this.right, this.left);
  }

  update(state, step, link) {
    const { trace } = this.ui, right = [], left = [];
    if (!link) return;
    const put = (n, mode) => {
      const frame = trace.frame(n);
      if (frame.connection !== link.connection) return;
      (frame.from === link.lanes[0] ? right : left).push([frame, mode]);
    };
    for (const [n, held] of state.flights) put(n, held ? "held" : "flying");
    const flying = right.length + left.length;
    const frame = step ? trace.frameOf(step) : -1, op = step ? trace.head(step)[OP] : 0;
    if (frame >= 0 && (op === ARRIVES || op === SEEN)) put(frame, op === SEEN ? "passing" : "arrived");
    setText(this.title, link.one ? "Passing the capture point" : "On the wire");
    setText(this.count, link.one ? link.connection : flying ? `${flying} in flight` : "empty");
    this.#draw(this.right, right, frame, op, "→");
    this.#draw(this.left, left, frame, op, "←");
  }

  #draw(list, frames, current, op, arrow) {
    // First to arrive first; one that has just arrived stands before all others.
    frames.sort((a, b) => (b[1] === "arrived") - (a[1] === "arrived") || a[0].n - b[0].n);
    const room = frames.length > 3 ? 3 : frames.length, tight = frames.length > 2;
    const cards = frames.slice(0, room).map(([frame, mode], place) => {
      const words = { held: "‖ held", arrived: "arrived", passing: "passing", flying: "" }[mode];
      const card = h("li", {}, h("button", {
        type: "button", "data-frame": frame.n, title: "show its fields and octets",
        class: `wbs-frame k-${frame.style} ${mode}${frame.n === current && op ? " fresh" : ""}${frame.n === this.ui.frame ? " picked" : ""}`,
        onclick: () => this.ui.pick(frame.n),
      },
      h("span", { class: "kind" }, h("span", { "aria-hidden": "true" }, frame.glyph + " "), frame.kind, words && h("span", { class: "mode" }, words)), " ",
      h("span", { class: "carries" }, frame.summary || `${frame.size} octets`),
      h("span", { class: "wbs-sr" }, arrow === "→" ? " to the receiver" : " to the sender")));
      card.style.setProperty("--place", place);
      return card;
    });
    if (frames.length > room) cards.push(h("li", { class: "wbs-rest" }, `and ${frames.length - room} more behind`));
    flag(list, "tight", tight);
    list.replaceChildren(...cards);
  }
}

// ---------------------------------------------------------------- ladder

const PITCH = 17, USUAL = 52, LONGEST = 170, CUT = 46;

class Ladder {
  constructor(ui) {
    this.ui = ui;
    this.zoom = 1;
    this.svg = s("svg", { role: "img" });
    this.box = h("div", { class: "wbs-scroll wbs-ladder-box", tabindex: "-1" }, this.svg);
    this.legend = h("span", { class: "wbs-note" });
    const zoom = (by) => () => { this.zoom = Math.min(8, Math.max(0.25, this.zoom * by)); this.layout(); this.ui.refresh(); };
    this.names = h("div", { class: "wbs-lanes", "aria-hidden": "true" });
    this.el = h("section", { class: "wbs-card wbs-ladder", "aria-label": "ladder: frames over time" },
      h("header", {}, h("h3", {}, "Ladder"), this.legend,
        h("span", { class: "wbs-tools" },
          h("button", { type: "button", class: "wbs-small", "aria-label": "squeeze the time axis", title: "squeeze the time axis", onclick: zoom(0.5) }, "−"),
          h("button", { type: "button", class: "wbs-small", "aria-label": "stretch the time axis", title: "stretch the time axis", onclick: zoom(2) }, "+"))),
      this.names, this.box);
    this.view = new View(this.box, 500, () => this.draw());
    this.svg.addEventListener("click", (event) => this.#click(event));
  }

  build(link) { this.link = link; this.layout(); }

  /** Height of every step: time to scale, simultaneous steps spread apart, idle time cut. */
  layout() {
    const { trace } = this.ui, n = trace.length, gaps = [];
    for (let i = 2; i <= n; i++) { const dt = trace.t[i] - trace.t[i - 1]; if (dt > 0) gaps.push(dt); }
    gaps.sort((a, b) => a - b);
    const usual = gaps.length ? gaps[Math.floor(gaps.length * 0.8)] : 1;
    this.scale = (USUAL / usual) * this.zoom;
    this.y = new Float64Array(n + 1);
    this.cuts = [];
    this.spread = false;
    this.y[0] = 14;
    for (let i = 1; i <= n; i++) {
      const dt = i > 1 ? trace.t[i] - trace.t[i - 1] : 0, px = dt * this.scale;
      let gap = Math.max(PITCH, px);
      if (i > 1 && px < PITCH) this.spread = true;
      if (px > LONGEST * Math.max(1, this.zoom)) { gap = CUT; this.cuts.push([i, dt]); }
      this.y[i] = this.y[i - 1] + gap;
    }
    this.height = this.y[n] + 40;
    this.svg.setAttribute("height", this.height);
    this.cutAt = new Map(this.cuts);
    setText(this.legend, "to scale" + (this.spread ? "; bursts spread" : "") + (this.cuts.length ? "; ≋ cut" : ""));
    this.legend.title = "Time runs down, to scale" + (this.spread ? "; a burst is spread to one line a step" : "") + (this.cuts.length ? "; long idle time is cut at ≋" : "") + ".";
    this.drawn = null;
  }

  #lanes() {
    const { doc } = this.ui.trace, width = this.view.width || 440;
    const lanes = this.link ? this.link.lanes : doc.lanes.map((_, i) => i);
    const left = 78, right = width - 34;
    this.x = new Map(lanes.map((lane, i) => [lane, lanes.length < 2 ? left : left + ((right - left) * i) / (lanes.length - 1)]));
    this.width = width;
    this.names.replaceChildren(...lanes.map((lane, i) => {
      const name = h("span", { class: i === 0 ? "first" : i === lanes.length - 1 ? "last" : "" }, doc.lanes[lane][0]);
      name.style.left = `${this.x.get(lane)}px`;
      return name;
    }));
  }

  update(step, jump) {
    const { top, height } = this.view, y = this.y[step];
    if (jump || y < top + height * 0.12 || y > top + height * 0.8) this.view.to(y - height * 0.55, this.height);
    this.draw();
  }

  draw() {
    const { trace } = this.ui, { top, height } = this.view, drawn = this.drawn;
    const find = (margin) => [Math.max(1, lowerBound(this.y, top - margin)), Math.min(trace.length, lowerBound(this.y, top + height + margin))];
    const [first, last] = find(60);
    // Painted with room to spare, so that a step near the edge does not paint all again.
    if (!drawn || drawn.first > first || drawn.last < last) this.#paint(...find(150));
    const step = this.ui.step;
    for (const mark of this.drawn.marks) {
      flag(mark.el, "future", mark.from > step);
      flag(mark.el, "flying", mark.from <= step && mark.to > step);
      flag(mark.el, "now", mark.from === step || mark.to === step);
      flag(mark.el, "picked", mark.frame >= 0 && mark.frame === this.ui.frame);
    }
    this.#cursor(step);
  }

  #paint(first, last) {
    const { trace } = this.ui, marks = [];
    this.#lanes();
    const y0 = first > 1 ? this.y[first] - 140 : 0, y1 = last < trace.length ? this.y[last] + 140 : this.height;
    const under = s("g"), over = s("g"), words = s("g");
    for (const [lane, x] of this.x) under.append(s("line", { class: "lane", x1: x, x2: x, y1: y0, y2: y1, "data-lane": lane }));
    const frames = new Set();
    let lastTick = -99;
    for (let i = first; i <= last; i++) {
      const y = this.y[i], n = trace.frameOf(i), head = trace.head(i);
      if (this.cutAt.has(i)) {
        const at = (this.y[i - 1] + y) / 2;
        under.append(s("g", { class: "cut" }, s("line", { x1: 0, x2: this.width, y1: at, y2: at }),
          s("text", { x: this.width / 2, y: at + 4, "text-anchor": "middle" }, `≋ ${duration(this.cutAt.get(i))} idle ≋`)));
      }
      if ((i === 1 || trace.t[i] !== trace.t[i - 1]) && y - lastTick > 12) {
        under.append(s("text", { class: "tick", x: 12, y: y + 4 }, duration(trace.t[i])));
        lastTick = y;
      }
      if (n >= 0 && head[OP]) frames.add(n);
      else this.#event(words, marks, i, head);
    }
    for (const n of frames) this.#arrow(over, words, marks, n);
    // Frames that fly past the whole window start before it and end after it.
    for (const n of this.#passing(first, last)) if (!frames.has(n)) this.#arrow(over, words, marks, n);
    this.cursor = s("g", { class: "cursor" });
    this.svg.replaceChildren(under, over, words, this.cursor);
    this.svg.setAttribute("aria-label", `Sequence diagram, steps ${first} to ${last}; the transcript below says the same in words.`);
    this.drawn = { first, last, marks };
  }

  #passing(first, last) {
    const { trace } = this.ui, found = [], from = Math.floor((first - 1) / KEYFRAME_EVERY);
    for (const [n] of trace.keyframes[from][1]) {
      if (trace.arrivesAt[n] < 0 || trace.arrivesAt[n] > last) found.push(n);
    }
    return found;
  }

  #ends(n, frame) {
    const { trace } = this.ui, a = this.x.get(frame.from), b = this.x.get(frame.to);
    if (a === undefined || b === undefined) return null;
    const sent = trace.sentAt[n], arrives = trace.arrivesAt[n];
    const ya = sent >= 0 ? this.y[sent] : Math.max(0, (arrives > 0 ? this.y[arrives] : 40) - 40);
    const yb = arrives >= 0 ? this.y[arrives] : this.height - 6;
    return { a, b, ya, yb, lost: arrives < 0, sent, arrives };
  }

  #arrow(layer, labels, marks, n) {
    const frame = this.ui.trace.frame(n), ends = this.#ends(n, frame);
    if (!ends) return;
    const { a, ya, yb, lost } = ends;
    const share = lost ? 0.55 : 1, b = a + (ends.b - a) * share, way = Math.sign(b - a) || 1;
    const mine = !this.link || frame.link < 0 || this.ui.trace.doc.links[frame.link] === this.link;
    const g = s("g", { class: `arrow k-${frame.style}${mine ? "" : " other"}${lost ? " lost" : ""}`, "data-frame": n });
    g.append(s("line", { class: "stem", x1: a, y1: ya, x2: b, y2: yb }));
    if (!lost) {
      const angle = Math.atan2(yb - ya, b - a), size = 7;
      const corner = (turn) => `${b - size * 1.5 * Math.cos(angle + turn)},${yb - size * 1.5 * Math.sin(angle + turn)}`;
      g.append(s("polygon", { class: "tip", points: `${b},${yb} ${corner(0.38)} ${corner(-0.38)}` }));
    }
    const room = Math.floor((Math.abs(ends.b - a) * 0.96) / 5.6);
    const near = a + way * 10, at = ya + ((yb - ya) * (near - a)) / (b - a) - 3;
    let words = `${frame.glyph} ${frame.kind}${frame.summary ? " " + frame.summary : ""}`;
    if (words.length > room) words = words.slice(0, Math.max(1, room - 1)) + "…";
    const full = `${frame.kind} ${frame.summary}`;
    const label = s("g", { class: `arrow${mine ? "" : " other"}`, "data-frame": n }, s("text", { x: near, y: at, "text-anchor": way > 0 ? "start" : "end" }, words), s("title", {}, full));
    layer.append(g);
    labels.append(label);
    for (const el of [g, label]) marks.push({ el, frame: n, from: ends.sent < 0 ? 0 : ends.sent, to: lost ? Infinity : ends.arrives });
  }

  #event(layer, marks, i, head) {
    const x = this.x.get(head[LANE]), y = this.y[i], wide = x === undefined && head[LANE] < 0;
    if (x === undefined && !wide) return;
    const dense = !wide && this.#crowded(i, head[LANE]);
    const g = s("g", { class: `event${wide ? " wide" : ""}${dense ? " dense" : ""}`, "data-step": i });
    const words = [head[EVENT], head[KIND] !== head[EVENT] ? head[KIND] : "", head[QUEUE]].filter(Boolean).join(" ");
    if (wide) {
      g.append(s("line", { x1: 70, x2: this.width - 8, y1: y, y2: y }),
        s("text", { x: this.width - 46, y: y - 3, "text-anchor": "end" }, `✎ ${words}`));
    } else {
      const left = x > this.width / 2;
      g.append(s("path", { d: `M${x - 5},${y} L${x},${y - 5} L${x + 5},${y} L${x},${y + 5} Z` }),
        s("text", { x: left ? x - 9 : x + 9, y: y + 4, "text-anchor": left ? "end" : "start" }, words), s("title", {}, words));
    }
    layer.append(g);
    marks.push({ el: g, frame: -1, from: i, to: i });
  }

  /** Whether a frame's label on the same lane is so near that two labels would lie on each other. */
  #crowded(i, lane) {
    const { trace } = this.ui;
    for (let k = Math.max(1, i - 2); k <= Math.min(trace.length, i + 2); k++) {
      const n = k === i ? -1 : trace.frameOf(k);
      if (n >= 0 && trace.sentAt[n] === k && trace.frame(n).from === lane && Math.abs(this.y[k] - this.y[i]) < 26) return true;
    }
    return false;
  }

  #cursor(step) {
    const y = this.y[step], { trace } = this.ui;
    const parts = [s("line", { x1: 0, x2: this.width, y1: y, y2: y }),
      s("path", { d: `M0,${y - 6} L10,${y} L0,${y + 6} Z` })];
    for (const n of trace.state.flights.keys()) {
      const frame = trace.frame(n), ends = this.#ends(n, frame);
      if (!ends || ends.yb <= ends.ya) continue;
      const share = Math.min(1, Math.max(0, (y - ends.ya) / (ends.yb - ends.ya))) * (ends.lost ? 0.55 : 1);
      parts.push(s("circle", { class: `now k-${frame.style}`, cx: ends.a + (ends.b - ends.a) * share, cy: y, r: 5 }));
    }
    this.cursor.replaceChildren(...parts);
  }

  #click(event) {
    const y = event.clientY - this.svg.getBoundingClientRect().top;
    const { trace } = this.ui, above = lowerBound(this.y, y);
    let step = Math.min(trace.length, above);
    if (above > 0 && y - this.y[above - 1] < this.y[step] - y) step = above - 1;
    const arrow = event.target.closest("[data-frame]");
    if (!arrow) { this.ui.go(step); return; }
    const n = Number(arrow.dataset.frame), { sentAt, arrivesAt } = trace;
    const ends = [sentAt[n], arrivesAt[n]].filter((at) => at >= 0);
    ends.sort((a, b) => Math.abs(this.y[a] - y) - Math.abs(this.y[b] - y));
    if (ends.length) this.ui.go(ends[0]);
    this.ui.pick(n);
  }
}

// ---------------------------------------------------------------- fields and octets

const OCTETS_SHOWN = 512;

class FramePanel {
  constructor(ui) {
    this.ui = ui;
    this.title = h("h3", {}, "Frame");
    this.carries = h("span", { class: "wbs-who" });
    this.fields = h("tbody");
    this.blocks = new Map();
    this.when = h("span", { class: "wbs-note" });
    this.lit = -1;
    this.bytes = h("div", { class: "wbs-bytes", role: "group", "aria-label": "octets of the frame" });
    this.none = h("p", { class: "wbs-note" }, "This step is no frame. Choose one on the wire or in the ladder.");
    this.table = h("table", { class: "wbs-fields" },
      h("colgroup", {}, h("col", { class: "f" }), h("col"), h("col", { class: "t" }), h("col", { class: "o" })),
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "field"), h("th", { scope: "col" }, "value"),
        h("th", { scope: "col" }, "type"), h("th", { scope: "col" }, "octets"))), this.fields);
    this.body = h("div", { class: "wbs-frame-body" }, h("div", { class: "wbs-scroll wbs-field-box" }, this.table), this.bytes);
    this.el = h("section", { class: "wbs-card wbs-panel", "aria-label": "fields and octets of the frame" },
      h("header", {}, this.title, this.carries, h("span", { class: "wbs-tools" }, this.when)), this.none, this.body);
    for (const [over, out] of [["mouseover", "mouseleave"], ["focusin", "focusout"]]) {
      this.body.addEventListener(over, (event) => this.#point(event.target, false));
      this.body.addEventListener(out, () => this.#light(this.pinned));
    }
    this.body.addEventListener("click", (event) => this.#point(event.target, true));
    this.body.addEventListener("keydown", (event) => this.#keys(event));
  }

  show(n) {
    const width = this.wide ? 16 : 8;
    if (n === this.n && width === this.width) return;
    if (n !== this.n) this.all = false;
    this.n = n;
    this.width = width;
    this.pinned = -1;
    this.none.hidden = n >= 0;
    this.body.hidden = n < 0;
    if (n < 0) { setText(this.title, "Frame"); setText(this.carries, ""); return; }
    const { trace } = this.ui, frame = trace.frame(n);
    setText(this.title, `${frame.glyph} ${frame.kind}`);
    setText(this.carries, `${trace.doc.lanes[frame.from][0]} → ${trace.doc.lanes[frame.to][0]} · ${frame.size} octets`);
    this.#draw(frame);
  }

  /** Say so when the frame shown is not the one of this step. */
  date(step) {
    const { trace } = this.ui, other = this.n >= 0 && (!step || trace.frameOf(step) !== this.n);
    setText(this.when, other && trace.sentAt[this.n] > 0 ? `of step ${trace.sentAt[this.n]}` : "");
  }

  /** Frames encoded alike share their rows and lines: only values and octets are written anew. */
  #draw(frame) {
    const { trace } = this.ui, octets = trace.octets(frame.n);
    const count = this.all ? octets.length : Math.min(octets.length, OCTETS_SHOWN);
    const key = `${trace.doc.frames[frame.n][4] || 0} ${octets.length} ${count} ${this.width}`;
    this.#light(-1);
    this.list = trace.fields(frame.n);
    if (!this.blocks.has(key)) {
      if (this.blocks.size > 30) this.blocks.clear();
      this.blocks.set(key, this.#block(octets.length, count));
    }
    const block = this.blocks.get(key);
    this.list.forEach((field, i) => setText(block.values[i], field.value));
    block.cells.forEach(([a, b], i) => {
      const code = octets[i];
      setText(a, code.toString(16).padStart(2, "0"));
      setText(b, code > 32 && code < 127 ? String.fromCharCode(code) : "·");
    });
    if (this.block === block && this.noted === frame.size) return;
    Object.assign(this, { block, rows: block.rows, cells: block.cells, owner: block.owner, noted: frame.size });
    this.fields.replaceChildren(...block.rows);
    const after = [];
    if (count < octets.length) {
      after.push(h("button", { type: "button", class: "wbs-small", onclick: () => { this.all = true; this.#draw(frame); } }, `show all ${octets.length} octets`));
    } else if (!octets.length) after.push(h("p", { class: "wbs-note" }, "The octets of this frame were not kept."));
    else if (octets.length < frame.size) after.push(h("p", { class: "wbs-note" }, `${frame.size - octets.length} more octets were left out of this page.`));
    this.bytes.replaceChildren(...block.lines, ...after);
    // The last group is what the frame says; what comes before it is how it is framed.
    const top = block.top;
    requestAnimationFrame(() => { if (top) this.table.parentElement.scrollTop = top.offsetTop - block.rows[0].offsetTop; });
  }

  #block(length, count) {
    const depths = this.list.map((field) => field.path.split(".").length - 1), values = [];
    const rows = this.list.map((field, i) => {
      const name = h("th", { scope: "row", title: field.path }, field.path.slice(field.path.lastIndexOf(".") + 1));
      name.style.setProperty("--depth", Math.min(depths[i], 5));
      const type = [field.type, field.code].filter(Boolean), { start, end } = field;
      values.push(h("td", { class: "v" }));
      return h("tr", { "data-field": i, tabindex: i ? "-1" : "0", class: depths[i + 1] > depths[i] ? "group" : null }, name, values[i],
        h("td", { class: "t", title: type.join(", ") }, type.join(" ")),
        h("td", { class: "t" }, start < 0 ? "" : end - start === 1 ? String(start) : `${start}–${end - 1}`));
    });
    // The innermost field of each octet: later and shorter spans win over the ones around them.
    const owner = new Int32Array(length).fill(-1), size = new Float64Array(length).fill(Infinity);
    this.list.forEach(({ start, end }, i) => {
      for (let at = Math.max(0, start); at < Math.min(end, length); at++) {
        if (end - start <= size[at]) { owner[at] = i; size[at] = end - start; }
      }
    });
    const lines = [], cells = [];
    for (let at = 0; at < count; at += this.width) {
      const hex = h("span", { class: "hex" }), ascii = h("span", { class: "ascii", "aria-hidden": "true" });
      for (let i = at; i < Math.min(at + this.width, count); i++) {
        const shade = owner[i] < 0 ? "" : owner[i] % 2 ? "odd" : "even";
        const pair = [hex, ascii].map((line) => line.appendChild(h("span", { class: `b ${shade}`, "data-octet": i })));
        cells.push(pair);
      }
      lines.push(h("div", { class: "line" }, h("span", { class: "at" }, at.toString(16).padStart(4, "0")), hex, ascii));
    }
    return { rows, values, owner, cells, lines, top: rows[depths.lastIndexOf(0)] };
  }

  #keys(event) {
    const row = event.target.closest("tr[data-field]");
    if (!row || (event.key !== "ArrowDown" && event.key !== "ArrowUp")) return;
    const next = event.key === "ArrowDown" ? row.nextElementSibling : row.previousElementSibling;
    event.preventDefault();
    event.stopPropagation();
    if (next) { row.tabIndex = -1; next.tabIndex = 0; next.focus(); }
  }

  #point(target, pin) {
    const octet = target.closest("[data-octet]"), row = target.closest("tr[data-field]");
    let field = -1;
    if (octet) field = this.owner[Number(octet.dataset.octet)];
    else if (row) field = Number(row.dataset.field);
    else if (!pin) return;
    if (pin) this.pinned = this.pinned === field ? -1 : field;
    this.#light(field >= 0 ? field : this.pinned, !!octet);
  }

  #light(field, scroll) {
    if (this.lit >= 0 && this.rows[this.lit]) {
      this.rows[this.lit].classList.remove("lit");
      const { start, end } = this.list[this.lit];
      for (let i = Math.max(0, start); i < end && i < this.cells.length; i++) for (const cell of this.cells[i]) cell.classList.remove("lit");
    }
    this.lit = field;
    if (field < 0 || !this.rows || !this.rows[field]) { this.lit = -1; return; }
    this.rows[field].classList.add("lit");
    if (scroll) this.rows[field].scrollIntoView({ block: "nearest" });
    const { start, end } = this.list[field];
    for (let i = Math.max(0, start); i < end && i < this.cells.length; i++) for (const cell of this.cells[i]) cell.classList.add("lit");
  }
}

// ---------------------------------------------------------------- transcript

const LINE = 24;

class Transcript {
  constructor(ui) {
    this.ui = ui;
    this.list = h("div", { class: "wbs-lines", role: "list" });
    this.box = h("div", { class: "wbs-scroll wbs-transcript-box", tabindex: "-1" }, this.list);
    this.whole = h("textarea", { class: "wbs-whole", readonly: true, hidden: true, "aria-label": "the whole transcript as text", rows: 12 });
    this.toggle = h("button", { type: "button", class: "wbs-small", "aria-pressed": "false", onclick: () => this.#text() }, "as plain text");
    this.el = h("section", { class: "wbs-card wbs-transcript", "aria-label": "transcript" },
      h("header", {}, h("h3", {}, "Transcript"), h("span", { class: "wbs-note" }, "every step in words; ◆ marks the interesting ones"),
        h("span", { class: "wbs-tools" }, this.toggle)), this.box, this.whole);
    this.view = new View(this.box, 150, () => this.draw());
    this.list.addEventListener("click", (event) => {
      const line = event.target.closest("[data-step]");
      if (line) this.ui.go(Number(line.dataset.step));
    });
  }

  build() { this.list.style.height = `${this.ui.trace.length * LINE}px`; this.drawn = null; }

  #text() {
    const show = this.whole.hidden, { trace } = this.ui, lines = [];
    if (show) {
      for (let i = 1; i <= trace.length; i++) lines.push(`${i}\t${duration(trace.t[i])}\t${trace.sentence(i)}`);
      this.whole.value = lines.join("\n");
    }
    this.whole.hidden = !show;
    this.box.hidden = show;
    this.toggle.setAttribute("aria-pressed", String(show));
  }

  update(step) {
    const { top, height } = this.view, y = (step - 1) * LINE;
    if (y < top + LINE || y > top + height - 2 * LINE) this.view.to(y - height / 2, this.ui.trace.length * LINE);
    this.draw();
  }

  draw() {
    const { trace } = this.ui, { top, height } = this.view;
    const find = (spare) => [Math.max(1, Math.floor(top / LINE) - spare), Math.min(trace.length, Math.ceil((top + height) / LINE) + 1 + spare)];
    const [least, most] = find(0);
    if (!this.drawn || this.drawn.first > least || this.drawn.last < most) {
      const lines = [], [first, last] = find(6);
      for (let i = first; i <= last; i++) {
        const line = h("div", { class: "line", role: "listitem", "data-step": i, "aria-setsize": trace.length, "aria-posinset": i },
          h("span", { class: "no" }, i), h("span", { class: "t" }, duration(trace.t[i])),
          h("span", { class: "mark" }, trace.row(i)[6] ? "◆" : ""), h("span", { class: "text", title: trace.sentence(i) }, trace.sentence(i)));
        line.style.top = `${(i - 1) * LINE}px`;
        lines.push(line);
      }
      this.list.replaceChildren(...lines);
      this.drawn = { first, last };
    }
    for (const line of this.list.children) {
      const here = Number(line.dataset.step) === this.ui.step;
      flag(line, "here", here);
      if (here) line.setAttribute("aria-current", "step"); else line.removeAttribute("aria-current");
    }
  }
}

// ---------------------------------------------------------------- the whole

const SPEEDS = [0.5, 1, 2, 5, 10, 30];
const KEYS = [["→ / ←", "one step on / back"], ["Home / End", "to the start / to the end"], ["Space", "play, pause"],
  ["n / p", "next / previous interesting step"], ["?", "this help"], ["Tab", "to the next control; Shift+Tab back"],
  ["↑ / ↓", "in the field list: the next field, with its octets"]];

export class Stepper {
  /**
   * @param el an element of the page; it is emptied.
   * @param doc a StepperDoc.
   * @param options `step`, `link` to begin with; `onStep(step)`, `onLink(n)` to be told; `theme`.
   */
  constructor(el, doc, options = {}) {
    this.options = options;
    this.trace = new Trace(doc);
    this.step = -1;
    this.frame = -1;
    this.wire = new Wire(this);
    this.ledgers = new Ledgers(this);
    this.ladder = new Ladder(this);
    this.panel = new FramePanel(this);
    this.transcript = new Transcript(this);
    this.#build(el, doc);
    this.transcript.build();
    const wanted = options.link ?? -1;
    this.choose(doc.links[wanted] ? wanted : doc.link, true);
    this.go(options.step ?? 0, true);
    this.#watch();
  }

  #build(el, doc) {
    const button = (label, title, act, extra = {}) => h("button", { type: "button", title, "aria-label": title, onclick: act, ...extra }, label);
    this.buttons = {
      first: button(icon("first"), "to the start (Home)", () => this.go(0), { "data-act": "first" }),
      back: button(icon("back"), "one step back (←)", () => this.go(this.step - 1), { "data-act": "back" }),
      play: button(icon("play"), "play (Space)", () => this.play(), { "data-act": "play", class: "wbs-play" }),
      next: button(icon("next"), "one step on (→)", () => this.go(this.step + 1), { "data-act": "next", class: "wbs-main" }),
      last: button(icon("last"), "to the end (End)", () => this.go(this.trace.length), { "data-act": "last" }),
      before: button(icon("before"), "previous interesting step (p)", () => this.jump(-1), { "data-act": "before" }),
      after: button(icon("after"), "next interesting step (n)", () => this.jump(1), { "data-act": "after" }),
      help: button("?", "keys and marks (?)", () => this.help(), { "data-act": "help", class: "wbs-small", "aria-expanded": "false" }),
      theme: button("◐", "light or dark", () => this.#theme(this.el.dataset.theme === "dark" ? "light" : "dark"), { "data-act": "theme", class: "wbs-small" }),
    };
    this.speed = h("select", { "aria-label": "speed", title: "speed" }, ...SPEEDS.map((x) => h("option", { value: x }, `${x}/s`)));
    this.speed.value = "2";
    this.slider = h("input", { type: "range", min: 0, max: this.trace.length, step: 1, "aria-label": "step" });
    this.slider.addEventListener("input", () => this.go(Number(this.slider.value)));
    this.where = h("output", { class: "wbs-where" });
    this.links = h("select", { "aria-label": "link", title: "which link the ledgers show" }, ...doc.links.map((link, i) => h("option", { value: i }, link.label)));
    this.links.addEventListener("change", () => { this.follow.checked = false; this.choose(Number(this.links.value)); });
    this.follow = h("input", { type: "checkbox", checked: true });
    const several = new Set(doc.links.map((link) => link.connection)).size > 1;
    this.linkBox = h("span", { class: "wbs-linkbox" }, h("label", {}, "link ", this.links),
      h("label", { title: "show the link of the step's connection when it is not in the picture", hidden: !several }, this.follow, " follow"));
    if (doc.links.length < 2) this.linkBox.hidden = true;
    this.sentence = h("p", { class: "wbs-sentence", "aria-live": "polite", "aria-atomic": "true" });
    this.reason = h("span", { class: "wbs-chip reason" });
    this.clause = h("span", { class: "wbs-chip clause" });
    this.elsewhere = h("button", { type: "button", class: "wbs-chip elsewhere", onclick: () => this.choose(this.otherLink) });
    this.formula = { symbolic: h("span", { class: "sym" }), numbers: h("span", { class: "live" }), more: h("span", { class: "also" }), age: h("span", { class: "wbs-note" }) };
    this.formulaBox = h("section", { class: "wbs-card wbs-formula", "aria-label": "formula with the numbers of this step" },
      this.formula.symbolic, this.formula.numbers, this.formula.age, this.formula.more);
    this.changes = h("ul");
    this.changesBox = h("section", { class: "wbs-card wbs-changes", "aria-label": "what changed in this step" }, h("header", {}, h("h3", {}, "What changed in this step")), this.changes);
    this.helpBox = this.#helpBox();
    const b = this.buttons;
    this.el = h("div", { class: "wbs", role: "region", "aria-label": `stepper: ${doc.title}`, tabindex: "0", "data-lm-suppress-shortcuts": "true" },
      h("header", { class: "wbs-head" }, h("h2", {}, doc.title), doc.note && h("span", { class: "wbs-note" }, doc.note), this.linkBox, b.help, b.theme),
      h("div", { class: "wbs-controls", role: "toolbar", "aria-label": "steps" },
        h("span", { class: "group" }, b.first, b.back, b.next, b.last), h("span", { class: "group" }, b.before, b.after),
        h("span", { class: "group" }, b.play, this.speed), this.slider, this.where),
      h("div", { class: "wbs-say" }, this.sentence, h("div", { class: "wbs-chips" }, this.reason, this.clause, this.elsewhere)),
      this.ledgers.el, this.formulaBox, this.ledgers.more,
      h("div", { class: "wbs-lower" }, this.ladder.el, h("div", { class: "wbs-side" }, this.changesBox, this.panel.el)),
      this.transcript.el, this.helpBox);
    this.el.addEventListener("keydown", (event) => this.#key(event));
    this.#theme(this.options.theme || SAME_SCREEN.get("theme") || systemTheme(), true);
    el.replaceChildren(this.el);
  }

  #helpBox() {
    const marks = [["≠", "the two ends disagree about this number"], ["was 3", "changed in this step, with the value before"],
      ["◆", "an interesting step: credit reaches 0, the ends disagree, a grant, a drain, ..."], ["‖", "held: this frame waits for a hand"],
      ["?", "unknown: this trace cannot tell"], ["–", "not set yet"]];
    const table = (rows) => h("table", {}, h("tbody", {}, ...rows.map(([key, words]) => h("tr", {}, h("th", { scope: "row" }, key), h("td", {}, words)))));
    return h("div", { class: "wbs-help", role: "dialog", "aria-label": "keys and marks", hidden: true, tabindex: "-1" },
      h("div", {}, h("h3", {}, "Keys"), table(KEYS), h("h3", {}, "Marks"), table(marks),
        h("button", { type: "button", onclick: () => this.help(false) }, "close")));
  }

  // -- moving ---------------------------------------------------------------------------

  /** Show the state after `step` rows. */
  go(step, quiet) {
    step = Math.max(0, Math.min(this.trace.length, Math.round(step) || 0));
    if (step === this.step) return;
    const jump = Math.abs(step - this.step) > 1;
    this.step = step;
    // A step that is no frame leaves the last one in view, as far as it is known by then.
    const own = step ? this.trace.frameOf(step) : -1;
    if (own >= 0) this.frame = own;
    else if (this.frame >= 0 && this.trace.sentAt[this.frame] > step) this.frame = -1;
    if (!this.#followed(step)) this.refresh(jump);
    if (!quiet && this.options.onStep) this.options.onStep(step);
  }

  /** Change to the step's connection if the picture does not show it; true if that was done. */
  #followed(step) {
    const { trace } = this, head = step ? trace.head(step) : null, wanted = head && head[CONNECTION];
    if (!wanted || !this.link || !this.follow.checked) return false;
    if (this.link.lanes.some((lane) => trace.doc.lanes[lane][2] === wanted)) return false;
    const n = head[LINK] >= 0 ? head[LINK] : trace.doc.links.findIndex((link) => link.connection === wanted);
    if (n < 0) return false;
    this.choose(n);
    return true;
  }

  jump(way) {
    const list = this.trace.interesting;
    const at = way > 0 ? list.find((step) => step > this.step) : list.findLast((step) => step < this.step);
    if (at !== undefined) this.go(at);
  }

  play(on = !this.timer) {
    clearTimeout(this.timer);
    this.timer = 0;
    if (on) {
      // From the end: where the set-up ended, not at the handshake, unless that is all there is.
      const { begin = 0 } = this.trace.doc;
      if (this.step >= this.trace.length) this.go(begin < this.trace.length ? begin : 0);
      const tick = () => {
        if (!this.el.isConnected || this.step >= this.trace.length) { this.play(false); return; }
        this.go(this.step + 1);
        this.timer = setTimeout(tick, 1000 / Number(this.speed.value));
      };
      this.timer = setTimeout(tick, 150);
    }
    this.buttons.play.replaceChildren(icon(this.timer ? "pause" : "play"));
    this.buttons.play.setAttribute("aria-label", this.timer ? "pause (Space)" : "play (Space)");
    // A voice cannot keep up with a running picture: it speaks again when the picture rests.
    this.sentence.setAttribute("aria-live", this.timer ? "off" : "polite");
  }

  choose(n, quiet) {
    const link = this.trace.doc.links[n] || null;
    this.link = link;
    this.linkNo = link ? n : -1;
    this.links.value = String(n);
    this.ledgers.build(link);
    this.ladder.build(link);
    this.lastFormula = new Int32Array(this.trace.length + 1);
    const windows = new Set((link ? link.window : []).flatMap((line) => [line[1], line[2]]));
    for (let i = 1; i <= this.trace.length; i++) {
      const shows = (this.trace.row(i)[5] || []).length && this.#concerns(i, n, windows);
      this.lastFormula[i] = shows ? i : this.lastFormula[i - 1];
    }
    if (this.step >= 0) this.refresh(true);
    if (!quiet && this.options.onLink) this.options.onLink(n);
  }

  /** Whether a row is about a link: it names the link, or it names none and moves its session's windows. */
  #concerns(step, n, windows) {
    const named = this.trace.head(step)[LINK];
    let moves = false;
    if (named < 0) pairs(this.trace.row(step)[3] || [], (cell) => { moves ||= windows.has(cell); });
    return named === n || moves;
  }

  pick(n) {
    this.frame = n;
    this.panel.show(n);
    this.panel.date(this.step);
    this.wire.update(this.trace.at(this.step), this.step, this.link);
    this.ladder.draw();
  }

  // -- drawing --------------------------------------------------------------------------

  refresh(jump) {
    const { trace, step } = this, state = trace.at(step);
    this.slider.value = String(step);
    const where = `step ${step} of ${trace.length} · t = ${duration(trace.t[step])}`;
    setText(this.where, where);
    this.slider.setAttribute("aria-valuetext", where);
    setText(this.sentence, trace.sentence(step));
    this.#chips(step);
    this.ledgers.update(state);
    this.wire.update(state, step, this.link);
    this.#formula(step);
    this.#changed(state, step);
    this.ladder.update(step, jump);
    this.panel.show(this.frame);
    this.panel.date(step);
    this.transcript.update(step);
    const { first, back, next, last, before, after } = this.buttons, list = trace.interesting;
    // Not `disabled`: a button that loses its function under the hand would lose the focus too.
    const dim = (button, on) => button.setAttribute("aria-disabled", String(on));
    for (const button of [first, back]) dim(button, step === 0);
    for (const button of [next, last]) dim(button, step === trace.length);
    dim(before, !list.length || list[0] >= step);
    dim(after, !list.length || list.at(-1) <= step);
  }

  #chips(step) {
    const { trace } = this, reason = trace.reason(step), head = step ? trace.head(step) : null;
    setText(this.reason, reason ? `◆ ${reason}` : "");
    const clause = head && head[CLAUSE] >= 0 ? trace.doc.clauses[head[CLAUSE]] : null;
    setText(this.clause, clause ? `§ ${clause[0]}${clause[1] ? " " + clause[1] : ""}` : "");
    const other = head && head[LINK] >= 0 && head[LINK] !== this.linkNo ? head[LINK] : -1;
    this.otherLink = other;
    setText(this.elsewhere, other >= 0 ? `another link: ${trace.doc.links[other].name} – show it` : "");
    for (const chip of [this.reason, this.clause, this.elsewhere]) chip.hidden = !chip.textContent;
  }

  #formula(step) {
    const { trace } = this, at = this.lastFormula[step] || 0, [symbolic, numbers, more, also] = at ? trace.row(at)[5] : [];
    setText(this.formula.symbolic, trace.text(symbolic));
    setText(this.formula.numbers, trace.text(numbers));
    setText(this.formula.more, more ? `${trace.text(more)}:  ${trace.text(also)}` : "");
    setText(this.formula.age, at === step ? "" : at ? `as of step ${at}` : "no formula has been used yet");
    flag(this.formulaBox, "old", at !== step);
  }

  #changed(state, step) {
    const { trace } = this, items = [], bySlot = new Map();
    for (const [cell, before] of state.before) {
      const n = trace.slotOfCell[cell], slot = trace.doc.slots[n], name = slot[4 + cell - slot[3]];
      if (!bySlot.has(n)) {
        bySlot.set(n, h("li", {}, h("span", { class: "wbs-who" }, slot[0])));
        items.push(bySlot.get(n));
      }
      bySlot.get(n).append(" ", h("span", { class: "one" }, h("b", {}, name === "brake" ? "held by" : name), " ",
        h("span", { class: "from" }, before === undefined ? "new" : shown(before)), " → ", h("span", { class: "to" }, shown(state.cells[cell]))));
    }
    if (step) {
      const op = trace.head(step)[OP], n = trace.frameOf(step), words = { [DEPARTS]: "is now on the wire", [ARRIVES]: "has left the wire", [SEEN]: "was seen" }[op];
      if (n >= 0 && words) items.push(h("li", {}, h("b", {}, `${trace.frame(n).glyph} ${trace.frame(n).kind}`), ` ${words}`));
      pairs(trace.row(step)[7] || [], (what, which) => items.push(h("li", {}, h("b", {}, `${trace.frame(which).glyph} ${trace.frame(which).kind}`), what === HELD ? " is held ‖" : " may go on")));
    }
    if (!items.length) items.push(h("li", { class: "wbs-note" }, step ? "no counter changed" : "nothing yet: press ▶ or →"));
    this.changes.replaceChildren(...items);
  }

  // -- keys, theme, help ----------------------------------------------------------------

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const target = event.target, tag = target.tagName;
    if (tag === "SELECT" || tag === "TEXTAREA") { event.stopPropagation(); return; }
    if (event.key === " " && (tag === "BUTTON" || tag === "SUMMARY")) { event.stopPropagation(); return; }
    const act = {
      ArrowRight: () => this.go(this.step + 1), ArrowLeft: () => this.go(this.step - 1),
      Home: () => this.go(0), End: () => this.go(this.trace.length), " ": () => this.play(),
      n: () => this.jump(1), p: () => this.jump(-1), "?": () => this.help(), Escape: () => this.help(false),
    }[event.key];
    if (!act || (event.key === "Escape" && this.helpBox.hidden)) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  }

  help(on = this.helpBox.hidden) {
    this.helpBox.hidden = !on;
    this.buttons.help.setAttribute("aria-expanded", String(on));
    if (on) this.helpBox.focus(); else this.el.focus({ preventScroll: true });
  }

  #theme(name, quiet) {
    this.el.dataset.theme = name;
    if (!quiet) SAME_SCREEN.set("theme", name);
  }

  #watch() {
    let width = 0;
    this.observer = new ResizeObserver(() => {
      if (this.el.clientWidth === width) return;
      width = this.el.clientWidth;
      this.ladder.view.measure();
      this.transcript.view.measure();
      this.panel.wide = this.panel.el.clientWidth > 530;
      this.ladder.drawn = null;
      this.transcript.drawn = null;
      this.refresh(true);
    });
    this.observer.observe(this.el);
    // JupyterLab says on <body> whether its theme is light; follow it when it is changed.
    this.themes = new MutationObserver(() => { if (!SAME_SCREEN.has("theme")) this.#theme(systemTheme(), true); });
    this.themes.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light"] });
  }

  destroy() {
    clearTimeout(this.timer);
    this.observer.disconnect();
    this.themes.disconnect();
    this.el.remove();
  }
}

function systemTheme() {
  const jupyter = document.body.dataset.jpThemeLight;
  if (jupyter) return jupyter === "false" ? "dark" : "light";
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

/** Put a stepper into `el`. */
export function mount(el, doc, options) { return new Stepper(el, doc, options); }

/** anywidget's entry: traits `doc`, `cursor` (the step) and `selected_link`. */
function render({ model, el }) {
  let stepper = null, waiting = 0;
  // The kernel echoes every step that it is sent. While a later one is still to be sent, an echo
  // would lead back: `own` are the steps that may come back so, `mine` is where the page stands.
  let mine = null;
  const own = new Set();
  const save = () => { waiting = 0; own.clear(); own.add(mine); model.save_changes(); };
  const tell = (name, value) => {
    if (name === "cursor") { mine = value; own.add(value); }
    // The picture never waits for the kernel; a held key sends it the last step, ten a second.
    if (!waiting) waiting = setTimeout(save, 100);
    model.set(name, value);
  };
  const open = () => {
    if (stepper) stepper.destroy();
    const doc = model.get("doc");
    if (!doc || !doc.rows) { el.replaceChildren(); stepper = null; return; }
    stepper = mount(el, doc, {
      step: model.get("cursor"), link: model.get("selected_link"),
      onStep: (step) => tell("cursor", step), onLink: (n) => tell("selected_link", n),
    });
  };
  const move = () => {
    const value = model.get("cursor");
    if (waiting && value !== mine && own.has(value)) model.set("cursor", mine);
    else if (stepper) stepper.go(value, true);
  };
  const choose = () => stepper && model.get("selected_link") !== stepper.linkNo && stepper.choose(model.get("selected_link"), true);
  model.on("change:doc", open);
  model.on("change:cursor", move);
  model.on("change:selected_link", choose);
  open();
  return () => {
    clearTimeout(waiting);
    model.off("change:doc", open);
    model.off("change:cursor", move);
    model.off("change:selected_link", choose);
    if (stepper) stepper.destroy();
  };
}

export default { render };
