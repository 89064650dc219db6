// The lamps of messages: looks up what Python worked out for a step, and draws it. It knows no rule.

const LOOK = { "○": "off", "◐": "part", "●": "on" };
const WORD = { "○": "off", "◐": "in part", "●": "on" };

function render({ model, el }) {
  const root = h("section", { class: "wbl", "aria-label": "Lamps of each message", "data-lm-suppress-shortcuts": "true" });
  const said = h("p", { class: "wbl-said", role: "status" });
  const head = h("tr"), body = h("tbody");
  root.append(h("h3", {}, "How far is each message?"), said,
    h("table", { "aria-label": "Lamps" }, h("thead", {}, head), body));
  let lines = [];

  function build() {
    const doc = model.get("doc");
    if (!doc.lamps) return;
    head.replaceChildren(h("th", { scope: "col" }, "message"),
      ...doc.lamps.map((lamp) => h("th", { scope: "col" }, lamp.name, h("small", {}, lamp.meaning))));
    lines = Array.from({ length: doc.shown }, () => {
      const number = h("th", { scope: "row" });
      const cells = doc.lamps.map(() => h("td"));
      const row = h("tr", {}, number, ...cells);
      return { number, cells, row };
    });
    body.replaceChildren(...lines.map((line) => line.row));
    draw();
  }

  function draw() {
    const doc = model.get("doc"), step = model.get("cursor");
    if (!doc.lamps) return;
    const [steps, firsts, knowns, confirmed] = doc.window;
    const place = placeOf(steps, step), first = firsts[place], known = knowns[place];
    const shown = doc.messages.slice(first, Math.min(known, first + doc.shown));
    const range = known > shown.length ? ` Shown: ${shown[0].number} to ${shown[shown.length - 1].number}.` : "";
    setText(said, known ? `${confirmed[place]} of ${known} messages are confirmed.${range} A majority is ${doc.majority} of ${doc.nodes}.` : "No message is in a log yet.");
    lines.forEach((line, n) => {
      const message = shown[n];
      // A single message needs no room for seven others.
      line.row.hidden = !message && (n > 0 || known > 0);
      setText(line.number, message ? String(message.number) : "–");
      line.cells.forEach((cell, lamp) => {
        const [at, texts] = message ? message.lamps[lamp] : [[0], ["○"]];
        const text = texts[placeOf(at, step)];
        setText(cell, text);
        cell.className = LOOK[text[0]] || "";
        cell.setAttribute("aria-label", `${doc.lamps[lamp].name}: ${WORD[text[0]]} ${text.slice(1)}`.trim());
      });
    });
  }

  const theme = () => { root.dataset.theme = dark() ? "dark" : "light"; };
  const watcher = new MutationObserver(theme);
  watcher.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "class"] });
  model.on("change:doc", build);
  model.on("change:cursor", draw);
  theme();
  build();
  el.append(root);
  return () => watcher.disconnect();
}

export default { render };
