/* A very small virtual DOM: a picture is described anew for every moment, and what stays the same in
   the page is left alone, so that focus, drags and CSS transitions live on. Text becomes text nodes
   and styles go through CSSOM: no string is ever read as markup, and a strict policy holds. */

export interface VNode { tag: string; a: Attributes; kids: (VNode | string)[] }
export type Attributes = Record<string, string | number | boolean | null | undefined>;
export type Kid = VNode | string | number | null | undefined | false | Kid[];

interface Patched { __key?: string; __a?: Attributes }

const SVG = "http://www.w3.org/2000/svg";

export function h(tag: string, a: Attributes = {}, ...kids: Kid[]): VNode {
  const flat: (VNode | string)[] = [];
  const add = (kid: Kid): void => {
    if (Array.isArray(kid)) kid.forEach(add);
    else if (typeof kid === "number") flat.push(String(kid));
    else if (kid) flat.push(kid);
  };
  kids.forEach(add);
  return { tag, a, kids: flat };
}

/** Makes the children of `parent` what `kids` describe. A key names a child among its siblings. */
export function patch(parent: Element, kids: (VNode | string)[], svg = false): void {
  // Most pictures have the same children in the same order: where they differ, the rest is looked up by key.
  let old: Map<string, ChildNode> | null = null, place = parent.firstChild;
  const seen: Record<string, number> = {};
  for (const kid of kids) {
    const tag = typeof kid === "string" ? "#" : kid.tag;
    const named = typeof kid === "object" && kid.a.key !== undefined;
    const base = named ? `${tag}:${(kid as VNode).a.key}` : tag;
    const nth = (seen[base] = (seen[base] ?? 0) + 1);
    const key = named && nth === 1 ? base : `${base}#${nth}`;
    let node: ChildNode | undefined;
    if (place && (place as Patched).__key === key) {
      node = place;
      place = place.nextSibling;
    } else {
      if (!old) {
        old = new Map();
        for (let rest = place; rest; rest = rest.nextSibling) old.set((rest as Patched).__key ?? "", rest);
      }
      node = old.get(key);
      if (!node) {
        node = tag === "#" ? document.createTextNode("") : svg || tag === "svg" ? document.createElementNS(SVG, tag) : document.createElement(tag);
        (node as Patched).__key = key;
      }
      parent.insertBefore(node, place);
    }
    old?.delete(key);
    if (typeof kid === "string") {
      if ((node as Text).data !== kid) (node as Text).data = kid;
    } else {
      attributes(node as Element, kid.a);
      patch(node as Element, kid.kids, svg || tag === "svg");
    }
  }
  if (old) for (const node of old.values()) node.remove();
  else while (place) { const next: ChildNode | null = place.nextSibling; place.remove(); place = next; }
}

function attributes(element: Element & Patched, now: Attributes): void {
  const before = element.__a ?? {};
  for (const name in before) if (!(name in now)) element.removeAttribute(name);
  for (const name in now) {
    const value = now[name];
    if (name === "key" || before[name] === value) continue;
    if (name === "style") (element as HTMLElement).style.cssText = String(value ?? "");
    else if (name === "value") { if (document.activeElement !== element) (element as HTMLInputElement).value = String(value); }
    else if (value === false || value === null || value === undefined) element.removeAttribute(name);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.__a = now;
}
