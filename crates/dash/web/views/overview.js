// The first look: figures, waterlines, the way of a request, the busiest locations, charts over time.

import { chart, spark } from "../chart.js";
import { h } from "../dom.js";
import { between, grew, lately, middle, ms, part, stretches, toneOf, waterlineOf, waterlines, zones } from "../model.js";
import { card, copyable, empty, name, stacked, took, way } from "../parts.js";
import { RANGES } from "../time.js";
import { axis, controls, drawer, missing } from "../timeline.js";
import * as units from "../units.js";

export function overview({ doc, docs, past, t, ui }) {
  return [
    figures(doc, past, t),
    h("div", { class: "grid two even" }, water(doc, t), h("div", { class: "column" }, path(doc, t), busiest(doc, docs, t))),
    canary(doc, t),
    history(doc, past, t, ui),
  ];
}

/** The canary of this process, or the last one: the clients of both configurations, and how far the evidence of each kind of harm is. */
function canary(doc, t) {
  const of = doc.snapshot.weir.canary;
  if (!of) return null;
  const far = (evidence) => Math.min(1, Math.max(0, Math.log(evidence) / Math.log(of.evidence_limit)));
  const row = (key, title, evidence, sub) =>
    h("li", { key, class: evidence >= of.evidence_limit ? "failing" : undefined },
      title,
      h("span", { class: "rank", "aria-hidden": "true" }, h("i", { css: { width: `${far(evidence) * 100}%` } })),
      h("b", null, evidence.toFixed(1)),
      h("span", { class: "sub" }, sub));
  const shares = (aspect) => t("canary.shares", units.percent(aspect.new), units.percent(aspect.old));
  return card(
    t("canary.title", of.file),
    t(`canary.${of.phase}`),
    h("p", { class: "hint" }, t("canary.clients", units.percent(of.share), units.count(of.new.clients), units.count(of.old.clients))),
    h("ul", { class: "ranked" },
      row("all", t("canary.evidence"), of.evidence, t("canary.limit", units.count(of.evidence_limit))),
      of.aspects.map((aspect) => row(aspect.name, t(`canary.of.${aspect.name}`), aspect.evidence, shares(aspect)))),
  );
}

/** Locations that are listed on the first look. */
const BUSIEST = 5;

/** The locations that fail, then those with the most requests: over the seconds of the verdict. */
function busiest(doc, docs, t) {
  const before = lately(docs);
  const seconds = between(doc, before);
  const rows = zones(doc, before, "location_zones").filter((row) => row.zone.requests > 0)
    .map((row) => ({ ...row, rate: grew(row.zone.requests, before?.snapshot.http.location_zones[row.name]?.requests, seconds) ?? row.rate }));
  if (rows.length === 0) return null;
  rows.sort((a, b) => (b.failed ?? 0) - (a.failed ?? 0) || (b.rate ?? 0) - (a.rate ?? 0));
  const most = Math.max(1e-9, ...rows.map((row) => row.rate ?? 0));
  return card(
    t("zones.locations"),
    t("busy.hint", units.span(seconds || 1)),
    h("ul", { class: "ranked" }, rows.slice(0, BUSIEST).map((row) =>
      h("li", { key: row.name, class: row.failed > 0 ? "failing" : undefined },
        h("a", { href: way("zones", "location", row.name) }, name(row.name)),
        h("span", { class: "rank", "aria-hidden": "true" }, h("i", { css: { width: `${((row.rate ?? 0) / most) * 100}%` } })),
        h("b", null, units.rate(row.rate)),
        h("span", { class: "sub" }, row.failed > 0 ? h("span", { class: "bad-ink" }, `${t("chart.failed")} ${units.rate(row.failed)}`) : `p95 ${took(row.p95, t)}`)))),
    h("p", { class: "hint more" }, h("a", { href: way("zones") }, t("busy.all", units.count(rows.length)), h("span", { "aria-hidden": "true" }, " →"))),
  );
}

