// Charts over time: one axis, one cursor, one zoom and one pause for all charts of a view.

import { chart } from "./chart.js";
import { h } from "./dom.js";
import { copyable } from "./parts.js";
import { RANGES, moment, placed, stretch, ticks } from "./time.js";
import * as units from "./units.js";

/** Milliseconds after which the page asks for the history again. */
const FRESH = 30_000;

/** The history of a stretch on the edge's disk. The page asks for it when it shows it. */
function kept(name, { from, to }, ui) {
  const { day } = ui;
  const isNew = day.name !== name;
  if (isNew || (!ui.paused && !ui.zoom && Date.now() - day.asked > FRESH)) {
    ui.day = { name, asked: Date.now(), points: isNew ? null : day.points, apart: day.apart };
    fetch(`day.json?${Math.round(from)}-${Math.round(to)}`, { cache: "no-store" })
      .then((answer) => (answer.ok ? answer.json() : null))
      .then((points) => ui.day.name === name && ui.set({ day: { ...ui.day, points: points ?? [] } }))
      .catch(() => {});
  }
  return ui.day.points;
}

/** Milliseconds between two points, as most of them are. */
export function apart(points) {
  const between = points.slice(1).map((point, at) => point.at - points[at].at).sort((a, b) => a - b);
  return between.length ? between[between.length >> 1] : 1000;
}

/**
 * The axis that is shown, its points, and the newest of them. `live` are points second by second; without `range`, these
 * alone.
 * @param {{doc: any, ui: any, live: any[], range?: string, told?: (point: any) => any}} what `told` makes of a point what is
 *   drawn
 */
export function axis({ doc, ui, live, range = "minutes", told = (point) => point }) {
  const { zoom } = ui;
  if (range !== "minutes") {
    const whole = { from: doc.at - RANGES[range] * 1000, to: doc.at };
    const points = kept(zoom ? `${range} ${zoom.from}` : range, zoom ?? whole, ui);
    if (!points || points.length === 0) return { points: null, isWaiting: !points };
    const of = zoom ?? stretch(doc.at, RANGES[range], points[0].at);
    return { ...placed(points.map(told), of, apart(points)), newest: zoom ? null : told(points.at(-1)), isZoomed: Boolean(zoom) };
  }
  const points = zoom?.live ?? live;
  const first = points.find(Boolean)?.at;
  const began = Math.max(first ?? 0, doc.at - doc.snapshot.weir.uptime_ms);
  const of = zoom ?? stretch(doc.at, RANGES.minutes, Math.min(began, first ?? began));
  // A place stands for the highest of two seconds; what is beside the name of a line is the newest second.
  return { ...placed(points.map(told), of), newest: zoom ? null : told(points.at(-1)), isZoomed: Boolean(zoom) };
}

/** Draws charts on one axis: `one(title, format, series)`. `live` are the points that a zoom holds on to. */
export function drawer(of, { t, ui, live }) {
  const marks = ticks(of);
  const zoom = (from, to) => {
    const at = (part) => of.from + part * (of.to - of.from);
    // Two places are the least that makes a line.
    const [left, right] = [at(from), Math.max(at(to), at(from) + 4 * (of.width ?? 1000))];
    ui.set({ zoom: { from: left, to: right, live: ui.zoom?.live ?? live } });
  };
  return (title, format, series, more) =>
    h("section", { class: "card", key: title }, chart({
      title, format, latest: true, ticks: marks, slots: of.points.length,
      label: (at) => moment(of.from + (at / Math.max(1, of.points.length - 1)) * (of.to - of.from), of.width),
      group: "time", zoom, back: () => ui.zoom && ui.set({ zoom: null }),
      series: series.map(({ of: pick, ...one }) => ({ ...one, now: of.newest ? (of.newest[pick] ?? null) : undefined, values: of.points.map((point) => point?.[pick] ?? null) })),
      ...more,
    }));
}

/** The buttons above the charts. @param {string[]} ranges */
export function controls(ranges, { doc, t, ui, more, said }) {
  const choice = (name) =>
    h("button", { key: name, type: "button", class: "quiet", "aria-pressed": ui.history === name ? "true" : "false", onclick: () => ui.set({ history: name, zoom: null }) }, t(`day.${name}`));
  return h(
    "div",
    { class: "controls" },
    ranges.length ? h("div", { class: "choices", role: "group", "aria-label": t("day.last") }, ranges.map(choice), more ? choice(more) : null) : h("span", { class: "hint" }, said),
    h("span", { class: "gap" }),
    ui.zoom
      ? h("button", { key: "back", type: "button", class: "quiet back", onclick: () => ui.set({ zoom: null }) }, h("span", { "aria-hidden": "true" }, "← "), t("zoom.back", `${moment(ui.zoom.from, 1000)} – ${moment(ui.zoom.to, 1000)}`))
      : h("span", { key: "how", class: "hint how" }, t("zoom.how")),
    pause({ doc, t, ui }),
  );
}

/**
 * Charts of the seconds since the page was opened, with their buttons.
 * @param {{doc: any, t: any, ui: any, live: any[]}} seen @param {(one: any) => any[]} charts
 */
export function timed({ doc, t, ui, live: all }, charts) {
  // The first document has nothing before it that it could be compared with.
  const live = all.slice(1);
  const of = axis({ doc, ui, live });
  return [
    controls([], { doc, t, ui, said: t("day.seen", units.span((of.to - of.from) / 1000)) }),
    h("div", { class: "grid two charts" }, charts(drawer(of, { t, ui, live }))),
  ];
}

/** Holds the page, or lets it go on. */
function pause({ doc, t, ui }) {
  return h("button", { key: "pause", type: "button", class: "quiet pause", "aria-pressed": ui.paused ? "true" : "false", onclick: () => ui.hold(!ui.paused) },
    h("span", { "aria-hidden": "true" }, ui.paused ? "▶ " : "❚❚ "), ui.paused ? t("pause.on", units.clock(doc.at)) : t("pause.off"));
}

/** The words in place of charts that have no history. */
export const missing = (isWaiting, t) =>
  h("section", { class: "card wide" }, isWaiting ? h("p", { class: "empty" }, t("wait")) : h("p", { class: "empty" }, t("day.none"), " ", copyable("dashboard_history FILE;", t)));
