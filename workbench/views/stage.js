// dom.ts
var SVG = "http://www.w3.org/2000/svg";
function h(tag2, a = {}, ...kids) {
  const flat = [];
  const add = (kid) => {
    if (Array.isArray(kid)) kid.forEach(add);
    else if (typeof kid === "number") flat.push(String(kid));
    else if (kid) flat.push(kid);
  };
  kids.forEach(add);
  return { tag: tag2, a, kids: flat };
}
function patch(parent, kids, svg = false) {
  let old = null, place = parent.firstChild;
  const seen = {};
  for (const kid of kids) {
    const tag2 = typeof kid === "string" ? "#" : kid.tag;
    const named = typeof kid === "object" && kid.a.key !== void 0;
    const base = named ? `${tag2}:${kid.a.key}` : tag2;
    const nth = seen[base] = (seen[base] ?? 0) + 1;
    const key = named && nth === 1 ? base : `${base}#${nth}`;
    let node;
    if (place && place.__key === key) {
      node = place;
      place = place.nextSibling;
    } else {
      if (!old) {
        old = /* @__PURE__ */ new Map();
        for (let rest = place; rest; rest = rest.nextSibling) old.set(rest.__key ?? "", rest);
      }
      node = old.get(key);
      if (!node) {
        node = tag2 === "#" ? document.createTextNode("") : svg || tag2 === "svg" ? document.createElementNS(SVG, tag2) : document.createElement(tag2);
        node.__key = key;
      }
      parent.insertBefore(node, place);
    }
    old?.delete(key);
    if (typeof kid === "string") {
      if (node.data !== kid) node.data = kid;
    } else {
      attributes(node, kid.a);
      patch(node, kid.kids, svg || tag2 === "svg");
    }
  }
  if (old) for (const node of old.values()) node.remove();
  else while (place) {
    const next = place.nextSibling;
    place.remove();
    place = next;
  }
}
function attributes(element, now) {
  const before = element.__a ?? {};
  for (const name in before) if (!(name in now)) element.removeAttribute(name);
  for (const name in now) {
    const value = now[name];
    if (name === "key" || before[name] === value) continue;
    if (name === "style") element.style.cssText = String(value ?? "");
    else if (name === "value") {
      if (document.activeElement !== element) element.value = String(value);
    } else if (value === false || value === null || value === void 0) element.removeAttribute(name);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.__a = now;
}

// geometry.ts
var clamp = (value, low, high) => Math.max(low, Math.min(high, value));
function partAt(path, t) {
  let before = path[0];
  for (const point of path) {
    if (point[0] > t) return before[0] === point[0] ? point[1] : before[1] + (point[1] - before[1]) * (t - before[0]) / (point[0] - before[0]);
    before = point;
  }
  return before[1];
}
function heldAt(path, t) {
  for (let i = 1; i < path.length; i++) {
    const last = i === path.length - 1;
    if (path[i][1] === path[i - 1][1] && t >= path[i - 1][0] && (t < path[i][0] || last && path[i][1] < 1)) return true;
  }
  return false;
}
var SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";
function count(value, modulo) {
  if (!modulo) return String(value);
  const shown = (value % modulo + modulo) % modulo;
  const power = Math.log2(modulo);
  if (modulo - shown > 1e3 || shown < 1e3 || !Number.isInteger(power)) return String(shown);
  return `2${[...String(power)].map((digit) => SUPERSCRIPTS[Number(digit)]).join("")}−${modulo - shown}`;
}
function round(least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= least) ?? power * 10;
}
var ms = (t, untimed = false) => untimed ? "?" : t >= 1e5 ? `${(t / 1e3).toFixed(4)} s` : `${t < 10 || Math.round(t * 10) % 10 ? t.toFixed(1) : Math.round(t)} ms`;
var widths = /* @__PURE__ */ new Map();
var pen = null;
function textWidth(text, size = 13, weight = 500) {
  const key = `${weight} ${size}px ${text}`;
  let width = widths.get(key);
  if (width === void 0) {
    pen ??= document.createElement("canvas").getContext("2d");
    if (pen) pen.font = `${weight} ${size}px system-ui, "Segoe UI", "Noto Sans", sans-serif`;
    width = pen ? pen.measureText(text).width : text.length * size * 0.55;
    if (widths.size > 5e3) widths.clear();
    widths.set(key, width);
  }
  return width;
}
var widest = (ends) => Math.ceil(textWidth(`${Math.floor(ends)}.0 ms`, 13, 650)) + 1;
function fitted(text, width, size, weight, cut) {
  if (textWidth(text, size, weight) <= width) return text;
  let kept = Math.max(1, text.length - 1);
  while (kept > 1 && textWidth(cut(kept), size, weight) > width) kept--;
  return cut(kept);
}
var fit = (text, width, size = 13, weight = 500) => fitted(text, width, size, weight, (kept) => `${text.slice(0, kept).trimEnd()}…`);
var fitName = (name, width, size = 13, weight = 500) => fitted(name, width, size, weight, (kept) => `${name.slice(0, Math.ceil(kept / 2))}…${name.slice(name.length - Math.floor(kept / 2))}`);
var sizeIn = (text, width, weight = 650) => textWidth(text, 12, weight) > width ? 11 : 12;
var Labels = class {
  constructor(width, height) {
    this.width = width;
    this.height = height;
  }
  width;
  height;
  boxes = [];
  take(x1, y1, x2, y2) {
    this.boxes.push({ x1, y1, x2, y2 });
  }
  free(x1, y1, x2, y2) {
    return x1 >= 2 && x2 <= this.width - 2 && y1 >= 0 && y2 <= this.height && !this.boxes.some((box) => x1 < box.x2 && x2 > box.x1 && y1 < box.y2 && y2 > box.y1);
  }
  /** `pad`: free room beside the text. */
  place(text, size, weight, spots, pad = 2) {
    const width = textWidth(text, size, weight);
    for (const spot of spots) {
      const x1 = spot.anchor === "start" ? spot.x : spot.anchor === "end" ? spot.x - width : spot.x - width / 2;
      const box = [x1 - pad, spot.y - size * 0.95, x1 + width + pad, spot.y + size * 0.35];
      if (this.free(...box)) {
        this.take(...box);
        return spot;
      }
    }
    return null;
  }
};

// words.ts
var phrases = (key, named = {}) => WORDS[key].split(/\{(\w+)\}/).map((piece, i) => i % 2 ? named[piece] : piece);
var phrase = (key, named = {}) => phrases(key, named).join("");

// marks.ts
var T = (x, y, text, c = "", a = {}) => h("text", { x: r1(x), y: r1(y), class: c, ...a }, String(text));
var G = (a, ...kids) => h("g", a, ...kids);
var P = (d, c = "", a = {}) => h("path", { d, class: c, ...a });
var C = (x, y, r, c = "", a = {}) => h("circle", { cx: r1(x), cy: r1(y), r: r1(r), class: c, ...a });
var L = (x1, y1, x2, y2, c = "", a = {}) => h("line", { x1: r1(x1), y1: r1(y1), x2: r1(x2), y2: r1(y2), class: c, ...a });
var R = (x, y, w, height, c = "", a = {}) => h("rect", { x: r1(x), y: r1(y), width: r1(Math.max(0, w)), height: r1(Math.max(0, height)), class: c, ...a });
var at = (x, y) => `transform:translate(${r1(x)}px,${r1(y)}px)`;
var r1 = (n) => Math.round(n * 10) / 10;
var tone = (role) => ({ sender: "snd", receiver: "rcv", permission: "flow", "": "mute" })[role ?? ""];
var KINDS = { message: "snd", permission: "flow", acknowledgement: "alt", write: "snd" };
var TONES = ["snd", "alt", "rcv"];
function patterns(uid) {
  const hatch = (id, c, w, s, angle) => h("pattern", { key: id, id: uid + id, width: s, height: s, patternUnits: "userSpaceOnUse", patternTransform: `rotate(${angle})` }, h("rect", { width: w, height: s, class: `f-${c}` }));
  return h(
    "defs",
    {},
    hatch("stop", "stopfill", 2.5, 7, -45),
    hatch("alt", "alt", 2, 7, -45),
    hatch("curtain", "line", 2, 7, 45),
    h("marker", { id: `${uid}arrow`, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 6, markerHeight: 6, orient: "auto" }, P("M0 0L8 4L0 8z", "f-muted"))
  );
}
function hit(view, what, value, label, more = {}) {
  const off = view.state.off?.[what];
  return { "data-act": what, "data-value": value, tabindex: 0, role: "button", "aria-label": off ? phrase("not-now", { name: label, why: off }) : label, "aria-disabled": off ? "true" : null, ...more, class: `hit ${more.class ?? ""}` };
}
var actsOn = (view, on, kind) => (view.scene.acts ?? []).filter((act) => act.on === on && (!kind || act.kind === kind));
var actsOfFrame = (view, frame, held) => (frame.inside ? [] : view.scene.acts ?? []).filter((act) => act.kind === "frame" && (!act.while || act.while === "held" === held) && (!act.about || act.about === frame.kind));
function toggle(view, on, name) {
  const act = actsOn(view, on, "toggle")[0];
  if (!act) return null;
  const is = view.state.on?.[act.id] ?? false;
  return hit(view, act.id, null, phrase("press", { name, act: is ? act.undo ?? act.name : act.name }), { "aria-pressed": String(is) });
}
var LOW = 66;
var secondLine = (height) => height < LOW ? 38 : 41;
function nodeBox(view, node, x, y, w, height, a = {}) {
  const state = view.state.nodes?.[node.id] ?? {}, role = tone(node.role), press = toggle(view, node.id, node.name);
  const sub = state.sub ?? node.sub ?? "", second = y + secondLine(height), named = textWidth(sub, 12) > w - 20 ? sub.match(/“.+”$/)?.[0] ?? sub : sub, shown = fit(named, w - 20, 12), c = node.role ? `c-${role}` : "";
  view.labels.take(x, y, x + w, y + height);
  return G(
    { key: `node ${node.id}`, ...press, ...a },
    R(x, y, w, height, `node ${node.role ? `s-${role}` : ""} ${state.blocked ? "stop" : ""} ${state.down ? "down" : ""}`, { rx: 11 }),
    node.role && P(`M${x + 11} ${y}h${w - 22}a11 11 0 0 1 10 6.5h-${w - 2}a11 11 0 0 1 10 -6.5z`, `f-${role}`),
    T(x + 12, y + 25, fitName(node.name, w - 20, 13, 650), `b ${c}`),
    sub && T(x + 12, second, shown, "m s12"),
    shown !== sub && h("title", {}, sub),
    state.down && P(`M${x + w - 24} ${y + 12}l12 12m0 -12l-12 12`, "k-stop w4")
  );
}
function pill(view, key, x, y, state, most = 400) {
  const said2 = state.blocked || state.going;
  if (!said2) return null;
  const size = 12, text = fit(said2, most - 38, size, 650), w = textWidth(text, size, state.blocked ? 650 : 500) + 38;
  view.labels.take(x, y, x + w, y + 26);
  return state.blocked ? G({ key: `${key} blocked`, class: "fade" }, R(x, y, w, 26, "f-stopfill", { rx: 13 }), R(x + 10, y + 8, 10, 10, "f-dark"), T(x + 27, y + 17.5, text, "b s12 c-dark")) : G({ key: `${key} going`, class: "fade" }, R(x, y, w, 26, "f-btn", { rx: 13 }), P(`M${x + 11} ${y + 8}l9 5l-9 5z`, "f-flow"), T(x + 27, y + 17.5, text, "s12"));
}
function standsAt(view, act) {
  const knobs = Object.values(view.state.nodes ?? {}).map((node) => node.knobs?.[act.id]);
  return (act.kind === "handle" ? view.state.links?.[act.on]?.latency : knobs.find((one) => one !== void 0)) ?? act.min ?? 0;
}
var topOf = (act, now) => Math.min(act.limit ?? Infinity, Math.max(act.max ?? 10, 2 * now));
function knob(view, act, x, y, r, role, value, width = 120) {
  const c = tone(act.tone ?? role), min = act.min ?? 0, max = topOf(act, value), set = view.preview[act.id], now = set ?? value;
  const angle = (q) => (135 + 270 * clamp((q - min) / (max - min), 0, 1)) * Math.PI / 180;
  const arc = (q) => {
    const A = angle(min), B2 = angle(q), X = (a) => (x + r * Math.cos(a)).toFixed(1), Y = (a) => (y + r * Math.sin(a)).toFixed(1);
    return `M${X(A)} ${Y(A)}A${r} ${r} 0 ${B2 - A > Math.PI ? 1 : 0} 1 ${X(B2)} ${Y(B2)}`;
  };
  const B = angle(now), changed = set !== void 0 && set !== value, off = view.state.off?.[act.id];
  const name = changed ? phrase("let-go") : act.name, size = sizeIn(name, width, 500), words = phrase("turn-it", { value: `${now}${act.unit ? ` ${act.unit}` : ""}` });
  return G(
    { key: `knob ${act.id}`, class: "knob hit", "data-knob": act.id, "data-now": value, tabindex: 0, role: "slider", "aria-label": off ? phrase("not-now", { name: act.name, why: off }) : act.name, "aria-disabled": off ? "true" : null, "aria-valuemin": min, "aria-valuemax": max, "aria-valuenow": now, "aria-valuetext": words },
    C(x, y, r + 7, "f-none"),
    P(arc(max), "k-tube2 w7 round"),
    now > min && P(arc(now), `k-${c} w7 round`, { style: changed ? "stroke-dasharray:3 8" : "" }),
    C(x, y, r - 8, "face"),
    C(x + r * Math.cos(B), y + r * Math.sin(B), 6.5, `f-panel k-${c} w3`),
    T(x, y + (r < 28 ? 5 : 8.5), now, `mid n ${r < 28 || now > 999 ? "b" : "xl"}`),
    T(x, y + r + (r < 28 ? 15 : 19), fit(name, width, size), `mid s${size} m`)
  );
}
var nameNow = (view, act) => act.kind === "toggle" && view.state.on?.[act.id] ? act.undo ?? act.name : act.name;
function button(view, act, x, y, w, adds = false) {
  const on = Boolean(view.state.on?.[act.id]), name = nameNow(view, act);
  view.labels.take(x, y, x + w, y + 28);
  const plus = adds && (w <= 56 || textWidth(name, sizeIn(name, w - 34), 650) <= w - 34);
  const room = w - (plus ? 34 : 14), size = sizeIn(name, room), text = room > 22 ? fit(name, room, size, 650) : "";
  return G(
    { key: `button ${act.id}`, ...hit(view, act.id, null, name, act.kind === "toggle" ? { "aria-pressed": String(on) } : {}) },
    R(x, y, w, 28, "face", { rx: adds ? 14 : 8 }),
    plus && P(`M${x + (text ? 16 : w / 2)} ${y + 8}v12m-6 -6h12`, "k-ink w2"),
    text && T(x + (plus ? 28 + room / 2 : w / 2), y + 18.5, text, `mid s${size} b`),
    text !== name && h("title", {}, name)
  );
}
var fits = (name, width) => textWidth(name, 11, 650) <= width - 14;
var buttonWidth = (name, plus) => Math.ceil(textWidth(name, 12, 650)) + (plus ? 40 : 20);
function frameMark(view, { frame, held, lost, behind }, x, y, right, small = false) {
  if (behind) return null;
  const r = small ? 7.5 : 12.5, c = frame.tone !== void 0 && frame.kind !== "permission" ? TONES[frame.tone % 3] : KINDS[frame.kind];
  const place = { key: `frame ${frame.id}`, style: at(x, y) };
  if (lost) return G({ ...place, class: "fade" }, P("M-8 -8l16 16m0 -16l-16 16", "k-stop w4 round"));
  const shape = frame.kind === "message" ? C(0, 0, r, `disc f-${c}`) : frame.kind === "permission" ? P(`M0 ${-r - 3}L${r + 3} 0L0 ${r + 3}L${-r - 3} 0z`, `disc f-${c}`) : frame.kind === "acknowledgement" ? P(right ? `M${-r} ${-r}L${r + 2} 0L${-r} ${r}z` : `M${r} ${-r}L${-r - 2} 0L${r} ${r}z`, `disc f-${c}`) : R(-r + 1, -r + 1, 2 * r - 2, 2 * r - 2, `disc f-${c}`, { rx: 3 });
  const first = actsOfFrame(view, frame, held)[0];
  const is = phrase("frame-is", { frame: frame.name, how: phrase(held ? "held" : "in-flight") }), said2 = first ? phrase("press", { name: is, act: first.name }) : is;
  const a = first ? hit(view, first.id, frame.id, said2) : { role: "img", "aria-label": said2 };
  const text = frame.text && frame.kind !== "permission" && frame.kind !== "acknowledgement" ? T(0, 4.5, frame.text, `mid n b c-on ${small || frame.text.length > 2 ? "s11" : "s12"}`) : null;
  const spot = frame.label ? view.labels.place(frame.label, 12, 650, [-1, 1].flatMap((side) => [0, -26, 26, -52, 52].map((dx) => ({ x: x + dx, y: y + side * (r + 19) + 4, anchor: "middle" }))), 9) : null;
  const w = frame.label ? textWidth(frame.label, 12, 650) + 16 : 0;
  const heldSpot = held ? view.labels.place(phrase("held"), 11, 650, [r + 20, -r - 14].map((dy) => ({ x, y: y + dy, anchor: "middle" }))) : null;
  return G(
    { ...place, ...a, "data-frame": frame.id },
    C(0, 0, r + 9, "f-none"),
    held && C(0, 0, r + 7, "ring"),
    view.hover === frame.id && C(0, 0, r + 5, "k-focus w2 f-none"),
    shape,
    text,
    spot && G({ style: at(spot.x - x, spot.y - y) }, R(-w / 2, -14, w, 19, `f-panel k-${c} w1`, { rx: 9.5 }), T(0, 0, frame.label, "mid s12 n b")),
    heldSpot && T(heldSpot.x - x, heldSpot.y - y, phrase("held"), "mid s11 b halo")
  );
}
function valveMark(view, id, name, x, y, w, size) {
  const state = view.state.valves?.[id] ?? { closed: false, read: "" }, { closed, limiting } = state, c = closed ? "stop" : "flow";
  const lines = textWidth(name, 12, 650) > w ? name.split(" ") : [name], read = textWidth(state.read, 12) > w ? 11 : 12;
  return G(
    { key: `valve ${id}`, role: "img", "aria-label": phrase(limiting ? "valve-limits" : "valve", { name, how: phrase(closed ? "closed" : "open"), read: state.read }) },
    limiting && C(x, y, 27, "f-stopsoft k-stopfill w3 fade", { key: "ring" }),
    P(`M${x - 17} ${y - 12}L${x + 17} ${y + 12}V${y - 12}L${x - 17} ${y + 12}z`, `${closed ? "f-stopfill" : "f-panel"} k-${c} w2 joined`),
    closed ? L(x, y - 21, x, y + 21, "k-stop w5 round") : L(x - 9, y - 18, x + 9, y - 18, "k-flow w3 round"),
    lines.slice(0, 2).map((line, i) => T(x, y - 52 - 14 * (Math.min(lines.length, 2) - 1 - i), fit(line, w + 8, size, 650), `mid s${size} b ${limiting ? "c-stop" : ""}`)),
    T(x, y - 36, phrase(closed ? "closed" : "open"), `mid s11 ${closed ? "c-stop b" : "m"}`),
    T(x, y + 46, fit(state.read, w + 2, read), `mid s${read} n`),
    state.of !== void 0 && state.left !== void 0 && [R(x - w / 2 + 6, y + 55, w - 12, 7, "f-tube2", { rx: 3.5 }), R(x - w / 2 + 6, y + 55, (w - 12) * clamp(state.left / state.of, 0, 1), 7, `glide f-${closed ? "stopfill" : "snd"}`, { rx: 3.5 })]
  );
}
function diskMark(view, id, name, x, y, w, height, text) {
  const state = view.state.disks?.[id] ?? {}, e = 6, syncing = state.t0 != null && state.t1 != null && view.t < state.t1;
  const part = state.hung ? 1 : syncing ? clamp((view.t - state.t0) / Math.max(state.t1 - state.t0, 1e-9), 0, 1) : 0;
  const cylinder = (top, tall2) => `M${x} ${top + e}a${w / 2} ${e} 0 0 1 ${w} 0v${tall2 - 2 * e}a${w / 2} ${e} 0 0 1 ${-w} 0z`;
  const tall = 2 * e + (height - 2 * e) * part, words = state.hung ? phrase("hangs") : state.text ?? (syncing ? phrase("syncs") : "");
  return G(
    { key: `disk ${id}`, ...toggle(view, id, `${name}, ${words || phrase("idle")}`) ?? { role: "img", "aria-label": `${name}, ${words || phrase("idle")}` } },
    R(x - 5, y - 4, w + 10, height + 20, "f-none"),
    P(cylinder(y, height), "face", {}),
    part > 0 && P(cylinder(y + height - tall, tall), state.hung ? "" : "f-sky", state.hung ? { style: `fill:url(#${view.uid}stop)` } : {}),
    P(`M${x} ${y + e}a${w / 2} ${e} 0 0 0 ${w} 0`, "thin"),
    words && (text === "under" ? T(x + w / 2, y + height + 14, words, `mid s11 n ${state.hung ? "c-stop b" : "m"}`) : T(x + w + 6, y + height / 2 + 4, words, `s11 n ${state.hung ? "c-stop b" : "m"}`))
  );
}
function items(state, x, y, w, height) {
  if (state.items == null) return null;
  if (typeof state.items === "number") {
    const cols = Math.floor((w - 8) / 16), rows2 = Math.max(1, Math.floor(height / 17)), most = cols * rows2, shown = Math.min(state.items, most);
    return G({ key: "items" }, P(`M${x} ${y}h${w}v${height}h${-w}`, "thin f-none"), Array.from({ length: shown }, (_, i) => C(x + w - 12 - i % cols * 16, y + height / 2 + (Math.floor(i / cols) - (Math.min(rows2, Math.ceil(shown / cols)) - 1) / 2) * 16, 6, "f-sndsoft k-snd w2", { key: i })));
  }
  const list = state.items, cell = Math.min(26, w / Math.max(1, list.length)), tall = Math.min(22, height);
  const numbered = list.some(([text]) => textWidth(text, 11, 650) > cell - 5) ? false : true;
  return G({ key: "items" }, list.map(([text, how], i) => {
    const left = x + i * cell;
    return G(
      { key: i },
      R(left, y, cell - 3, tall, how === "full" ? "f-sndsoft k-snd w2" : "f-tube2", { rx: 4 }),
      how === "hollow" && C(left + cell / 2 - 1.5, y + tall / 2, Math.min(9, cell / 2 - 3), "f-panel k-snd w2"),
      how === "held" && C(left + cell / 2 - 1.5, y + tall / 2, Math.min(9, cell / 2 - 3), "f-panel k-stop w2"),
      text && numbered && how !== "empty" && T(left + cell / 2 - 1.5, y + tall / 2 + 4, text, "mid s11 n b")
    );
  }));
}
function dots(id, x, y, credit, of, text = "") {
  const step = of > 6 ? 8 : 10;
  return G(
    { key: `hop ${id}`, role: "img", "aria-label": phrase("credit", { credit: text || phrase("so-many-of", { have: credit, all: of }) }) },
    text && T(x + of * step + 1, y + 4, text, `s11 n ${credit <= 0 ? "c-stop b" : "m"}`),
    Array.from({ length: of }, (_, i) => C(x + i * step, y, 3.8, i < credit ? "f-flow" : "f-panel k-line2 w1", { key: i })),
    credit <= 0 && R(x - 7, y - 7, of * step + 4, 14, "f-none k-stopfill w2", { rx: 7 })
  );
}
function wireMark(view, wire, id, names, thick, right = true) {
  const { x1, x2, sag } = wire, middle = (x1 + x2) / 2, state = view.state.links?.[id] ?? {}, press = toggle(view, id, phrase("the-wire")), handle = actsOn(view, id, "handle")[0], y = wire.back + sag + thick / 2 + 6;
  const latency = (handle && view.preview[handle.id]) ?? state.latency, time = `${latency} ms`, half = Math.max(46, textWidth(time, 12, 650) / 2 + 18), lanes = names.length > 1 ? [wire.there, wire.back] : [wire.there];
  const lane = (at2) => P(`M${x1} ${at2}Q${middle} ${at2 + 2 * sag} ${x2} ${at2}`, "tube", { style: `stroke-width:${thick}` });
  const named = lanes.map((at2, i) => {
    const rightward = i === 0 === right, x = rightward ? x1 + 10 : x2 - 10, w = textWidth(names[i] ?? "", 11);
    view.labels.take(x1, at2 - thick / 2 + 1, x2, at2 + thick / 2 + sag - 1);
    if (names[i]) view.labels.take(rightward ? x : x - w, at2 - thick / 2 - 17, rightward ? x + w : x, at2 - thick / 2);
    return names[i] ? [P(rightward ? `M${x} ${at2 - 5}l6 5l-6 5` : `M${x} ${at2 - 5}l-6 5l6 5`, "thin f-none"), T(x, at2 - thick / 2 - 5, names[i], `s11 m ${rightward ? "" : "end"}`)] : null;
  });
  if (handle && latency !== void 0) view.labels.take(middle - half, y, middle + half, y + 26);
  const gates = state.gates && lanes.map((at2, i) => gateMark(view, `${id} ${i ? "back" : "there"}`, names[i] ?? "", i ? state.gates.back : state.gates.there, middle, at2 + sag, thick, i ? 1 : -1, i === 0 === right));
  return G(
    { key: `wire ${id}` },
    G({ ...press }, lanes.map(lane), state.cut && P(`M${middle + 2} ${wire.there - thick * 0.7}l7 ${thick * 0.5}l-9 ${thick * 0.4}l8 ${thick * 0.5}`, "f-none k-stopfill w4"), state.cut && T(middle + 14, wire.there - thick / 2 - 5, phrase("cut"), "s11 b c-stop")),
    named,
    gates,
    handle && latency !== void 0 && G(
      { key: "handle", class: "knob hit", "data-knob": handle.id, "data-now": state.latency, "data-pull": "down", tabindex: 0, role: "slider", "aria-label": handle.name, "aria-valuemin": handle.min ?? 0, "aria-valuemax": topOf(handle, state.latency ?? 0), "aria-valuenow": latency, "aria-valuetext": phrase("turn-it", { value: time }) },
      R(middle - half, y, 2 * half, 26, "face", { rx: 13 }),
      P(`M${middle - half + 12} ${y + 10}l4 -4l4 4m-8 6l4 4l4 -4`, "k-muted w2 f-none"),
      T(middle + 8, y + 17.5, time, "mid s12 b n")
    )
  );
}
function gateMark(view, id, name, { closed, text }, x, y, thick, side, rightward) {
  const r = thick / 2 + 5, bar = x + (rightward ? 27 : -27), at2 = y + side * (r + 13) + 4, w = textWidth(text, 11);
  view.labels.take(bar - 12, y - r - 4, bar + 12, y + r + 4);
  view.labels.take(x - w / 2, at2 - 11, x + w / 2, at2 + 3);
  return G(
    { key: `gate ${id}`, ...toggle(view, id, phrase("gate", { name, how: phrase(closed ? "closed" : "open"), text })) ?? {} },
    R(bar - 12, y - r - 4, 24, 2 * r + 8, "disc f-none"),
    closed ? L(bar, y - r, bar, y + r, "k-stop w5 round") : [L(bar, y - r, bar, y - r + 8, "k-flow w5 round"), L(bar, y + r - 8, bar, y + r, "k-flow w5 round")],
    T(x, at2, text, `mid s11 n ${closed ? "b c-stop" : "m"}`)
  );
}
function onWire(wire, names, frame, part, right) {
  const inset = 17, way = frame.way === "there" ? part : 1 - part, p = right ? way : 1 - way;
  const y = frame.way === "back" && names.length > 1 ? wire.back : wire.there;
  return [wire.x1 + inset + (wire.x2 - wire.x1 - 2 * inset) * p, y + wire.sag * 4 * p * (1 - p)];
}