function tile(label, when, value, note, values, tone, alarm) {
  return h(
    "div",
    { class: `tile ${alarm ?? ""}` },
    h("span", { class: "label" }, h("span", null, label), h("span", { class: "when" }, when)),
    h("strong", null, value),
    h("span", { class: "note" }, note ?? ""),
    spark(values, tone),
  );
}

/** Each tile says of which time its figure is. What is counted is of the seconds of the verdict. */
function figures(doc, past, t) {
  const { point, recent, snapshot } = doc;
  const of = (name) => past.slice(1).map((point) => point?.[name]);
  const over = (seconds) => t("kpi.over", units.span(Math.max(1, seconds)));
  const [lately, times] = [over(recent.seconds), over(snapshot.weir.recent_ms / 1000)];
  const share = part(recent.failed, recent.rps);
  const [cpu, quota] = [waterlineOf(doc, "machine_cpu"), waterlineOf(doc, "cpu_quota")];
  // The words of the verdict and of the errors.
  const why = [["upstream", recent.upstream], ["timeout", recent.timeout], ["limit", recent.refused]];
  const notes = [share ? t("kpi.perSecond", units.percent(share)) : null, ...why.filter(([, rate]) => rate > 0).map(([reason, rate]) => `${t(`reason.${reason}`)} ${units.rate(rate)}`)];
  return h(
    "section",
    { class: "tiles", "aria-label": t("nav.overview") },
    tile(t("kpi.requests"), lately, units.rate(recent.rps), t("kpi.inflight", units.si(snapshot.http.requests.current)), of("rps")),
    tile(t("kpi.failed"), lately, units.rate(recent.failed), notes.filter(Boolean).join(" · "), of("failed"), "bad", recent.failed > 0 ? "alarm" : ""),
    tile(t("kpi.p99"), times, took(point.p99, t), t("kpi.p50of", took(point.p50, t)), of("p99"), "deep"),
    tile(t("kpi.connections"), t("kpi.now"), units.si(point.active), t("kpi.idle", units.si(point.idle)), of("active")),
    tile(t("kpi.out"), lately, units.byteRate(recent.sent), t("kpi.in", units.byteRate(recent.received)), of("sent")),
    tile(t("chart.cpu"), lately, units.percent(cpu?.ratio ?? point.cpu), [cpu ? t("kpi.cpus", units.si(cpu.limit)) : null, quota ? `${t("host.quota")} ${units.percent(quota.ratio)}` : null].filter(Boolean).join(" · "), of("cpu"), "deep"),
  );
}

function amount(unit, n) {
  if (unit === "bytes") return units.bytes(n);
  return unit === "cores" ? units.share(n) : units.count(n);
}

function timeLeft(line, t) {
  if (line.ratio >= 1) return t("water.at");
  // The edge tells a time only where it says something: from a quarter of the limit on.
  if (line.eta_s !== undefined) return t("water.inTime", units.span(line.eta_s));
  return t({ rising: "water.rising", flat: "water.notRising" }[line.trend] ?? "water.short");
}

function water(doc, t) {
  const lines = waterlines(doc);
  // What stands empty is folded away, but a handful.
  const shown = Math.max(SHOWN_MIN, lines.filter((line) => line.ratio >= 0.1 || line.trend === "rising" || line.hits > 0).length);
  return card(
    t("water.title"),
    t("water.hint"),
    lines.length === 0
      ? empty(t("water.none"))
      : [list(lines.slice(0, shown), t), shown < lines.length ? rest(lines.slice(shown), t) : null],
  );
}

const SHOWN_MIN = 6;

const list = (lines, t) => h("ul", { class: "waterlines" }, lines.map((line) => waterline(line, t)));

function rest(lines, t) {
  const highest = Math.max(0.01, Math.ceil(lines[0].ratio * 100 + 1e-9) / 100);
  return h("details", { key: "rest", class: "rest" }, h("summary", null, t("water.more", units.count(lines.length), units.percent(highest))), list(lines, t));
}

