// Runs of weir lab: two configurations block by block, what may be said of them, and who was busy meanwhile.

import { chart } from "../chart.js";
import { h } from "../dom.js";
import { card, copyable, empty, mark } from "../parts.js";
import { table } from "../table.js";
import * as units from "../units.js";

/** How old the list may be before it is asked for again, in milliseconds. */
const FRESH = 5000;
/** How old a run that goes on may be. */
const RUNNING_FRESH = 2000;
/** Blocks whose letters have room beneath them. */
const LETTERS_MAX = 32;

const TONES = { better: "good", tuned: "good", holds: "good", "as expected": "good", "no difference": "good", negligible: "good", "no errors": "good", worse: "bad", "trade-off": "warn", fails: "bad", reclassified: "warn" };
const UNITS = { throughput: units.rate, p50: units.time, p95: units.time, p99: units.time, errors: units.percent, cpu: (us) => units.time(us / 1000) };

/** A figure of a run in the unit of its metric. */
export const figureOf = (key, n) => (units.known(n) ? (UNITS[key] ?? units.si)(n) : units.NOTHING);

/** A change as people write it: +4.2 %, −15 %. */
export function signed(part) {
  if (!units.known(part)) return units.NOTHING;
  const text = units.percent(Math.abs(part));
  if (text.startsWith("<")) return text;
  return part < 0 ? `−${text}` : part > 0 ? `+${text}` : text;
}

/** The word of a verdict in a language; those that are not known go by themselves. */
export function word(name, t) {
  const key = `labverdict.${(name || "running").replace(/[^a-z]/g, "")}`;
  const known = t(key);
  return known === key ? name : known;
}

/** The sentence of a run's verdict, from its figures. */
export function sentence(run, t) {
  if (run.running) return t("lab.running", units.count(run.blocks), units.count(run.of));
  const metric = (run.metrics ?? []).find((one) => one.key === run.primary);
  if (!metric || !metric.interval || !units.known(metric.effect)) return run.verdict.text || t("lab.noSentence");
  const [low, high] = metric.interval;
  const percent = units.percent(metric.confidence ?? 0.95);
  return t("lab.sentence", t(`labmetric.${metric.key}`), figureOf(metric.key, metric.before), figureOf(metric.key, metric.after), signed(metric.effect), `${signed(low)} … ${signed(high)}`, percent, units.count(metric.pairs));
}

/** The blocks on one axis of time: where each begins and how wide it is, as parts of the whole. */
export function laid(blocks) {
  const timed = blocks.filter((block) => block.started_ms > 0);
  if (timed.length === 0) return [];
  const end = (block) => block.started_ms + (block.seconds ?? 1) * 1000;
  const first = Math.min(...timed.map((block) => block.started_ms));
  const whole = Math.max(1, Math.max(...timed.map(end)) - first);
  return timed.map((block) => ({ block, left: (block.started_ms - first) / whole, width: Math.max(0.002, (end(block) - block.started_ms) / whole) }));
}

/** Window by window, the mean of the blocks of an arm that count. */
export function meanStrip(blocks, arm) {
  const strips = blocks.filter((block) => block.arm === arm && block.spoiled.length === 0 && block.strip.length > 0).map((block) => block.strip);
  const length = Math.max(0, ...strips.map((strip) => strip.length));
  return Array.from({ length }, (_, at) => {
    const there = strips.map((strip) => strip[at]).filter(Number.isFinite);
    return there.length ? there.reduce((sum, n) => sum + n, 0) / there.length : null;
  });
}

export function lab({ t, ui }) {
  // The address of the view may be older than the configuration.
  if (!ui.may.lab) return card(t("nav.lab"), null, h("p", { class: "empty" }, t("lab.off"), " ", copyable("dashboard_lab DIRECTORY;", t)));
  renew(ui);
  const { list, run, id } = ui.lab;
  if (!list) return card(t("nav.lab"), null, empty(t("wait")));
  if (list.runs.length === 0) return card(t("nav.lab"), null, empty(list.note || t("lab.none")));
  const shown = run?.id === id ? run : null;
  return [runs(list, t, ui), shown ? (shown.note ? card(id, null, empty(shown.note)) : one(shown, t, ui)) : card(id ?? "", null, empty(t("wait")))];
}

