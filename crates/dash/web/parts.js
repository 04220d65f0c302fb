// Pieces that several views are made of.

import { h } from "./dom.js";
import * as units from "./units.js";

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

/** A time of a step. A worker reads its clock once a turn, so a shorter time is not known. @param {number} [ms] */
export const took = (ms, t) => (ms === 0 ? t("path.brief") : units.time(ms));

/** A word at the beginning of a label. @param {string} word */
export const capital = (word) => word.charAt(0).toUpperCase() + word.slice(1);

/** Puts a text on the clipboard; also where the page has no secure context. @param {string} text */
export const copy = async (text) => {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = document.createElement("textarea");
    field.value = text;
    document.body.append(field);
    field.select();
    const isDone = document.execCommand("copy");
    field.remove();
    return isDone;
  }
};

/** A line to write, with a button that copies it. @param {string} text */
export function copyable(text, t) {
  return h(
    "span",
    { class: "copyable" },
    h("code", null, text),
    h("button", {
      type: "button", class: "quiet copy", "aria-label": t("copy.label", text),
      onclick: async ({ currentTarget: button }) => {
        button.dataset.said = t((await copy(text)) ? "copy.done" : "copy.failed");
        setTimeout(() => delete button.dataset.said, 2000);
      },
    }, t("copy.do")),
  );
}

/** A way to a page inside this one: `#/zones/location/shop.example%2F`. @param {string[]} names */
export const way = (...names) => `#/${names.map(encodeURIComponent).join("/")}`;

/** Characters of a piece of a name that has room on the narrowest screen. */
const PIECE = 34;

/** An address or a name that breaks only after a slash: no host and no port is torn. A piece without room breaks anywhere. */
export const name = (text) =>
  h("span", { class: "name" }, String(text).split(/(?<=\/)/).flatMap((piece, at) => [at ? h("wbr") : null, h("span", { class: piece.length > PIECE ? "long" : "whole" }, piece)]));

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
