// The certificates that servers show to clients: when each ends, and what weir does about it.

import { h } from "../dom.js";
import { card, empty, mark } from "../parts.js";
import { finder, found, table } from "../table.js";
import * as units from "../units.js";

/** Seconds before the end from which on a certificate is near it: a week, or a fifth of its life if that is less. */
const NEAR_S = 7 * 24 * 3600;

/** How a certificate stands: `missing`, `over`, `near`, `failing` or `good`. @param {any} one */
export function state(one, nowMs) {
  if (!one.ends) return "missing";
  const left = (Date.parse(one.ends) - nowMs) / 1000;
  if (left <= 0) return "over";
  const life = (Date.parse(one.ends) - Date.parse(one.begins)) / 1000;
  if (left < Math.min(NEAR_S, life / 5)) return "near";
  return one.failures > 0 ? "failing" : "good";
}

/** How many ask for a person. */
export const alarming = (list, nowMs) => (list ?? []).filter((one) => ["over", "near", "missing"].includes(state(one, nowMs))).length;

const TONES = { missing: "warn", over: "bad", near: "bad", failing: "warn", good: "good" };

export function certificates({ doc, t, ui }) {
  const list = doc.snapshot.weir.certificates ?? [];
  if (list.length === 0) return card(t("nav.certificates"), null, empty(t("cert.none")));
  const left = (one) => (one.ends ? (Date.parse(one.ends) - doc.at) / 1000 : null);
  const day = (text) => (text ? text.slice(0, 16).replace("T", " ") : units.NOTHING);
  const columns = [
    { key: "host", label: t("cert.host"), text: true, get: (one) => one.hosts?.[0] ?? "", show: (one) => hosts(one) },
    { key: "state", label: t("up.state"), text: true, get: (one) => left(one), show: (one) => mark(TONES[state(one, doc.at)], t(`cert.${state(one, doc.at)}`)) },
    { key: "left", label: t("cert.left"), get: (one) => left(one), show: (one) => (one.ends && left(one) > 0 ? units.span(left(one)) : units.NOTHING) },
    { key: "ends", label: t("cert.ends"), text: true, get: (one) => one.ends ?? "", show: (one) => day(one.ends) },
    { key: "source", label: t("cert.source"), text: true, wide: true, get: (one) => one.source },
    { key: "next", label: t("cert.next"), text: true, get: (one) => one.next ?? "", show: (one) => (one.is_renewed ? day(one.next) : t("cert.byHand")) },
    { key: "error", label: t("cert.error"), text: true, wide: true, get: (one) => one.error ?? "", show: (one) => one.error ?? "" },
  ];
  const tone = (one) => (TONES[state(one, doc.at)] === "bad" ? "failing" : "");
  const isFailing = (one) => state(one, doc.at) !== "good";
  const seen = found(list, ui.find.certificates, (one) => `${(one.hosts ?? []).join(" ")} ${one.source} ${t(`cert.${state(one, doc.at)}`)}`, isFailing);
  return [
    finder(ui, { id: "certificates", t, failing: list.filter(isFailing).length, all: list.length, seen: seen.length }),
    card(
      t("nav.certificates"),
      t("cert.hint"),
      table(ui, { id: "certificates", caption: t("nav.certificates"), columns, rows: seen, none: t("find.none"), by: t("find.order"), rowKey: (one) => `${one.source} ${(one.hosts ?? []).join(" ")}`, sort: ["left", false], tone }),
    ),
  ];
}

function hosts(one) {
  const [first, ...more] = one.hosts ?? [];
  return h("span", { title: (one.hosts ?? []).join(" ") }, first ?? "", more.length ? ` +${more.length}` : "");
}
