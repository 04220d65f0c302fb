// Pieces that several views are made of.

import { h } from "./dom.js";

/** A card with a heading. */
export function card(title, hint, ...children) {
  return h(
    "section",
    { class: "card" },
    h("header", null, h("h2", null, title), hint ? h("p", { class: "hint" }, hint) : null),
    children,
  );
}

/** A number with its name, and a line beneath. */
export const figure = (label, value, note) =>
  h("div", { class: "figure" }, h("span", { class: "label" }, label), h("strong", null, value), note ? h("span", { class: "note" }, note) : null);

/** A word with a mark of its own shape: colour is never alone. */
export function mark(tone, word) {
  const shape = { good: "●", warn: "▲", bad: "■", idle: "○" }[tone] ?? "●";
  return h("span", { class: `mark ${tone}` }, h("span", { class: "shape", "aria-hidden": "true" }, shape), word);
}

/** A message where there is nothing to show. */
export const empty = (text) => h("p", { class: "empty" }, text);

/** A bar of pieces that add up, each with its share; the list beneath says the same in words. */
export function stacked(label, pieces, whole) {
  const total = whole ?? pieces.reduce((sum, piece) => sum + piece.size, 0);
  const words = pieces.map((piece) => `${piece.name} ${piece.text}`).join(", ");
  return h(
    "div",
    { class: "stacked", role: "img", "aria-label": `${label}: ${words}` },
    pieces.map((piece) =>
      piece.size > 0 && total > 0
        ? h(
            "span",
            { key: piece.key, class: `piece ${piece.tone}`, css: { "flex-grow": String(Math.max(piece.size / total, 0.004)) } },
            piece.size / total > 0.09 ? h("span", { class: "name" }, piece.name) : null,
          )
        : null,
    ),
  );
}

/** What is in a stacked bar, in words. */
export const keys = (pieces) =>
  h(
    "ul",
    { class: "keys" },
    pieces.map((piece) =>
      h("li", { key: piece.key }, h("span", { class: `chip ${piece.tone}`, "aria-hidden": "true" }), h("span", null, piece.name), h("b", null, piece.text)),
    ),
  );
