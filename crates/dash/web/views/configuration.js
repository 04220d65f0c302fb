// The configuration in force, how it differs from the one before, and why the last reload was refused.

import { h } from "../dom.js";
import { card, empty, mark } from "../parts.js";
import * as units from "../units.js";

/** How old the answer may be before it is asked for again, in milliseconds. */
const FRESH = 5000;

function renew(doc, ui) {
  const { configuration } = ui;
  const isNew = configuration.seen?.generation !== doc.snapshot.nginx.generation;
  if (ui.paused || Date.now() - configuration.asked < (isNew ? 500 : FRESH)) return;
  configuration.asked = Date.now();
  fetch("configuration.json", { cache: "no-store" })
    .then((answer) => (answer.ok ? answer.json() : null))
    .then((seen) => seen && ui.set({ configuration: { ...ui.configuration, seen } }))
    .catch(() => {});
}

const when = (ms) => {
  const date = new Date(ms);
  const two = (n) => String(n).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${units.clock(ms)}`;
};

export function configuration({ doc, t, ui }) {
  renew(doc, ui);
  const { seen } = ui.configuration;
  if (!seen) return card(t("nav.configuration"), null, empty(t("wait")));
  return [
    seen.refused ? refused(seen.refused, t) : null,
    card(
      t("conf.change"),
      seen.before ? t("conf.since", when(seen.before), when(seen.loaded)) : t("conf.loaded", when(seen.loaded)),
      seen.before ? (seen.diff ? diff(seen.diff, t) : empty(t("conf.same"))) : empty(t("conf.first")),
    ),
    seen.files.map((file) => files(file, ui, t)),
    seen.is_cut ? h("p", { class: "hint" }, t("conf.cut")) : null,
  ];
}

function refused({ at, why }, t) {
  return h(
    "section",
    { class: "card refused" },
    h("header", null, h("h2", null, mark("bad", t("conf.refused", when(at)))), h("p", { class: "hint" }, t("conf.stays"))),
    why ? h("ul", { class: "why" }, why.map((line) => h("li", { key: line }, h("code", null, line)))) : empty(t("conf.untold")),
  );
}

/** A diff: each line has its sign, so that colour is not alone. */
function diff(text, t) {
  const kind = (line) => (line.startsWith("+++") || line.startsWith("---") ? "named" : { "+": "added", "-": "removed", "@": "hunk" }[line[0]] ?? "");
  const lines = text.split("\n").filter((line, at, all) => line || at < all.length - 1);
  return h("pre", { class: "listing diff", tabindex: 0, "aria-label": t("conf.change") }, lines.map((line, at) => h("span", { key: String(at), class: `line ${kind(line)}` }, `${line}\n`)));
}

function files(file, ui, t) {
  const name = `conf ${file.name}`;
  const isOpen = ui.open.has(name);
  const toggle = () => {
    const open = new Set(ui.open);
    if (isOpen) open.delete(name);
    else open.add(name);
    ui.set({ open });
  };
  return h(
    "section",
    { class: "card conffile", key: file.name },
    h("header", null, h("h2", null, h("button", { type: "button", class: "quiet", "aria-expanded": isOpen ? "true" : "false", onclick: toggle }, h("span", { "aria-hidden": "true" }, isOpen ? "▾ " : "▸ "), file.name))),
    isOpen ? (file.text === null ? empty(t("conf.private")) : listing(file)) : null,
  );
}

function listing(file) {
  const lines = file.text.split("\n");
  if (lines[lines.length - 1] === "") lines.pop();
  return h("pre", { class: "listing", tabindex: 0, "aria-label": file.name }, lines.map((line, at) => h("span", { key: String(at), class: "line", "data-number": String(at + 1) }, `${line}\n`)));
}
