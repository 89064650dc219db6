/* The stage: one screen for one step of flow control. It draws a scene (types.ts) that Python made,
   moves it in virtual time, and sends back what the learner does. It knows no rule of a protocol. */

import { h, patch, type VNode } from "./dom";
import { clamp, Labels } from "./geometry";
import { FRAME_GAP, picture, wireLength } from "./layouts";
import { patterns, standsAt, topOf, type View } from "./marks";
import { flying, resolve, stepAt, type Run } from "./run";
import { differs, isTall, strip, type Answer } from "./strip";
import { ACTS, actList, actRow, counters, form, help, log, logLines, octets, rowOf, sequence, shared, TABS, wanted, type Code, type Note } from "./tabs";
import { transport, xToTime, type Time } from "./transport";
import type { Act, Message, Reply, Scene, Step, Verdict } from "./types";
import { phrase } from "./words";

export interface Options {
  step?: number;
  branch?: number;
  theme?: "light" | "dark";
  /** how wide the picture is drawn, whatever its size on the screen: a narrow one gives large type in a room */
  drawn?: number;
  /** sends to Python; replies come through `Stage.reply`. Without it nothing can be done in the picture */
  send?: (message: Message) => void;
  /** the step or branch shown has changed */
  onStep?: (step: number, branch: number) => void;
}

type Drag = { kind: "time"; left: number } | { kind: "knob"; act: Act; value: number; x: number; y: number; cell: number; down: boolean };

const PACE = 1 / 120;
const LEAST = 620;
/** Height of a row of acts, px. */
const ROW = 36;
/** What lies over the rest while it is open. */
const OPENED = ".wst-sheet, .wst-help, .wst-code";
/** For how long no answer is waited for without a word, ms. */
const PATIENCE = 10_000;

export class Stage {
  readonly el = document.createElement("div");
  private runs: Map<number, Run>;
  private run: Run;
  private i = 0;
  private t = 0;
  /** how wide the picture is drawn, and how wide it is shown: below LEAST it is scaled down */
  private W = 826;
  private shown = 826;
  private line = 400;
  private playing = false;
  private slow = false;
  private waited = 0;
  private last = 0;
  private loop = 0;
  private tab: number | null = null;
  private helps = false;
  private preview: Record<string, number> = {};
  private hover: string | null = null;
  private field: number | null = null;
  private who = "";
  private scrolled = 0;
  private rule: string | null = null;
  private passed = false;
  private picked: Answer = null;
  private answer: Answer = null;
  private verdict: Verdict | null = null;
  private skipped = false;
  private urged = false;
  private folded = true;
  private hasRow = false;
  private drag: Drag | null = null;
  private dragged = false;
  private note: Note | null = null;
  private tried: Element | null = null;
  private awaited = 0;
  /** an act has been sent, and nothing has come of it yet */
  private awaits = false;
  /** what has been sent last */
  private sent = "";
  /** what had the focus before something was opened that has it now */
  private left: HTMLElement | null = null;
  private code: Code | null = null;
  private typed: Record<string, string> = {};
  private wrong: string | null = null;
  private told = "";
  /** Each widget of a page loads this module for itself: a count would begin anew. */
  private uid = `wst${Math.random().toString(36).slice(2)}-`;
  private ends: (() => void)[] = [];
  private calm = matchMedia("(prefers-reduced-motion: reduce)");

