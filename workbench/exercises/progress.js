// A copy of the learner's log in this browser, for a server that forgets.
//
// What the browser holds goes to the kernel, which merges it and answers with what to keep. A copy
// that another page has changed since then is merged first: nothing is written over unread.

const KEY = "amqp-flow-workbench/progress";

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
  return () => model.off("msg:custom", heard);
}

export default { initialize, render() {} };
