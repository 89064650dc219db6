// The frozen wire: what waits at a live connection's gates, and buttons for it.
//
// It draws the trait `picture` and sends what is pressed as messages `{act: ...}`; it knows no
// protocol rule. Controls are made once and only change, so that whoever is on one with the
// keyboard stays there while frames come and go.

function h(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
}

const many = (n, one) => `${n === 0 ? "no" : n.toLocaleString("en")} ${one}${n === 1 ? "" : "s"}`;
const KEYS = "Keys: f forward one · c client’s · b broker’s · n so many · g free run · h freeze · ↑ ↓ choose a frame · t trace";

function systemTheme() {
  const jupyter = document.body.dataset.jpThemeLight;
  if (jupyter) return jupyter === "false" ? "dark" : "light";
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

class Gate {
  constructor(view, way) {
    this.way = way;
    this.list = h("ul", { role: "listbox", class: "wbf-frames" });
    this.state = h("span", { class: "wbf-state" });
    this.title = h("h3", {});
    this.one = view.button("Forward 1", "let the frame through that has waited longest this way", () => view.act("step", { way }));
    this.run = view.button("Free run", "open this gate", () => view.act("run", { way }));
    this.hold = view.button("Freeze", "close this gate: what comes waits", () => view.act("hold", { way }));
    this.el = h("section", { class: `wbf-card wbf-gate ${way}` },
      h("header", {}, this.title, this.state),
      this.list, h("div", { class: "wbf-row" }, this.one, this.run, this.hold));
  }

  show(gate, view) {
    this.title.textContent = gate.words;
    this.el.setAttribute("aria-label", `gate ${gate.words}`);
    this.list.setAttribute("aria-label", `frames that wait, ${gate.words}`);
    this.state.textContent = `${gate.closed ? "‖ closed" : "▷ open"} · ${gate.waiting} waiting · ${gate.passed} passed`;
    this.el.classList.toggle("closed", gate.closed);
    view.enable(this.one, gate.waiting > 0);
    view.enable(this.run, gate.closed);
    view.enable(this.hold, view.picture.connection && !gate.closed);
    const items = gate.frames.map((frame, n) => h("li", {
      role: "option", class: `wbf-frame k-${frame.style}`, "aria-selected": String(frame.id === view.chosen),
      "data-frame": frame.id, onclick: () => view.choose(frame.id),
    }, h("span", { class: "no" }, `${n + 1}`), h("b", {}, `${frame.glyph} ${frame.kind}`),
      h("span", { class: "carries" }, frame.carries), h("span", { class: "size" }, `${frame.size} B`)));
    if (gate.waiting > gate.frames.length) items.push(h("li", { class: "wbf-note" }, `and ${many(gate.waiting - gate.frames.length, "more frame")}`));
    if (!items.length) items.push(h("li", { class: "wbf-note" }, gate.closed ? "nothing waits here yet" : "frames pass freely"));
    this.list.replaceChildren(...items);
  }
}

class FrozenWire {
  constructor(el, send) {
    this.send = send;
    this.picture = null;
    this.chosen = null;
    this.gates = {};
    this.#build(el);
  }

  button(text, title, press, more = {}) {
    return h("button", { type: "button", title, onclick: (event) => { if (event.currentTarget.getAttribute("aria-disabled") !== "true") press(); }, ...more }, text);
  }

  // A disabled button would lose the keyboard's focus; this one stays and does nothing.
  enable(button, on) { button.setAttribute("aria-disabled", String(!on)); }

  act(act, more = {}) { this.send({ act, ...more }); }

  #build(el) {
    this.choice = h("select", { "aria-label": "connection", onchange: () => this.act("choose", { connection: this.choice.value }) });
    this.who = h("span", { class: "wbf-note wbf-who" });
    this.url = h("code", {});
    this.one = this.button("Forward one", "let the frame through that has waited longest (f)", () => this.act("step"), { class: "wbf-main" });
    this.number = h("input", { type: "number", min: 1, max: 100000, value: 3, "aria-label": "how many frames" });
    this.some = this.button("Forward", "let so many frames through, in order (n)", () => this.#some());
    this.run = this.button("Free run", "open both gates; a breakpoint closes them (g)", () => this.act("run"));
    this.hold = this.button("Freeze", "close both gates: whatever comes waits (h)", () => this.act("hold"));
    this.fresh = h("input", { type: "checkbox", onchange: () => this.act("freeze-new", { on: this.fresh.checked }) });
    this.say = h("p", { class: "wbf-say", role: "status" });
    this.table = h("tbody", {});
    this.fields = h("div", { class: "wbf-scroll", tabindex: "0", "aria-label": "fields", role: "group" },
      h("table", {}, h("thead", {}, h("tr", {}, ...["field", "value", "octets"].map((name) => h("th", { scope: "col" }, name)))), this.table));
    this.octets = h("pre", { class: "wbf-octets wbf-scroll", tabindex: "0", "aria-label": "octets" });
    this.frameTitle = h("h3", {}, "The frame");
    this.words = h("input", { type: "text", "aria-label": "stop at", placeholder: "transfer · flow c2b · link_credit <= 3", size: 34 });
    this.words.addEventListener("keydown", (event) => { if (event.key === "Enter") this.#breakAt(); });
    this.add = this.button("Stop there", "close both gates when it comes to that", () => this.#breakAt());
    this.clear = this.button("Remove all", "no breakpoints", () => this.act("clear"));
    this.points = h("span", { class: "wbf-points" });
    this.trace = this.button("Open the trace so far", "every frame up to now in the stepper below (t)", () => this.act("trace"));
    this.rows = h("span", { class: "wbf-note" });
    for (const way of ["c2b", "b2c"]) this.gates[way] = new Gate(this, way);
    this.el = h("div", { class: "wbf", role: "region", "aria-label": "frozen wire", tabindex: "0", "data-lm-suppress-shortcuts": "true" },
      h("header", { class: "wbf-head" }, h("h2", {}, "Frozen wire"), this.url, h("label", {}, "connection ", this.choice), this.who),
      h("div", { class: "wbf-row wbf-controls", role: "toolbar", "aria-label": "gates" }, this.one, h("span", { class: "wbf-pair" }, this.some, this.number),
        this.run, this.hold, h("label", {}, this.fresh, " hold new connections from the first octet")),
      this.say,
      h("div", { class: "wbf-gates" }, this.gates.c2b.el, this.gates.b2c.el),
      h("section", { class: "wbf-card wbf-detail", "aria-label": "the frame" }, h("header", {}, this.frameTitle), h("div", { class: "wbf-two" }, this.fields, this.octets)),
      h("div", { class: "wbf-row" }, h("label", {}, "stop at ", this.words), this.add, this.clear, this.points),
      h("div", { class: "wbf-row" }, this.trace, this.rows, h("span", { class: "wbf-note wbf-keys" }, KEYS)));
    this.el.addEventListener("keydown", (event) => this.#key(event));
    this.#theme();
    this.themes = new MutationObserver(() => this.#theme());
    this.themes.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light"] });
    el.replaceChildren(this.el);
  }

  #theme() { this.el.dataset.theme = systemTheme(); }

  #some() { this.act("step", { frames: Math.max(1, Math.min(100000, Math.floor(Number(this.number.value)) || 1)) }); }

  #breakAt() {
    if (!this.words.value.trim()) { this.words.focus(); return; }
    this.act("break", { words: this.words.value });
    this.words.select();
  }

  /** Every frame that is listed, in the order in which it came. */
  #frames() { return this.picture.gates.flatMap((gate) => gate.frames).sort((a, b) => a.id - b.id); }

  show(picture) {
    if (!picture || !picture.gates) return;
    this.picture = picture;
    const frames = this.#frames();
    if (!frames.some((frame) => frame.id === this.chosen)) this.chosen = frames.length ? frames[0].id : null;
    this.url.textContent = picture.url;
    const names = picture.connections;
    if (names.join() !== [...this.choice.options].map((option) => option.value).join()) {
      this.choice.replaceChildren(...names.map((name) => h("option", { value: name }, name)));
    }
    this.choice.disabled = names.length === 0;
    if (picture.connection) this.choice.value = picture.connection;
    this.who.textContent = !picture.running ? "stopped" : picture.connection
      ? `${picture.words}${picture.gone ? "; its socket is closed" : ""}` : picture.words;
    this.fresh.checked = picture.freezes_new;
    this.fresh.disabled = !picture.running;
    const waiting = picture.gates.reduce((sum, gate) => sum + gate.waiting, 0), closed = picture.gates.filter((gate) => gate.closed).length;
    this.enable(this.one, waiting > 0);
    this.enable(this.some, waiting > 0);
    this.enable(this.run, closed > 0);
    this.enable(this.hold, picture.connection && closed < 2);
    for (const gate of picture.gates) this.gates[gate.way].show(gate, this);
    this.#say(waiting, frames);
    this.points.textContent = picture.breakpoints.length ? picture.breakpoints.join(" · ") : "no breakpoints";
    this.enable(this.clear, picture.breakpoints.length > 0);
    this.enable(this.trace, picture.rows !== null);
    this.rows.textContent = picture.rows === null ? "nothing is recorded here" : `${many(picture.rows, "row")} recorded`;
    this.#detail(frames);
  }

  #say(waiting, frames) {
    const { picture } = this, stop = picture.stops.at(-1);
    const next = frames.length ? `Next: ${frames[0].glyph} ${frames[0].kind}${frames[0].carries ? ` (${frames[0].carries})` : ""}.` : "";
    const text = [picture.said, stop && waiting ? `Stopped: ${stop}.` : "", waiting ? `${many(waiting, "frame")} ${waiting === 1 ? "waits" : "wait"}. ${next}` : ""].filter(Boolean).join(" ");
    // Said again only when it is another text: a screen reader reads each change aloud.
    if (this.say.textContent !== text) this.say.textContent = text;
    this.say.classList.toggle("failed", picture.failed);
  }

  choose(id) {
    this.chosen = id;
    for (const item of this.el.querySelectorAll("[data-frame]")) item.setAttribute("aria-selected", String(Number(item.dataset.frame) === id));
    this.el.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
    this.#detail(this.#frames());
  }

  #detail(frames) {
    const frame = frames.find((one) => one.id === this.chosen);
    const mark = frame ? `${frame.id}` : "";
    if (this.drawn === mark) return;
    this.drawn = mark;
    this.frameTitle.textContent = frame ? `${frame.glyph} ${frame.kind}: fields and octets` : "No frame waits";
    this.table.replaceChildren(...(frame ? frame.fields : []).map(([name, type, constructor, start, end, value]) => h("tr", {
      onmouseenter: () => this.#light(start, end), onmouseleave: () => this.#light(-1, -1) },
    h("th", { scope: "row", title: [type, constructor].filter(Boolean).join(", ") }, name), h("td", { class: "v" }, value), h("td", { class: "o" }, end > start ? `${start}–${end - 1}` : ""))));
    const octets = frame ? frame.octets.match(/../g) || [] : [];
    const lines = [];
    for (let at = 0; at < octets.length; at += 16) {
      lines.push(h("span", { class: "at" }, at.toString(16).padStart(4, "0") + "  "),
        ...octets.slice(at, at + 16).map((octet, n) => h("span", { class: "b", "data-at": at + n }, octet + " ")), "\n");
    }
    if (frame && frame.size > octets.length) lines.push(`and ${(frame.size - octets.length).toLocaleString("en")} octets more`);
    this.octets.replaceChildren(...lines);
  }

  #light(start, end) {
    for (const octet of this.octets.querySelectorAll(".b")) octet.classList.toggle("lit", octet.dataset.at >= start && octet.dataset.at < end);
  }

  #along(step) {
    const frames = this.#frames();
    if (!frames.length) return;
    const at = frames.findIndex((frame) => frame.id === this.chosen);
    this.choose(frames[Math.max(0, Math.min(frames.length - 1, at + step))].id);
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const tag = event.target.tagName;
    if (tag === "INPUT" || tag === "SELECT") { event.stopPropagation(); return; }
    if ((event.key === " " || event.key === "Enter") && tag === "BUTTON") { event.stopPropagation(); return; }
    const act = {
      f: () => this.act("step"), c: () => this.act("step", { way: "c2b" }), b: () => this.act("step", { way: "b2c" }), n: () => this.#some(),
      g: () => this.act("run"), h: () => this.act("hold"), t: () => this.act("trace"), ArrowDown: () => this.#along(1), ArrowUp: () => this.#along(-1),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  }

  destroy() { this.themes.disconnect(); this.el.remove(); }
}

/** anywidget's entry: the trait `picture`, and messages to the kernel. */
function render({ model, el }) {
  const view = new FrozenWire(el, (message) => model.send(message));
  const show = () => view.show(model.get("picture"));
  model.on("change:picture", show);
  show();
  return () => { model.off("change:picture", show); view.destroy(); };
}

export default { render };
