// What ipywidgets leave to be done in a page, for whoever has a keyboard or a screen reader. One
// model of a kernel does it for all of its page, and has no view.

const KEEPS = "data-lm-suppress-shortcuts";
const SHOWN = ".jp-OutputArea-output";
const CONTROLS = ".widget-radio-box, .widget-slider .noUi-handle";
let groups = 0;

// JupyterLab takes a key for a command of its notebook, even where it chooses in a list of a
// cell's output. Its commands with Ctrl, Alt or Cmd stay, and Shift+Enter, which goes on.
function keep({ target, key, ctrlKey, altKey, metaKey, shiftKey }) {
  const lab = ctrlKey || altKey || metaKey || (shiftKey && key === "Enter");
  // Asked is whatever has the focus itself, before what lies round it.
  if (target.closest?.(SHOWN)) target.toggleAttribute(KEEPS, !lab);
}

// While the kernel has not answered, ipywidgets hold back what is chosen or typed next, but no press.
// What they hold goes ahead of a press, else a busy kernel would commit the choice of before.
const changed = new Set();
function watch(model) {
  let type = model;
  while (!Object.hasOwn(type, "sync")) type = Object.getPrototypeOf(type);
  const { sync } = type;
  type.sync = function (...told) {
    changed.add(this);
    return sync.apply(this, told);
  };
}
function tell({ type, key }) {
  if (type === "keydown" && key !== "Enter") return;
  for (const model of changed) {
    if (!model._msg_buffer) continue;
    model.rememberLastUpdateFor(
      model.send_sync_message(model._msg_buffer, model._msg_buffer_callbacks),
    );
    model._msg_buffer = null;
  }
  changed.clear();
}

// What a widget does not take for itself leads back to the notebook.
function leave(event) {
  if (event.key !== "Escape" || event.defaultPrevented) return;
  event.target.closest?.(SHOWN)?.closest(".jp-Cell")?.focus({ preventScroll: true });
}

// Of radio buttons and sliders the label stands beside them, and says so to nobody; and only what
// has one name is one group, in which the arrows choose.
function name() {
  for (const control of document.querySelectorAll(CONTROLS)) {
    const label = control.closest(".widget-radio, .widget-slider").querySelector(".widget-label");
    if (label?.textContent) control.setAttribute("aria-label", label.textContent);
    if (!control.matches(".widget-radio-box")) continue;
    control.setAttribute("role", "radiogroup");
    control.dataset.group ??= `group-${++groups}`;
    for (const radio of control.querySelectorAll("input")) radio.name = control.dataset.group;
  }
}

export default {
  initialize({ model }) {
    if (globalThis.workbenchControls) return;
    let later;
    const look = () => {
      later ??= setTimeout(() => {
        later = undefined;
        name();
      }, 100);
    };
    globalThis.workbenchControls = new MutationObserver(look);
    globalThis.workbenchControls.observe(document.body, { childList: true, subtree: true });
    look();
    addEventListener("keydown", keep, true);
    addEventListener("keydown", tell, true);
    addEventListener("click", tell, true);
    addEventListener("workbench-press", tell);
    addEventListener("keydown", leave);
    watch(model.get("layout")); // which has the prototype of every widget's model
  },
};