  constructor(parent: Element, public scene: Scene, private options: Options = {}) {
    this.runs = resolve(scene);
    this.run = this.runs.get(options.branch ?? 0) ?? this.runs.get(0)!;
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

  /** Shows another scene, or the same as it is by now; tabs, keys and the place of the hand stay. */
  load(scene: Scene, step: number, branch: number): void {
    const before = JSON.stringify(this.scene.question);
    this.scene = scene;
    this.runs = resolve(scene);
    this.preview = this.typed = {};
    this.rule = scene.rule ?? null;
    if (JSON.stringify(scene.question) !== before) { this.answer = this.verdict = this.picked = null; this.skipped = this.passed = false; this.asks(); }
    this.name();
    clearTimeout(this.awaited);
    this.awaits = false;
    this.go(step, branch);
  }

  private asks(): void {
    const question = this.scene.question;
    if (question && question.answer != null) this.settle(question.answer, question.verdict ?? null);
  }

  private name(): void { this.el.setAttribute("aria-label", phrase("figure", { title: this.scene.title })); }

  destroy(): void {
    cancelAnimationFrame(this.loop);
    clearTimeout(this.awaited);
    this.ends.forEach((end) => end());
    this.el.remove();
  }

  // -- time ---------------------------------------------------------------------------------

  get step(): number { return this.i; }
  get branch(): number { return this.run.branch.id; }
  get plays(): boolean { return this.playing; }
  /** whether the step shown is an interesting one */
  get marked(): boolean { return Boolean(this.run.steps[this.i]?.mark); }
  /** whether nothing more can be seen: the end, or the curtain */
  get ended(): boolean { return this.t >= Math.min(this.run.ends, this.curtain) - 1e-6 || this.i >= this.lastSeen; }

  /** Where the clock counts from: a lesson's begin. Steps that are cut out of a run have its own time. */
  private get zero(): number { return this.first ? this.from : 0; }
  private get from(): number { return this.folded ? this.run.steps[this.first]?.t ?? 0 : 0; }
  private get first(): number { return this.folded ? Math.min(this.scene.begin ?? 0, this.run.steps.length - 1) : 0; }
  get asking(): boolean { return Boolean(this.scene.question) && this.answer === null && !this.skipped && this.branch === 0; }
  private get most(): number { return Math.max(...[...this.runs.values()].map((run) => run.ends)); }

  /** Nothing from here on may be seen before the answer. */
  private get curtain(): number {
    if (!this.asking) return Infinity;
    const { decides } = this.scene.question!, steps = this.run.steps;
    return decides < steps.length ? steps[decides].t - 1e-3 : steps[steps.length - 1].t;
  }
  private get lastSeen(): number { return this.asking ? Math.min(this.scene.question!.decides, this.run.steps.length) - 1 : this.run.steps.length - 1; }

  /** Shows a step; the time is the step's own. */
  set(step: number, quiet = false): void {
    this.i = clamp(step, 0, Math.max(0, this.lastSeen));
    if (this.i < this.first) this.folded = false;
    this.t = this.run.steps[this.i]?.t ?? 0;
    this.moved(quiet);
  }

  /** Shows a step of a branch, as Python asks for it. */
  go(step: number, branch: number): void {
    this.playing = false;
    this.run = this.runs.get(branch) ?? this.runs.get(0)!;
    this.set(step, true);
  }

  /** Shows a time: the last step that is not after it, and what is on the way. */
  seek(t: number, ends = this.run.ends): void {
    const end = Math.min(ends, this.curtain);
    this.urged = t > end + 1e-6 && this.asking;
    this.t = clamp(t, this.from, end);
    this.i = clamp(stepAt(this.run.steps, this.t), 0, Math.max(0, this.lastSeen));
    this.moved();
  }

  private moved(quiet = false): void {
    this.code = null;
    const question = this.scene.question;
    if (question && this.branch === 0 && this.i >= question.decides) this.passed = true;
    this.draw();
    if (!quiet) this.options.onStep?.(this.i, this.branch);
  }

  next(by: 1 | -1): void {
    this.playing = false;
    this.note = null;
    const steps = this.run.steps;
    let i = this.i + by;
    while (i > this.first && i < steps.length && !steps[i].sentence) i += by;
    if (i > this.lastSeen) { this.urged = this.asking; i = this.asking ? this.i : this.lastSeen; }
    this.set(Math.max(i, this.first));
  }

  nextMark(): void {
    this.playing = false;
    let i = this.i + 1;
    while (i < this.run.steps.length && !this.run.steps[i].mark) i++;
    if (i > this.lastSeen) this.urged = this.asking;
    this.set(i);
  }

  play(on = !this.playing): void {
    if (on && this.t >= Math.min(this.run.ends, this.curtain) - 1e-6) {
      if (this.asking) { this.urged = true; this.draw(); return; }
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

  private tick(now: number): void {
    if (this.playing && !this.el.isConnected) { this.playing = false; this.draw(); }
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
      const before = this.i, t = this.t + pace, parts = this.rule ? steps.findIndex((_, i) => i > before && steps[i].t <= t && differs(this.run.states[i], this.rule!) !== null) : -1;
      if (parts > 0 && differs(this.run.states[before], this.rule!) === null) { this.playing = false; this.set(parts); }
      else this.seek(t);
      if (this.t >= Math.min(this.run.ends, this.curtain) - 1e-6) { this.playing = false; this.urged = this.asking; this.draw(); }
    }
    if (this.playing) this.loop = requestAnimationFrame((time) => this.tick(time));
  }

  private stopsAt(before: number, now: number): boolean { return this.rule !== null && differs(this.run.states[before], this.rule) === null && differs(this.run.states[now], this.rule) !== null; }

  /** Whether something interesting is near: 1.2 ms before or after it play is slow. */
  private near(): boolean {
    for (let i = stepAt(this.run.steps, this.t - 1.2) + 1; i < this.run.steps.length && this.run.steps[i].t < this.t + 1.2; i++) if (this.run.steps[i].mark) return true;
    return false;
  }

  /** Shows the same time in another branch; of one that has ended before, its last step. */
  private show(branch: number): void {
    this.run = this.runs.get(branch) ?? this.run;
    this.seek(this.t, this.most);
  }

  // -- question and acts ----------------------------------------------------------------------

  private settle(answer: Answer, verdict: Verdict | null): void {
    this.answer = answer;
    this.verdict = verdict;
    this.passed = false;
    this.rule = verdict?.rule && this.scene.rules?.some((rule) => rule.id === verdict.rule) ? verdict.rule : null;
  }

  commit(skip = false): void {
    const question = this.scene.question;
    if (!question || (!skip && (this.picked === null || this.picked === ""))) return;
    this.urged = false;
    if (skip) this.skipped = true;
    else this.settle(this.picked, question.verdicts?.[String(this.picked)] ?? question.verdicts?.["*"] ?? null);
    this.send(skip ? "skip" : "commit", skip ? null : this.picked);
    if (!skip && !this.calm.matches && (question.verdicts || !this.options.send)) this.play(true);
    this.draw();
    this.el.focus({ preventScroll: true });
  }

  /** Why nothing can be done now; null: it can. */
  private barred(act: string): string | null {
    if (!this.options.send) return phrase("no-kernel");
    if (this.asking && !this.scene.question!.acts?.includes(act)) return phrase("answer-first");
    return null;
  }

  private fire(id: string, value: Message["value"], element: Element | null): void {
    const act = this.scene.acts?.find((one) => one.id === id), why = this.run.states[this.i]?.off?.[id] ?? this.barred(id);
    delete this.preview[id];
    this.playing = false;
    this.tried = element;
    if (why) { this.say(why, element); return; }
    this.note = null;
    this.send(id, act?.kind === "toggle" ? !(this.run.states[this.i]?.on?.[id] ?? false) : value);
  }

  private send(act: string, value: Message["value"]): void {
    if (!this.options.send) return;
    const message = { act, value, t: this.t, branch: this.branch, step: this.i }, sent = JSON.stringify(message);
    // A double click is one act: the second of two that nothing has come between would make a twin of the branch.
    if (this.awaits && sent === this.sent) return;
    this.sent = sent;
    clearTimeout(this.awaited);
    this.awaits = true;
    this.draw();
    this.awaited = setTimeout(() => this.unanswered(), PATIENCE);
    this.options.send(message);
  }

  /** Nothing comes of what was sent. */
  unanswered(): void {
    clearTimeout(this.awaited);
    this.say(phrase("no-answer"), this.tried);
  }

  /** Shows a note in the row of the list of acts, below an element, or over the picture, until the learner goes on. */
  say(text: string, element: Element | null = null): void {
    const box = (element?.isConnected ? element : this.el).getBoundingClientRect(), own = this.el.getBoundingClientRect();
    this.note = { text, row: element?.closest<HTMLElement>(".wst-acts .act")?.dataset.row ?? null, x: box.left + box.width / 2 - own.left, y: element?.isConnected ? Math.max(60, box.bottom - own.top + 8) : 70 };
    this.awaits = false;
    this.draw();
  }

  /** A note stands where it was said, as far as the whole of it is seen there. */
  private placeNote(): void {
    if (!this.note) return;
    this.el.querySelector('.wst-acts [role="alert"]')?.scrollIntoView({ block: "nearest" });
    const shown = this.el.querySelector<HTMLElement>(".wst-note");
    if (!shown) return;
    const most = (all: number, own: number) => Math.max(8, all - own - 8);
    shown.style.left = `${clamp(this.note.x - shown.offsetWidth / 2, 8, most(this.el.clientWidth, shown.offsetWidth))}px`;
    shown.style.top = `${clamp(this.note.y, 8, most(this.el.clientHeight, shown.offsetHeight))}px`;
  }

  /** What Python answers. */
  reply(reply: Reply): void {
    clearTimeout(this.awaited);
    this.awaits = false;
    if (reply.type === "illegal" && reply.act === "begin") { this.wrong = reply.why; this.draw(); return; }
    if (reply.type === "illegal") { this.say(reply.why, this.tried); return; }
    if (reply.type === "done") { this.draw(); return; }
    if (reply.type === "code") {
      this.code = { text: reply.text, own: reply.own, said: "" };
      this.helps = false;
      this.draw();
      this.enter(this.el.querySelector(".wst-code textarea"));
      return;
    }
    grow(this.scene, reply);
    this.runs = resolve(this.scene);
    this.run = this.runs.get(reply.type === "branch" ? reply.branch.id : this.branch)!;
    if (reply.type === "verdict" && !this.skipped) this.settle(this.answer, reply.verdict);
    if (reply.type === "branch" && this.tab === ACTS) this.tab = null; // what was asked for there is to be seen
    if (reply.type === "branch") { this.t = Math.max(this.t, reply.branch.at); this.i = Math.max(stepAt(this.run.steps, this.t), reply.branch.keeps - 1, 0); this.options.onStep?.(this.i, this.branch); }
    if (this.calm.matches) { if (reply.type === "branch") this.set(Math.min(reply.branch.keeps, this.run.steps.length - 1)); else this.draw(); }
    else this.play(!this.skipped || reply.type === "branch");
  }

  /** The scene has got branches since it was looked at last. */
  grown(): void {
    this.runs = resolve(this.scene);
    this.run = this.runs.get(this.branch)!;
    this.draw();
  }

  private turn(id: string, value: number): void {
    const act = this.scene.acts?.find((one) => one.id === id);
    if (act) this.preview[id] = clamp(Math.round(value), act.min ?? 0, topOf(act, standsAt(this.view(), act)));
    this.playing = false;
    this.draw();
  }

  private release(id: string, element: Element | null): void {
    const value = this.preview[id];
    if (value === undefined) return;
    this.fire(id, value, element);
  }

  // -- input --------------------------------------------------------------------------------

  private listen(): void {
    const el = this.el, on = <K extends keyof HTMLElementEventMap>(type: K, act: (event: HTMLElementEventMap[K]) => void) => el.addEventListener(type, act);
    on("click", (event) => this.click(event.target as Element));
    on("pointerdown", (event) => this.press(event));
    on("pointermove", (event) => this.pull(event));
    on("pointerup", (event) => this.letGo(event));
    on("pointercancel", () => { this.drag = null; this.preview = {}; this.draw(); });
    on("pointerover", (event) => this.point(event.target as Element));
    on("focusin", (event) => this.point(event.target as Element));
    on("focusout", (event) => {
      // Help lies over everything: who goes on behind it would not see where.
      const help = this.el.querySelector(".wst-help"), to = event.relatedTarget as Node | null;
      if (this.helps && to && help?.contains(event.target as Node) && !help.contains(to)) { this.helps = false; this.draw(); }
    });
    on("keydown", (event) => this.key(event));
    on("input", (event) => {
      const input = event.target as HTMLInputElement;
      if (input.dataset.ui === "branches") { this.show(Number(input.value)); return; }
      if (input.dataset.ui === "rules") { this.rule = input.value; this.draw(); return; }
      const parameter = input.getAttribute("data-value-of");
      if (parameter) { this.typed = { ...this.typed, [parameter]: input.value }; this.wrong = null; this.draw(); }
      else if (input.dataset.ui === "free") { this.picked = input.value === "" ? null : Number(input.value); this.draw(); }
      else if (input.dataset.set && input.type === "number" && input.value !== "") this.turn(input.dataset.set, Number(input.value));
    });
    const themes = new MutationObserver(() => this.theme());
    themes.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "data-vscode-theme-kind", "data-wst-theme"] });
    const dark = matchMedia("(prefers-color-scheme: dark)"), follow = () => this.theme(), calm = () => this.draw();
    dark.addEventListener("change", follow);
    this.calm.addEventListener("change", calm);
    this.ends.push(() => themes.disconnect(), () => dark.removeEventListener("change", follow), () => this.calm.removeEventListener("change", calm));
  }

  /** Not the page alone changes sizes: the timeline has what the words beside it leave. */
  private watch(): void {
    const observer = new ResizeObserver(() => this.measure());
    for (const one of [this.el, this.el.querySelector(".wst-line")!]) observer.observe(one);
    this.ends.push(() => observer.disconnect());
  }

  private measure(): void {
    const width = this.el.clientWidth;
    if (width && Math.abs(width - this.shown) > 0.5) { this.shown = width; this.W = this.options.drawn ?? Math.max(LEAST, width); this.draw(); }
    const line = this.el.querySelector(".wst-line")?.clientWidth ?? 0;
    if (line && Math.abs(line - this.line) > 0.5) { this.line = line; this.draw(); }
  }

  private theme(): void {
    // JupyterLab and VS Code name the theme of their page; elsewhere the system's is right.
    // What a learner has chosen on one stage holds for all: each widget loads this module for itself, so the page has it.
    const { jpThemeLight: jupyter, vscodeThemeKind: code, wstTheme: chosen } = document.body.dataset;
    const dark = jupyter ? jupyter === "false" : code ? code === "vscode-dark" || code === "vscode-high-contrast" : matchMedia("(prefers-color-scheme: dark)").matches;
    this.el.dataset.theme = chosen ?? this.options.theme ?? (dark ? "dark" : "light");
  }

  private point(target: Element): void {
    const frame = target.closest("[data-frame]")?.getAttribute("data-frame") ?? null, field = target.closest("[data-field]")?.getAttribute("data-field"), number = field == null ? null : Number(field);
    // The tab's own fields belong to the frame that was pointed at last.
    const inside = target.closest(".wst-sheet") !== null && frame === null;
    if ((inside || frame === this.hover) && number === this.field) return;
    if (!inside) this.hover = frame;
    this.field = number;
    if (!this.playing) this.draw();
  }

  private click(target: Element): void {
    if (this.dragged) { this.dragged = false; return; }
    const ui = target.closest<HTMLElement>("[data-ui]"), act = target.closest("[data-act]"), own = target.closest("[data-do]"), branch = target.closest("[data-branch]");
    if (ui) this.ui(ui.dataset.ui!, ui.dataset.arg ?? "");
    else if (own) {
      const id = own.getAttribute("data-do")!, input = own.parentElement?.querySelector<HTMLInputElement>("[data-set]");
      this.fire(id, input ? typed(input) : own.getAttribute("data-value"), own);
    } else if (act) this.fire(act.getAttribute("data-act")!, act.getAttribute("data-value"), act);
    else if (branch && this.runs.size > 1) this.show(Number(branch.getAttribute("data-branch")));
    else if (this.note) { this.note = null; this.draw(); }
  }

  private ui(what: string, arg: string): void {
    this.note = null;
    const question = this.scene.question, acts: Record<string, () => void> = {
      back: () => this.next(-1), on: () => this.next(1), mark: () => this.nextMark(), play: () => this.play(),
      tab: () => { this.tab = this.tab === Number(arg) ? null : Number(arg); this.told = ""; },
      help: () => { this.helps = !this.helps; this.code = null; },
      theme: () => { document.body.dataset.wstTheme = this.el.dataset.theme === "dark" ? "light" : "dark"; this.theme(); },
      fold: () => { this.folded = !this.folded; if (this.folded && this.i < this.first) this.set(this.first); },
      branch: () => this.show(Number(arg)), step: () => { this.playing = false; this.set(Number(arg)); }, who: () => { this.who = arg; this.told = ""; },
      pick: () => { this.picked = question?.options.find((one) => String(one) === arg) ?? arg; }, commit: () => this.commit(), skip: () => this.commit(true),
      again: () => { this.answer = null; this.picked = null; this.verdict = null; this.skipped = false; this.passed = false; this.rule = null; this.playing = false; if (this.i > this.lastSeen) this.set(this.lastSeen); },
      rule: () => { this.rule = arg || null; },
      set: () => { this.tab = ACTS; },
      share: () => { this.playing = false; this.tried = this.el.querySelector('[data-ui="share"]'); if (this.code) this.code = null; else this.send("share", null); },
      copy: () => { void this.copy(); }, begin: () => this.begin(arg === "given"),
    };
    acts[what]?.();
    this.draw();
    if (what === "set") {
      const field = this.el.querySelector<HTMLInputElement>(`[data-set="${CSS.escape(arg)}"]`);
      this.enter(field);
      field?.select();
    }
    if (what === "tab") this.enter(this.el.querySelector(".wst-sheet"));
    if (what === "help") this.enter(this.el.querySelector(".wst-help"));
  }

  /** What was opened has the focus; where it is closed with it, `draw` gives the focus back. */
  private enter(opened: HTMLElement | null): void {
    const now = document.activeElement as HTMLElement | null;
    if (!opened || !now || opened.contains(now)) return;
    if (this.el.contains(now) && !now.closest(OPENED)) this.left = now;
    opened.focus({ preventScroll: true });
  }

  /** Asks for the run of the values in the form, or for the run as given. */
  private begin(given = false): void {
    const all = this.scene.parameters ?? [], values = given ? all.map((one) => [one.id, one.given] as const) : wanted(all, this.typed);
    this.wrong = null;
    if (given) this.typed = {};
    this.playing = false;
    if (given ? all.some((one) => one.value !== one.given) : values.length) this.send("begin", Object.fromEntries(values));
    this.draw();
  }

  private async copy(): Promise<void> {
    const field = this.el.querySelector<HTMLTextAreaElement>(".wst-code textarea");
    if (!field || !this.code) return;
    field.select();
    let said = phrase("copied");
    try { await navigator.clipboard.writeText(field.value); } catch {
      // Pages of another machine without TLS have no clipboard of their own.
      if (!document.execCommand("copy")) said = phrase("selected");
    }
    if (this.code) this.code = { ...this.code, said };
    this.draw();
    // What is selected has taken the focus from the button.
    this.el.querySelector<HTMLElement>('[data-ui="copy"]')?.focus({ preventScroll: true });
  }

  private press(event: PointerEvent): void {
    const target = event.target as Element, knob = target.closest<SVGElement>("[data-knob]"), time = target.closest("[data-time]"), branch = target.closest("[data-branch]")?.getAttribute("data-branch");
    this.dragged = false;
    if (knob) {
      const act = this.scene.acts?.find((one) => one.id === knob.dataset.knob);
      if (!act) return;
      this.drag = { kind: "knob", act, value: this.preview[act.id] ?? Number(knob.dataset.now), x: event.clientX, y: event.clientY, cell: Number(knob.dataset.cell ?? 0), down: knob.dataset.pull === "down" };
      knob.focus({ preventScroll: true });
      event.preventDefault();
    } else if (time && (!branch || branch === String(this.branch))) {
      this.drag = { kind: "time", left: time.getBoundingClientRect().left };
      this.playing = false;
      this.seek(xToTime(this.time(), event.clientX - this.drag.left));
    } else return;
    this.el.setPointerCapture(event.pointerId);
  }

  private pull(event: PointerEvent): void {
    const drag = this.drag;
    if (!drag) return;
    this.dragged = true;
    if (drag.kind === "time") { this.seek(xToTime(this.time(), event.clientX - drag.left)); return; }
    const { act, value, x, y, cell, down } = drag, range = topOf(act, standsAt(this.view(), act)) - (act.min ?? 0);
    const by = cell ? (event.clientX - x) * this.W / this.shown / cell : down ? (event.clientY - y) / 3 : ((y - event.clientY) + (event.clientX - x)) / 11 * (range > 20 ? range / 16 : 1);
    this.turn(act.id, value + by);
  }

  private letGo(event: PointerEvent): void {
    const drag = this.drag;
    this.drag = null;
    if (!drag) return;
    if (this.el.hasPointerCapture(event.pointerId)) this.el.releasePointerCapture(event.pointerId);
    if (drag.kind === "knob") this.release(drag.act.id, this.el.querySelector(`[data-knob="${CSS.escape(drag.act.id)}"]`));
    setTimeout(() => { this.dragged = false; }, 0);
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const target = event.target as HTMLElement, { key } = event, take = () => { event.preventDefault(); event.stopPropagation(); };
    if (target.tagName === "TEXTAREA" && key !== "Escape") { event.stopPropagation(); return; }
    if (target.tagName === "SELECT" || target.tagName === "INPUT") {
      event.stopPropagation();
      if (key === "Escape") { this.tab = null; this.draw(); if (target.isConnected) this.el.focus({ preventScroll: true }); }
      if (target.tagName === "SELECT") return;
      if (key === "Enter") { if (target.hasAttribute("data-value-of")) this.begin(); else if (target.dataset.set) this.fire(target.dataset.set, typed(target as HTMLInputElement), target); else this.commit(); }
      return;
    }
    const knob = target.dataset?.knob;
    if (knob && ["ArrowUp", "ArrowDown", "Enter"].includes(key)) {
      take();
      if (key === "Enter") this.release(knob, target);
      else this.turn(knob, (this.preview[knob] ?? Number(target.dataset.now)) + (key === "ArrowUp" ? 1 : -1));
      return;
    }
    if (key === "Enter" || key === " ") {
      if (target.tagName === "BUTTON") { event.stopPropagation(); return; }
      if (target.dataset?.act || target.dataset?.branch) { take(); this.click(target); return; }
    }
    const ids = [...this.runs.keys()], acts: Record<string, () => void> = {
      ArrowRight: () => this.next(1), ArrowLeft: () => this.next(-1), " ": () => this.play(), n: () => this.nextMark(), Home: () => { this.playing = false; this.set(this.first); }, End: () => { this.playing = false; this.set(this.lastSeen); },
      "?": () => this.ui("help", ""), a: () => this.ui("tab", "4"), p: () => { if (this.scene.parameters) this.ui("tab", "5"); }, b: () => this.show(ids[(ids.indexOf(this.branch) + 1) % ids.length]),
      Escape: () => { this.drag = null; this.preview = {}; this.helps = false; this.tab = null; this.note = null; this.code = null; this.draw(); },
      1: () => this.ui("tab", "0"), 2: () => this.ui("tab", "1"), 3: () => this.ui("tab", "2"), 4: () => this.ui("tab", "3"),
    };
    const keyed = this.scene.acts?.find((act) => act.key === key);
    if (keyed) { take(); this.fire(keyed.id, null, null); return; }
    if (!acts[key]) return;
    take();
    acts[key]();
  }

  // -- drawing --------------------------------------------------------------------------------

  private time(): Time {
    const { run, runs, t, i, from, curtain, playing, slow, line, uid, folded } = this, begins = this.scene.begin ?? 0;
    return { run, runs, t, step: i - this.first, row: run.steps[i]?.row, number: i + (this.scene.first ?? 1), zero: this.zero, untimed: this.scene.untimed, from, ends: this.most, curtain, playing, slow, width: line, uid, folded, chip: begins > 0 ? this.scene.set_up ?? phrase("set-up-steps", { steps: begins }) : "" };
  }

  private view(): View {
    // From 1,000 px on the picture grows in height too.
    const W = this.W, H = 392 + Math.round(clamp((W - 1000) * 0.4, 0, 120)) - (this.hasRow ? ROW : 0);
    const view: View = { scene: this.scene, run: this.run, state: this.run.states[this.i] ?? {}, t: this.t, flying: [], W, H, preview: this.preview, hover: this.hover, rule: this.rule, asking: this.asking, labels: new Labels(W, H), uid: this.uid, small: W < 720 };
    view.flying = flying(this.run, this.t, ({ link }) => FRAME_GAP / wireLength(view, link));
    return view;
  }

  /** The picture, and the acts that it has no room for: once they have a row, it stays, and the picture is as much lower. */
  private pictured(): [View, VNode, VNode[]] {
    const view = this.view(), drawn = picture(view), row = this.options.send ? actRow(view, drawn, this.shown) : [];
    if (!row.length || this.hasRow) return [view, drawn, row];
    this.hasRow = true;
    return this.pictured();
  }

  /** The last step up to now that has something. */
  private latest(has: (step: Step) => unknown): Step | undefined {
    for (let i = this.i; i >= 0; i--) if (has(this.run.steps[i])) return this.run.steps[i];
    return undefined;
  }

  private draw(): void {
    const { scene, playing } = this, follows = this.follow(), [view, drawn, row] = this.pictured(), said = this.latest((step) => step.sentence), words = this.latest((step) => step.in_words)?.in_words ?? said?.sentence ?? "", formula = said?.formula;
    const others = scene.parameters?.filter((one) => one.value !== one.given).length ?? 0;
    this.el.classList.toggle("still", this.calm.matches || this.drag?.kind === "time");
    const clause = formula?.clause && (formula.href?.startsWith("https://") ? h("a", { href: formula.href, target: "_blank", rel: "noopener noreferrer" }, formula.clause) : formula.clause);
    const tree: VNode[] = [
      strip({ scene, state: view.state, branch: this.run.branch, question: scene.question ?? null, picked: this.picked, answer: this.answer, skipped: this.skipped, verdict: this.verdict, shown: this.passed, playing, rule: this.rule, urged: this.urged }),
      h("svg", { key: "picture", class: "wst-picture", viewBox: `0 0 ${view.W} ${view.H}`, width: this.shown, height: Math.round(view.H * this.shown / view.W), role: "group", "aria-label": phrase("the-picture", { title: scene.title }) }, patterns(this.uid), drawn),
      ...(this.hasRow ? [h("div", { key: "actrow", class: "wst-actrow", style: `height:${ROW}px`, role: "group", "aria-label": TABS[ACTS] }, row)] : []),
      h("div", { key: "say", class: `wst-say ${(said?.sentence?.length ?? 0) * (formula ? 1.75 : 1) > view.W / 5.2 ? "long" : ""}` }, h("div", { class: "wst-sentence", "aria-live": playing ? "off" : "polite" }, said?.sentence ?? ""),
        formula && h("div", { class: "wst-formula" }, formula.text, (formula.note || clause) && h("small", { title: formula.note ?? null }, formula.note, formula.note && clause && " · ", clause))),
      transport(this.time()),
      h("div", { key: "tabs", class: "wst-tabs" }, TABS.map((name, n) => (n < 5 || scene.parameters) && h("button", { key: n, type: "button", "data-ui": "tab", "data-arg": n, title: n === 5 && others ? phrase("not-as-given", { count: others }) : null, "aria-expanded": String(this.tab === n) }, n < 5 || !others ? name : `${name} (${others})`)), h("span", { class: "space" }),
        scene.shares && this.options.send && h("button", { key: "share", type: "button", "data-ui": "share", title: phrase("share-why"), "aria-expanded": String(this.code !== null) }, phrase("share")),
        h("button", { key: "help", type: "button", "data-ui": "help", "aria-label": phrase("help-keys"), "aria-expanded": String(this.helps) }, phrase("help-button")), h("button", { key: "theme", type: "button", "data-ui": "theme", "aria-label": phrase("light-or-dark") }, "◐")),
    ];
    if (this.tab !== null) tree.push(h("div", { key: `sheet ${this.tab}`, class: "wst-sheet", role: "region", "aria-label": TABS[this.tab], tabindex: 0 }, this.sheet(view)));
    if (this.helps) tree.push(help(view));
    if (this.code) tree.push(shared(this.code));
    if (this.note && !(this.tab === ACTS && this.note.row)) tree.push(h("div", { key: "note", class: "wst-note", role: "alert" }, this.note.text));
    tree.push(h("p", { key: "words", class: "wst-words" }, words));
    this.el.classList.toggle("tall", isTall(scene, view.W));
    this.el.classList.toggle("busy", this.awaits);
    this.el.setAttribute("aria-busy", String(this.awaits));
    // Another window's focus is not ours to take; in VS Code the cells are in another than the stage.
    const held = document.hasFocus() && this.el.contains(document.activeElement) ? document.activeElement as HTMLElement : null;
    patch(this.el, tree);
    this.placeNote();
    // Whatever is moved or taken out loses the focus, and the next key would go to the notebook.
    if (held && document.activeElement !== held) (held.isConnected ? held : this.left?.isConnected ? this.left : this.el).focus({ preventScroll: true });
    if (this.tab === null && !this.helps && !this.code) this.left = null;
    this.scroll(follows);
  }

  private sheet(view: View) {
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
  private follow(): boolean {
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
  private scroll(to: boolean): void {
    const sheet = this.tab === 2 ? this.el.querySelector<HTMLElement>(".wst-sheet") : null;
    if (!sheet) return;
    sheet.onscroll ??= () => { if (Math.abs(sheet.scrollTop - this.scrolled) > 40) { this.scrolled = sheet.scrollTop; this.draw(); } };
    if (to) sheet.scrollTop = this.scrolled;
  }
}

/** What a field says; of a number, null where it says none. */
const typed = (input: HTMLInputElement): Message["value"] => (input.type !== "number" ? input.value : input.value === "" ? null : Number(input.value));

async function unpack<T>(gzip: BufferSource): Promise<T> {
  const stream = new Blob([gzip]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text()) as T;
}

/** Puts the branches of an answer into a scene. */
function grow(scene: Scene, reply: Reply): void {
  const branches = reply.type === "branch" ? [reply.branch] : reply.type === "verdict" ? reply.branches ?? [] : [];
  for (const branch of branches) {
    const place = scene.branches.findIndex((one) => one.id === branch.id);
    if (place < 0) scene.branches.push(branch); else scene.branches[place] = branch;
  }
}

/** Puts a stage into an element. `scene`: the object, its gzip, or that in base64. */
export async function mount(el: Element, scene: Scene | BufferSource | string, options: Options = {}): Promise<Stage> {
  const data = typeof scene === "string" ? Uint8Array.from(atob(scene), (c) => c.charCodeAt(0)) : scene;
  return new Stage(el, "format" in data ? data : await unpack<Scene>(data), options);
}

interface Model {
  get(name: string): unknown;
  set(name: string, value: unknown): void;
  save_changes(): void;
  send(content: unknown): void;
  on(name: string, act: (...args: never[]) => void): void;
  off(name: string, act: (...args: never[]) => void): void;
}

/** What the views of a widget share: its scene, which grows with each branch, and the answers to what they send. */
interface Widget {
  unpacked: (gzip: BufferSource) => Promise<Scene>;
  /** by the view that asked; the others are told that the scene has grown */
  views: Map<string, { answered: (reply: Reply, scene: Scene) => void; grown: (scene: Scene) => void }>;
}

/** One view of a widget. */
function render({ model, el }: { model: Model; el: Element }, widget: Widget): () => void {
  const view = `v${Math.random().toString(36).slice(2)}`;
  let stage: Stage | null = null, opening = 0, unpacking = false, telling = false, waiting: ReturnType<typeof setTimeout> | undefined;
  const step = () => Number(model.get("cursor") ?? 0), branch = () => Number(model.get("branch") ?? 0);
  const tell = (to: number, of: number) => {
    // What is on its way from the kernel comes with its own place.
    if (unpacking || (step() === to && branch() === of)) return;
    telling = true;
    model.set("cursor", to);
    if (model.get("branch") !== undefined) model.set("branch", of);
    telling = false;
    // The picture never waits for the kernel; a held key sends it the last step, ten a second.
    waiting ??= setTimeout(save, 100);
  };
  const save = () => { clearTimeout(waiting); waiting = undefined; model.save_changes(); };
  const send = (message: Message) => {
    // A place that comes behind an act would be one of the scene before it. What ipywidgets hold back
    // goes ahead, too (`controls.js`).
    if (waiting !== undefined) save();
    dispatchEvent(new Event("workbench-press"));
    // After a restart of the kernel nobody is at the other end, and nothing will come.
    try { model.send({ ...message, view }); } catch { stage?.unanswered(); }
  };
  const open = async () => {
    const turn = ++opening, data = model.get("scene") as DataView | Uint8Array | undefined;
    if (!data || !data.byteLength) return;
    let scene: Scene;
    unpacking = true;
    try { scene = await widget.unpacked(data as BufferSource); } finally { if (turn === opening) unpacking = false; }
    if (turn !== opening) return;
    if (stage) { stage.load(scene, step(), branch()); note(); return; }
    stage = new Stage(el, scene, { step: step(), branch: branch(), send, onStep: tell });
    note();
    if (model.get("plays")) stage.play(true);
  };
  const note = () => { const told = String(model.get("told") ?? ""); if (told) stage?.say(told); };
  /** The kernel moves the picture. Nothing that the page has told it comes back: it echoes no place. */
  const move = () => {
    if (!stage || unpacking || telling || (stage.step === step() && stage.branch === branch())) return;
    stage.go(step(), branch());
  };
  widget.views.set(view, {
    answered: (reply, scene) => { if (reply.type !== "branch" || stage?.scene === scene) stage?.reply(reply); },
    grown: (scene) => { if (stage?.scene === scene) stage.grown(); },
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

/** anywidget's entry, asked once for each widget. */
export default () => {
  let packed: BufferSource | null = null, scene: Promise<Scene>;
  const widget: Widget = {
    unpacked: (gzip) => {
      if (gzip !== packed) { packed = gzip; scene = unpack<Scene>(gzip); }
      return scene;
    },
    views: new Map(),
  };
  /** An answer is taken in once, for the scene that is there when it comes; who asked shows what came of it. */
  const hear = (model: Model) => async (content: (Reply | { gzip: true }) & { view?: string }, buffers: BufferSource[]) => {
    const [shown, reply] = await Promise.all([widget.unpacked(model.get("scene") as BufferSource), "gzip" in content ? unpack<Reply>(buffers[0]) : content]);
    grow(shown, reply);
    // Where the one that asked is gone another shows it: the kernel is in the new branch.
    const asked = widget.views.has(content.view ?? "") ? content.view : [...widget.views.keys()][0];
    for (const [name, view] of widget.views) if (name !== asked) view.grown(shown);
    widget.views.get(asked ?? "")?.answered(reply, shown); // and moves the others
  };
  return {
    initialize: ({ model }: { model: Model }) => model.on("msg:custom", hear(model)),
    render: (shown: { model: Model; el: Element }) => render(shown, widget),
  };
};