// lines.ts
var NAMES = 92;
var LEAST_CELL = 15;
var FAR = 1e3;
var extents = /* @__PURE__ */ new WeakMap();
function extent(run, line) {
  let known2 = extents.get(run);
  if (!known2) extents.set(run, known2 = /* @__PURE__ */ new Map());
  let found = known2.get(line.id);
  if (!found) {
    found = { low: Infinity, high: -Infinity, span: 0 };
    let before;
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
    known2.set(line.id, found);
  }
  return found;
}
function scale(view, line, state, right) {
  const used = extent(view.run, line), x0 = NAMES, width = view.W - x0 - right;
  let low = Math.min(used.low, line.range?.[0] ?? Infinity), high = Math.max(used.high, line.range?.[1] ?? -Infinity);
  if (!Number.isFinite(low)) [low, high] = [0, 10];
  for (const [id, value] of Object.entries(view.preview)) {
    const act = view.scene.acts?.find((one) => one.id === id);
    const end = act?.aims?.line === line.id ? state.ends?.[act.aims.end] : void 0;
    if (end) high = Math.max(high, end[0] + value);
  }
  low = Math.max(0, low > 3 ? low - 2 : low);
  high = line.style === "units" ? Math.max(high, low + 2) : Math.max(high + 2, low + 8);
  const most = Math.floor(width / (view.small ? 27 : 34));
  if (high - low > most && used.span + 5 <= most) {
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
function rows(top, height, rule, second) {
  const tight = height < 130, least = height < 100, wide = height > 190 && !rule, band2 = least ? 15 : tight ? 17 : wide ? 28 : 24, tall = least ? 16 : tight ? 18 : wide ? 26 : 22, gap = least ? 8 : tight ? 10 : 16, below = least ? 3 : tight ? 6 : 14;
  const body = band2 + gap + tall + 17 + (second ? below + band2 + (tight ? 0 : 18) : 0) + (rule ? band2 + 6 : 0);
  const first = top + Math.max(tight ? 2 : 14, (height - body) / 2 + (tight ? 0 : 8)), up = first + (rule ? band2 + 6 : 0), axis2 = up + band2 + gap, under = axis2 + tall + 17;
  return { rule: first, up, axis: axis2, under, down: under + below, band: band2, tall };
}
function numberLine(view, line, top, height) {
  const state = view.state.lines?.[line.id] ?? {}, right = view.small ? 84 : 116;
  const rule = view.rule ? state.rules?.[view.rule] : void 0;
  const s = scale(view, line, state, right), y = rows(top, height, Boolean(rule), line.ends.length > 1 && line.style !== "units");
  view.labels.take(0, top, NAMES - 4, top + height);
  const kids = [axis(view, line, s, y, state)], said2 = [];
  if (line.style === "units") kids.push(units(line, state, s, y));
  else if (s.cells) kids.push(deliveries(view, line, state, s, y, said2));
  kids.push(hatching(view, state, s, y));
  if (rule) kids.push(theirs(view, line, state, s, y, rule));
  line.ends.forEach((end, i) => {
    const now = state.ends?.[end.id];
    if (!now || line.style === "units" && i) return;
    const name = i === 0 && rule ? phrase("the-rule") : end.name;
    if (line.style === "units") {
      kids.push(bound(view, line, now, s, y, name));
      return;
    }
    const [mark, words] = line.style === "brackets" ? bracket(view, line, i, now, s, y, name) : band(view, { key: `end ${end.id}`, c: tone(end.role), name, word: end.word ?? "", limit: line.limit ?? phrase("limit"), modulo: line.modulo, now, s, y: i ? y.down : y.up, up: i === 0, axis: y });
    kids.push(mark);
    said2.push(words);
  });
  kids.push(aims(view, line, s, y), preview(view, line, state, s, y), said2);
  return G({ key: `line ${line.id}`, role: "group", "aria-label": line.unit }, kids);
}
function axis(view, line, s, y, state) {
  const step = Math.max(1, s.cells ? 1 : round((s.high - s.low) / 10)), kids = [];
  const words = line.unit.replace(/-(?=[a-z]+( \(\w+\))?$)/, "- ").split(" ").reduce((all, word) => {
    const last = all[all.length - 1];
    if (last !== void 0 && textWidth(`${last} ${word}`, 11) < NAMES - 22) all[all.length - 1] = last.endsWith("-") ? last + word : `${last} ${word}`;
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
    const X = s.X(value), seam = line.modulo !== void 0 && value > 0 && value % line.modulo === 0, text = count(value, line.modulo), w = textWidth(text, 11);
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
function deliveries(view, line, state, s, y, said2) {
  const [first, second] = line.ends, kids = [], sent = state.ends?.[first.id]?.[0] ?? 0, got = second ? state.ends?.[second.id]?.[0] ?? sent : sent;
  const base = line.range?.[0] ?? extent(view.run, line).low, c = tone(first.role), middle = y.axis + y.tall / 2, r = Math.min(6.5, s.cell / 2 - 3);
  const marked2 = view.hover && view.flying.find(({ frame }) => frame.id === view.hover)?.frame.cell;
  let hollow = 0;
  for (let i = Math.max(s.low, base); i < Math.min(sent, s.high); i++) {
    const x = s.X(i) + s.cell / 2;
    if (marked2 && marked2.line === line.id && marked2.at === i) kids.push(R(s.X(i) + 2, y.axis + 1, s.cell - 4, y.tall - 2, `f-${c}soft k-focus w3`, { key: "marked", rx: 4 }));
    if (state.voids?.some(([from, to]) => i >= from && i < to)) {
      kids.push(P(`M${x - 5} ${middle - 5}l10 10m0 -10l-10 10`, "thin", { key: `c${i}` }));
      continue;
    }
    if (i >= got) hollow++;
    kids.push(C(x, middle, r, i >= got ? `f-panel k-${c} w3` : `f-${c}`, { key: `c${i}` }));
  }
  for (const [from, to] of state.voids ?? []) {
    if (state.ends?.[first.id]?.[1] !== to || to <= s.low) continue;
    const a = s.X(Math.max(from, s.low)), b = s.X(to), words = phrase("count-jumps", { by: to - from });
    const spot = view.labels.place(words, 11, 650, [{ x: a - 8, y: y.axis - 14, anchor: "end" }, { x: (a + b) / 2, y: y.axis - 32, anchor: "middle" }]);
    kids.push(G({ key: `jump ${from}`, class: "fade" }, P(`M${a} ${y.axis - 3}Q${(a + b) / 2} ${y.axis - 38} ${b - 5} ${y.axis - 5}`, "k-flow w2 f-none", { "marker-end": `url(#${view.uid}arrow)` })));
    if (spot) said2.push(onPaper(`jumps ${from}`, spot, words, 11, "flow"));
  }
  if (hollow && y.tall > 18) {
    const words = phrase("so-many-flying", { count: hollow }), spot = view.labels.place(words, 11, 650, [{ x: (s.X(Math.max(got, s.low)) + s.X(sent)) / 2, y: y.axis - (line.style === "brackets" ? 2 : 5), anchor: "middle" }]);
    if (spot && s.X(sent) - s.X(got) > textWidth(words, 11, 650) + 10) said2.push(onPaper("flight", spot, words, 11, c));
  }
  return G({ key: "deliveries" }, kids);
}
function hatching(view, state, s, y) {
  if (!state.hatched || state.hatched[1] <= state.hatched[0]) return null;
  const [from, to, words] = state.hatched, a = s.X(from), b = s.X(to), w = textWidth(words, 12, 650);
  return G(
    { key: "hatched" },
    from > s.low && !s.cells && R(s.x0, y.axis + 1, a - s.x0, y.tall - 2, "f-snd dim"),
    R(a, y.axis + 1, b - a, y.tall - 2, "glide k-alt w1", { style: `fill:url(#${view.uid}alt)` }),
    b - a > w + 24 && [R((a + b) / 2 - w / 2 - 5, y.axis + 2, w + 10, y.tall - 4, "f-panel", { rx: 4 }), T((a + b) / 2, y.axis + y.tall / 2 + 4.5, words, "mid s12 b n c-alt")]
  );
}
function band(view, { key, c, name, word, limit, modulo, now, s, y, up, axis: rows2, dashed }) {
  const [from, to] = now, size = to - from, past = size < 0, a = s.X(from), b = s.X(to), high = rows2.band, edge = up ? rows2.axis : rows2.under;
  const left = Math.min(a, b), wide = Math.abs(b - a), middle = y + high / 2 + 4.5;
  const amount = `${word} ${Math.max(0, size)}`.trim(), inside = !past && wide > textWidth(amount, 13, 650) + 18;
  view.labels.take(left - 7, y - 4, left + wide + 7, y + high + 4);
  view.labels.take(a - 8, Math.min(y, edge), a + 8, Math.max(y + high, edge));
  view.labels.take(b - 4, Math.min(y, edge), b + 4, Math.max(y + high, edge));
  const bound2 = `${limit} ${count(to, modulo)}`;
  const inPast = past && wide > textWidth(bound2, 12, 650) + 24;
  const said2 = past ? [phrase("past-amount", { amount, count: -size, limit }), phrase("past-limit", { count: -size, limit }), phrase("past", { count: -size })] : inside ? [bound2, count(to, modulo)] : [`${amount} · ${bound2}`, amount];
  const outer = Math.max(a, b) + 11, inner = left - 11;
  let words = "", spot = null;
  for (words of said2) if (spot = view.labels.place(words, 12, 650, [{ x: outer, y: middle, anchor: "start" }, { x: inner, y: middle, anchor: "end" }])) break;
  const wall = up ? [y - 5, rows2.axis] : [rows2.under, y + high + 5];
  const tip = up ? `M-7 ${y + high - 6}h14l-7 ${edge - y - high + 6}z` : `M-7 ${y + 6}h14l-7 ${edge - y - 6}z`;
  return [G(
    { key },
    T(NAMES - 10, middle, name, `end s12 b c-${c}`),
    R(left, y, wide, high, `glide ${past ? "k-stop" : `f-${c}soft k-${c}`} w2`, { rx: 4, style: past ? `fill:url(#${view.uid}stop);stroke-dasharray:4 3` : dashed ? "stroke-dasharray:5 3" : "" }),
    G({ class: "glide", style: at(a, 0) }, P(tip, `f-${c}`)),
    to <= s.high && G({ class: "glide", style: at(b, 0) }, R(-3, wall[0], 6, wall[1] - wall[0], `f-${c}`, { rx: 2 })),
    inside && G({ class: "glide", style: at((a + b) / 2, 0) }, T(0, middle, amount, "mid b n")),
    inPast && G({ class: "glide", style: at(b + 8, 0) }, R(0, y + 3, textWidth(bound2, 12, 650) + 8, high - 6, "f-panel", { rx: 4 }), T(4, middle, bound2, `s12 b n c-${c}`))
  ), beside(key, spot, words, middle, c)];
}
function onPaper(key, { x, y, anchor }, words, size, c) {
  const w = textWidth(words, size, 650) + 4, left = { start: -2, middle: -w / 2, end: 2 - w }[anchor];
  return G({ key: `${key} ${anchor}`, class: "glide", style: at(x, 0) }, R(left, y - size, w, size + 4, "f-panel"), T(0, y, words, `s${size} b n c-${c} ${anchor === "middle" ? "mid" : anchor}`));
}
var beside = (key, spot, words, y, c) => spot && onPaper(key, { ...spot, y }, words, 12, c);
function theirs(view, line, state, s, y, rule) {
  const right = state.ends?.[line.ends[0].id]?.[1] ?? rule.limit, d = rule.limit - right, a = s.X(Math.min(right, rule.limit)), b = s.X(Math.max(right, rule.limit));
  const words = d > 0 ? phrase("too-many", { count: d }) : phrase("too-few", { count: -d }), w = textWidth(words, 12, 650) + 18, x = Math.max(a, Math.min((a + b) / 2 - w / 2, view.W - w - 8));
  return G(
    { key: "theirs" },
    d !== 0 && G(
      { key: "differs", class: "fade" },
      R(a, y.axis, b - a, y.tall, "k-alt w2", { style: `fill:url(#${view.uid}alt)` }),
      R(x, y.axis + 2, w, y.tall - 4, "f-alt", { rx: 8 }),
      T(x + w / 2, y.axis + y.tall / 2 + 4.5, words, "mid s12 b c-on")
    ),
    band(view, { key: "band", c: "alt", name: phrase(view.scene.theirs ? "their-rule" : "your-rule"), word: line.ends[0].word ?? "", limit: line.limit ?? phrase("limit"), modulo: line.modulo, now: [rule.at, rule.limit], s, y: y.rule, up: true, axis: y, dashed: true })
  );
}
function bracket(view, line, i, now, s, y, name) {
  const end = line.ends[i], up = i === 0, c = tone(end.role), [next, to, from = next] = now, a = s.X(from), b = s.X(to), top = up ? y.up + 4 : y.down, high = y.band, room = to - next;
  const edge = up ? y.axis : y.under, middle = top + high / 2 + 4.5, words = room > 0 || !up ? `${end.word ?? ""} ${Math.max(0, room)}`.trim() : phrase("full");
  view.labels.take(s.X(next) - 8, top, s.X(next) + 8, edge);
  const spot = view.labels.place(words, 12, 650, [{ x: b + 12, y: middle, anchor: "start" }, { x: a - 12, y: middle, anchor: "end" }, { x: (a + b) / 2, y: middle, anchor: "middle" }]);
  view.labels.take(a, top, b, top + high);
  const hook = (x, d) => G({ class: "glide", style: at(x, 0) }, P(`M${d * 9} ${top}H${d * 1.5}V${top + high}H${d * 9}`, `f-none k-${c} w4`));
  return [G(
    { key: `end ${end.id}` },
    T(NAMES - 10, middle, name, `end s12 b c-${c}`),
    R(a, top, b - a, high, `glide f-${c}soft`, { rx: 3 }),
    hook(a, 1),
    to <= s.high && hook(b, -1),
    G({ class: "glide", style: at(s.X(next), 0) }, P(up ? `M-7 ${edge - 13}h14l-7 13z` : `M-7 ${edge + 13}h14l-7 -13z`, `f-${c}`))
  ), beside(`end ${end.id}`, spot, words, middle, c)];
}
function units(line, state, s, y) {
  const [sent, limit] = state.ends?.[line.ends[0].id] ?? [0, 0], c = tone(line.ends[0].role), kids = [];
  const [gone, whole, what] = state.part ?? [0, 0, ""], now = state.part ? sent - 1 : -1, of = whole === null ? phrase("part-so-far", { gone, what }) : phrase("part-of", { gone, whole, what });
  for (let i = Math.max(s.low, 0); i < Math.min(Math.max(limit, sent), s.high); i++) {
    const x = s.X(i), part = i === now ? gone / (whole ?? gone + 1) : i < sent ? 1 : 0;
    const texts = i === now ? [phrase("credit-in-use", { part: of }), of, ""] : i < sent ? [phrase("used"), ""] : [phrase("one-credit"), "1", ""];
    const text = texts.find((one) => textWidth(one, 12, 650) < s.cell - 10) ?? "";
    kids.push(
      R(x + 1, y.axis + 1, s.cell - 2, y.tall - 2, i < limit ? `f-${c}soft k-${c} w2` : "axis", { key: `b${i}`, rx: 4 }),
      R(x + 3, y.axis + 3, (s.cell - 6) * part, y.tall - 6, `glide f-${c} half`, { key: `f${i}`, rx: 3 }),
      text && T(x + s.cell / 2, y.axis + y.tall / 2 + 4.5, text, "mid s12 b n halo", { key: `x${i}` })
    );
  }
  return G({ key: "units" }, kids);
}
function bound(view, line, [sent, limit], s, y, name) {
  const end = line.ends[0], x = s.X(limit), c = tone(end.role), size = limit - sent, words = `${end.word ?? ""} ${Math.max(0, size)} · ${line.limit ?? phrase("limit")} ${count(limit, line.modulo)}`.trim(), middle = y.axis - 9;
  const spot = view.labels.place(words, 12, 650, [{ x: x + 10, y: middle, anchor: "start" }, { x: x - 10, y: middle, anchor: "end" }]);
  return G(
    { key: `end ${end.id}` },
    T(NAMES - 10, middle, name, `end s12 b c-${c}`),
    G({ class: "glide", style: at(x, 0) }, R(-3, y.axis - 8, 6, y.tall + 9, `f-${c}`, { rx: 2 })),
    spot && G({ key: spot.anchor, class: "glide", style: at(spot.x, 0) }, T(0, middle, words, `s12 b n halo c-${c} ${spot.anchor === "end" ? "end" : ""}`))
  );
}
function aims(view, line, s, y) {
  if (view.asking) return [];
  return view.flying.filter(({ frame, lost }) => frame.aims?.line === line.id && !lost).map(({ frame }) => {
    const { limit, from } = frame.aims, x = s.X(limit), words = phrase(from === void 0 ? "will-set" : "will-slide"), top = y.up - 8;
    const spot = view.labels.place(words, 11, 650, [{ x, y: top - 4, anchor: "middle" }, { x: x - 8, y: top - 4, anchor: "end" }, { x: x + 8, y: top - 4, anchor: "start" }]);
    return G(
      { key: `aims ${frame.id}`, class: "fade" },
      from === void 0 ? [L(x, top, x, y.axis, "k-flow w2 dashes"), P(`M${x} ${y.axis + y.tall / 2 - 10}l9 10l-9 10l-9 -10z`, "f-flow")] : P(`M${s.X(from) + 9} ${top}H${s.X(from) + 1}V${y.axis - 2}M${x - 9} ${top}H${x - 1}V${y.axis - 2}`, "k-flow w3 dashes f-none"),
      spot && T(spot.x, spot.y, words, `${spot.anchor === "middle" ? "mid" : spot.anchor} s11 b c-flow halo`)
    );
  });
}
function preview(view, line, state, s, y) {
  const act = (view.scene.acts ?? []).find((one) => one.kind === "knob" && one.aims?.line === line.id), i = act ? line.ends.findIndex((end) => end.id === act.aims.end) : -1;
  const now = act && state.ends?.[act.aims.end];
  if (!act || i < 0 || !now || !s.cells || line.style === "units") return null;
  const set = view.preview[act.id], c = tone(line.ends[i].role), up = i === 0, top = up ? y.up : y.down;
  const from = now[0], to = set === void 0 ? now[1] : from + set, x = s.X(to), grip = up ? top - 18 : top + y.band + 3;
  const text = `${count(from, line.modulo)} + ${set}`;
  const spot = set !== void 0 ? view.labels.place(text, 12, 650, [{ x: x + 14, y: grip + 12, anchor: "start" }, { x: x - 14, y: grip + 12, anchor: "end" }]) : null;
  const node = Object.keys(view.state.nodes ?? {}).find((id) => view.state.nodes?.[id].knobs?.[act.id] !== void 0), value = node ? view.state.nodes[node].knobs[act.id] : now[1] - now[0];
  return G(
    { key: "preview" },
    set !== void 0 && [R(s.X(from), top, x - s.X(from), y.band, `f-none k-${c} w2`, { rx: 4, style: "stroke-dasharray:5 3" }), L(x, up ? top : y.under, x, up ? y.axis : grip, `k-${c} w2 dashes`), spot && T(spot.x, spot.y, text, `s12 b n halo c-${c} ${spot.anchor === "end" ? "end" : ""}`)],
    y.band > 20 && G(
      { key: "grip", class: "grip", "data-knob": act.id, "data-now": value, "data-cell": s.cell, "aria-hidden": "true" },
      R(x - 14, Math.min(top, grip) - 2, 28, y.band + 24, "f-none"),
      R(x - 10, grip, 20, 15, "face", { rx: 7.5 }),
      P(`M${x - 3} ${grip + 4}l-3.5 3.5l3.5 3.5m6 -7l3.5 3.5l-3.5 3.5`, `f-none k-${c} w2`)
    )
  );
}
function bars(view, line, x, width, rowY, bottom) {
  const state = view.state.lines?.[line.id] ?? {}, used = extent(view.run, line), most = Math.max(5, Math.min(9, Math.floor(width / 44)));
  const logs = line.ends.map((end) => state.ends?.[end.id] ?? [0, 0]), top = Math.max(0, ...logs.map((log2) => log2[1])), all = Math.max(5, Math.min(most, (Number.isFinite(used.high) ? used.high : 0) + 1));
  const low = Math.max(0, Math.ceil((top + 1 - all) / 2) * 2), high = low + all, cell = Math.min(66, width / all), X = (v) => x + (v - low) * cell, kids = [];
  line.ends.forEach((end, i) => {
    const [disk, memory] = logs[i], y = rowY(i), down = view.state.nodes?.[end.id]?.down, sync = Object.entries(view.state.disks ?? {}).find(([id]) => view.scene.disks?.find((one) => one.id === id)?.on === end.id)?.[1];
    const part = sync && sync.t0 != null && sync.t1 != null && !sync.hung && view.t < sync.t1 ? Math.max(0, Math.min(1, (view.t - sync.t0) / Math.max(sync.t1 - sync.t0, 1e-9))) : 0;
    const cells = [R(X(low), y - 13, all * cell, 26, "axis", { key: "all", rx: 3 })];
    for (let v = low + 1; v <= Math.min(high, memory); v++) {
      const a = X(v - 1), text = fit(String(v), cell - 6, 12, 650);
      cells.push(R(a + 1.5, y - 11.5, cell - 3, 23, v <= disk ? `f-snd ${down ? "dim" : ""}` : "f-panel k-snd w2", { key: `c${v}`, rx: 3, style: v <= disk ? "" : "stroke-dasharray:4 3" }));
      if (v > disk && part > 0 && v <= (sync?.to ?? 0)) cells.push(R(a + 2.5, y - 10.5, (cell - 5) * part, 21, "f-snd half", { key: `p${v}`, rx: 2 }));
      cells.push(T(a + cell / 2, y + 4.5, text, `mid s12 b n ${v <= disk ? "c-on" : "halo"}`, { key: `t${v}` }));
    }
    kids.push(G({ key: `log ${end.id}`, role: "img", "aria-label": phrase("log-of", { name: end.name, disk, memory }) }, cells));
  });
  const index = state.commit ?? 0, committed = Math.max(low, index), flip = committed - low > all * 0.6, words = phrase("commit-at", { index });
  const mark = index < low ? P("M7 9v14l-12 -7z", "f-flow") : [L(0, 18, 0, bottom - 44, "k-flow w4"), P("M-7 9h14v8l-7 6l-7 -6z", "f-flow")];
  kids.push(G({ key: "commit", class: "glide", style: at(X(committed), 0) }, mark, T(flip ? -12 : 12, 20, words, `s12 b n c-flow halo ${flip ? "end" : ""}`)));
  const mine = view.rule ? state.rules?.[view.rule] : void 0;
  if (mine) kids.push(G({ key: "theirs", class: "glide", style: at(X(Math.max(low, Math.min(high, mine.limit))), 0) }, L(0, 26, 0, bottom - 44, "k-alt w4 dashes"), T(10, 40, phrase(view.scene.theirs ? "their-rule-at" : "your-rule-at", { index: mine.limit }), "s12 b n c-alt halo")));
  const foot = [], n = logs.length;
  for (let v = low + 1; v <= Math.min(high, top); v++) {
    const have = logs.filter((log2) => log2[0] >= v).length, a = X(v - 1) + cell / 2, enough = have >= (line.majority ?? n);
    for (let q = 0; q < n; q++) foot.push(C(a + (q - (n - 1) / 2) * Math.min(8.5, cell / (n + 0.7)), bottom - 28, Math.min(3.3, cell / (2.4 * n)), q < have ? `f-${enough ? "flow" : "snd"}` : "f-none k-line2 w1", { key: `o${v} ${q}` }));
    const words2 = [phrase("so-many-of", { have, all: n }), `${have}/${n}`].find((one) => textWidth(one, 11, 650) < cell - 4) ?? "";
    foot.push(T(a, bottom - 11, words2, `mid s11 n ${enough ? "b c-flow" : "m"}`, { key: `f${v}` }));
  }
  kids.push(h("g", { key: "foot" }, T(x - 8, bottom - 24, phrase("disks-that"), "end s11 m"), T(x - 8, bottom - 12, phrase("have-it"), "end s11 m"), foot));
  return G({ key: `line ${line.id}` }, kids);
}

// layouts.ts
var EDGE = 12;
var FRAME_GAP = 27;
var WIDEST_KNOB = 1e3;
function offered(view, on, most, room = Infinity, besideKnob = room) {
  const all = actsOn(view, on), knobs = all.filter((act) => act.kind === "knob" && (act.max ?? 10) - (act.min ?? 0) <= WIDEST_KNOB).slice(0, 2);
  return { knobs, buttons: knobs.length > 1 ? [] : all.filter((act) => act.kind === "button" && fits(act.name, knobs.length ? besideKnob : room)).slice(0, most) };
}
function party(view, node, { x, y, w, h: high }) {
  const state = view.state.nodes?.[node.id] ?? {}, low = high < 120, besideKnob = w - (low ? 68 : 76), { knobs, buttons } = offered(view, node.id, low ? 1 : 2, low ? Infinity : w - 20, besideKnob), facts = [...state.facts ?? []], kids = [];
  kids.push(nodeBox(view, node, x, y, w, high));
  const fact = (text, i, left, at2, c = "") => T(left, at2, text, `s12 n m ${c}`, { key: `fact ${i}` });
  if (facts.length && textWidth(facts[0], 12) + textWidth(node.name, 13, 650) < w - 32 && (knobs.length || low || buttons.length > 1)) kids.push(fact(facts.shift(), 9, x + w - 12, y + 25, "end"));
  const top = y + 48, floor = y + high - 14;
  if (knobs.length) {
    const column = buttons.length, beside2 = !low && column > 0, r = low ? 18 : beside2 ? 23 : knobs.length > 1 || view.small || facts.length ? 26 : 33, step = w / knobs.length, middle = low ? y + 50 : top + r + 8;
    const from = Math.max(middle - 14 - (column - 1) / 2 * 31, y + 46);
    knobs.forEach((act, i) => kids.push(knob(view, act, low ? x + w - 32 - i * 60 : beside2 ? x + r + 14 : x + step * (i + 0.5), middle, r, node.role, state.knobs?.[act.id] ?? act.min ?? 0, low ? 58 : beside2 ? 2 * r + 26 : step - 1)));
    const wide = Math.min(besideKnob, Math.max(30, ...buttons.map((act) => buttonWidth(act.name, false))));
    buttons.forEach((act, i) => kids.push(low ? button(view, act, x + 10, y + high - 36, wide) : button(view, act, x + w - wide - 8, from + i * 31, wide)));
    const label = Math.max(middle + r + (r < 28 ? 15 : 19), beside2 ? from + (column - 1) * 31 + 28 : 0);
    if (!low) facts.slice(0, Math.max(0, Math.floor((floor + 4 - label) / 15))).forEach((text, i) => kids.push(fact(fit(text, w - 16, 12), i, x + w / 2, label + 15 * (i + 1), "mid")));
    return G({ key: `party ${node.id}` }, kids);
  }
  const wides = buttons.map((act) => Math.min(w - 20, buttonWidth(act.name, true))), stacked = buttons.length > 1, tall = low || stacked ? 20 : typeof state.items === "number" ? 38 : 22;
  kids.push(items(state, x + 12, low ? Math.max(y + 46, y + high - 50) : top + 4, w - 24, tall));
  const plain = state.items != null && facts.some((text) => textWidth(text, 12) > w - 38 - wides[0]), one = !low && buttons.length === 1 && view.small && plain ? 34 : wides[0] ?? 0, right = stacked || low ? 0 : one + 14;
  buttons.forEach((act, i) => kids.push(low ? button(view, act, x + w - 44, y + high - 36, 34, true) : stacked ? button(view, act, x + 10, floor - 3 - 30 * (buttons.length - i), wides[i], true) : button(view, act, x + w - one - 10, y + high - 46, one, true)));
  if (high < LOW) facts.splice(0).slice(0, 1).filter((text) => textWidth(text, 12) + textWidth(state.sub ?? node.sub ?? "", 12) < w - 32).forEach((text) => kids.push(fact(text, 8, x + w - 12, y + secondLine(high), "end")));
  const first = state.items == null ? top + 10 : low ? y + high - 14 : top + tall + 24;
  if (!stacked) facts.slice(0, low ? 1 : 2).forEach((text, i) => {
    const at2 = first + i * 16, taken = at2 > y + high - 52 ? right : 0;
    if (textWidth(text, 12) < w - 24 - taken || !taken) kids.push(fact(fit(text, w - 24 - taken, 12), i, x + 12, at2));
  });
  return G({ key: `party ${node.id}` }, kids);
}
function frames(view, link2, wire, right) {
  return view.flying.filter(({ frame }) => frame.link === link2.id).map((one) => {
    const [x, y] = onWire(wire, link2.names, one.frame, one.part, right);
    return frameMark(view, one, x, y, one.frame.way === "there" === right);
  });
}
var sagOf = (view, link2) => {
  const act = actsOn(view, link2.id, "handle")[0], latency = (act && view.preview[act.id]) ?? view.state.links?.[link2.id]?.latency ?? 10;
  return clamp((latency - 10) * 0.9, -3, 16);
};
function sides(nodes, links) {
  if (nodes.every((node) => node.place)) return [0, 1].map((column) => nodes.filter((node) => node.place[0] === column));
  const of = (list, ...roles) => list.filter((node) => roles.includes(node.role ?? "")), some = (...lists) => lists.filter((list) => list.length);
  const hub = nodes.length > 2 && nodes.find(({ id }) => links.every((one) => one.from === id || one.to === id));
  if (hub) {
    const others = nodes.filter((node) => node !== hub);
    return hub.role === "sender" ? [[hub], others] : hub.role === "receiver" ? [others, [hub]] : some(of(others, "sender", ""), [hub], of(others, "receiver"));
  }
  const by = some(of(nodes, "sender"), of(nodes, ""), of(nodes, "receiver"));
  return by.length > 1 || nodes.length < 2 ? by : [nodes.slice(0, 1), nodes.slice(1)];
}
function link(view) {
  const { scene, W, H } = view, grow2 = Math.round((H - 392) * 0.35), columns = sides(scene.nodes, scene.links ?? []), last = columns.length - 1;
  const most = Math.max(...columns.map((list) => list.length)), w = view.small || last > 1 ? 146 : Math.round(clamp(W * 0.21, 160, 210)), lines = scene.lines ?? [];
  const high = lines.length ? (most > 1 ? 186 : 154) + grow2 : Math.min(H - 2 * EDGE - 20, most * (170 + grow2)), up = lines.length ? EDGE - 2 : (H - high) / 2 - 4;
  const place = (list, node, x) => {
    const gap = 14, tall = (high - (list.length - 1) * gap) / list.length;
    return { x, y: up + list.indexOf(node) * (tall + gap), w, h: tall };
  };
  const column = (node) => columns.findIndex((list) => list.includes(node)), boxes = new Map(scene.nodes.map((node) => [node.id, place(columns[column(node)], node, EDGE + (W - 2 * EDGE - w) * (last ? column(node) / last : 0))]));
  const kids = [], wires = [], links = scene.links ?? [], tight = most > 1;
  const [there, back, thick] = most > 2 ? [12, 14, 14] : tight ? [17, 21, 20] : [25, 27, 28];
  const parties = scene.nodes.map((node) => party(view, node, boxes.get(node.id)));
  const pills = scene.nodes.map((node) => {
    const box = boxes.get(node.id), state = view.state.nodes?.[node.id] ?? {}, said2 = state.blocked || state.going || "", right = last > 0 && column(node) === last;
    const wide = Math.min(textWidth(said2, 12, 650) + 38, W / 2 - 30);
    return pill(view, `pill ${node.id}`, right ? W - EDGE - wide : box.x, box.y + box.h - 13, state, W / 2 - 30);
  });
  const top = EDGE + high + 4, room = H - top - 4;
  links.forEach((one) => {
    const a = boxes.get(one.from), b = boxes.get(one.to);
    if (!a || !b) return;
    const forward = a.x < b.x, l = forward ? a : b, r = forward ? b : a, low = l.h < r.h ? l : r;
    const middle = tight ? low.y + low.h / 2 : l.y + l.h * 0.45;
    const wire = { x1: l.x + w - 3, x2: r.x + 3, y: middle, there: middle - there, back: middle + back, sag: tight ? 0 : sagOf(view, one) };
    kids.push(wireMark(view, wire, one.id, one.names, thick, forward));
    wires.push([one, wire, forward]);
  });
  const share = lines.map((line) => (line.style === "units" ? 0.55 : 1) + (view.rule && view.state.lines?.[line.id]?.rules?.[view.rule] ? 0.3 : 0)), all = share.reduce((sum, one) => sum + one, 0);
  let y = top;
  const drawn = lines.map((line, i) => {
    const high2 = room * share[i] / all, made = numberLine(view, line, y, high2);
    y += high2;
    return made;
  });
  const flown = wires.map(([one, wire, forward]) => frames(view, one, wire, forward));
  return [kids, parties, flown, pills, drawn];
}
function smallGauge(view, gauge2, x, y) {
  const state = view.state.gauges?.[gauge2.id] ?? {}, level = clamp((state.items?.length ?? state.level ?? 0) / gauge2.top, 0, 1), tall = 34, words = state.text ?? gauge2.name;
  return G(
    { key: `gauge ${gauge2.id}`, ...toggle(view, gauge2.id, `${gauge2.name}, ${state.text ?? phrase("level", { level: state.level ?? 0 })}`) ?? { role: "img", "aria-label": gauge2.name } },
    R(x - 8, y - 4, 42, 60, "f-none"),
    R(x, y, 26, tall + 2, "face", { rx: 4 }),
    R(x + 1, y + 1 + tall * (1 - level), 24, tall * level, state.stopped ? "" : "f-snd half", { rx: 3, style: state.stopped ? `fill:url(#${view.uid}stop)` : "" }),
    gauge2.marks.map((mark) => L(x - 3, y + 1 + tall * (1 - mark.at / gauge2.top), x + 29, y + 1 + tall * (1 - mark.at / gauge2.top), mark.kind === "high" ? "k-stop w2" : "k-flow w2 dashes", { key: mark.text })),
    T(x + 13, y + tall + 16, words, `mid s11 ${state.stopped ? "c-stop b" : "m"}`)
  );
}
function valves(view) {
  const { scene, state, W, H, small } = view, grow2 = Math.round((H - 392) * 0.35), list = scene.valves ?? [], app = scene.nodes[0], queue = scene.nodes[scene.nodes.length - 1], out = scene.links?.[0], y = 104 + grow2 / 2;
  const aw = small ? 106 : 116, qw = small ? 106 : 132, x1 = EDGE + aw, x2 = W - EDGE - qw, va = x1 + Math.max(small ? 40 : 52, Math.min(textWidth(list[0]?.name ?? "", 12, 650), 100) / 2 + 5), vb = x2 - (small ? 40 : 100), dx = list.length > 1 ? (vb - va) / (list.length - 1) : 0, VX = (i) => va + dx * i, last = VX(list.length - 1), room = Math.min(100, dx - 4), size = list.some((valve) => valve.name.split(" ").some((word) => sizeIn(word, room) === 11)) ? 11 : 12;
  const closed = list.findIndex((valve) => state.valves?.[valve.id]?.closed), kids = [], high = 186 + grow2, top = 28, back = y + 90;
  kids.push(P(`M${x1 - 4} ${y}H${x2 + 4}`, "tube", { key: "pipe", style: "stroke-width:22" }), P(`M${x1 - 4} ${back}H${x2 + 4}`, "tube", { key: "back", style: "stroke-width:20" }));
  if (out) {
    const cut = state.links?.[out.id]?.cut, middle = (last + x2) / 2 + 10, press = toggle(view, out.id, phrase("the-network"));
    kids.push(G({ key: "network", ...press }, R(last + 24, y - 18, x2 - last - 24, 36, "f-none"), cut && P(`M${middle - 4} ${y - 17}l8 11l-10 9l9 13`, "f-none k-stopfill w4"), (!small || cut) && T(middle, y - 22, phrase(cut ? "cut" : "network"), `mid s11 ${cut ? "b c-stop" : "m"}`)));
    if (!small || cut) view.labels.take(middle - 26, y - 34, middle + 26, y - 18);
    if (out.names[1]) kids.push(T((x1 + x2) / 2, back + 4, out.names[1], "mid s11 m", { key: "backname" }));
  }
  const stands = closed < 0 ? null : VX(closed) - 26, row2 = [], clear = (x) => !list.some((_, i) => Math.abs(VX(i) - x) < 23);
  if (stands !== null && state.nodes?.[app.id]?.blocked) {
    for (let x = stands, n = 0; x > x1 + 6; x -= 13, n++) if (clear(x)) row2.push(C(x, y, 5.5, "f-snd", { key: n }));
  } else if (stands === null && view.flying.some(({ frame, held }) => frame.way === "there" && !held)) for (let x = x1 + 8 + view.t * 26 % 26, n = 0; x < last + 20; x += 26, n++) row2.push(C(x, y, 5.5, "f-snd", { key: n }));
  kids.push(G({ key: "stream" }, row2), list.map((valve, i) => valveMark(view, valve.id, valve.name, VX(i), y, room, size)));
  list.forEach((_, i) => view.labels.take(VX(i) - dx / 2, y - 70, VX(i) + dx / 2, y + 66));
  const appState = state.nodes?.[app.id] ?? {}, queueState = state.nodes?.[queue.id] ?? {}, { knobs, buttons } = offered(view, app.id, 1, aw - 16);
  kids.push(
    nodeBox(view, app, EDGE, top, aw, high),
    knobs.slice(0, 1).map((act) => knob(view, act, EDGE + aw / 2, top + 78 + grow2 / 2, 23, "sender", appState.knobs?.[act.id] ?? act.min ?? 0, aw - 8)),
    buttons.map((act) => button(view, act, EDGE + 8, top + 124 + grow2 / 2, Math.min(aw - 16, buttonWidth(act.name, true)), true)),
    (appState.facts ?? []).slice(0, 2).map((fact, i, all) => T(EDGE + aw / 2, top + high - 12 - (all.length - 1 - i) * 16, fit(fact, aw - 12, 12, 650), `mid s12 n ${i ? "m" : "b"}`, { key: `af${i}` }))
  );
  kids.push(nodeBox(view, queue, x2, top, qw, high), G(
    { key: "inside" },
    (scene.disks ?? []).filter((disk) => disk.on === queue.id).slice(0, 1).map((disk) => diskMark(view, disk.id, disk.name, x2 + qw * 0.27 - 20, y - 14, 40, 36, "under")),
    (scene.gauges ?? []).filter((gauge2) => gauge2.on === queue.id).slice(0, 1).map((gauge2) => smallGauge(view, gauge2, x2 + qw * 0.74 - 13, y - 14)),
    (queueState.facts ?? []).slice(0, 2).map((fact, i, all) => T(x2 + qw / 2, top + high - 12 - (all.length - 1 - i) * 16, fit(fact, qw - 12, 12, 650), `mid s12 n ${i ? "m" : "b"}`, { key: `qf${i}` }))
  ));
  const under = top + high + 5;
  kids.push(pill(view, "pill", EDGE, under, appState, W / 2), queueState.blocked && pill(view, "queue pill", W - EDGE - Math.min(W / 2 - 20, textWidth(queueState.blocked, 12, 650) + 38), under, queueState, W / 2 - 20));
  const wire = { x1: last + 22, x2: x2 + 6, y, there: y, back, sag: 0 };
  view.flying.forEach((one) => {
    const there = one.frame.way === "there", x = there ? wire.x1 + (wire.x2 - wire.x1) * one.part : x2 - 10 - (x2 - x1 - 20) * one.part;
    kids.push(there && one.frame.kind === "message" && !one.held && !one.lost ? C(x, y, 4.5, "f-snd", { key: `frame ${one.frame.id}` }) : frameMark(view, one, x, there ? y : back, there, one.frame.kind !== "permission"));
  });
  const line = scene.lines?.[0];
  return [kids, line && numberLine(view, line, under + 24, H - under - 30)];
}
function quorumPlan({ scene, state, H, small }) {
  const publisher = scene.nodes.find((node) => node.role === "sender"), replicas = scene.nodes.filter((node) => node !== publisher), n = replicas.length;
  const foot = 58, pitch = Math.min(72, (H - foot - 26) / Math.max(3, n)), rowY = (i) => 34 + (H - foot - 34 - pitch * n) / 2 + pitch * (i + 0.5), ch = 42;
  const pw = small ? 104 : 112, px = EDGE + pw, lx = px + (small ? 26 : 52), cw = small ? 80 : 124, nx = lx + cw + (small ? 40 : 64), dx = nx + cw + 10, bx = dx + (small ? 46 : 54), leads = replicas.findIndex((node) => state.nodes?.[node.id]?.leads && !state.nodes?.[node.id]?.down), middle = rowY((n - 1) / 2);
  const ly = leads < 0 ? middle : rowY(leads), place = new Map(replicas.map((node, i) => [node.id, [i === leads ? lx : nx, rowY(i)]]));
  const ends = (link2) => {
    const a = link2.from === publisher?.id ? [px, middle] : place.get(link2.from), b = link2.to === publisher?.id ? [px, middle] : place.get(link2.to);
    if (!a || !b) return null;
    const out = (p, q, id) => id === publisher?.id ? p[0] : p[0] < q[0] ? p[0] + cw : p[0];
    return a[0] === b[0] ? [a[0], a[1], b[0], b[1]] : [out(a, b, link2.from), a[1], out(b, a, link2.to), b[1]];
  };
  const inner = (link2) => link2.from === publisher?.id ? 10 : 6;
  return { publisher, replicas, pw, lx, ly, cw, ch, nx, dx, bx, leads, middle, rowY, ends, inner };
}
function wireLength(view, id) {
  const link2 = view.scene.links?.find((one) => one.id === id), plan = view.scene.layout === "quorum" && link2 ? quorumPlan(view) : null, e = plan?.ends(link2);
  return e ? Math.max(1, Math.hypot(Math.abs(e[2] - e[0]) - 2 * plan.inner(link2), e[3] - e[1])) : Math.max(200, view.W - 380);
}
function quorum(view) {
  const { scene, state, W, H } = view, { publisher, replicas, pw, lx, ly, cw, ch, nx, dx, bx, leads, middle, rowY, ends, inner } = quorumPlan(view), kids = [];
  for (const link2 of scene.links ?? []) {
    const e = ends(link2), cut = state.links?.[link2.id]?.cut;
    const leader = leads < 0 ? void 0 : replicas[leads].id, busy = view.flying.some(({ frame }) => frame.link === link2.id);
    if (!e || link2.from !== leader && link2.to !== leader && !busy && !cut) continue;
    const wide = link2.from === publisher?.id || link2.to === publisher?.id ? 18 : 7, d = `M${e[0]} ${e[1]}L${e[2]} ${e[3]}`, mx = (e[0] + e[2]) / 2, my = (e[1] + e[3]) / 2;
    kids.push(G({ key: `link ${link2.id}`, ...toggle(view, link2.id, phrase("line-of", { name: link2.names[0] ?? "" })) }, P(d, "wide"), P(d, cut ? "k-stopfill w3 f-none" : "tube", { style: cut ? "stroke-dasharray:3 8" : `stroke-width:${wide}` }), cut && P(`M${mx - 7} ${my - 7}l14 14m0 -14l-14 14`, "k-stop w4 round")));
  }
  if (leads >= 0) kids.push(L(lx + cw, ly, dx, ly, "tube", { key: "own", style: "stroke-width:7" }));
  if (publisher) {
    const own = state.nodes?.[publisher.id] ?? {}, acts = actsOn(view, publisher.id, "button"), tall = 126, y = middle - tall / 2;
    kids.push(
      nodeBox(view, publisher, EDGE, y, pw, tall),
      acts.slice(0, 1).map((act) => button(view, act, EDGE + (pw - 34) / 2, y + 52, 34, true)),
      (own.facts ?? []).slice(0, 2).map((fact, i, all) => T(EDGE + pw / 2, y + tall - 12 - (all.length - 1 - i) * 16, fit(fact, pw - 12, 12, 650), "mid s12 n b", { key: `pf${i}` })),
      pill(view, "pill", EDGE, y + tall + 8, own, nx - EDGE - 6)
    );
  }
  replicas.forEach((node, i) => {
    const own = state.nodes?.[node.id] ?? {}, leader = i === leads, x2 = leader ? lx : nx, y = rowY(i), disk = scene.disks?.find((one) => one.on === node.id), sub = own.down ? phrase("down") : own.sub ?? node.sub ?? "";
    view.labels.take(x2, y - ch / 2, x2 + cw, y + ch / 2);
    kids.push(
      G({ key: `replica ${node.id}`, class: "glide", style: at(x2, y - ch / 2) }, G(
        toggle(view, node.id, `${node.name}, ${sub}`) ?? {},
        R(0, 0, cw, ch, `node ${own.down ? "down" : leader ? "s-snd" : ""} ${own.blocked ? "stop" : ""}`, { rx: 10 }),
        own.down ? P(`M9 ${ch / 2 - 6}l12 12m0 -12l-12 12`, "k-stop w4 round") : leader ? P("M15 10l2.9 6 6.6.8-4.9 4.5 1.3 6.5-5.9-3.3-5.9 3.3 1.3-6.5L5.5 16.8l6.6-.8z", "f-snd") : C(15, ch / 2, 6, "f-panel k-muted w2"),
        T(30, ch / 2 - 1, fitName(node.name, cw - 34, 13, 650), "b"),
        T(30, ch / 2 + 13, textWidth(sub, 11) > cw - 34 ? fit(sub.split(", ")[0], cw - 34, 11) : sub, "s11 m")
      )),
      disk && diskMark(view, disk.id, disk.name, dx, y - 17, 36, 32, "under")
    );
  });
  const line = scene.lines?.find((one) => one.style === "bars");
  if (line) kids.push(bars(view, line, bx, W - bx - EDGE, (i) => rowY(replicas.findIndex((node) => node.id === line.ends[i].id)), H));
  let x = EDGE;
  for (const { mark, text } of scene.legend ?? []) {
    kids.push(G({ key: `legend ${text}` }, R(x, H - 27, 13, 11, mark === "memory" ? "f-panel k-snd w1" : "f-snd", { rx: 2, style: mark === "memory" ? "stroke-dasharray:3 2" : "" }), T(x + 18, H - 17, text, "s11 m")));
    x += textWidth(text, 11) + 36;
  }
  const lost = [];
  for (const one of view.flying) {
    const link2 = scene.links?.find((l) => l.id === one.frame.link), e = link2 && ends(link2);
    if (!e) continue;
    const p = one.frame.way === "there" ? one.part : 1 - one.part, room = inner(link2), along = (a, b) => a + (b - a) * p;
    const fx = along(e[0] + Math.sign(e[2] - e[0]) * room, e[2] - Math.sign(e[2] - e[0]) * room), fy = along(e[1], e[3]);
    if (one.lost && lost.some(([x2, y]) => Math.hypot(x2 - fx, y - fy) < 16)) continue;
    if (one.lost) lost.push([fx, fy]);
    kids.push(frameMark(view, one, fx, fy, e[2] > e[0] === (one.frame.way === "there"), one.frame.kind !== "message"));
  }
  return kids;
}
var TALLEST = 94;
function chain(view) {
  const { scene, state, W, H, small } = view, groups = scene.groups?.length ? scene.groups : [{ id: "", title: "" }], kids = [], flown = [], tall = H / groups.length;
  groups.forEach((group, g) => {
    const nodes = scene.nodes.filter((node) => (node.group ?? "") === group.id), top = tall * g + (group.title ? 33 : 4), room = tall - (group.title ? 39 : 10), cols = Math.max(1, ...nodes.map((node) => node.place?.[0] ?? 0)), rowsUsed = Math.max(1, ...nodes.map((node) => (node.place?.[1] ?? 0) + 1));
    const wide = nodes.some((node) => node.mark) ? 108 : 90, width = (node) => small ? node.role || node.mark ? 98 : 80 : node.role ? 108 : node.mark ? wide : 90, ww = Math.max(...nodes.map((node) => node.place?.[0] === cols ? width(node) : 80)), pitch = room / Math.max(2.6, rowsUsed), X = (col) => EDGE + (W - 2 * EDGE - ww) * col / cols, Y = (row2) => top + room / 2 + (row2 - (rowsUsed - 1) / 2) * pitch;
    const box = new Map(nodes.map((node) => {
      const linked = (scene.links ?? []).filter((link2) => link2.from === node.id || link2.to === node.id).length;
      const high = node.role === "sender" && linked > 1 ? Math.min(room - 8, pitch * (rowsUsed - 0.2)) : Math.min(node.role ? actsOn(view, node.id, "button").length ? TALLEST : 74 : 50, room - 8, node.tone === void 0 ? TALLEST : 34);
      return [node.id, { x: X(node.place?.[0] ?? 0), y: Y(node.place?.[1] ?? 0) - high / 2, w: width(node), h: high }];
    }));
    if (g) kids.push(L(EDGE, tall * g - 2, W - EDGE, tall * g - 2, "rule", { key: `rule ${g}` }));
    if (group.title) {
      const sub = fit(group.sub ?? "", W - textWidth(group.title, 13, 650) - 60, 12);
      view.labels.take(EDGE, tall * g + 4, EDGE + textWidth(group.title, 13, 650) + 20 + textWidth(sub, 12), tall * g + 21);
      kids.push(T(EDGE, tall * g + 17, group.title, "b", { key: `title ${g}` }), sub && T(EDGE + textWidth(group.title, 13, 650) + 12, tall * g + 17, sub, "s12 m", { key: `sub ${g}` }));
    }
    const waysOf = {}, marked2 = [];
    for (const link2 of scene.links ?? []) {
      const a = box.get(link2.from), b = box.get(link2.to);
      if (!a || !b) continue;
      const x1 = a.x + a.w - 2, x2 = b.x + 2, yb = b.y + b.h / 2, ya = a.h > pitch * 1.5 ? yb : a.y + a.h / 2, cx = (x2 - x1) * 0.4, own = state.links?.[link2.id] ?? {}, hop = scene.hops?.find((one) => one.link === link2.id), narrow = pitch < 54;
      const bez = (p0, p1, p2, p3, u) => (1 - u) ** 3 * p0 + 3 * (1 - u) ** 2 * u * p1 + 3 * (1 - u) * u * u * p2 + u ** 3 * p3;
      const within = Math.min(0.4, 11 / Math.max(1, x2 - x1));
      waysOf[link2.id] = (way) => {
        const p = within + (1 - 2 * within) * way;
        return [bez(x1, x1 + cx, x2 - cx, x2, p), bez(ya, ya, yb, yb, p)];
      };
      const named = textWidth(link2.names[0] ?? "", 11);
      if (named) view.labels.take(x1 + 12, ya - 27, x1 + 12 + named, ya - 11);
      kids.push(G({ key: `link ${link2.id}`, ...toggle(view, link2.id, phrase("the-connection")) }, P(`M${x1} ${ya}C${x1 + cx} ${ya} ${x2 - cx} ${yb} ${x2} ${yb}`, "tube", { style: `stroke-width:${narrow ? 16 : 20}` }), link2.names[0] && T(x1 + 12, ya - 15, link2.names[0], "s11 m")));
      (own.waiting ?? []).forEach(([text, t], i) => {
        const x = x2 - 16 - i * 20;
        if (x <= x1 + 11) return;
        marked2.push([x, yb]);
        flown.push(G({ key: `waits ${link2.id} ${i}` }, C(x, yb, 7.5, `f-${TONES[t % 3]}`), T(x, yb + 4, text, "mid s11 b c-on")));
      });
      if (hop) {
        const credit = state.hops?.[hop.id]?.credit ?? 0, text = state.hops?.[hop.id]?.text, wide2 = hop.of * (hop.of > 6 ? 8 : 10) + (text ? textWidth(text, 11, 650) + 3 : 0), meet = (scene.links ?? []).filter((one) => one.to === link2.to).length > 1;
        const x = meet ? x1 + 8 : ya !== yb || (scene.links ?? []).filter((one) => one.from === link2.from).length > 1 && !named ? x2 - wide2 - 2 : named ? x1 + 26 + named : (x1 + x2 - wide2) / 2 + 4;
        const y = (meet ? ya : yb) - (narrow && ya !== yb ? 16 : !named && x2 - x1 < wide2 + 16 ? 36 : 19);
        view.labels.take(x - 7, y - 7, x + wide2, y + 7);
        flown.push(dots(hop.id, x, y, credit, hop.of, text));
      }
    }
    for (const node of nodes) {
      const b = box.get(node.id), own = state.nodes?.[node.id] ?? {}, fact = own.facts?.[0], says = own.blocked ?? fact ?? node.sub ?? "", crowded = nodes.filter((one) => one.role).length > 1 && pitch < TALLEST + 32, told = crowded && !node.role ? b.y - 7 : b.y + b.h + 15;
      view.labels.take(b.x, b.y, b.x + b.w, b.y + b.h);
      if (fact && node.tone === void 0) view.labels.take(b.x, told - 11, b.x + b.w, told + 4);
      if (node.tone === void 0) {
        const buttons = actsOn(view, node.id, "button");
        kids.push(nodeBox(view, node, b.x, b.y, b.w, b.h), fact && T(b.x + b.w / 2, told, fact, `mid s11 b ${own.blocked ? "c-stop" : "m"}`, { key: `fact ${node.id}` }), buttons.slice(0, 1).map((act) => button(view, act, b.x + b.w - 42, b.y + b.h - 36, 34, true)));
      } else kids.push(G({ key: `node ${node.id}`, ...toggle(view, node.id, `${node.name}, ${own.blocked ?? fact ?? ""}`) }, R(b.x, b.y, b.w, b.h, `node ${own.blocked ? "stop" : ""} ${own.down ? "down" : ""}`, { rx: 9 }), C(b.x + 17, b.y + b.h / 2, 9, `f-${TONES[node.tone % 3]}`), T(b.x + 17, b.y + b.h / 2 + 4, node.mark ?? node.name.slice(-1), "mid s11 b c-on"), T(b.x + 31, b.y + b.h / 2 + 4.5, fit(says, b.w - 34, sizeIn(says, b.w - 34), 650), `s${sizeIn(says, b.w - 34)} n ${own.blocked ? "c-stop b" : ""}`)));
      const over2 = b.h > pitch * 1.5 && (scene.links ?? []).filter((link2) => link2.from === node.id).length > 1, said2 = EDGE + textWidth(group.title, 13, 650) + textWidth(group.sub ?? "", 12) + 32;
      const [px, py] = over2 ? [said2, tall * g] : crowded ? [b.x + b.w + 8, pitch > 80 ? b.y + b.h / 2 + 28 : b.y + b.h - 20] : [EDGE, Math.min(b.y + b.h + 6, tall * (g + 1) - 32)];
      if (node.role) kids.push(pill(view, `pill ${node.id}`, px, py, own, over2 ? W - said2 - EDGE : W * (crowded ? 0.3 : 0.5)));
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
      const hidden = marked2.some(([a, b]) => Math.abs(a - x) < 15 && Math.abs(b - y) < 15);
      if (!hidden && one.frame.text) marked2.push([x, y]);
      const mark = frameMark(view, hidden ? { ...one, frame: { ...one.frame, text: "" } } : one, x, y, there, true);
      if (hidden) flown.unshift(mark);
      else flown.push(mark);
    }
  });
  return [kids, flown];
}
function gauge(view) {
  const { scene, state, W, H, small } = view, senders = scene.nodes.slice(0, -1), b = scene.nodes[scene.nodes.length - 1], one = scene.gauges?.[0], w = small ? 166 : 176, qw = small ? 112 : 150, side = small ? 126 : 138, qx = W - EDGE - qw - side, kids = [], flown = [];
  const several = senders.length > 1, row2 = several ? (H - 12) / senders.length : 0, high = several ? row2 - 60 : 196;
  view.labels.take(qx, 0, qx + qw, H);
  senders.forEach((a, i) => {
    const box = { x: EDGE, y: several ? 8 + i * row2 : 28, w, h: high }, own = state.nodes?.[a.id] ?? {}, { knobs, buttons } = offered(view, a.id, 1), wireLink = scene.links?.find((each) => each.from === a.id || each.to === a.id);
    const waits = pill(view, `pill ${a.id}`, EDGE, box.y + box.h + 6, own, qx - EDGE - 10);
    if (wireLink) {
      const there = several ? box.y + 34 : 100, wire = { x1: box.x + w - 3, x2: qx + 3, y: there + 30, there, back: there + (several ? 52 : 62), sag: several ? 0 : sagOf(view, wireLink) };
      kids.push(wireMark(view, wire, wireLink.id, wireLink.names, several ? 22 : 28));
      flown.push(frames(view, wireLink, wire, true));
    }
    kids.push(
      nodeBox(view, a, box.x, box.y, w, box.h),
      knobs.slice(0, 1).map((act) => knob(view, act, box.x + w / 2, box.y + 88, several ? 22 : 30, a.role, own.knobs?.[act.id] ?? act.min ?? 0, w - 90)),
      items(own, box.x + 12, box.y + box.h - 40, w - 24, 22),
      (own.facts ?? []).slice(0, 1).map((fact) => T(box.x + 12, box.y + 57, fit(fact, w - 60, 12), "s12 n m", { key: "fact" })),
      buttons.map((act, n) => button(view, act, box.x + w - 44, box.y + 52 + n * 32, 34, true)),
      waits
    );
  });
  if (one && b) {
    const vessel = state.gauges?.[one.id] ?? {}, list = vessel.items ?? [], held = new Set(typeof vessel.held === "number" ? [] : vessel.held), part = typeof vessel.held === "number" ? vessel.held : 0, kept = held.size || part, base = H - 26, unit = (base - 54) / (one.top + 0.4), level = (v) => base - v * unit, c = vessel.stopped ? "stopfill" : tone(b.role), every = Math.ceil(15 / unit);
    kids.push(G(
      { key: "vessel", role: "img", "aria-label": phrase(kept ? "vessel-held" : "vessel", { name: one.name, level: list.length || vessel.level || 0, held: kept }) },
      T(qx + qw / 2, 30, b.name, `mid b c-${tone(b.role)}`),
      P(`M${qx} ${level(one.top + 0.4)}V${base}H${qx + qw}V${level(one.top + 0.4)}`, `sunk k-${c} ${vessel.stopped ? "w3" : "w2"}`),
      vessel.items === void 0 && R(qx + 3, level((vessel.level ?? 0) - part), qw - 6, Math.max(0, ((vessel.level ?? 0) - part) * unit - 2), "glide f-snd half"),
      part > 0 && [R(qx + 3, level(vessel.level ?? 0), qw - 6, part * unit - 1, "glide k-stop w1", { rx: 4, style: `fill:url(#${view.uid}stop)` }), part * unit > 14 && T(qx + qw - 13, level((vessel.level ?? 0) - part / 2) + 4, phrase("held"), "end s11 b halo c-stop")],
      list.map((text, i) => {
        const its = held.has(text), y = level(i + 1) + 2;
        return G(
          { key: `item ${text}`, class: "fade" },
          R(qx + 8, y, qw - 16, unit - 4, `glide ${its ? "k-stop w1" : "f-snd"}`, { rx: 4, style: its ? `fill:url(#${view.uid}stop)` : "" }),
          i % every === 0 && unit > 12 && [its && R(qx + qw / 2 - 15, y + 1, 30, unit - 6, "f-panel", { rx: 3 }), T(qx + qw / 2, y + unit / 2 + 2.5, text, `mid s12 b n ${its ? "" : "c-on"}`)],
          its && unit > 14 && T(qx + qw - 13, y + unit / 2 + 2.5, phrase("held"), "end s11 b halo c-stop")
        );
      })
    ));
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
var LAYOUTS = { link, valves, quorum, chain, gauge };
var picture = (view) => h("g", { key: "picture" }, LAYOUTS[view.scene.layout](view));

// run.ts
var STATE = ["nodes", "links", "lines", "valves", "gauges", "disks", "hops", "counters", "on", "off"];
var isTree = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
function merge(before, step) {
  const after = { ...before };
  for (const [key, value] of Object.entries(step)) {
    if (key === "__proto__") continue;
    const old = after[key];
    after[key] = isTree(value) && isTree(old) ? merge(old, value) : value;
  }
  return after;
}
function advance(state, step) {
  let after = state;
  for (const key of STATE) if (step[key]) after = { ...after, [key]: merge(after[key] ?? {}, step[key]) };
  return after;
}
var start = (frame) => frame.path[0][0];
var stop = (frame) => frame.path[frame.path.length - 1][0];
var over = (frame) => Boolean(frame.lost) || frame.path[frame.path.length - 1][1] >= 1;
function resolve(scene) {
  const runs = /* @__PURE__ */ new Map();
  for (const branch of scene.branches) {
    const parent = branch.parent === null ? void 0 : runs.get(branch.parent);
    const steps = parent ? parent.steps.slice(0, branch.keeps) : [];
    const states = parent ? parent.states.slice(0, branch.keeps) : [];
    for (const step of branch.steps) {
      states.push(advance(states[states.length - 1] ?? {}, step));
      steps.push(step);
    }
    const own = new Set(branch.frames.map((frame) => frame.id));
    const kept = parent ? parent.frames.filter((frame) => over(frame) && stop(frame) <= branch.at && !own.has(frame.id)) : [];
    const frames2 = [...kept, ...branch.frames].sort((a, b) => start(a) - start(b));
    const last = Math.max(steps.length ? steps[steps.length - 1].t : 0, ...frames2.map(stop));
    runs.set(branch.id, { branch, steps, states, frames: frames2, ends: branch.ends ?? (branch.id === 0 ? Math.max(scene.ends, last) : last) });
  }
  return runs;
}
function stepAt(steps, t) {
  let low = 0, high = steps.length;
  while (low < high) {
    const middle = low + high >> 1;
    if (steps[middle].t <= t + 1e-6) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
var LOST_MS = 2.5;
function flying(run, t, gap) {
  const found = [];
  const ahead = /* @__PURE__ */ new Map();
  for (const frame of run.frames) {
    if (start(frame) > t) break;
    const ended = t >= stop(frame) && over(frame);
    if (ended && !(frame.lost && t < stop(frame) + LOST_MS)) continue;
    if (frame.waits !== void 0 && t >= frame.waits) continue;
    const lane = `${frame.link} ${frame.way}`;
    let part = partAt(frame.path, t), behind = false;
    if (!ended) {
      const most = ahead.get(lane);
      if (most !== void 0) part = Math.min(part, most - gap(frame));
      ahead.set(lane, part);
      behind = part < -1e-9;
    }
    found.push({ frame, part: Math.max(0, part), held: heldAt(frame.path, t), lost: ended, behind });
  }
  return found;
}

// strip.ts
var button2 = (ui, text, more = {}) => h("button", { key: `${ui} ${more["data-arg"] ?? ""}`, type: "button", class: "wst-btn", "data-ui": ui, ...more }, text);
function differs(state, rule) {
  for (const line of Object.values(state.lines ?? {})) if (line.rules?.[rule]?.differs) return line.rules[rule].differs ?? null;
  return null;
}
var row = (key, c, ...kids) => h("div", { key, class: `wst-strip ${c}`, role: key === "ask" ? "form" : null, "aria-label": key === "ask" ? phrase("prediction") : null }, ...kids);
var tag = (text, hot = false) => h("span", { class: `wst-tag ${hot ? "hot" : ""}`, role: hot ? "alert" : null }, text);
var compared = (rules, rule) => rules.length > 0 && button2("rule", phrase("compare-rules"), { "data-arg": rule ?? rules[0].id });
function strip(asked) {
  const { scene, question, branch, rule, verdict, answer } = asked, rules = scene.rules ?? [];
  if (rule) {
    const words = differs(asked.state, rule);
    return row(
      "rules",
      words ? "wrong" : "",
      tag(phrase("two-rules")),
      h("div", { class: "wst-q", "aria-live": "polite" }, words ? h("b", {}, words) : phrase(scene.theirs ? "same-so-far-theirs" : "same-so-far")),
      h("select", { key: "rules", class: "wst-rules", "data-ui": "rules", "aria-label": phrase(scene.theirs ? "their-rule" : "your-rule") }, rules.map((one) => h("option", { key: one.id, value: one.id, selected: one.id === rule }, one.name))),
      button2("rule", "✕", { "data-arg": "", "aria-label": phrase("one-rule-only"), class: "wst-btn bare" })
    );
  }
  if (branch.id) return row("branch", "", tag(phrase("branch", { number: branch.id })), h("div", { class: "wst-q" }, phrases("acted", { act: h("b", {}, branch.label) })), compared(rules), button2("branch", phrase("back-to-given"), { "data-arg": "0" }));
  if (!question || asked.skipped) return row("idea", "", tag(phrase("picture")), h("div", { class: "wst-q", role: "status" }, scene.idea), compared(rules), question && asked.skipped && button2("again", phrase("answer")));
  if (answer === null) {
    const other = question.free && asked.picked !== null && !question.options.some((one) => String(one) === String(asked.picked)) ? asked.picked : "";
    return row(
      "ask",
      "",
      tag(phrase(asked.urged ? "commit-first" : "predict"), asked.urged),
      h("div", { class: "wst-q" }, h("b", {}, question.text)),
      h(
        "div",
        { class: "wst-ans", role: "group", "aria-label": phrase("answers") },
        question.options.map((one) => button2("pick", String(one), { "data-arg": String(one), "aria-pressed": String(String(asked.picked) === String(one)) })),
        question.free && h("input", { key: "free", type: "number", placeholder: phrase("other"), "aria-label": phrase("own-number"), "data-ui": "free", value: other }),
        button2("commit", phrase("commit"), { class: "wst-btn go", "aria-disabled": asked.picked === null || asked.picked === "" ? "true" : null }),
        button2("skip", "✕", { "aria-label": phrase("skip"), title: phrase("skip"), class: "wst-btn bare" })
      )
    );
  }
  if (!verdict || !asked.shown) return row("said", "", tag(phrase("predict")), h("div", { class: "wst-q" }, phrases(asked.playing ? "said-watch" : "said-play", { answer: h("b", {}, String(answer)) })), button2("again", phrase("change")));
  return row(
    "verdict",
    verdict.right ? "right" : "wrong",
    h("div", { class: "wst-q", "aria-live": "polite" }, h("b", {}, phrase(verdict.right ? "said-right" : "said-wrong", { said: answer, answer: verdict.answer }), " "), verdict.why),
    compared(rules, verdict.rule),
    button2("again", phrase("again"))
  );
}
function isTall(scene, width) {
  const question = scene.question, verdicts = [question?.verdict, ...Object.values(question?.verdicts ?? {})].filter((one) => Boolean(one));
  const options = question ? question.options.reduce((sum, one) => sum + String(one).length * 7 + 28, question.free ? 190 : 120) : 0;
  const lines = (text, room) => text.length * 6.9 / Math.max(room, 120);
  return lines(question?.text ?? scene.idea, width - options - 110) > 1.8 || verdicts.some((one) => lines(one.why, width - 140) > 1.6);
}

// tabs.ts
var TABS = [phrase("tab-sequence"), phrase("tab-bytes"), phrase("tab-log"), phrase("tab-counters"), phrase("tab-acts"), phrase("tab-parameters")];
var ACTS = 4;
var COLOURS = { message: "snd", permission: "flow", acknowledgement: "alt", write: "snd" };
var SLOTS = 160;
function sequence(view, zero) {
  const { scene, run, t } = view, width = view.W - 26, high = 236, left = 96, lanes = (scene.lifelines ?? scene.nodes.map((node) => node.id)).map((id) => scene.nodes.find((node) => node.id === id)).filter((node) => node !== void 0);
  const flights = run.frames.slice(0, 200).map((frame) => frame.path[frame.path.length - 1][0] - frame.path[0][0]).filter((time) => time > 0).sort((a, b) => a - b), usual = flights[flights.length >> 1] ?? 10;
  const span = usual * 4.6, from = Math.max(0, t - span * 0.74), per = (width - left - 12) / span, origin2 = Math.floor(from / span) * span, shift = per * (origin2 - from), X = (time) => left + per * (time - origin2), now = X(t) + shift, Y = (id) => 32 + lanes.findIndex((node) => node.id === id) * (180 / Math.max(1, lanes.length - 1));
  const labels = new Labels(width - shift, high), shown = new Set(lanes.map((node) => node.id)), drawn = [], texts = [], step = round(span / (width - left) * 90);
  labels.take(X(t) - 4, 0, X(t) + 4, high);
  let n = 0;
  for (const [place, frame] of run.frames.entries()) {
    const begins = frame.path[0][0], [ends, part] = frame.path[frame.path.length - 1];
    if (begins > t) break;
    if (ends < from && part >= 1) continue;
    const link2 = scene.links?.find((one) => one.id === frame.link);
    if (!link2 || !shown.has(link2.from) || !shown.has(link2.to) || n >= SLOTS) continue;
    n++;
    const [a, b] = frame.way === "there" ? [Y(link2.from), Y(link2.to)] : [Y(link2.to), Y(link2.from)], fly = view.flying.find((one) => one.frame === frame), done = ends <= t, c = COLOURS[frame.kind];
    const points = frame.path.filter(([time]) => time <= t).map(([time, p]) => [X(time), a + (b - a) * p]);
    if (!done) points.push([X(t), a + (b - a) * (fly?.part ?? 0)]);
    drawn.push(G(
      { key: place % SLOTS, "data-frame": frame.id },
      h("title", {}, frame.name),
      P(`M${points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L")}`, `f-none w2 k-${c} ${frame.kind === "permission" ? "dashed" : ""}`, { "marker-end": done && !frame.lost ? `url(#${view.uid}arrow)` : null }),
      frame.lost && done && P(`M${points[points.length - 1][0] - 5} ${points[points.length - 1][1] - 5}l10 10m0 -10l-10 10`, "k-stop w3")
    ));
    const text = fit(frame.short ?? frame.label ?? frame.text ?? "", 130, 11), down = b > a;
    if (!text || begins < from) continue;
    const spot = labels.place(text, 11, 500, [{ x: X(begins) + 5, y: a + (down ? 14 : -6), anchor: "start" }, { x: X(begins) - 5, y: a + (down ? 14 : -6), anchor: "end" }, { x: X(begins), y: a + (down ? -6 : 14), anchor: "middle" }]);
    if (spot) texts.push(T(spot.x, spot.y, text, `s11 halo ${spot.anchor === "middle" ? "mid" : spot.anchor}`, { key: place % SLOTS }));
  }
  return h(
    "svg",
    { key: "sequence", width: "100%", height: high, viewBox: `0 0 ${width} ${high}`, role: "img", "aria-label": phrase("sequence") },
    h("defs", {}, h("clipPath", { id: `${view.uid}clip` }, R(left - 4, 0, width - left + 4, high))),
    lanes.map((node) => G({ key: node.id }, L(left - 6, Y(node.id), width, Y(node.id), "thin"), T(left - 14, Y(node.id) + 4, fit(node.name, left - 18, 12, 650), "end s12 b"))),
    G({ key: "drawn", "clip-path": `url(#${view.uid}clip)` }, G({ style: at(shift, 0) }, drawn, texts)),
    L(now, 16, now, high - 20, "k-ink w2"),
    T(clamp(now, left, width - 30), 11, ms(Math.max(0, t - zero), scene.untimed), "mid s11 b"),
    !scene.untimed && G({ key: "scale", style: at(width - 16 - step / span * (width - left - 12), high - 8) }, P(`M0 -4v8m0 -4h${step / span * (width - left - 12)}m0 -4v8`, "thin f-none"), T(-6, 4, phrase("to-scale", { ms: step }), "end s11 m"))
  );
}
function octets(frame, field) {
  if (!frame) return h("p", {}, phrase("no-frame"));
  if (!frame.octets) return h("p", {}, phrases("no-octets", { frame: h("b", {}, frame.name) }));
  const { hex, fields } = frame.octets, size = hex.length / 2, owner = new Array(size).fill(-1);
  fields.forEach(([, , first, after], i) => {
    for (let o = first; o < after && o < size; o++) owner[o] = i;
  });
  const runs = [];
  for (let o = 0; o < Math.min(size, 2048); o++) {
    const text = hex.slice(2 * o, 2 * o + 2), last = runs[runs.length - 1];
    if (last && last[0] === owner[o]) last[1] += ` ${text}`;
    else runs.push([owner[o], text]);
  }
  return h(
    "div",
    { class: "wst-bytes" },
    h("p", {}, h("b", {}, frame.name), " · ", phrase(size > 2048 ? "octets-cut" : "octets", { octets: size })),
    h("div", { class: "hex" }, runs.map(([i, text], n) => h("span", { key: n, class: i >= 0 ? `o${i % 2} ${i === field ? "at" : ""}` : "", "data-field": i >= 0 ? i : null, title: i >= 0 ? `${fields[i][0]} ${fields[i][1]}` : null }, `${text} `))),
    h("div", { class: "fields" }, fields.map(([name, value, , , deep], i) => h("div", { key: i, tabindex: 0, "data-field": i, class: i === field ? "at" : "", style: `padding-left:${6 + deep * 12}px` }, h("span", {}, name), h("b", {}, value))))
  );
}
var ROW = 25;
var known = /* @__PURE__ */ new WeakMap();
function logLines(steps, curtain, who) {
  const key = `${who} ${curtain}`, found = known.get(steps);
  if (found?.key === key) return found.lines;
  const lines = { steps: [], names: [...new Set(steps.map((step) => step.who ?? ""))].filter(Boolean) };
  for (let i = 0; i < steps.length && steps[i].t < curtain + 1e-9; i++) {
    const step = steps[i];
    if (step.sentence && (!who || (who === "◆" ? step.mark : step.who === who))) lines.steps.push(i);
  }
  known.set(steps, { key, lines });
  return lines;
}
function log(steps, { steps: lines, names }, now, who, scrolled, zero, untimed) {
  const first = Math.max(0, Math.floor(scrolled / ROW) - 4), said2 = ({ mark, mine, sentence }) => `${mark ? "◆ " : ""}${mine ? "▪ " : ""}${sentence}`, time = widest((steps[steps.length - 1]?.t ?? 0) - zero), named = clamp(Math.ceil(Math.max(...names.map((name) => textWidth(name, 13)))) + 2, 92, 150);
  return [
    h("div", { key: "filter", class: "wst-filter", role: "group", "aria-label": phrase("show") }, ["", "◆", ...names].map((name) => h("button", { key: name, type: "button", "data-ui": "who", "data-arg": name, "aria-pressed": String(who === name) }, name === "" ? phrase("all") : name === "◆" ? phrase("interesting") : name)), h("span", {}, phrase("lines", { lines: lines.length }))),
    h("div", { key: "log", class: "wst-log", style: `height:${lines.length * ROW}px` }, lines.slice(first, first + 22).map((i, n) => h(
      "button",
      { key: i, type: "button", class: i === now ? "now" : "", "data-ui": "step", "data-arg": i, style: `top:${(first + n) * ROW}px`, "aria-current": i === now ? "step" : null },
      h("span", { class: "t", style: `width:${time}px` }, ms(Math.max(0, steps[i].t - zero), untimed)),
      h("span", { class: "who", style: `width:${named}px` }, steps[i].who ?? ""),
      h("span", { class: "said", title: steps[i].sentence ?? null }, said2(steps[i]))
    )))
  ];
}
function rowOf({ steps: lines }, step) {
  const place = lines.findIndex((i) => i >= step);
  return ROW * (place < 0 ? Math.max(0, lines.length - 1) : place);
}
function counters(scene, values) {
  if (!scene.counters) return h("p", {}, phrase("no-counters"));
  let group;
  const rows2 = scene.counters.rows.flatMap((row2) => {
    const cells = values[row2.id] ?? [], known2 = cells.filter((cell) => cell !== null && cell !== "?"), odd = row2.compare && known2.some((cell) => cell !== known2[0]), head = row2.group !== void 0 && row2.group !== group ? [h("tr", { key: `g ${row2.group}` }, h("th", { class: "group", colspan: scene.counters.columns.length + 1, scope: "rowgroup" }, row2.group))] : [];
    group = row2.group ?? group;
    return [...head, h("tr", { key: row2.id, class: odd ? "odd" : "" }, h("th", { scope: "row" }, row2.name), scene.counters.columns.map((_, i) => h("td", { key: i }, `${odd && i ? "≠ " : ""}${cells[i] ?? "–"}`)))];
  });
  return h("table", {}, h("thead", {}, h("tr", {}, h("td", {}), scene.counters.columns.map((name) => h("th", { key: name, scope: "col" }, name)))), h("tbody", {}, rows2));
}
function marked(node, found = /* @__PURE__ */ new Set()) {
  found.add(node.a["data-act"] ?? node.a["data-knob"]);
  node.kids.forEach((kid) => typeof kid !== "string" && marked(kid, found));
  return found;
}
var partyOf = (view, act) => view.scene.nodes.find((one) => one.id === act.on)?.name ?? "";
var isSet = (act) => ["knob", "handle", "text"].includes(act.kind);
function actRow(view, drawn, width) {
  const there = marked(drawn), rest = (view.scene.acts ?? []).filter((act) => act.kind !== "frame" && !there.has(act.id)), row2 = [];
  const place = (act) => act.on === "stage" ? -1 : rest.findIndex((one) => one.on === act.on);
  let left = width - 24 - 40, last = "";
  for (const act of [...rest].sort((a, b) => place(a) - place(b))) {
    const name = nameNow(view, act), text = isSet(act) ? `${name}…` : name, party2 = partyOf(view, act);
    const heads = party2 !== "" && party2 !== last && !name.split(" ").includes(party2.split(" ").pop());
    left -= textWidth(text, 13, 600) + 29 + (heads ? textWidth(`${party2}:`, 12) + 12 : 0);
    if (left < 0) return [...row2, h("button", { key: "more", type: "button", class: "wst-btn", "data-ui": "tab", "data-arg": 4, "aria-label": phrase("more-acts") }, "…")];
    if (heads) row2.push(h("span", { key: `of ${party2}` }, `${party2}:`));
    last = party2;
    const does = isSet(act) ? { "data-ui": "set", "data-arg": act.id } : hit(view, act.id, null, name, { "aria-pressed": act.kind === "toggle" ? String(Boolean(view.state.on?.[act.id])) : null });
    row2.push(h("button", { key: act.id, ...does, type: "button", class: "wst-btn" }, text));
  }
  return row2;
}
function actList(view, why, said2) {
  const rows2 = [];
  const off = (act) => view.state.off?.[act.id] ?? why, note = (act, row2 = act.id) => said2?.row === row2 ? h("small", { key: "said", role: "alert" }, said2.text) : off(act) && h("small", {}, off(act));
  for (const act of view.scene.acts ?? []) {
    if (act.kind === "frame") continue;
    const where = partyOf(view, act), text = act.kind === "text", set = isSet(act), name = nameNow(view, act);
    const now = view.preview[act.id] ?? standsAt(view, act);
    rows2.push(h(
      "div",
      { key: act.id, class: "act", "data-row": act.id },
      h("label", {}, where ? `${where}: ` : "", h("b", {}, name)),
      text && h("input", { type: "text", class: "words", "data-set": act.id, placeholder: act.hint ?? null, "aria-label": act.name }),
      set && !text && h("input", { type: "number", min: act.min ?? 0, max: act.limit ?? 1e9, "data-set": act.id, value: now, "aria-label": act.unit ? `${act.name}, ${act.unit}` : act.name }),
      set && act.unit && h("span", {}, act.unit),
      h("button", { type: "button", class: "wst-btn", "data-do": act.id, "aria-disabled": off(act) ? "true" : null, "aria-label": phrase(set ? "send-act" : "do-act", { act: name }) }, phrase(set ? "send" : "do")),
      note(act)
    ));
  }
  const flights = view.flying.filter((one) => !one.lost);
  for (const { frame, held } of flights.slice(0, 40)) {
    const acts = actsOfFrame(view, frame, held);
    if (acts.length) rows2.push(h("div", { key: frame.id, class: "act", "data-row": frame.id, "data-frame": frame.id }, h("label", {}, phrases(held ? "frame-held" : "frame-flying", { frame: h("b", {}, frame.name) })), acts.map((act) => h("button", { key: act.id, type: "button", class: "wst-btn", "data-do": act.id, "data-value": frame.id, "aria-disabled": off(act) ? "true" : null }, act.name)), acts.slice(0, 1).map((act) => note(act, frame.id))));
  }
  return rows2.length ? h("div", { class: "wst-acts" }, why && h("p", {}, why), rows2) : h("p", {}, phrase("no-acts"));
}
var shownAs = (value) => typeof value === "boolean" ? phrase(value ? "yes" : "no") : String(value ?? "");
function said(parameter, text) {
  if (parameter.choices) return parameter.choices.find((one) => shownAs(one) === text) ?? text;
  return parameter.min === void 0 ? text : text === "" ? null : Number(text);
}
var wanted = (parameters, typed2) => parameters.flatMap((one) => typed2[one.id] === void 0 || typed2[one.id] === shownAs(one.value) ? [] : [[one.id, said(one, typed2[one.id])]]);
function form(parameters, typed2, wrong) {
  const other = parameters.some((one) => one.value !== one.given), field = (one) => {
    const text = typed2[one.id] ?? shownAs(one.value), same = { "data-value-of": one.id, "aria-label": one.name };
    if (one.choices) return h("select", { ...same, value: text }, one.choices.map((choice) => h("option", { key: String(choice), value: shownAs(choice), selected: shownAs(choice) === text }, shownAs(choice))));
    if (one.min === void 0) return h("input", { ...same, type: "text", value: text });
    const slides = one.top !== void 0 && one.top - one.min > 1, step = slides ? Math.max(1, round((one.top - one.min) / 200)) : 1;
    return [
      h("input", { ...same, key: "number", type: "number", min: one.min, max: one.max ?? null, step: 1, required: !one.free, placeholder: one.free ? phrase("left-out") : null, value: text }),
      h("span", { key: "unit" }, one.unit ?? ""),
      slides && h("input", { ...same, key: "slider", type: "range", min: one.min, max: one.top, step, value: text === "" ? one.min : text, "aria-valuetext": `${text} ${one.unit ?? ""}` })
    ];
  };
  return h(
    "div",
    { class: "wst-form" },
    h(
      "div",
      { key: "do", class: "do" },
      h("button", { type: "button", class: "wst-btn go", "data-ui": "begin", "aria-disabled": wanted(parameters, typed2).length ? null : "true" }, phrase("begin-anew")),
      (other || Object.keys(typed2).length > 0) && h("button", { key: "given", type: "button", class: "wst-btn", "data-ui": "begin", "data-arg": "given" }, phrase("as-given")),
      h("p", { class: wrong ? "wrong" : "", role: wrong ? "alert" : null }, wrong ?? phrase("begin-how"))
    ),
    parameters.map((one) => h("div", { key: one.id, class: one.value === one.given ? "" : "other" }, h("b", {}, one.name), field(one), h("small", {}, one.doc, one.value === one.given ? "" : ` (${phrase("given-was", { value: shownAs(one.given) || phrase("left-out") })})`)))
  );
}
function shared({ text, own, said: said2 }) {
  return h(
    "div",
    { class: "wst-code", key: "code", role: "dialog", "aria-label": phrase("share-code") },
    h("p", {}, phrases("share-how", { call: h("code", {}, 'open_code("…")') })),
    h("textarea", { readonly: "", rows: 4, spellcheck: "false", "aria-label": phrase("share-code") }, text),
    own.length > 0 && h("p", {}, phrase("own-code", { names: own.join(", ") })),
    h("div", {}, h("button", { type: "button", class: "wst-btn go", "data-ui": "copy" }, phrase("copy")), h("button", { type: "button", class: "wst-btn", "data-ui": "share" }, phrase("close")), h("span", { role: "status" }, said2))
  );
}
function help(view) {
  const list = (rows2, keys) => h("dl", {}, rows2.map(([name, text]) => [h("dt", { key: name }, keys ? name.split(" ").map((key) => h("kbd", {}, key)) : name), h("dd", { key: `${name} is` }, text)]));
  const marks = [[phrase("mark-message"), C(0, 0, 11, "f-snd")], [phrase("mark-permission"), P("M0 -13L13 0L0 13L-13 0z", "f-flow")], [phrase("mark-acknowledgement"), P("M-11 -11L13 0L-11 11z", "f-alt")], [phrase("mark-write"), R(-8, -8, 16, 16, "f-snd", { rx: 3 })], [phrase("held"), [C(0, 0, 8, "f-snd"), C(0, 0, 13, "ring")]], [phrase("in-flight"), C(0, 0, 8, "f-panel k-snd w3")], [phrase("mark-received"), C(0, 0, 8, "f-snd")], [phrase("mark-given-up"), P("M-6 -6l12 12m0 -12l-12 12", "thin")]];
  let x = 18;
  return h(
    "div",
    { class: "wst-help", key: "help", role: "dialog", "aria-label": phrase("help"), tabindex: -1 },
    h("h3", {}, phrase("help-head")),
    h(
      "div",
      { class: "cols" },
      list([[phrase("help-knob"), phrase("help-knob-is")], [phrase("help-plus"), phrase("help-plus-is")], [phrase("help-frame"), phrase("help-frame-is")], [phrase("help-handle"), phrase("help-handle-is")], [phrase("help-node"), phrase("help-node-is")], [phrase("help-timeline"), phrase("help-timeline-is")]], false),
      list([[phrase("key-space"), phrase("key-space-is")], ["← →", phrase("key-arrows-is")], ["n", phrase("key-n-is")], [phrase("key-home"), phrase("key-home-is")], ["Tab", phrase("key-tab-is")], [phrase("key-turn"), phrase("key-turn-is")], ["1 – 4", phrase("key-numbers-is")], ["a p", phrase("key-a-is")], ["b", phrase("key-b-is")], ["? Esc", phrase("key-help-is")]], true)
    ),
    h("svg", { width: "100%", height: 40, viewBox: `0 0 ${view.W - 48} 40`, role: "img", "aria-label": phrase("the-marks") }, marks.map(([name, mark]) => {
      const here = x;
      x += 40 + textWidth(name, 12);
      return G({ key: name }, G({ style: at(here, 20) }, mark), T(here + 19, 24, name, "s12"));
    })),
    h("button", { type: "button", class: "wst-btn", "data-ui": "help" }, phrase("close"))
  );
}

// transport.ts
var ICONS = { back: "M4 3h2v10H4zM13 3v10L6.5 8z", play: "M4 2.5v11L13.5 8z", pause: "M4 3h3v10H4zM9 3h3v10H9z", on: "M10 3h2v10h-2zM3 3v10l6.5-5z", mark: "M2 3v10l5-5zM11.5 3.2L16 8l-4.5 4.8L7 8z" };
var control = (ui, icon, label, off = false) => h("button", { key: ui, type: "button", class: `wst-b ${ui}`, "data-ui": ui, "aria-label": label, title: label, "aria-disabled": off ? "true" : null }, h("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, h("path", { d: ICONS[icon] })));
function transport(time) {
  const { playing, slow, t, row: row2 } = time, rows2 = rowsOf(time);
  return h(
    "div",
    { class: "wst-time", key: "time", role: "toolbar", "aria-label": phrase("time") },
    control("back", "back", phrase("back"), time.step <= 0),
    control("play", playing ? "pause" : "play", phrase(playing ? "pause" : "play")),
    control("on", "on", phrase("on")),
    control("mark", "mark", phrase("next-interesting")),
    time.chip && h("button", { key: "chip", type: "button", class: "wst-chip", "data-ui": "fold", "aria-expanded": String(!time.folded), title: phrase(time.folded ? "unfold" : "fold") }, `${time.folded ? "▸" : "▾"} ${time.chip}`),
    Math.max(...rows2.values()) >= ROWS && branchList(time),
    h("div", { class: "wst-line", key: "line" }, timeline(time, rows2)),
    h("div", { class: "wst-now", key: "now", title: time.untimed ? phrase("no-times") : null, style: `min-width:${Math.max(62, widest(time.ends))}px` }, ms(Math.max(0, t - time.zero), time.untimed), h("small", {}, playing && slow ? phrase("slow-motion") : row2 !== void 0 ? phrase("row", { number: row2 }) : time.number < 1 ? phrase("set-up") : phrase("step", { number: time.number })))
  );
}
var timeToX = (time, t) => 8 + (time.width - 16) * clamp((t - time.from) / Math.max(time.ends - time.from, 1e-9), 0, 1);
var xToTime = (time, x) => time.from + (time.ends - time.from) * clamp((x - 8) / (time.width - 16), 0, 1);
var ROWS = 3;
var LEAST_HIT = 10;
function origin(runs, branch) {
  let found = branch;
  while (found.parent !== null && found.keeps >= branch.keeps) found = runs.get(found.parent).branch;
  return found === branch ? null : found;
}
function rowsOf(time) {
  const found = /* @__PURE__ */ new Map(), taken = [];
  for (const [id, { branch, ends }] of time.runs) {
    const from = timeToX(time, branch.at), to = Math.max(timeToX(time, ends), from + LEAST_HIT);
    let row2 = found.get(origin(time.runs, branch)?.id ?? id) ?? 0;
    while (taken.some(([there, a, b]) => there === row2 && a < to && b > from + 1)) row2++;
    found.set(id, row2);
    taken.push([row2, from, to]);
  }
  return found;
}
var nameOf = ({ id, label }) => id ? phrase("branch-named", { number: id, act: label }) : label;
function branchList({ runs, run }) {
  return h("select", { key: "branches", class: "wst-branches", "data-ui": "branches", "aria-label": phrase("branches"), value: run.branch.id }, [...runs.values()].map(({ branch }) => h("option", { key: branch.id, value: branch.id, selected: branch === run.branch }, `${branch.id}: ${branch.label}`)));
}
function timeline(time, rows2) {
  const { runs, run, curtain, uid, width } = time, X = (t) => timeToX(time, t), kids = [], last = Math.max(...rows2.values());
  const apart = Math.min(16, 25 / Math.max(1, last)), hit2 = Math.max(LEAST_HIT, apart), Y = (id) => (last ? 13 : 22) + rows2.get(id) * apart;
  const way = [];
  for (let one = run.branch; one; one = origin(runs, one)) way.unshift(one);
  for (const { branch, ends } of runs.values()) {
    const y = Y(branch.id), parent = Y(origin(runs, branch)?.id ?? branch.id), x = X(branch.at), name = nameOf(branch), place = way.indexOf(branch);
    const bend = parent === y ? "" : `M${x} ${parent}C${x + 5} ${parent} ${x + 2} ${y} ${x + 9} ${y}`, bar = `M${bend ? x + 9 : x} ${y}H`;
    const drawn = (d, theirs2) => [P(d, "f-none round k-line2 w2"), place >= 0 && P(theirs2, "f-none round k-snd w4")];
    if (bend) kids.push(G({ key: `bend ${branch.id}` }, drawn(bend, bend)));
    kids.push(G(
      { key: `branch ${branch.id}`, class: "hit", "data-branch": branch.id, tabindex: runs.size > 1 ? 0 : null, role: runs.size > 1 ? "button" : null, "aria-label": name, "aria-pressed": runs.size > 1 ? String(branch === run.branch) : null },
      h("title", {}, name),
      drawn(`${bar}${X(ends)}`, `${bar}${X(way[place + 1]?.at ?? ends)}`),
      R(x, y - hit2 / 2, Math.max(hit2, X(ends) - x), hit2, "f-none branch", { rx: 5 }),
      branch.acts.map((act, i) => R(X(act.t) - 3.5, y - 3.5, 7, 7, place >= 0 ? "f-rcv" : "f-line2", { key: `act ${i}`, rx: 1.5 }))
    ));
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

// stage.ts
var PACE = 1 / 120;
var LEAST = 620;
var ROW2 = 36;
var OPENED = ".wst-sheet, .wst-help, .wst-code";
var PATIENCE = 1e4;
var Stage = class {
  constructor(parent, scene, options = {}) {
    this.scene = scene;
    this.options = options;
    this.runs = resolve(scene);
    this.run = this.runs.get(options.branch ?? 0) ?? this.runs.get(0);
    this.rule = scene.rule ?? null;
    this.asks();
    this.el.className = "wst";
    this.el.tabIndex = 0;
    this.el.setAttribute("role", "region");
    this.name();
    this.theme();
    parent.replaceChildren(this.el);
    this.listen();
    this.shown = this.el.clientWidth || 826;
    this.W = options.drawn ?? Math.max(LEAST, this.shown);
    this.set(Math.min(options.step ?? scene.begin ?? 0, this.run.steps.length - 1));
    this.watch();
    this.measure();
  }
  scene;
  options;
  el = document.createElement("div");
  runs;
  run;
  i = 0;
  t = 0;
  /** how wide the picture is drawn, and how wide it is shown: below LEAST it is scaled down */
  W = 826;
  shown = 826;
  line = 400;
  playing = false;
  slow = false;
  waited = 0;
  last = 0;
  loop = 0;
  tab = null;
  helps = false;
  preview = {};
  hover = null;
  field = null;
  who = "";
  scrolled = 0;
  rule = null;
  passed = false;
  picked = null;
  answer = null;
  verdict = null;
  skipped = false;
  urged = false;
  folded = true;
  hasRow = false;
  drag = null;
  dragged = false;
  note = null;
  tried = null;
  awaited = 0;
  /** an act has been sent, and nothing has come of it yet */
  awaits = false;
  /** what has been sent last */
  sent = "";
  /** what had the focus before something was opened that has it now */
  left = null;
  code = null;
  typed = {};
  wrong = null;
  told = "";
  /** Each widget of a page loads this module for itself: a count would begin anew. */
  uid = `wst${Math.random().toString(36).slice(2)}-`;
  ends = [];
  calm = matchMedia("(prefers-reduced-motion: reduce)");
  /** Shows another scene, or the same as it is by now; tabs, keys and the place of the hand stay. */
  load(scene, step, branch) {
    const before = JSON.stringify(this.scene.question);
    this.scene = scene;
    this.runs = resolve(scene);
    this.preview = this.typed = {};
    this.rule = scene.rule ?? null;
    if (JSON.stringify(scene.question) !== before) {
      this.answer = this.verdict = this.picked = null;
      this.skipped = this.passed = false;
      this.asks();
    }
    this.name();
    clearTimeout(this.awaited);
    this.awaits = false;
    this.go(step, branch);
  }
  asks() {
    const question = this.scene.question;
    if (question && question.answer != null) this.settle(question.answer, question.verdict ?? null);
  }
  name() {
    this.el.setAttribute("aria-label", phrase("figure", { title: this.scene.title }));
  }
  destroy() {
    cancelAnimationFrame(this.loop);
    clearTimeout(this.awaited);
    this.ends.forEach((end) => end());
    this.el.remove();
  }
  // -- time ---------------------------------------------------------------------------------
  get step() {
    return this.i;
  }
  get branch() {
    return this.run.branch.id;
  }
  get plays() {
    return this.playing;
  }
  /** whether the step shown is an interesting one */
  get marked() {
    return Boolean(this.run.steps[this.i]?.mark);
  }
  /** whether nothing more can be seen: the end, or the curtain */
  get ended() {
    return this.t >= Math.min(this.run.ends, this.curtain) - 1e-6 || this.i >= this.lastSeen;
  }
  /** Where the clock counts from: a lesson's begin. Steps that are cut out of a run have its own time. */
  get zero() {
    return this.first ? this.from : 0;
  }
  get from() {
    return this.folded ? this.run.steps[this.first]?.t ?? 0 : 0;
  }
  get first() {
    return this.folded ? Math.min(this.scene.begin ?? 0, this.run.steps.length - 1) : 0;
  }
  get asking() {
    return Boolean(this.scene.question) && this.answer === null && !this.skipped && this.branch === 0;
  }
  get most() {
    return Math.max(...[...this.runs.values()].map((run) => run.ends));
  }
  /** Nothing from here on may be seen before the answer. */
  get curtain() {
    if (!this.asking) return Infinity;
    const { decides } = this.scene.question, steps = this.run.steps;
    return decides < steps.length ? steps[decides].t - 1e-3 : steps[steps.length - 1].t;
  }
  get lastSeen() {
    return this.asking ? Math.min(this.scene.question.decides, this.run.steps.length) - 1 : this.run.steps.length - 1;
  }
  /** Shows a step; the time is the step's own. */
  set(step, quiet = false) {
    this.i = clamp(step, 0, Math.max(0, this.lastSeen));
    if (this.i < this.first) this.folded = false;
    this.t = this.run.steps[this.i]?.t ?? 0;
    this.moved(quiet);
  }
  /** Shows a step of a branch, as Python asks for it. */
  go(step, branch) {
    this.playing = false;
    this.run = this.runs.get(branch) ?? this.runs.get(0);
    this.set(step, true);
  }
  /** Shows a time: the last step that is not after it, and what is on the way. */
  seek(t, ends = this.run.ends) {
    const end = Math.min(ends, this.curtain);
    this.urged = t > end + 1e-6 && this.asking;
    this.t = clamp(t, this.from, end);
    this.i = clamp(stepAt(this.run.steps, this.t), 0, Math.max(0, this.lastSeen));
    this.moved();
  }
  moved(quiet = false) {
    this.code = null;
    const question = this.scene.question;
    if (question && this.branch === 0 && this.i >= question.decides) this.passed = true;
    this.draw();
    if (!quiet) this.options.onStep?.(this.i, this.branch);
  }
  next(by) {
    this.playing = false;
    this.note = null;
    const steps = this.run.steps;
    let i = this.i + by;
    while (i > this.first && i < steps.length && !steps[i].sentence) i += by;
    if (i > this.lastSeen) {
      this.urged = this.asking;
      i = this.asking ? this.i : this.lastSeen;
    }
    this.set(Math.max(i, this.first));
  }
  nextMark() {
    this.playing = false;
    let i = this.i + 1;
    while (i < this.run.steps.length && !this.run.steps[i].mark) i++;
    if (i > this.lastSeen) this.urged = this.asking;
    this.set(i);
  }
  play(on = !this.playing) {
    if (on && this.t >= Math.min(this.run.ends, this.curtain) - 1e-6) {
      if (this.asking) {
        this.urged = true;
        this.draw();
        return;
      }
      this.set(this.first);
    }
    this.playing = on;
    this.note = null;
    this.last = performance.now();
    this.waited = 0;
    cancelAnimationFrame(this.loop);
    if (on) this.loop = requestAnimationFrame((now) => this.tick(now));
    this.draw();
  }
  tick(now) {
    if (this.playing && !this.el.isConnected) {
      this.playing = false;
      this.draw();
    }
    if (!this.playing) return;
    const passed = Math.min(50, Math.max(0, now - this.last)), steps = this.run.steps;
    this.last = now;
    if (this.calm.matches) {
      this.waited += passed;
      if (this.waited > 900) {
        this.waited = 0;
        const before = this.i;
        this.next(1);
        this.playing = this.i !== before && !this.stopsAt(before, this.i);
        this.draw();
      }
    } else {
      const near = this.near(), following = steps[this.i + 1];
      this.slow = near;
      let pace = (this.scene.pace ?? PACE) * passed;
      if (near) pace *= 0.38;
      else if (following && following.t - this.t > 9 && !flying(this.run, this.t, () => 0).length) pace *= 4;
      const before = this.i, t = this.t + pace, parts = this.rule ? steps.findIndex((_, i) => i > before && steps[i].t <= t && differs(this.run.states[i], this.rule) !== null) : -1;
      if (parts > 0 && differs(this.run.states[before], this.rule) === null) {
        this.playing = false;
        this.set(parts);
      } else this.seek(t);
      if (this.t >= Math.min(this.run.ends, this.curtain) - 1e-6) {
        this.playing = false;
        this.urged = this.asking;
        this.draw();
      }
    }
    if (this.playing) this.loop = requestAnimationFrame((time) => this.tick(time));
  }
  stopsAt(before, now) {
    return this.rule !== null && differs(this.run.states[before], this.rule) === null && differs(this.run.states[now], this.rule) !== null;
  }
  /** Whether something interesting is near: 1.2 ms before or after it play is slow. */
  near() {
    for (let i = stepAt(this.run.steps, this.t - 1.2) + 1; i < this.run.steps.length && this.run.steps[i].t < this.t + 1.2; i++) if (this.run.steps[i].mark) return true;
    return false;
  }
  /** Shows the same time in another branch; of one that has ended before, its last step. */
  show(branch) {
    this.run = this.runs.get(branch) ?? this.run;
    this.seek(this.t, this.most);
  }
  // -- question and acts ----------------------------------------------------------------------
  settle(answer, verdict) {
    this.answer = answer;
    this.verdict = verdict;
    this.passed = false;
    this.rule = verdict?.rule && this.scene.rules?.some((rule) => rule.id === verdict.rule) ? verdict.rule : null;
  }
  commit(skip = false) {
    const question = this.scene.question;
    if (!question || !skip && (this.picked === null || this.picked === "")) return;
    this.urged = false;
    if (skip) this.skipped = true;
    else this.settle(this.picked, question.verdicts?.[String(this.picked)] ?? question.verdicts?.["*"] ?? null);
    this.send(skip ? "skip" : "commit", skip ? null : this.picked);
    if (!skip && !this.calm.matches && (question.verdicts || !this.options.send)) this.play(true);
    this.draw();
    this.el.focus({ preventScroll: true });
  }
  /** Why nothing can be done now; null: it can. */
  barred(act) {
    if (!this.options.send) return phrase("no-kernel");
    if (this.asking && !this.scene.question.acts?.includes(act)) return phrase("answer-first");
    return null;
  }
  fire(id, value, element) {
    const act = this.scene.acts?.find((one) => one.id === id), why = this.run.states[this.i]?.off?.[id] ?? this.barred(id);
    delete this.preview[id];
    this.playing = false;
    this.tried = element;
    if (why) {
      this.say(why, element);
      return;
    }
    this.note = null;
    this.send(id, act?.kind === "toggle" ? !(this.run.states[this.i]?.on?.[id] ?? false) : value);
  }
  send(act, value) {
    if (!this.options.send) return;
    const message = { act, value, t: this.t, branch: this.branch, step: this.i }, sent = JSON.stringify(message);
    if (this.awaits && sent === this.sent) return;
    this.sent = sent;
    clearTimeout(this.awaited);
    this.awaits = true;
    this.draw();
    this.awaited = setTimeout(() => this.unanswered(), PATIENCE);
    this.options.send(message);
  }
  /** Nothing comes of what was sent. */
  unanswered() {
    clearTimeout(this.awaited);
    this.say(phrase("no-answer"), this.tried);
  }
  /** Shows a note in the row of the list of acts, below an element, or over the picture, until the learner goes on. */
  say(text, element = null) {
    const box = (element?.isConnected ? element : this.el).getBoundingClientRect(), own = this.el.getBoundingClientRect();
    this.note = { text, row: element?.closest(".wst-acts .act")?.dataset.row ?? null, x: box.left + box.width / 2 - own.left, y: element?.isConnected ? Math.max(60, box.bottom - own.top + 8) : 70 };
    this.awaits = false;
    this.draw();
  }
  /** A note stands where it was said, as far as the whole of it is seen there. */
  placeNote() {
    if (!this.note) return;
    this.el.querySelector('.wst-acts [role="alert"]')?.scrollIntoView({ block: "nearest" });
    const shown = this.el.querySelector(".wst-note");
    if (!shown) return;
    const most = (all, own) => Math.max(8, all - own - 8);
    shown.style.left = `${clamp(this.note.x - shown.offsetWidth / 2, 8, most(this.el.clientWidth, shown.offsetWidth))}px`;
    shown.style.top = `${clamp(this.note.y, 8, most(this.el.clientHeight, shown.offsetHeight))}px`;
  }
  /** What Python answers. */
  reply(reply) {
    clearTimeout(this.awaited);
    this.awaits = false;
    if (reply.type === "illegal" && reply.act === "begin") {
      this.wrong = reply.why;
      this.draw();
      return;
    }
    if (reply.type === "illegal") {
      this.say(reply.why, this.tried);
      return;
    }
    if (reply.type === "done") {
      this.draw();
      return;
    }
    if (reply.type === "code") {
      this.code = { text: reply.text, own: reply.own, said: "" };
      this.helps = false;
      this.draw();
      this.enter(this.el.querySelector(".wst-code textarea"));
      return;
    }
    grow(this.scene, reply);
    this.runs = resolve(this.scene);
    this.run = this.runs.get(reply.type === "branch" ? reply.branch.id : this.branch);
    if (reply.type === "verdict" && !this.skipped) this.settle(this.answer, reply.verdict);
    if (reply.type === "branch" && this.tab === ACTS) this.tab = null;
    if (reply.type === "branch") {
      this.t = Math.max(this.t, reply.branch.at);
      this.i = Math.max(stepAt(this.run.steps, this.t), reply.branch.keeps - 1, 0);
      this.options.onStep?.(this.i, this.branch);
    }
    if (this.calm.matches) {
      if (reply.type === "branch") this.set(Math.min(reply.branch.keeps, this.run.steps.length - 1));
      else this.draw();
    } else this.play(!this.skipped || reply.type === "branch");
  }
  /** The scene has got branches since it was looked at last. */
  grown() {
    this.runs = resolve(this.scene);
    this.run = this.runs.get(this.branch);
    this.draw();
  }
  turn(id, value) {
    const act = this.scene.acts?.find((one) => one.id === id);
    if (act) this.preview[id] = clamp(Math.round(value), act.min ?? 0, topOf(act, standsAt(this.view(), act)));
    this.playing = false;
    this.draw();
  }
  release(id, element) {
    const value = this.preview[id];
    if (value === void 0) return;
    this.fire(id, value, element);
  }
  // -- input --------------------------------------------------------------------------------
  listen() {
    const el = this.el, on = (type, act) => el.addEventListener(type, act);
    on("click", (event) => this.click(event.target));
    on("pointerdown", (event) => this.press(event));
    on("pointermove", (event) => this.pull(event));
    on("pointerup", (event) => this.letGo(event));
    on("pointercancel", () => {
      this.drag = null;
      this.preview = {};
      this.draw();
    });
    on("pointerover", (event) => this.point(event.target));
    on("focusin", (event) => this.point(event.target));
    on("focusout", (event) => {
      const help2 = this.el.querySelector(".wst-help"), to = event.relatedTarget;
      if (this.helps && to && help2?.contains(event.target) && !help2.contains(to)) {
        this.helps = false;
        this.draw();
      }
    });
    on("keydown", (event) => this.key(event));
    on("input", (event) => {
      const input = event.target;
      if (input.dataset.ui === "branches") {
        this.show(Number(input.value));
        return;
      }
      if (input.dataset.ui === "rules") {
        this.rule = input.value;
        this.draw();
        return;
      }
      const parameter = input.getAttribute("data-value-of");
      if (parameter) {
        this.typed = { ...this.typed, [parameter]: input.value };
        this.wrong = null;
        this.draw();
      } else if (input.dataset.ui === "free") {
        this.picked = input.value === "" ? null : Number(input.value);
        this.draw();
      } else if (input.dataset.set && input.type === "number" && input.value !== "") this.turn(input.dataset.set, Number(input.value));
    });
    const themes = new MutationObserver(() => this.theme());
    themes.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "data-vscode-theme-kind", "data-wst-theme"] });
    const dark = matchMedia("(prefers-color-scheme: dark)"), follow = () => this.theme(), calm = () => this.draw();
    dark.addEventListener("change", follow);
    this.calm.addEventListener("change", calm);
    this.ends.push(() => themes.disconnect(), () => dark.removeEventListener("change", follow), () => this.calm.removeEventListener("change", calm));
  }
  /** Not the page alone changes sizes: the timeline has what the words beside it leave. */
  watch() {
    const observer = new ResizeObserver(() => this.measure());
    for (const one of [this.el, this.el.querySelector(".wst-line")]) observer.observe(one);
    this.ends.push(() => observer.disconnect());
  }
  measure() {
    const width = this.el.clientWidth;
    if (width && Math.abs(width - this.shown) > 0.5) {
      this.shown = width;
      this.W = this.options.drawn ?? Math.max(LEAST, width);
      this.draw();
    }
    const line = this.el.querySelector(".wst-line")?.clientWidth ?? 0;
    if (line && Math.abs(line - this.line) > 0.5) {
      this.line = line;
      this.draw();
    }
  }
  theme() {
    const { jpThemeLight: jupyter, vscodeThemeKind: code, wstTheme: chosen } = document.body.dataset;
    const dark = jupyter ? jupyter === "false" : code ? code === "vscode-dark" || code === "vscode-high-contrast" : matchMedia("(prefers-color-scheme: dark)").matches;
    this.el.dataset.theme = chosen ?? this.options.theme ?? (dark ? "dark" : "light");
  }
  point(target) {
    const frame = target.closest("[data-frame]")?.getAttribute("data-frame") ?? null, field = target.closest("[data-field]")?.getAttribute("data-field"), number = field == null ? null : Number(field);
    const inside = target.closest(".wst-sheet") !== null && frame === null;
    if ((inside || frame === this.hover) && number === this.field) return;
    if (!inside) this.hover = frame;
    this.field = number;
    if (!this.playing) this.draw();
  }
  click(target) {
    if (this.dragged) {
      this.dragged = false;
      return;
    }
    const ui = target.closest("[data-ui]"), act = target.closest("[data-act]"), own = target.closest("[data-do]"), branch = target.closest("[data-branch]");
    if (ui) this.ui(ui.dataset.ui, ui.dataset.arg ?? "");
    else if (own) {
      const id = own.getAttribute("data-do"), input = own.parentElement?.querySelector("[data-set]");
      this.fire(id, input ? typed(input) : own.getAttribute("data-value"), own);
    } else if (act) this.fire(act.getAttribute("data-act"), act.getAttribute("data-value"), act);
    else if (branch && this.runs.size > 1) this.show(Number(branch.getAttribute("data-branch")));
    else if (this.note) {
      this.note = null;
      this.draw();
    }
  }
  ui(what, arg) {
    this.note = null;
    const question = this.scene.question, acts = {
      back: () => this.next(-1),
      on: () => this.next(1),
      mark: () => this.nextMark(),
      play: () => this.play(),
      tab: () => {
        this.tab = this.tab === Number(arg) ? null : Number(arg);
        this.told = "";
      },
      help: () => {
        this.helps = !this.helps;
        this.code = null;
      },
      theme: () => {
        document.body.dataset.wstTheme = this.el.dataset.theme === "dark" ? "light" : "dark";
        this.theme();
      },
      fold: () => {
        this.folded = !this.folded;
        if (this.folded && this.i < this.first) this.set(this.first);
      },
      branch: () => this.show(Number(arg)),
      step: () => {
        this.playing = false;
        this.set(Number(arg));
      },
      who: () => {
        this.who = arg;
        this.told = "";
      },
      pick: () => {
        this.picked = question?.options.find((one) => String(one) === arg) ?? arg;
      },
      commit: () => this.commit(),
      skip: () => this.commit(true),
      again: () => {
        this.answer = null;
        this.picked = null;
        this.verdict = null;
        this.skipped = false;
        this.passed = false;
        this.rule = null;
        this.playing = false;
        if (this.i > this.lastSeen) this.set(this.lastSeen);
      },
      rule: () => {
        this.rule = arg || null;
      },
      set: () => {
        this.tab = ACTS;
      },
      share: () => {
        this.playing = false;
        this.tried = this.el.querySelector('[data-ui="share"]');
        if (this.code) this.code = null;
        else this.send("share", null);
      },
      copy: () => {
        void this.copy();
      },
      begin: () => this.begin(arg === "given")
    };
    acts[what]?.();
    this.draw();
    if (what === "set") {
      const field = this.el.querySelector(`[data-set="${CSS.escape(arg)}"]`);
      this.enter(field);
      field?.select();
    }
    if (what === "tab") this.enter(this.el.querySelector(".wst-sheet"));
    if (what === "help") this.enter(this.el.querySelector(".wst-help"));
  }
  /** What was opened has the focus; where it is closed with it, `draw` gives the focus back. */
  enter(opened) {
    const now = document.activeElement;
    if (!opened || !now || opened.contains(now)) return;
    if (this.el.contains(now) && !now.closest(OPENED)) this.left = now;
    opened.focus({ preventScroll: true });
  }
  /** Asks for the run of the values in the form, or for the run as given. */
  begin(given = false) {
    const all = this.scene.parameters ?? [], values = given ? all.map((one) => [one.id, one.given]) : wanted(all, this.typed);
    this.wrong = null;
    if (given) this.typed = {};
    this.playing = false;
    if (given ? all.some((one) => one.value !== one.given) : values.length) this.send("begin", Object.fromEntries(values));
    this.draw();
  }
  async copy() {
    const field = this.el.querySelector(".wst-code textarea");
    if (!field || !this.code) return;
    field.select();
    let said2 = phrase("copied");
    try {
      await navigator.clipboard.writeText(field.value);
    } catch {
      if (!document.execCommand("copy")) said2 = phrase("selected");
    }
    if (this.code) this.code = { ...this.code, said: said2 };
    this.draw();
    this.el.querySelector('[data-ui="copy"]')?.focus({ preventScroll: true });
  }
  press(event) {
    const target = event.target, knob2 = target.closest("[data-knob]"), time = target.closest("[data-time]"), branch = target.closest("[data-branch]")?.getAttribute("data-branch");
    this.dragged = false;
    if (knob2) {
      const act = this.scene.acts?.find((one) => one.id === knob2.dataset.knob);
      if (!act) return;
      this.drag = { kind: "knob", act, value: this.preview[act.id] ?? Number(knob2.dataset.now), x: event.clientX, y: event.clientY, cell: Number(knob2.dataset.cell ?? 0), down: knob2.dataset.pull === "down" };
      knob2.focus({ preventScroll: true });
      event.preventDefault();
    } else if (time && (!branch || branch === String(this.branch))) {
      this.drag = { kind: "time", left: time.getBoundingClientRect().left };
      this.playing = false;
      this.seek(xToTime(this.time(), event.clientX - this.drag.left));
    } else return;
    this.el.setPointerCapture(event.pointerId);
  }
  pull(event) {
    const drag = this.drag;
    if (!drag) return;
    this.dragged = true;
    if (drag.kind === "time") {
      this.seek(xToTime(this.time(), event.clientX - drag.left));
      return;
    }
    const { act, value, x, y, cell, down } = drag, range = topOf(act, standsAt(this.view(), act)) - (act.min ?? 0);
    const by = cell ? (event.clientX - x) * this.W / this.shown / cell : down ? (event.clientY - y) / 3 : (y - event.clientY + (event.clientX - x)) / 11 * (range > 20 ? range / 16 : 1);
    this.turn(act.id, value + by);
  }
  letGo(event) {
    const drag = this.drag;
    this.drag = null;
    if (!drag) return;
    if (this.el.hasPointerCapture(event.pointerId)) this.el.releasePointerCapture(event.pointerId);
    if (drag.kind === "knob") this.release(drag.act.id, this.el.querySelector(`[data-knob="${CSS.escape(drag.act.id)}"]`));
    setTimeout(() => {
      this.dragged = false;
    }, 0);
  }
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const target = event.target, { key } = event, take = () => {
      event.preventDefault();
      event.stopPropagation();
    };
    if (target.tagName === "TEXTAREA" && key !== "Escape") {
      event.stopPropagation();
      return;
    }
    if (target.tagName === "SELECT" || target.tagName === "INPUT") {
      event.stopPropagation();
      if (key === "Escape") {
        this.tab = null;
        this.draw();
        if (target.isConnected) this.el.focus({ preventScroll: true });
      }
      if (target.tagName === "SELECT") return;
      if (key === "Enter") {
        if (target.hasAttribute("data-value-of")) this.begin();
        else if (target.dataset.set) this.fire(target.dataset.set, typed(target), target);
        else this.commit();
      }
      return;
    }
    const knob2 = target.dataset?.knob;
    if (knob2 && ["ArrowUp", "ArrowDown", "Enter"].includes(key)) {
      take();
      if (key === "Enter") this.release(knob2, target);
      else this.turn(knob2, (this.preview[knob2] ?? Number(target.dataset.now)) + (key === "ArrowUp" ? 1 : -1));
      return;
    }
    if (key === "Enter" || key === " ") {
      if (target.tagName === "BUTTON") {
        event.stopPropagation();
        return;
      }
      if (target.dataset?.act || target.dataset?.branch) {
        take();
        this.click(target);
        return;
      }
    }
    const ids = [...this.runs.keys()], acts = {
      ArrowRight: () => this.next(1),
      ArrowLeft: () => this.next(-1),
      " ": () => this.play(),
      n: () => this.nextMark(),
      Home: () => {
        this.playing = false;
        this.set(this.first);
      },
      End: () => {
        this.playing = false;
        this.set(this.lastSeen);
      },
      "?": () => this.ui("help", ""),
      a: () => this.ui("tab", "4"),
      p: () => {
        if (this.scene.parameters) this.ui("tab", "5");
      },
      b: () => this.show(ids[(ids.indexOf(this.branch) + 1) % ids.length]),
      Escape: () => {
        this.drag = null;
        this.preview = {};
        this.helps = false;
        this.tab = null;
        this.note = null;
        this.code = null;
        this.draw();
      },
      1: () => this.ui("tab", "0"),
      2: () => this.ui("tab", "1"),
      3: () => this.ui("tab", "2"),
      4: () => this.ui("tab", "3")
    };
    const keyed = this.scene.acts?.find((act) => act.key === key);
    if (keyed) {
      take();
      this.fire(keyed.id, null, null);
      return;
    }
    if (!acts[key]) return;
    take();
    acts[key]();
  }
  // -- drawing --------------------------------------------------------------------------------
  time() {
    const { run, runs, t, i, from, curtain, playing, slow, line, uid, folded } = this, begins = this.scene.begin ?? 0;
    return { run, runs, t, step: i - this.first, row: run.steps[i]?.row, number: i + (this.scene.first ?? 1), zero: this.zero, untimed: this.scene.untimed, from, ends: this.most, curtain, playing, slow, width: line, uid, folded, chip: begins > 0 ? this.scene.set_up ?? phrase("set-up-steps", { steps: begins }) : "" };
  }
  view() {
    const W = this.W, H = 392 + Math.round(clamp((W - 1e3) * 0.4, 0, 120)) - (this.hasRow ? ROW2 : 0);
    const view = { scene: this.scene, run: this.run, state: this.run.states[this.i] ?? {}, t: this.t, flying: [], W, H, preview: this.preview, hover: this.hover, rule: this.rule, asking: this.asking, labels: new Labels(W, H), uid: this.uid, small: W < 720 };
    view.flying = flying(this.run, this.t, ({ link: link2 }) => FRAME_GAP / wireLength(view, link2));
    return view;
  }
  /** The picture, and the acts that it has no room for: once they have a row, it stays, and the picture is as much lower. */
  pictured() {
    const view = this.view(), drawn = picture(view), row2 = this.options.send ? actRow(view, drawn, this.shown) : [];
    if (!row2.length || this.hasRow) return [view, drawn, row2];
    this.hasRow = true;
    return this.pictured();
  }
  /** The last step up to now that has something. */
  latest(has) {
    for (let i = this.i; i >= 0; i--) if (has(this.run.steps[i])) return this.run.steps[i];
    return void 0;
  }
  draw() {
    const { scene, playing } = this, follows = this.follow(), [view, drawn, row2] = this.pictured(), said2 = this.latest((step) => step.sentence), words = this.latest((step) => step.in_words)?.in_words ?? said2?.sentence ?? "", formula = said2?.formula;
    const others = scene.parameters?.filter((one) => one.value !== one.given).length ?? 0;
    this.el.classList.toggle("still", this.calm.matches || this.drag?.kind === "time");
    const clause = formula?.clause && (formula.href?.startsWith("https://") ? h("a", { href: formula.href, target: "_blank", rel: "noopener noreferrer" }, formula.clause) : formula.clause);
    const tree = [
      strip({ scene, state: view.state, branch: this.run.branch, question: scene.question ?? null, picked: this.picked, answer: this.answer, skipped: this.skipped, verdict: this.verdict, shown: this.passed, playing, rule: this.rule, urged: this.urged }),
      h("svg", { key: "picture", class: "wst-picture", viewBox: `0 0 ${view.W} ${view.H}`, width: this.shown, height: Math.round(view.H * this.shown / view.W), role: "group", "aria-label": phrase("the-picture", { title: scene.title }) }, patterns(this.uid), drawn),
      ...this.hasRow ? [h("div", { key: "actrow", class: "wst-actrow", style: `height:${ROW2}px`, role: "group", "aria-label": TABS[ACTS] }, row2)] : [],
      h(
        "div",
        { key: "say", class: `wst-say ${(said2?.sentence?.length ?? 0) * (formula ? 1.75 : 1) > view.W / 5.2 ? "long" : ""}` },
        h("div", { class: "wst-sentence", "aria-live": playing ? "off" : "polite" }, said2?.sentence ?? ""),
        formula && h("div", { class: "wst-formula" }, formula.text, (formula.note || clause) && h("small", { title: formula.note ?? null }, formula.note, formula.note && clause && " · ", clause))
      ),
      transport(this.time()),
      h(
        "div",
        { key: "tabs", class: "wst-tabs" },
        TABS.map((name, n) => (n < 5 || scene.parameters) && h("button", { key: n, type: "button", "data-ui": "tab", "data-arg": n, title: n === 5 && others ? phrase("not-as-given", { count: others }) : null, "aria-expanded": String(this.tab === n) }, n < 5 || !others ? name : `${name} (${others})`)),
        h("span", { class: "space" }),
        scene.shares && this.options.send && h("button", { key: "share", type: "button", "data-ui": "share", title: phrase("share-why"), "aria-expanded": String(this.code !== null) }, phrase("share")),
        h("button", { key: "help", type: "button", "data-ui": "help", "aria-label": phrase("help-keys"), "aria-expanded": String(this.helps) }, phrase("help-button")),
        h("button", { key: "theme", type: "button", "data-ui": "theme", "aria-label": phrase("light-or-dark") }, "◐")
      )
    ];
    if (this.tab !== null) tree.push(h("div", { key: `sheet ${this.tab}`, class: "wst-sheet", role: "region", "aria-label": TABS[this.tab], tabindex: 0 }, this.sheet(view)));
    if (this.helps) tree.push(help(view));
    if (this.code) tree.push(shared(this.code));
    if (this.note && !(this.tab === ACTS && this.note.row)) tree.push(h("div", { key: "note", class: "wst-note", role: "alert" }, this.note.text));
    tree.push(h("p", { key: "words", class: "wst-words" }, words));
    this.el.classList.toggle("tall", isTall(scene, view.W));
    this.el.classList.toggle("busy", this.awaits);
    this.el.setAttribute("aria-busy", String(this.awaits));
    const held = document.hasFocus() && this.el.contains(document.activeElement) ? document.activeElement : null;
    patch(this.el, tree);
    this.placeNote();
    if (held && document.activeElement !== held) (held.isConnected ? held : this.left?.isConnected ? this.left : this.el).focus({ preventScroll: true });
    if (this.tab === null && !this.helps && !this.code) this.left = null;
    this.scroll(follows);
  }
  sheet(view) {
    const { tab, scene, run } = this;
    if (tab === 0) return sequence(view, this.zero);
    if (tab === 1) {
      const shown = run.frames.find((frame) => frame.id === (this.hover ?? run.steps[this.i]?.frame)) ?? view.flying[view.flying.length - 1]?.frame ?? [...run.frames].reverse().find((frame) => frame.path[0][0] <= this.t);
      return octets(shown, this.field);
    }
    if (tab === 2) return log(run.steps, logLines(run.steps, this.curtain, this.who), this.i, this.who, this.scrolled, this.zero, this.scene.untimed);
    if (tab === 3) return counters(scene, view.state.counters ?? {});
    if (tab === 5) return form(scene.parameters ?? [], this.typed, this.wrong);
    return actList(view, this.options.send && !this.asking ? null : this.barred(""), this.note);
  }
  /** The log keeps the line of the step in sight, once for each step; scrolling is the learner's. */
  follow() {
    const key = `${this.tab} ${this.branch} ${this.i} ${this.who}`;
    if (this.tab !== 2) this.scrolled = 0;
    if (this.tab !== 2 || key === this.told) return false;
    this.told = key;
    const top = rowOf(logLines(this.run.steps, this.curtain, this.who), this.i);
    if (top >= this.scrolled && top <= this.scrolled + 170) return false;
    this.scrolled = Math.max(0, top - 90);
    return true;
  }
  /** What is in the page is what the log shows; where it stands is asked of the page only after it was moved. */
  scroll(to) {
    const sheet = this.tab === 2 ? this.el.querySelector(".wst-sheet") : null;
    if (!sheet) return;
    sheet.onscroll ??= () => {
      if (Math.abs(sheet.scrollTop - this.scrolled) > 40) {
        this.scrolled = sheet.scrollTop;
        this.draw();
      }
    };
    if (to) sheet.scrollTop = this.scrolled;
  }
};
var typed = (input) => input.type !== "number" ? input.value : input.value === "" ? null : Number(input.value);
async function unpack(gzip) {
  const stream = new Blob([gzip]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}
function grow(scene, reply) {
  const branches = reply.type === "branch" ? [reply.branch] : reply.type === "verdict" ? reply.branches ?? [] : [];
  for (const branch of branches) {
    const place = scene.branches.findIndex((one) => one.id === branch.id);
    if (place < 0) scene.branches.push(branch);
    else scene.branches[place] = branch;
  }
}
async function mount(el, scene, options = {}) {
  const data = typeof scene === "string" ? Uint8Array.from(atob(scene), (c) => c.charCodeAt(0)) : scene;
  return new Stage(el, "format" in data ? data : await unpack(data), options);
}
function render({ model, el }, widget) {
  const view = `v${Math.random().toString(36).slice(2)}`;
  let stage = null, opening = 0, unpacking = false, telling = false, waiting;
  const step = () => Number(model.get("cursor") ?? 0), branch = () => Number(model.get("branch") ?? 0);
  const tell = (to, of) => {
    if (unpacking || step() === to && branch() === of) return;
    telling = true;
    model.set("cursor", to);
    if (model.get("branch") !== void 0) model.set("branch", of);
    telling = false;
    waiting ??= setTimeout(save, 100);
  };
  const save = () => {
    clearTimeout(waiting);
    waiting = void 0;
    model.save_changes();
  };
  const send = (message) => {
    if (waiting !== void 0) save();
    dispatchEvent(new Event("workbench-press"));
    try {
      model.send({ ...message, view });
    } catch {
      stage?.unanswered();
    }
  };
  const open = async () => {
    const turn = ++opening, data = model.get("scene");
    if (!data || !data.byteLength) return;
    let scene;
    unpacking = true;
    try {
      scene = await widget.unpacked(data);
    } finally {
      if (turn === opening) unpacking = false;
    }
    if (turn !== opening) return;
    if (stage) {
      stage.load(scene, step(), branch());
      note();
      return;
    }
    stage = new Stage(el, scene, { step: step(), branch: branch(), send, onStep: tell });
    note();
    if (model.get("plays")) stage.play(true);
  };
  const note = () => {
    const told = String(model.get("told") ?? "");
    if (told) stage?.say(told);
  };
  const move = () => {
    if (!stage || unpacking || telling || stage.step === step() && stage.branch === branch()) return;
    stage.go(step(), branch());
  };
  widget.views.set(view, {
    answered: (reply, scene) => {
      if (reply.type !== "branch" || stage?.scene === scene) stage?.reply(reply);
    },
    grown: (scene) => {
      if (stage?.scene === scene) stage.grown();
    }
  });
  model.on("change:scene", open);
  model.on("change:cursor", move);
  model.on("change:branch", move);
  model.on("change:told", note);
  void open();
  return () => {
    clearTimeout(waiting);
    opening++;
    widget.views.delete(view);
    model.off("change:scene", open);
    model.off("change:cursor", move);
    model.off("change:branch", move);
    model.off("change:told", note);
    stage?.destroy();
  };
}
var stage_default = () => {
  let packed = null, scene;
  const widget = {
    unpacked: (gzip) => {
      if (gzip !== packed) {
        packed = gzip;
        scene = unpack(gzip);
      }
      return scene;
    },
    views: /* @__PURE__ */ new Map()
  };
  const hear = (model) => async (content, buffers) => {
    const [shown, reply] = await Promise.all([widget.unpacked(model.get("scene")), "gzip" in content ? unpack(buffers[0]) : content]);
    grow(shown, reply);
    const asked = widget.views.has(content.view ?? "") ? content.view : [...widget.views.keys()][0];
    for (const [name, view] of widget.views) if (name !== asked) view.grown(shown);
    widget.views.get(asked ?? "")?.answered(reply, shown);
  };
  return {
    initialize: ({ model }) => model.on("msg:custom", hear(model)),
    render: (shown) => render(shown, widget)
  };
};
export {
  Stage,
  stage_default as default,
  mount
};
