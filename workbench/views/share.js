// A share code in a field, and a button that copies it.

function render({ model, el }) {
  const field = h("textarea", { readonly: "", "aria-label": "share code", spellcheck: "false", cols: "90",
    style: "max-width:100%;font-family:monospace;word-break:break-all" });
  const button = h("button", { type: "button", class: "jupyter-button" }, "Copy");
  const said = h("span", { role: "status", style: "margin-left:8px" });
  const missing = h("div");
  const root = h("div", { style: "line-height:1.5", "data-lm-suppress-shortcuts": "true" },
    h("div", {}, "Share code. Who gets it runs ", h("code", {}, 'open_code("…")'), " with it."),
    field, h("div", {}, button, said), missing);

  async function copy() {
    field.select();
    try {
      await navigator.clipboard.writeText(field.value);
    } catch {
      // Pages of another machine without TLS have no clipboard of their own.
      if (!document.execCommand("copy")) { setText(said, "It is selected: Ctrl+C copies it."); return; }
    }
    setText(said, "Copied.");
  }

  function draw() {
    const { text, own } = model.get("shown");
    root.hidden = !text;
    field.value = text;
    field.rows = Math.ceil(text.length / 90);
    setText(said, "");
    setText(missing, own.length ? `Your own code (${own.join(", ")}) is not in it: send it along.` : "");
  }

  button.addEventListener("click", copy);
  model.on("change:shown", draw);
  el.append(root);
  draw();
  return () => model.off("change:shown", draw);
}

export default { render };
