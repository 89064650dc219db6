/* The strip over the picture: the question, its verdict, the two rules, or the one idea. */

import { h, type VNode } from "./dom";
import type { LineState, Question, Scene, State, Verdict } from "./types";
import { phrase, phrases } from "./words";

export type Answer = string | number | null;

export interface Asked {
  scene: Scene; state: State; branch: { id: number; label: string };
  question: Question | null; picked: Answer; answer: Answer; skipped: boolean; verdict: Verdict | null;
  /** the verdict may be shown: play has passed the step that shows it */
  shown: boolean; playing: boolean; rule: string | null; urged: boolean;
}

const button = (ui: string, text: string, more: Record<string, string | boolean | null> = {}): VNode => h("button", { key: `${ui} ${more["data-arg"] ?? ""}`, type: "button", class: "wst-btn", "data-ui": ui, ...more }, text);

/** In words, how a learner's rule differs at this moment; null while it does not. */
export function differs(state: State, rule: string): string | null {
  for (const line of Object.values(state.lines ?? {}) as LineState[]) if (line.rules?.[rule]?.differs) return line.rules[rule].differs ?? null;
  return null;
}

const row = (key: string, c: string, ...kids: (VNode | string | null | undefined | false | VNode[])[]): VNode => h("div", { key, class: `wst-strip ${c}`, role: key === "ask" ? "form" : null, "aria-label": key === "ask" ? phrase("prediction") : null }, ...kids);
const tag = (text: string, hot = false): VNode => h("span", { class: `wst-tag ${hot ? "hot" : ""}`, role: hot ? "alert" : null }, text);

const compared = (rules: { id: string }[], rule?: string): VNode | false => rules.length > 0 && button("rule", phrase("compare-rules"), { "data-arg": rule ?? rules[0].id });

export function strip(asked: Asked): VNode {
  const { scene, question, branch, rule, verdict, answer } = asked, rules = scene.rules ?? [];
  if (rule) {
    const words = differs(asked.state, rule);
    return row("rules", words ? "wrong" : "", tag(phrase("two-rules")), h("div", { class: "wst-q", "aria-live": "polite" }, words ? h("b", {}, words) : phrase(scene.theirs ? "same-so-far-theirs" : "same-so-far")),
      h("select", { key: "rules", class: "wst-rules", "data-ui": "rules", "aria-label": phrase(scene.theirs ? "their-rule" : "your-rule") }, rules.map((one) => h("option", { key: one.id, value: one.id, selected: one.id === rule }, one.name))), button("rule", "✕", { "data-arg": "", "aria-label": phrase("one-rule-only"), class: "wst-btn bare" }));
  }
  if (branch.id) return row("branch", "", tag(phrase("branch", { number: branch.id })), h("div", { class: "wst-q" }, phrases("acted", { act: h("b", {}, branch.label) })), compared(rules), button("branch", phrase("back-to-given"), { "data-arg": "0" }));
  if (!question || asked.skipped) return row("idea", "", tag(phrase("picture")), h("div", { class: "wst-q", role: "status" }, scene.idea), compared(rules), question && asked.skipped && button("again", phrase("answer")));
  if (answer === null) {
    const other = question.free && asked.picked !== null && !question.options.some((one) => String(one) === String(asked.picked)) ? asked.picked : "";
    return row("ask", "", tag(phrase(asked.urged ? "commit-first" : "predict"), asked.urged), h("div", { class: "wst-q" }, h("b", {}, question.text)),
      h("div", { class: "wst-ans", role: "group", "aria-label": phrase("answers") }, question.options.map((one) => button("pick", String(one), { "data-arg": String(one), "aria-pressed": String(String(asked.picked) === String(one)) })),
        question.free && h("input", { key: "free", type: "number", placeholder: phrase("other"), "aria-label": phrase("own-number"), "data-ui": "free", value: other }),
        button("commit", phrase("commit"), { class: "wst-btn go", "aria-disabled": asked.picked === null || asked.picked === "" ? "true" : null }), button("skip", "✕", { "aria-label": phrase("skip"), title: phrase("skip"), class: "wst-btn bare" })));
  }
  if (!verdict || !asked.shown) return row("said", "", tag(phrase("predict")), h("div", { class: "wst-q" }, phrases(asked.playing ? "said-watch" : "said-play", { answer: h("b", {}, String(answer)) })), button("again", phrase("change")));
  return row("verdict", verdict.right ? "right" : "wrong", h("div", { class: "wst-q", "aria-live": "polite" }, h("b", {}, phrase(verdict.right ? "said-right" : "said-wrong", { said: answer, answer: verdict.answer }), " "), verdict.why),
    compared(rules, verdict.rule), button("again", phrase("again")));
}

/** Whether any text of the strip needs a third line: the strip then has it all the time. */
export function isTall(scene: Scene, width: number): boolean {
  const question = scene.question, verdicts = [question?.verdict, ...Object.values(question?.verdicts ?? {})].filter((one): one is Verdict => Boolean(one));
  const options = question ? question.options.reduce<number>((sum, one) => sum + String(one).length * 7 + 28, question.free ? 190 : 120) : 0;
  const lines = (text: string, room: number) => (text.length * 6.9) / Math.max(room, 120);
  return lines(question?.text ?? scene.idea, width - options - 110) > 1.8 || verdicts.some((one) => lines(one.why, width - 140) > 1.6);
}
