// The brake meter: looks up what Python worked out for a step, and draws it. It knows no rule.

const HATCH = {
  dot: "radial-gradient(rgb(255 255 255 / 70%) 1.2px, transparent 1.6px) 0 0 / 6px 6px",
  cross: "repeating-linear-gradient(0deg, rgb(255 255 255 / 55%) 0 1px, transparent 1px 6px), repeating-linear-gradient(90deg, rgb(255 255 255 / 55%) 0 1px, transparent 1px 6px)",
  right_diagonal_line: "repeating-linear-gradient(135deg, rgb(255 255 255 / 55%) 0 2px, transparent 2px 7px)",
  left_diagonal_line: "repeating-linear-gradient(45deg, rgb(255 255 255 / 55%) 0 2px, transparent 2px 7px)",
  diagonal_cross: "repeating-linear-gradient(45deg, rgb(255 255 255 / 55%) 0 1px, transparent 1px 6px), repeating-linear-gradient(135deg, rgb(255 255 255 / 55%) 0 1px, transparent 1px 6px)",
  horizontal_dash: "repeating-linear-gradient(90deg, rgb(255 255 255 / 60%) 0 5px, transparent 5px 10px)",
};

function words(value, most, unit) {
  if (value === null) return "not told";
  return typeof value === "string" ? value : `${value} of ${most} ${unit}`;
}

function render({ model, el }) {
  const root = h("section", { class: "wbm", "aria-label": "Which brake is on", "data-lm-suppress-shortcuts": "true" });
  const select = h("select", { "aria-label": "link of the meter" });
  const label = h("label", {}, "link ", select);
  const said = h("p", { class: "wbm-said", role: "status" });
  const body = h("tbody");
  root.append(
    h("div", { class: "wbm-head" }, h("h3", {}, "Which brake is on?"), label), said,
    h("table", { "aria-label": "Brakes of this link" }, body));
  let lines = [];

  function build() {
    const doc = model.get("doc");
    select.replaceChildren(...doc.links.map((link, n) => h("option", { value: String(n) }, link.name)));
    label.hidden = doc.links.length < 2;
    lines = doc.lines.map((line) => {
      const fill = h("div", { class: "wbm-fill" });
      fill.style.background = HATCH[line.hatch] ? `${HATCH[line.hatch]}, ${line.colour}` : line.colour;
      const value = h("td", { class: "v" }), state = h("td", { class: "s" });
      const row = h("tr", {}, h("th", { scope: "row" }, line.name), h("td", { "aria-hidden": "true" }, h("div", { class: "wbm-track" }, fill)), value, state);
      return { ...line, fill, value, state, row };
    });
    body.replaceChildren(...lines.map((line) => line.row));
    draw();
  }

  function draw() {
    const doc = model.get("doc"), link = doc.links[model.get("link")] || doc.links[0];
    if (!link) { setText(said, "No link in these rows."); return; }
    select.value = String(doc.links.indexOf(link));
    const [values, on, text, full] = link.shown[link.states[placeOf(link.steps, model.get("cursor"))]];
    setText(said, text);
    said.classList.toggle("on", on.length > 0 && on[0] !== "no-message");
    lines.forEach((line, n) => {
      const value = values[n], binding = on[0] === line.brake, also = !binding && on.includes(line.brake);
      const most = link.full[n];
      const share = typeof value === "number" ? (most ? value / most : 0) : full[n] ? 1 : 0;
      line.fill.style.width = `${(100 * share).toFixed(1)}%`;
      setText(line.value, words(value, most, line.unit));
      setText(line.state, binding ? "▶ binding" : also ? "• on too" : "");
      line.row.classList.toggle("binding", binding);
      line.row.classList.toggle("also", also);
    });
  }

  const theme = () => { root.dataset.theme = dark() ? "dark" : "light"; };
  const watcher = new MutationObserver(theme);
  watcher.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "class"] });
  select.addEventListener("change", () => { model.set("link", Number(select.value)); model.save_changes(); draw(); });
  // A key here is for this list, not for the notebook's cells.
  root.addEventListener("keydown", (event) => event.stopPropagation());
  model.on("change:doc", build);
  model.on("change:cursor", draw);
  model.on("change:link", draw);
  theme();
  build();
  el.append(root);
  return () => watcher.disconnect();
}

export default { render };
