// For a server that forgets, such as Binder: a copy of the learner's log in this browser, and a
// warning before the server ends because nobody does anything.
//
// What the browser holds goes to the kernel, which merges it and answers with what to keep. A copy
// that another page has changed since then is merged first: nothing is written over unread.

const KEY = "amqp-flow-workbench/progress";

const NOTE = "amqp-flow-workbench-idle";
const MARK = "⏳ Idle: ";
const MINUTE_MS = 60_000;
const WARN_MIN = 3; // so long before the end
const LOOK_MS = 10_000;
const SIGNS = ["pointerdown", "pointermove", "keydown", "wheel"];

// A page in another tab shows no more than its title. Each notebook that is open on a page watches,
// and all of them write the same note.
function say(text) {
  const there = document.getElementById(NOTE);
  const title = document.title.startsWith(MARK)
    ? document.title.slice(MARK.length) : document.title;
  if (!text) {
    there?.remove();
    if (title !== document.title) document.title = title;
    return;
  }
  const note = there ?? document.createElement("div");
  if (!there) {
    note.id = NOTE;
    note.setAttribute("role", "alert");
    note.title = "Click to dismiss";
    note.addEventListener("click", () => say(""));
    note.style.cssText = `position:fixed;z-index:10000;bottom:36px;left:50%;cursor:pointer;
      transform:translateX(-50%);box-sizing:border-box;width:min(48em,calc(100% - 16px));
      padding:10px 16px;background:#fff4d6;color:#1c1c1c;border:1px solid #8a6100;border-left-width:6px;
      border-radius:4px;font:14px/1.5 system-ui,sans-serif`;
    document.body.append(note);
  }
  if (note.textContent !== text) note.textContent = text;
  if (title === document.title) document.title = MARK + title;
}

async function answers() {
  const page = document.getElementById("jupyter-config-data");
  const base = page ? JSON.parse(page.textContent).baseUrl : "/";
  try {
    const reply = await fetch(`${base}api/status`);
    return reply.ok && !reply.redirected; // a hub leads to its own page instead
  } catch {
    return false;
  }
}

function warnWhenIdle(ends) {
  let last = Date.now();
  let ended = false;

  function idle() { return Math.floor((Date.now() - last) / MINUTE_MS); }

  function look() {
    if (ended || idle() < ends - WARN_MIN) return;
    const left = ends - idle();
    say(`Nothing has been done here for ${idle()} minutes, and Binder ends a session after ${ends}. `
      + (left > 0 ? "Press a key or move the pointer here, and the session stays. " : "")
      + "Your answers are kept in this browser. What you wrote in cells is lost with the session: "
      + "File ▸ Download keeps it, and Share below a picture gives a code for a branch.");
  }

  async function seen() {
    const late = idle() >= ends - WARN_MIN;
    last = Date.now();
    // The question is itself a sign of life to Binder.
    if (late) {
      ended = !await answers();
      say(ended ? "Binder has ended this session. Launch it again, open the lesson and run its "
        + "cells: your answers come back from this browser." : "");
    }
  }

  function shown() { if (!document.hidden) seen(); }

  const timer = setInterval(look, LOOK_MS);
  for (const sign of SIGNS) document.addEventListener(sign, seen, { capture: true, passive: true });
  document.addEventListener("visibilitychange", shown);
  return () => {
    clearInterval(timer);
    for (const sign of SIGNS) document.removeEventListener(sign, seen, { capture: true });
    document.removeEventListener("visibilitychange", shown);
  };
}

function initialize({ model }) {
  let told = null;

  function tell() {
    try {
      told = localStorage.getItem(KEY) ?? "";
    } catch {
      return; // a browser that keeps nothing for this site
    }
    model.send({ found: told });
  }

  function heard({ keep }) {
    if (keep === undefined || (localStorage.getItem(KEY) ?? "") !== told) { tell(); return; }
    if (keep === told) return;
    try {
      localStorage.setItem(KEY, keep);
      told = keep;
    } catch {
      // It is full: the log itself is in the kernel's file.
    }
  }

  model.on("msg:custom", heard);
  tell();
  const ends = model.get("idle_end_min");
  const stop = ends ? warnWhenIdle(ends) : () => {};
  return () => { model.off("msg:custom", heard); stop(); };
}

export default { initialize, render() {} };