function waterline(line, t) {
  const tone = toneOf(line);
  const [used, limit, highest] = [line.used, line.limit, line.max].map((n) => amount(line.unit, n));
  const [name, of] = [t.of(line.name), t.of(line.object)];
  const clip = (n) => `${Math.min(100, Math.max(0, n * 100)).toFixed(1)}%`;
  return h(
    "li",
    { key: `${line.kind} ${line.of}`, class: `waterline ${tone}` },
    h("div", { class: "what" }, h("span", { class: "name" }, name), of ? h("span", { class: "of" }, of) : null),
    h("div", { class: "share" }, tone === "water" ? null : h("span", { "aria-hidden": "true" }, tone === "bad" ? "■ " : "▲ "), units.percent(line.ratio)),
    h(
      "div",
      { class: "vessel", role: "meter", "aria-label": `${name} ${of}`.trim(), "aria-valuemin": 0, "aria-valuemax": 100,
        "aria-valuenow": Math.min(100, Math.round(line.ratio * 100)), "aria-valuetext": `${used} ${t("water.of")} ${limit}` },
      h("span", { class: "level", css: { width: clip(line.ratio) } }),
      h("span", { class: "highest", css: { left: clip(line.max / line.limit) } }),
    ),
    h(
      "div",
      { class: "facts" },
      h("span", null, h("b", null, used), ` ${t("water.of")} ${limit}`),
      h("span", null, `${t("water.max")} ${highest}`),
      line.hits > 0 ? h("span", { class: "met" }, `${t("water.hits")} ${t("water.times", units.count(line.hits))}`) : null,
      h("span", { class: line.trend === "rising" && tone !== "water" ? "rising" : undefined }, timeLeft(line, t)),
      line.set_by ? h("span", { class: "setby" }, t("water.setBy", t.of(line.setter ?? line.set_by))) : null,
    ),
  );
}

const QUANTILES = ["p50_us", "p95_us", "p99_us"];

function path(doc, t) {
  const { path, recent_ms } = doc.snapshot.weir;
  const window = units.span(Math.max(1, recent_ms / 1000));
  const seen = (path ?? []).filter((step) => step.recent.count > 0);
  const most = Math.max(1, ...seen.map((step) => step.recent.count));
  // A step that few requests pass weighs as little as they are.
  const weight = (step) => (step.recent.p95_us * step.recent.count) / most;
  const whole = seen.reduce((sum, step) => sum + weight(step), 0);
  const pieces = seen.map((step) => ({
    key: step.step,
    name: t(`path.${step.step}`),
    size: weight(step),
    tone: `step-${step.step}`,
    text: units.time(ms(step.recent, "p95_us")),
  }));
  return card(
    t("path.title"),
    t("path.hint", window),
    seen.length === 0
      ? empty(t("path.none", window))
      : [
          stacked(t("path.title"), pieces, whole),
          h(
            "table",
            { class: "path" },
            h(
              "thead",
              null,
              h(
                "tr",
                null,
                h("th", { scope: "col", class: "text" }, t("path.step")),
                ["p50", "p95", "p99"].map((name) => h("th", { scope: "col", class: "number" }, name)),
                h("th", { scope: "col", class: "number" }, t("path.times")),
              ),
            ),
            h(
              "tbody",
              null,
              seen.map((step) =>
                h(
                  "tr",
                  { key: step.step },
                  h("th", { scope: "row", class: "text" }, h("span", { class: `chip step-${step.step}`, "aria-hidden": "true" }), t(`path.${step.step}`)),
                  QUANTILES.map((quantile) => h("td", { class: "number" }, took(ms(step.recent, quantile), t))),
                  h("td", { class: "number" }, units.si(step.recent.count)),
                ),
              ),
            ),
          ),
          h("p", { class: "hint beneath" }, t("path.turn"), seen.length < path.length ? ` ${t("path.unseen", path.filter((step) => !seen.includes(step)).map((step) => t(`path.${step.step}`)).join(", "))}` : ""),
        ],
  );
}

/** Longest stretch that is set beside another, in seconds. */
const STRETCH = 300;

