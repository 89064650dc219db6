// A chart's figure, which Bokeh draws; a page without Bokeh asks its kernel for it, once.

const PREFIX = "IPY_MODEL_";

function arrived(model) {
  return new Promise((resolve) => {
    const hear = (message, [packed]) => {
      model.off("msg:custom", hear);
      resolve(packed);
    };
    model.on("msg:custom", hear);
    model.send({});
  });
}

async function load(model) {
  const stream = new Blob([await arrived(model)]).stream().pipeThrough(new DecompressionStream("gzip"));
  const script = document.createElement("script");
  script.textContent = await new Response(stream).text();
  document.head.append(script);
}

export default {
  async render({ model, el }) {
    el.style.display = "contents"; // the figure takes this element's place
    const manager = model.widget_manager;
    const shown = await manager.get_model(model.get("shown").slice(PREFIX.length));
    if (!globalThis.Bokeh) {
      const asked = globalThis.workbenchBokeh; // by another chart, whose kernel may be gone
      if (!asked?.by.comm_live) globalThis.workbenchBokeh = { by: shown, loaded: load(model) };
      await globalThis.workbenchBokeh.loaded;
    }
    const view = await manager.create_view(shown);
    el.append(view.el);
    return () => view.remove();
  },
};
