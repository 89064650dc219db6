
// -- the presenter: slides of a lesson, by the keys of a remote; stands behind the stage's module,
// in a block, for that has names of its own
{
  const lesson = JSON.parse(document.getElementById("lesson").textContent);
  const make = (parent, name, of = "", text = "") => {
    const el = document.createElement(name);
    el.className = of;
    el.textContent = text;
    parent.append(el);
    return el;
  };
  const body = document.getElementById("presenter");
  body.textContent = "";
  const head = make(body, "header");
  const title = make(head, "span", "title");
  const clock = make(head, "span", "clock");
  clock.setAttribute("role", "timer");
  const place = make(body, "main");
  place.tabIndex = 0;
  const black = make(body, "div", "black", "");
  black.hidden = true;

  let at = 0, phase = "ask", stage = null, opened = null, began = null, watching = false;
  const phases = (slide) => [...(slide.question ? ["ask"] : []), ...(slide.scene ? ["look"] : []), ...(slide.question ? ["told"] : [])];

  function ask(slide) {
    const box = make(place, "section", "ask");
    make(box, "p", "text", slide.question.text);
    const list = make(box, "ul");
    for (const option of slide.question.options) make(list, "li", "", option);
    if (slide.question.free) make(box, "p", "small", phrase("or-another"));
  }

  function told(slide) {
    const box = make(place, "section", "told");
    make(box, "p", "answer", `✔ ${slide.question.answer}`);
    make(box, "p", "text", slide.question.reason);
    for (const wrong of slide.question.wrong) {
      const line = make(box, "p", "small");
      make(line, "b", "", `✘ ${wrong.answer} · ${wrong.name}: `);
      line.append(wrong.because);
    }
  }

  // The type is as large as cuts nothing; of what is too much even for the smallest, a key scrolls to the rest.
  const LEAST = 0.6, over = (el) => el.scrollHeight > el.clientHeight;
  function shrink(box, parts) {
    let size = 1;
    do box.style.setProperty("--type", size); while (parts().some(over) && (size -= 0.05) >= LEAST);
  }

  function fit() {
    const box = place.firstElementChild, strip = box.querySelector(".wst-strip");
    if (!strip) { shrink(box, () => [place]); return; }
    box.style.removeProperty("--strip");
    box.style.setProperty("--strip", `${strip.offsetHeight}px`);
    fitStep(box);
  }

  function fitStep(room) { shrink(room, () => [...room.querySelectorAll(".wst-sentence, .wst-formula")]); }

  async function look(slide) {
    const room = make(place, "div", "room");
    const options = {
      step: slide.step, drawn: 826,
      onStep: (step) => { if (watching && stage?.plays && step !== opened && stage.marked) { watching = false; stage.play(false); } opened = step; },
    };
    opened = slide.step;
    stage = await mount(room, slide.scene, options);
    new MutationObserver(() => fitStep(room)).observe(room.querySelector(".wst-say"), { childList: true, characterData: true, subtree: true });
  }

  async function show(slide, wanted) {
    at = Math.max(0, Math.min(slide, lesson.slides.length - 1));
    const one = lesson.slides[at];
    phase = phases(one).includes(wanted) ? wanted : phases(one)[0];
    stage?.destroy();
    stage = null;
    place.textContent = "";
    const section = lesson.sections[one.section];
    title.textContent = phrase("slide", { lesson: `${lesson.number} ${lesson.title}`, section, number: at + 1, all: lesson.slides.length });
    body.dataset.phase = phase;
    if (phase === "ask") ask(one);
    else if (phase === "told") told(one);
    else await look(one);
    fit();
    place.focus({ preventScroll: true });
  }

  /** Whether there was something left in a direction, and is now seen. */
  function scrolled(way) {
    const before = place.scrollTop;
    place.scrollTop += way * 0.8 * place.clientHeight;
    return Math.abs(place.scrollTop - before) > 1;
  }

  async function on() {
    began ??= Date.now();
    if (!black.hidden) { black.hidden = true; return; }
    if (scrolled(1)) return;
    const all = phases(lesson.slides[at]), next = all[all.indexOf(phase) + 1];
    if (phase === "look") {
      if (stage.plays) { stage.play(false); stage.nextMark(); return; }
      if (!stage.ended) { watching = true; stage.play(true); return; }
      if (stage.asking) { stage.commit(true); watching = true; stage.play(true); return; }
    }
    if (next) await show(at, next);
    else if (at + 1 < lesson.slides.length) await show(at + 1);
  }

  async function back() {
    if (scrolled(-1)) return;
    if (phase === "look" && stage.step > lesson.slides[at].step) { stage.next(-1); return; }
    const all = phases(lesson.slides[at]), before = all[all.indexOf(phase) - 1];
    if (before) await show(at, before);
    else if (at) await show(at - 1);
  }

  const section = (number) => lesson.slides.findIndex((slide) => slide.number === number);
  const KEYS = { PageDown: on, PageUp: back, b: () => { black.hidden = !black.hidden; }, B: () => { black.hidden = !black.hidden; } };
  KEYS["."] = KEYS.b;
  addEventListener("keydown", (event) => {
    const digit = /^[1-9]$/.test(event.key) && event.target.tagName !== "INPUT" ? section(Number(event.key)) : -1;
    const act = event.ctrlKey || event.metaKey || event.altKey ? null : digit >= 0 ? () => show(digit) : KEYS[event.key];
    if (!act) return;
    event.preventDefault();
    event.stopPropagation();
    void act();
  }, true);

  const two = (number) => String(Math.floor(number)).padStart(2, "0");
  function tick() {
    const passed = began === null ? 0 : (Date.now() - began) / 1000, left = lesson.minutes * 60 - passed;
    clock.textContent = phrase(left < 0 ? "clock-over" : "clock", { passed: `${two(passed / 60)}:${two(passed % 60)}`, minutes: lesson.minutes });
    clock.classList.toggle("over", left < 0);
  }
  setInterval(tick, 500);
  tick();
  const wanted = Number(new URLSearchParams(location.hash.slice(1)).get("section")) || lesson.opens;
  await show(Math.max(0, section(wanted)));
  addEventListener("resize", fit);
}