/** Asks for the list, and for the run that is looked at: once, or again while it goes on. */
function renew(ui) {
  const state = ui.lab;
  const get = (name) => fetch(name, { cache: "no-store" }).then((answer) => answer.json()).catch(() => null);
  if (Date.now() - state.asked > FRESH) {
    state.asked = Date.now();
    get("runs.json").then((list) => list?.runs && ui.set({ lab: { ...ui.lab, list, id: ui.lab.id ?? list.runs[0]?.id } }));
  }
  const known = state.list?.runs.find((run) => run.id === state.id);
  const isStale = state.run?.id !== state.id || (state.run?.running && Date.now() - state.runAsked > RUNNING_FRESH) || (state.run?.running && known && !known.running);
  if (state.id && isStale && Date.now() - state.runAsked > 500) {
    state.runAsked = Date.now();
    get(`runs.json?${state.id}`).then((run) => run && ui.set({ lab: { ...ui.lab, run } }));
  }
}

const base = (path) => (path ?? "").split("/").pop();
const when = (run) => (run.started_ms ? `${new Date(run.started_ms).toISOString().slice(0, 10)} ${units.clock(run.started_ms)}` : units.NOTHING);
const tone = (run) => (run.running ? "idle" : (TONES[run.verdict?.name] ?? "idle"));

function runs(list, t, ui) {
  const columns = [
    {
      key: "run", label: t("lab.run"), text: true, get: (run) => run.id,
      show: (run) => h("button", { type: "button", class: "quiet", "aria-pressed": run.id === ui.lab.id ? "true" : "false", onclick: () => ui.set({ lab: { ...ui.lab, id: run.id, runAsked: 0 } }) }, run.id),
    },
    { key: "when", label: t("lab.when"), text: true, get: (run) => run.started_ms, show: when },
    { key: "kind", label: t("col.kind"), text: true, get: (run) => run.kind, show: (run) => run.kind ?? units.NOTHING },
    { key: "factor", label: t("lab.factor"), text: true, get: (run) => run.factor || base(run.before), show: (run) => run.factor || base(run.before) || units.NOTHING },
    { key: "verdict", label: t("verdict.label"), text: true, get: (run) => run.verdict?.name, show: (run) => (run.note ? mark("warn", run.note) : mark(tone(run), run.running ? t("lab.running", units.count(run.blocks), units.count(run.of)) : run.verdict.name ? word(run.verdict.name, t) : run.verdict.text || units.NOTHING)) },
  ];
  return card(
    t("nav.lab"),
    list.more > 0 ? t("lab.more", units.count(list.more)) : t("lab.hint"),
    h("div", { class: "short" }, table(ui, { id: "runs", caption: t("nav.lab"), columns, rows: list.runs, rowKey: (run) => run.id, sort: ["run", true] })),
  );
}

function one(run, t, ui) {
  const blocks = run.shown ?? [];
  const quiet = run.running ? units.span((Date.now() - run.changed_ms) / 1000) : null;
  return [
    h(
      "section",
      { class: `verdict ${tone(run)}`, key: "verdict", "aria-label": t("verdict.label") },
      h("div", { class: "labsaid" }, mark(tone(run), word(run.running ? "running" : run.verdict.name, t)), h("p", { class: "words" }, sentence(run, t))),
      h(
        "ul",
        { class: "labfacts" },
        run.verdict.text ? h("li", { key: "words", lang: "en" }, run.verdict.text) : null,
        quiet ? h("li", { key: "quiet" }, t("lab.quiet", quiet)) : null,
        h("li", { key: "a" }, h("b", { class: "arm a" }, "A"), ` ${run.before} ${run.edges?.[0] ?? ""}`),
        run.after ? h("li", { key: "b" }, h("b", { class: "arm b" }, "B"), ` ${run.after} ${run.edges?.[1] ?? ""}`) : null,
        run.changes.map((change) => h("li", { key: change }, h("code", null, change))),
        run.no_effect.map((why) => h("li", { key: why, lang: "en" }, mark("warn", why))),
        h("li", { key: "load" }, t("lab.load", run.load, run.seed ?? units.NOTHING)),
      ),
    ),
    h("div", { key: "bands" }, bands(run, t)),
    h("div", { key: "strip" }, strip(run, blocks, t)),
    h("div", { key: "overlay" }, overlay(blocks, t)),
    h("div", { key: "table" }, blocks.length ? details(run, blocks, t, ui) : null),
  ];
}

