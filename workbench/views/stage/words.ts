/* The stage's fixed words. Python puts them before this module, in the learner's language. */

import type { Kid } from "./dom";

declare const WORDS: Readonly<Record<string, string>>;

/** A phrase of the table, in pieces: what its `{names}` stand for is put between them. */
export const phrases = (key: string, named: Record<string, Kid> = {}): Kid[] => WORDS[key].split(/\{(\w+)\}/).map((piece, i) => (i % 2 ? named[piece] : piece));

/** A phrase of the table as text. */
export const phrase = (key: string, named: Record<string, string | number | null> = {}): string => phrases(key, named).join("");