function history(doc, all, t, ui) {
  // The first second of a process has nothing before it that it could be compared with.
  const past = all[0] && all[0].refused === undefined ? all.slice(1) : all;
  const isCompared = ui.history === "compare";
  const of = isCompared ? null : axis({ doc, ui, live: past, range: ui.history });
  return [
    controls(Object.keys(RANGES), { doc, t, ui, more: "compare" }),
    h("div", { class: "grid two charts" }, isCompared ? compared(doc, past, t, ui) : of.points ? charts(of, past, t, ui) : missing(of.isWaiting, t)),
  ];
}

/** Before and after a moment that somebody marked: what was seen, which is no experiment. */
function compared(doc, past, t, ui) {
  const set = h("button", { type: "button", class: "primary", onclick: () => ui.set({ marked: doc.at }) }, t(ui.marked ? "compare.again" : "compare.mark"));
  const both = ui.marked ? stretches(past, ui.marked, STRETCH) : null;
  const words = !ui.marked ? t("compare.how") : both.seconds < 5 ? t("compare.wait") : said(both, t);
  const top = h("section", { class: "card wide" }, h("header", null, h("h2", null, t("day.compare")), set), h("p", { class: "compared", role: "status" }, words), h("p", { class: "hint" }, t("compare.lab"), " ", copyable("weir lab ab before.conf after.conf", t)));
  if (!both || both.seconds < 5) return top;
  const one = (title, format, name) =>
    h("section", { class: "card" }, chart({
      title, format, ticks: [[0, units.span(0)], [1, units.span(both.seconds)]], slots: both.seconds, by: 2, latest: true,
      label: (at) => units.span(at),
      series: [
        { name: t("compare.before"), tone: "soft", values: both.before.map((point) => point?.[name]) },
        { name: t("compare.after"), tone: "deep", values: both.after.map((point) => point?.[name]) },
      ],
    }));
  return [top, one(t("chart.requests"), units.si, "rps"), one("p99", units.time, "p99"), one(t("chart.failed"), units.si, "failed"), one(t("chart.cpu"), units.percent, "cpu")];
}

function said(both, t) {
  const of = (name, format) => [both.before, both.after].map((points) => format(middle(points.map((point) => point?.[name]))));
  return t("compare.said", units.span(both.seconds), ...of("rps", units.rate), ...of("p99", units.time), ...of("failed", units.rate));
}

function charts(of, past, t, ui) {
  const one = drawer(of, { t, ui, live: past });
  const has = (name) => of.points.some((point) => point?.[name] > 0);
  // The words of the verdict, the tile and the errors. What was not kept, or never happened, has no line.
  const reasons = [["upstream", "deep", "upstream"], ["timeout", "violet", "timeout"], ["limit", "warn", "refused"], ["client", "soft", "client"], ["weir", "moss", "weir"]];
  return [
    one(t("chart.requests"), units.si, [
      { name: t("chart.answered"), tone: "water", of: "rps", fill: true },
      { name: t("chart.failed"), tone: "bad", of: "failed", fill: true },
    ]),
    one(t("chart.latency"), units.time, [
      { name: "p99", tone: "deep", of: "p99", fill: true },
      { name: "p95", tone: "water", of: "p95" },
      { name: "p50", tone: "soft", of: "p50" },
    ], { exact: (ms) => took(ms, t) }),
    one(t("chart.reasons"), units.si, [
      { name: t("chart.failed"), tone: "bad", of: "failed", fill: true },
      ...reasons.filter(([, , name]) => has(name)).map(([reason, tone, name], at) => ({ name: t(`reason.${reason}`), tone, of: name, dash: at + 1 })),
    ]),
    one(t("chart.connections"), units.si, [
      { name: t("chart.active"), tone: "water", of: "active", fill: true },
      { name: t("chart.idle"), tone: "soft", of: "idle" },
    ], { whole: true }),
    one(t("chart.bytes"), units.byteRate, [
      { name: t("kpi.out"), tone: "water", of: "sent", fill: true },
      { name: t("col.in"), tone: "deep", of: "received" },
    ], { binary: true }),
    one(t("chart.cpu"), units.percent, [
      { name: t("chart.busy"), tone: "deep", of: "cpu", fill: true },
      { name: t("chart.steal"), tone: "warn", of: "steal" },
    ]),
  ];
}