/** Each metric's change with its interval, on one axis. */
function bands(run, t) {
  const rows = run.metrics.filter((metric) => metric.interval && metric.key !== "errors");
  if (rows.length === 0) return null;
  const reach = Math.max(0.02, ...rows.flatMap((row) => [...row.interval, row.threshold ?? 0].map(Math.abs))) * 1.1;
  const x = (part) => `${(50 + (part / reach) * 50).toFixed(2)}%`;
  const width = (part) => `${((part / reach) * 50).toFixed(2)}%`;
  return card(
    t("lab.bands"),
    t("lab.bandsHint"),
    h(
      "ul",
      { class: "bands" },
      rows.map((row) => {
        const words = `${t(`labmetric.${row.key}`)}: ${signed(row.effect)} (${signed(row.interval[0])} … ${signed(row.interval[1])})`;
        return h(
          "li",
          { key: row.key },
          h("span", { class: "name" }, t(`labmetric.${row.key}`), row.key === run.primary ? h("span", { class: "sub" }, t("lab.primary")) : null),
          h(
            "span",
            { class: "band", role: "img", "aria-label": words },
            row.threshold ? h("span", { class: "none", css: { left: x(-row.threshold), width: width(2 * row.threshold) } }) : null,
            h("span", { class: "zero" }),
            h("span", { class: "ci", css: { left: x(row.interval[0]), width: width(row.interval[1] - row.interval[0]) } }),
            h("span", { class: "effect", css: { left: x(row.effect) } }),
          ),
          h("span", { class: "values" }, h("b", null, signed(row.effect)), ` ${signed(row.interval[0])} … ${signed(row.interval[1])}`, h("span", { class: "sub" }, `${figureOf(row.key, row.before)} → ${figureOf(row.key, row.after)} · ${word(row.verdict, t)}`)),
        );
      }),
    ),
    h("p", { class: "bandscale", "aria-hidden": "true" }, h("span", null, signed(-reach / 1.1)), h("span", null, "0"), h("span", null, signed(reach / 1.1))),
  );
}

/** What is drawn of each block, on one axis of time: the server's figures and the load generator's. */
const LANES = [
  { key: "value", tall: true, get: (block) => block.value },
  { key: "edge", get: (block) => block.edge_cpu, format: units.share },
  { key: "generator", get: (block) => block.client_cpu ?? block.client_core, format: units.percent, limit: 0.8 },
  { key: "lag", get: (block) => block.lag_ms, format: units.time },
  { key: "foreign", get: (block) => (units.known(block.foreign) ? block.foreign + (block.steal ?? 0) : undefined), format: units.percent, limit: 0.05 },
];

