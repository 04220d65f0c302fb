// What went wrong: failed requests by reason and by location, over time; in each class the newest samples, and with
// each sample its lines of the logs.

import { h } from "../dom.js";
import { REASONS, between, grew, isFailed, reasons, zones } from "../model.js";
import { card, empty, name, way } from "../parts.js";
import { finder, found, sorted } from "../table.js";
import { axis, controls, drawer, missing } from "../timeline.js";
import { RANGES } from "../time.js";
import * as units from "../units.js";
import { entries, notes } from "./logs.js";

/** To whom a class belongs, in the order in which they are shown. */
const KINDS = ["failed", "refused", "recovered", "client"];
/** Orders of the classes, each from the most. */
const ORDERS = { total: (error) => error.count, now: (error) => error.rate, last: (error) => Date.parse(error.last) };
const TONES = { limit: "warn", upstream: "deep", timeout: "violet", client: "soft", weir: "bad" };

export function errors({ doc, before, past, t, ui }) {
  const seconds = between(doc, before);
  const classes = (doc.snapshot.weir.errors ?? []).map((error, place) => {
    const old = before?.snapshot.weir.errors?.find((one) => one.class === error.class);
    return { ...error, place, rate: grew(error.count, old?.count ?? (before ? 0 : undefined), seconds) };
  });
  classes.filter((error) => ui.open.has(error.class)).forEach((error) => renew(error, error.place, ui));
  if (classes.length === 0) return card(t("nav.errors"), null, empty(t("err.none")));
  const seen = found(classes, ui.find.errors, (error) => `${error.class} ${t.of(error.title)} ${error.reason} ${t(`reason.${error.reason}`)}`, isFailed);
  const order = ORDERS[ui.sort.errors] ? ui.sort.errors : "total";
  const groups = KINDS.map((kind) => [kind, sorted(seen.filter((error) => error.kind === kind), { get: ORDERS[order] }, true)]).filter(([, of]) => of.length > 0);
  return [
    finder(ui, { id: "errors", t, failing: classes.filter(isFailed).length, all: classes.length, seen: seen.length }),
    controls(Object.keys(RANGES), { doc, t, ui }),
    h("div", { class: "grid two charts" }, over(doc, past, t, ui), places(doc, before, t)),
    h("label", { class: "sorting" }, t("find.order"),
      h("select", { onchange: (event) => ui.set({ sort: { ...ui.sort, errors: event.target.value } }) }, Object.keys(ORDERS).map((name) => h("option", { key: name, value: name, selected: name === order }, t(`errsort.${name}`))))),
    ...groups.map(([kind, of]) => card(t(`err.${kind}`), t(`err.${kind}.hint`), h("ul", { class: `errors of-${kind}` }, of.map((error) => folded(error, doc, t, ui))))),
    groups.length === 0 ? empty(t("find.none")) : null,
    h("p", { class: "hint" }, t("err.secret")),
  ];
}

/** Errors each second by reason, over the same time as on the overview. */
function over(doc, past, t, ui) {
  // The first second of a process has nothing before it that it could be compared with.
  const live = past[0]?.refused === undefined ? past.slice(1) : past;
  const of = axis({ doc, ui, live, range: ui.history in RANGES ? ui.history : "minutes", told: reasons });
  if (!of.points) return missing(of.isWaiting, t);
  const there = REASONS.filter((reason) => of.points.some((point) => point?.[reason] > 0));
  const lines = (there.length ? there : ["upstream"]).map((reason, at) => ({ name: t(`reason.${reason}`), tone: TONES[reason], of: reason, dash: at % 3 }));
  return drawer(of, { t, ui, live })(t("chart.reasons"), units.si, lines);
}

/** Locations that are listed. */
const PLACES_MAX = 8;

/** Where requests fail, and where limits refuse them: now, and since the start. */
function places(doc, before, t) {
  const rows = zones(doc, before, "location_zones").flatMap((row) => {
    const account = doc.snapshot.weir.location_zones?.[row.name];
    return account?.failed || account?.refused ? [{ ...row, all: account.failed, refusedAll: account.refused }] : [];
  });
  rows.sort((a, b) => (b.failed ?? 0) - (a.failed ?? 0) || b.all - a.all || b.refusedAll - a.refusedAll);
  return card(
    t("err.places"), rows.length > PLACES_MAX ? t("detail.first", PLACES_MAX, rows.length) : null,
    rows.length === 0
      ? empty(t("err.noPlace"))
      : h("div", { class: "overs", tabindex: 0, role: "region", "aria-label": t("err.places") }, h("table", { class: "path" },
        h("thead", null, h("tr", null, h("th", { scope: "col", class: "text" }, t("col.zone")),
          ["err.failedNow", "err.failedAll", "err.refusedNow", "err.refusedAll"].map((label) => h("th", { key: label, scope: "col", class: "number" }, t(label))))),
        h("tbody", null, rows.slice(0, PLACES_MAX).map((row) =>
          h("tr", { key: row.name },
            h("th", { scope: "row", class: "text" }, h("a", { href: way("zones", "location", row.name) }, name(row.name))),
            h("td", { class: "number" }, row.failed > 0 ? h("span", { class: "bad-ink" }, units.rate(row.failed)) : units.rate(row.failed)),
            h("td", { class: "number" }, units.count(row.all)),
            h("td", { class: "number" }, units.rate(row.refused)),
            h("td", { class: "number" }, units.count(row.refusedAll))))))),
  );
}