function strip(run, blocks, t) {
  const places = laid(blocks);
  if (places.length === 0) return null;
  const letters = places.length <= LETTERS_MAX;
  return card(
    t("lab.blocks"),
    t("lab.blocksHint"),
    h("p", { class: "legend" }, h("span", { class: "key" }, h("b", { class: "arm a" }, "A"), t("compare.before")), h("span", { class: "key" }, h("b", { class: "arm b" }, "B"), t("compare.after")), h("span", { class: "key" }, h("b", { class: "arm off" }, "×"), t("lab.spoiled"))),
    LANES.map((lane) => {
      const known = places.map(({ block }) => lane.get(block)).filter(units.known);
      const format = lane.key === "value" ? (n) => figureOf(run.primary, n) : lane.format;
      const title = lane.key === "value" ? t(`labmetric.${run.primary}`) : t(`lablane.${lane.key}`);
      const most = Math.max(1e-9, ...known, lane.limit ?? 0);
      const head = h("p", { class: "lanehead" }, h("b", null, title), " ", known.length ? t("lab.most", format(Math.max(...known))) : t("lab.notMeasured"));
      if (known.length === 0) return h("div", { key: lane.key }, head);
      return h(
        "div",
        { key: lane.key },
        head,
        h(
          "div",
          { class: `lane ${lane.tall ? "tall" : ""}`, role: "img", "aria-label": `${title}: ${places.map(({ block }) => `${block.arm} ${format(lane.get(block))}`).join(", ")}` },
          lane.limit ? h("span", { class: "bound", css: { bottom: `${((lane.limit / most) * 100).toFixed(1)}%` } }) : null,
          places.map(({ block, left, width }, at) => {
            const off = block.spoiled.length > 0;
            const value = lane.get(block);
            return h("span", { key: `${at}`, class: `bar ${block.arm === "A" ? "a" : "b"} ${off ? "off" : ""} ${lane.limit && value > lane.limit ? "over" : ""}`, title: [`${block.arm} ${format(value)}`, ...block.spoiled, ...block.cautions].join("\n"), css: { left: `${(left * 100).toFixed(3)}%`, width: `${(width * 100).toFixed(3)}%`, height: `${Math.max(1, ((value ?? 0) / most) * 100).toFixed(1)}%` } });
          }),
        ),
        lane.tall && letters ? h("div", { class: "letters", "aria-hidden": "true" }, places.map(({ block, left, width }, at) => h("span", { key: `${at}`, css: { left: `${((left + width / 2) * 100).toFixed(3)}%` } }, block.spoiled.length ? "×" : block.arm))) : null,
      );
    }),
    h("p", { class: "times" }, h("span", null, units.clock(places[0].block.started_ms)), h("span", null, units.clock(places.at(-1).block.started_ms + (places.at(-1).block.seconds ?? 0) * 1000))),
  );
}

function overlay(blocks, t) {
  const [a, b] = ["A", "B"].map((arm) => meanStrip(blocks, arm));
  if (a.length < 2 || b.length < 2) return null;
  return h(
    "div",
    { class: "card" },
    chart({
      title: t("lab.overlay"),
      series: [{ name: `A ${t("compare.before")}`, tone: "soft", values: a }, { name: `B ${t("compare.after")}`, tone: "water", values: b }],
      format: units.rate,
      ticks: [[0, t("lab.blockBegins")], [1, t("lab.blockEnds")]],
      by: 2,
      latest: true,
    }),
  );
}

/** The same in numbers. */
function details(run, blocks, t, ui) {
  const columns = [
    { key: "n", label: t("lab.block"), get: (row) => row.at, show: (row) => `${row.at + 1} ${row.block.arm}` },
    { key: "value", label: t(`labmetric.${run.primary}`), get: (row) => row.block.value, show: (row) => figureOf(run.primary, row.block.value) },
    { key: "requests", label: t("col.requests"), get: (row) => row.block.requests, show: (row) => units.count(row.block.requests) },
    { key: "failed", label: t("kpi.failed"), get: (row) => row.block.failed, show: (row) => units.count(row.block.failed) },
    ...LANES.slice(1).map((lane) => ({ key: lane.key, label: t(`lablane.${lane.key}`), get: (row) => lane.get(row.block), show: (row) => lane.format(lane.get(row.block)) })),
    { key: "why", label: t("lab.notes"), text: true, get: (row) => row.block.spoiled[0] ?? "", show: (row) => h("span", { class: "said", lang: "en" }, [...row.block.spoiled, ...row.block.cautions].join("; ") || units.NOTHING) },
  ];
  const rows = blocks.map((block, at) => ({ block, at }));
  return card(t("lab.table"), run.blocks > blocks.length ? t("lab.cut", blocks.length, run.blocks) : null, table(ui, { id: "blocks", caption: t("lab.table"), columns, rows, rowKey: (row) => String(row.at) }));
}