/** A class, which opens to its samples. */
function folded(error, doc, t, ui) {
  const isOpen = ui.open.has(error.class);
  const id = `samples-${error.class.replace(/[^a-z0-9]+/gi, "-")}`;
  return h(
    "li",
    { key: error.class },
    h(
      "button",
      {
        type: "button",
        class: "class",
        "aria-expanded": isOpen ? "true" : "false",
        "aria-controls": id,
        onclick: () => {
          const open = new Set(ui.open);
          if (!open.delete(error.class)) open.add(error.class);
          ui.set({ open });
        },
      },
      h("span", { class: "fold", "aria-hidden": "true" }, isOpen ? "▾" : "▸"),
      h("span", { class: `reason ${TONES[error.reason]}` }, h("i", { "aria-hidden": "true" }), t(`reason.${error.reason}`)),
      h("span", { class: "name", title: error.class }, t.of(error.title ?? error.class)),
      h("span", { class: "rated" }, units.rate(error.rate)),
      h("span", { class: isFailed(error) ? "total bad-ink" : "total" }, units.count(error.count)),
      h("span", { class: "last" }, `${t("err.last")} ${at(error.last)}`),
    ),
    h("div", { id, class: "samples", hidden: !isOpen }, isOpen ? samples(ui.samples[error.class], error.reason, doc, t, ui) : null),
  );
}

const at = (text) => units.clock(Date.parse(text));

/** Samples older than this are asked for again when there are new ones, in milliseconds. */
const FRESH = 2000;

/** Asks for the samples of a class that has more than were seen, and for what logs say about them. */
function renew(kind, place, ui) {
  const known = ui.samples[kind.class];
  if (known && (known.count === kind.count || ui.paused || Date.now() - known.asked < FRESH)) return;
  ui.samples[kind.class] = { ...(known ?? { samples: null, logs: null }), count: kind.count, asked: Date.now() };
  const keep = (change) => ui.set({ samples: { ...ui.samples, [kind.class]: { ...ui.samples[kind.class], ...change } } });
  // The list may have changed its order meanwhile: what is of another class is not wanted.
  const ask = (name) =>
    fetch(`${name}?${place}`, { cache: "no-store" })
      .then((answer) => (answer.ok ? answer.json() : null))
      .then((got) => (got?.class === kind.class ? got : null));
  // Files take their time: the first samples are shown without them, all later ones only beside their lines.
  const first = known?.samples ? Promise.resolve() : ask("samples.json").then((got) => got && keep({ samples: got.samples }));
  first
    .then(() => ask("logs.json"))
    .catch(() => null)
    // Whoever was refused asks again.
    .then((got) => keep(got ? { count: got.count, samples: got.samples, logs: got } : { count: 0 }));
}

/** Samples that are shown of one location until more are asked for. */
const ALIKE_MAX = 3;

/** Samples by the location that they came to, the newest first. @returns {[string, any[]][]} */
export function byPlace(samples) {
  const groups = new Map();
  for (const sample of samples) {
    const place = sample.zone || sample.server;
    groups.set(place, [...(groups.get(place) ?? []), sample]);
  }
  return [...groups];
}

function samples(known, reason, doc, t, ui) {
  if (!known?.samples) return h("p", { class: "hint" }, t("wait"));
  return [
    h("p", { class: "hint" }, t("err.samples", known.samples.length)),
    known.samples.some((sample) => sample.line) ? null : h("p", { class: "hint" }, t("err.noLine")),
    notes(known.logs, known.samples, doc, t, ui),
    byPlace(known.samples).map(([place, list]) => {
      const key = `${known.samples[0]?.number ? reason : ""} ${place}`;
      const isAll = ui.open.has(key) || list.length <= ALIKE_MAX + 1;
      return h(
        "div",
        { key: place, class: "alike" },
        h("h3", null, name(place), h("span", { class: "hint" }, t("err.ofSamples", list.length, known.samples.length))),
        h("ol", null, (isAll ? list : list.slice(0, ALIKE_MAX)).map((sample) => one(sample, known.logs, reason, t))),
        isAll ? null : h("button", { type: "button", class: "quiet", onclick: () => ui.set({ open: new Set([...ui.open, key]) }) }, t("err.more", list.length - ALIKE_MAX)),
      );
    }),
  ];
}

function one(sample, logs, reason, t) {
  return h(
    "li",
    { key: sample.number, class: "sample" },
    h(
      "div",
      { class: "facts" },
      h("b", null, at(sample.at)),
      h("span", null, t(`reason.${reason}`)),
      sample.status ? h("span", { class: `code c${Math.floor(sample.status / 100)}` }, h("b", null, String(sample.status))) : null,
      h("span", { class: "request" }, sample.request || units.NOTHING),
      h("span", null, `${t("err.took")} ${units.time(sample.took_us / 1000)}`),
      h("span", null, `${t("err.from")} `, h("span", { class: "whole" }, sample.client || units.NOTHING)),
      sample.upstream ? h("span", null, `${t("err.upstream")} `, h("span", { class: "whole" }, sample.upstream)) : null,
    ),
    // An empty frame beneath each sample would say nothing.
    sample.line ? h("pre", { class: "line", tabindex: 0, role: "region", "aria-label": t("err.line") }, sample.line) : null,
    entries(logs, sample, t),
  );
}
