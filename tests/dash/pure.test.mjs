// What needs no browser: node --test tests/dash/pure.test.mjs

import assert from "node:assert/strict";
import { readFile, readdir } from "node:fs/promises";
import { afterEach, test } from "node:test";
import { area, ceiling, chart, columns, dots, line, scale, spark, stacked, thin } from "../../crates/dash/web/chart.js";
import { h } from "../../crates/dash/web/dom.js";
import { POINTS_MAX, merge, step } from "../../crates/dash/web/feed.js";
import { WORDS, choose, translator } from "../../crates/dash/web/i18n.js";
import * as model from "../../crates/dash/web/model.js";
import { around } from "../../crates/dash/web/pointer.js";
import { MEANINGS } from "../../crates/dash/web/reasons.js";
import { finder, found, sorted } from "../../crates/dash/web/table.js";
import { RANGES, moment, placed, stretch, ticks } from "../../crates/dash/web/time.js";
import { apart, axis } from "../../crates/dash/web/timeline.js";
import * as units from "../../crates/dash/web/units.js";
import { confirmed, order } from "../../crates/dash/web/views/caches.js";
import { alarming, state } from "../../crates/dash/web/views/certificates.js";
import { byPlace } from "../../crates/dash/web/views/errors.js";
import { changes, possible } from "../../crates/dash/web/views/upstreams.js";
import { about, hindered, logLine } from "../../crates/dash/web/views/logs.js";
import { figureOf, laid, meanStrip, sentence, signed, word } from "../../crates/dash/web/views/lab.js";
import { lab } from "../../crates/dash/web/views/lab.js";
import { overview } from "../../crates/dash/web/views/overview.js";
import { why } from "../../crates/dash/web/views/upstreams.js";
import { isNearTimeout } from "../../crates/dash/web/views/websockets.js";
import { described, sortable } from "../../crates/load/src/output/html/report.js";
import { document, labRun } from "./fixture.mjs";

const plain = (text) => text.replaceAll("\u202f", " ");
afterEach(() => units.speak("en"));

test("a certificate is near its end a week before, and one with a short life a fifth of it before", () => {
  const day = 24 * 3600 * 1000;
  const one = (begins, ends, more = {}) => ({ begins: new Date(begins * day).toISOString(), ends: new Date(ends * day).toISOString(), failures: 0, ...more });
  const now = 100 * day;
  const all = [
    [one(50, 140), "good"], [one(50, 106), "near"], [one(50, 99), "over"], [one(97, 103), "good"], [one(96, 100.5), "near"],
    [one(50, 140, { failures: 2 }), "failing"], [{ failures: 0 }, "missing"],
  ];
  for (const [certificate, wanted] of all) assert.equal(state(certificate, now), wanted);
  assert.equal(alarming(all.map(([certificate]) => certificate), now), 4);
  assert.equal(alarming(undefined, now), 0);
});

test("numbers are read as people write them", () => {
  const all = [
    [units.count, [[0, "0"], [999, "999"], [28232, "28,232"], [1234567, "1,234,567"], [undefined, "–"], [NaN, "–"]]],
    [units.si, [[0, "0"], [0.42, "0.42"], [7.31, "7.31"], [999, "999"], [1240, "1.24k"], [8750, "8.75k"], [999_960, "1M"]]],
    [units.bytes, [[0, "0 B"], [1023, "1023 B"], [1024, "1 KiB"], [16_000_000, "15.3 MiB"]]],
    [units.time, [[0, "0 ms"], [0.043, "43 µs"], [4.73, "4.73 ms"], [47.72, "47.7 ms"], [999.9, "1 s"], [61_000, "1 m 1 s"]]],
    [units.span, [[0, "0 s"], [42, "42 s"], [600, "10 m"], [3661, "1 h 1 m"], [111_600, "1 d 7 h"]]],
    [units.percent, [[0, "0 %"], [0.0001, "<0.1 %"], [0.019, "1.9 %"], [0.5, "50 %"], [0.9999, "99.9 %"], [1, "100 %"]]],
    [units.share, [[0.931, "0.93"], [0.001, "<0.01"], [undefined, "–"]]],
  ];
  for (const [format, cases] of all) for (const [n, text] of cases) assert.equal(plain(format(n)), text, `${format.name || "format"}(${n})`);
});

test("spans and rates have the units of the language", () => {
  units.speak("ko");
  const korean = [units.span(167), units.span(111_600), units.span(0), units.time(1200), units.time(4.73), units.rate(1240), units.byteRate(2048)];
  units.speak("en");
  assert.deepEqual(korean.map(plain), ["2분 47초", "1일 7시간", "0초", "1.2초", "4.73 ms", "1.24k/초", "2 KiB/초"]);
  assert.equal(plain(units.span(167)), "2 m 47 s");
});

test("long times have one form in each language, also in figures and in tables", () => {
  const told = () => [units.span(0), units.span(153), units.span(89 * 86_400 + 23 * 3600), units.time(1234), units.time(65_000), units.time(12.4), units.time(0.43)].map(plain);
  assert.deepEqual(told(), ["0 s", "2 m 33 s", "89 d 23 h", "1.23 s", "1 m 5 s", "12.4 ms", "430 µs"]);
  units.speak("ko");
  assert.deepEqual(told(), ["0초", "2분 33초", "89일 23시간", "1.23초", "1분 5초", "12.4 ms", "430 µs"]);
  units.speak("xx");
  assert.equal(plain(units.span(1)), "1 s");
});

test("a patch makes the new of the old and leaves the rest alone", () => {
  const old = { a: 1, b: { c: [1, { d: 2, e: 3 }] }, gone: 7, same: { x: 1 } };
  const now = merge(old, { a: 2, b: { c: { 1: { e: 4 } } }, gone: null, came: { h: [] } });
  assert.deepEqual(now, { a: 2, b: { c: [1, { d: 2, e: 4 }] }, same: { x: 1 }, came: { h: [] } });
  assert.equal(now.same, old.same);
  assert.deepEqual(old.b.c[1], { d: 2, e: 3 });
  assert.deepEqual(merge([1, 2], [3]), [3]);
});

test("a feed is followed second by second, and a gap is an error", () => {
  let state = step(null, "whole", { seq: 4, point: { rps: 1 }, past: Array.from({ length: POINTS_MAX }, () => ({ rps: 0 })) });
  assert.equal(state.past.length, POINTS_MAX);
  state = step(state, "delta", { seq: 5, point: { rps: 2 } });
  assert.deepEqual([state.doc.point.rps, state.before.point.rps, state.past.length, state.past.at(-1).rps], [2, 1, POINTS_MAX, 2]);
  assert.throws(() => step(state, "delta", { seq: 7 }));
  assert.throws(() => step(null, "delta", { seq: 1 }));
});

test("both languages have all words, with the same places for values", () => {
  assert.deepEqual(Object.keys(WORDS.ko).sort(), Object.keys(WORDS.en).sort());
  const places = (text) => [...new Set(text.match(/\{\d\}/g) ?? [])].sort();
  for (const key of Object.keys(WORDS.en)) {
    assert.ok(WORDS.en[key] && WORDS.ko[key], key);
    assert.deepEqual(places(WORDS.ko[key]), places(WORDS.en[key]), key);
  }
  units.speak("ko");
  assert.equal(translator("ko")("water.inTime", units.span(167)), "2분 47초 뒤 한도 도달");
  units.speak("en");
  assert.equal(translator("ko")("kpi.in", "5.0\u202fMB/s"), "수신 5.0\u202fMB/s");
  assert.equal(translator("xx")("nav.zones"), "Zones");
  assert.deepEqual(["ko-KR", "en-GB", "fr"].map((tag) => choose([tag])), ["ko", "en", "en"]);
});

test("every word that is asked for is there, and every one that is there is asked for", async () => {
  const web = new URL("../../crates/dash/web/", import.meta.url);
  const names = (await readdir(web, { recursive: true })).filter((name) => name.endsWith(".js") && name !== "i18n.js");
  const text = (await Promise.all(names.map((name) => readFile(new URL(name, web), "utf8")))).join("\n");
  const asked = new Set([...text.matchAll(/["`]([a-z]+\.[A-Za-z0-9]+|wait|language)["`]/g)].map(([, key]) => key));
  for (const key of asked) if (key.split(".")[0] in { nav: 1, water: 1, kpi: 1, col: 1, up: 1, cache: 1, ws: 1, host: 1, err: 1, log: 1, lab: 1, purge: 1 }) assert.ok(key in WORDS.en, `no word ${key}`);
  const made = [...text.matchAll(/`([a-z]+)\.\$\{/g)].map(([, group]) => group);
  for (const key of Object.keys(WORDS.en)) assert.ok(asked.has(key) || made.includes(key.split(".")[0]), `nobody says ${key}`);
});

test("paths have a point for each number and a gap for none", () => {
  const size = { width: 100, height: 10, slots: 3, part: (n) => n / 10 };
  assert.equal(line([0, 10, 5], size), "M0.0 10.0L50.0 0.0L100.0 5.0");
  assert.equal(line([5, null, 5], size), "M0.0 5.0M100.0 5.0");
  assert.equal(line([5], size), "M100.0 5.0");
  assert.equal(line([NaN, 99, Infinity, -1], { ...size, slots: 4 }), "M33.3 0.0M100.0 10.0", "within the frame");
  assert.equal(dots([5, null, 5, 5], { ...size, slots: 4 }), "M0.0 5.0h0", "a lone number can be seen");
  assert.equal(area([0, 10], { ...size, slots: 2 }), "M0.0 10L0.0 10.0L100.0 0.0L100.0 10Z");
  assert.equal(area([null], size), "");
  assert.deepEqual(thin([1, 9, 2, 3, null, 4], 2), [9, 3, 4]);
  assert.deepEqual([0, 1, 3, 12, 99, 1000, 0.03].map(ceiling), [1, 1, 5, 20, 100, 1000, 0.05]);
});

test("areas stand on each other, and columns side by side", () => {
  const size = { width: 100, height: 10, slots: 2, part: (n) => n / 10 };
  assert.deepEqual(stacked([[1, 2], [3, null], []], size), ["M0.0 9.0L100.0 8.0L100.0 10.0L0.0 10.0Z", "M0.0 6.0L100.0 8.0L100.0 8.0L0.0 9.0Z", ""]);
  assert.equal(columns([5, 0, null, 10], size), "M0.0 10V5.0h23.0V10ZM75.0 10V0.0h23.0V10Z");
});

test("an axis has a few round numbers, and every value is on it", () => {
  const rounded = (ticks) => ticks.map((n) => Number(n.toPrecision(6)));
  assert.deepEqual(scale([1012, null]).ticks, [0, 500, 1000, 1500]);
  assert.deepEqual(scale([400, 60]).ticks, [0, 100, 200, 300, 400]);
  assert.deepEqual(rounded(scale([0.9]).ticks), [0, 0.5, 1]);
  assert.deepEqual(scale([0.9], { whole: true }).ticks, [0, 1]);
  assert.deepEqual([scale([]).ticks, scale([0, NaN], { log: true }).ticks], [[0, 1], [0, 1]]);
  assert.deepEqual(rounded(scale([0.3, 40, 0], { log: true }).ticks), [0.1, 1, 10, 100]);
  assert.deepEqual(scale([1000], { log: true }).ticks, [1000, 10_000]);
  const log = scale([0.1, 1000], { log: true });
  assert.deepEqual([0, 0.1, 1, 10, 1000].map((n) => Number(log.part(n).toFixed(6))), [0, 0, 0.25, 0.5, 1]);
});

/** All elements of a description with a class. */
const withClass = (of, name) => [...(of.props?.class?.split(" ").includes(name) ? [of] : []), ...(of.children ?? []).flatMap((child) => withClass(child, name))];
const text = (of) => (typeof of === "string" ? of : of.children.map(text).join(""));

test("a chart says its newest or its extreme values, and draws each shape", () => {
  const what = { title: "Load", series: [{ name: "sent", tone: "c0", values: [3, 40, null, 10] }, { name: "lost", tone: "c3", values: [1, null, null, null] }], format: units.si, ticks: [[0, "0s"], [1, "3s"]] };
  const label = (more) => withClass(chart({ ...what, ...more }), "area")[0].props["aria-label"];
  assert.equal(label({}), "Load: sent 3 … 40, lost 1 … 1");
  assert.equal(label({ note: "a second", latest: true }), "Load, a second: sent 10, lost –");
  for (const [shape, paths] of [["lines", { line: 4, dot: 2 }], ["log", { line: 4, dot: 2 }], ["stack", { fill: 4 }], ["columns", { fill: 4 }]]) {
    const figure = chart({ ...what, shape });
    for (const name of ["line", "dot", "fill"]) assert.equal(withClass(figure, name).length, paths[name] ?? 0, `${shape} ${name}`);
    const drawn = JSON.stringify(figure);
    assert.ok(!drawn.includes("NaN") && !drawn.includes("Infinity"), drawn);
  }
  assert.deepEqual(withClass(chart({ ...what, shape: "stack" }), "scale")[0].children.map(text), ["0", "10", "20", "30", "40"]);
  assert.deepEqual([withClass(chart(what), "d0").length, withClass(chart(what), "d1").length], [2, 2], "in the legend and in the drawing");
  const empty = [{ ...what, series: [] }, { ...what, series: [{ name: "a", tone: "c0", values: [] }] }];
  for (const nothing of empty) for (const shape of ["lines", "log", "stack", "columns"]) assert.ok(!JSON.stringify(chart({ ...nothing, shape, label: String })).includes("NaN"));
  assert.equal(spark([]).children[1].props.d, "");
});

test("a phase begins with a line, and its whole text is its title", () => {
  const phases = [{ from: 0, to: 0.5, text: "warm", all: "warm · 5 a second" }, { from: 0.5, to: 1, text: "hold", all: "hold" }];
  const figure = chart({ title: "t", series: [], format: String, ticks: [], phases });
  assert.deepEqual(withClass(figure, "begins").map((line) => line.props.x1), [500]);
  assert.deepEqual(withClass(figure, "phases")[0].children.map((band) => [text(band), band.props.title, band.props.css.left]), [["warm", "warm · 5 a second", "0.00%"], ["hold", "hold", "50.00%"]]);
});

test("a table's texts and a report's settings make a chart", () => {
  const settings = { title: "Latency", unit: "ms", shape: "log", ticks: [], phases: [], series: [{ name: "p50", tone: "c0", dash: 0 }, { name: "p99", tone: "c2", dash: 1 }] };
  const what = described(settings, [["0s", "1.5", "\n"], ["1s", "0", "20.25"]]);
  assert.deepEqual(what.series, [{ name: "p50", tone: "c0", dash: 0, values: [1.5, 0] }, { name: "p99", tone: "c2", dash: 1, values: [null, 20.25] }]);
  assert.deepEqual([what.label(1), what.exact(20.25), plain(what.format(1500)), what.whole], ["1s", "20.25 ms", "1.5 s", false]);
  assert.deepEqual(["%", "/s", ""].map((unit) => plain(described({ ...settings, unit }, []).format(1500))), ["1.5k %", "1.5k", "1.5k"]);
  assert.ok(described({ ...settings, unit: "" }, []).whole);
  assert.deepEqual([sortable("7\u00a0410", false), sortable("–", false), sortable("0", false), sortable("200 × 7", true)], [7410, null, 0, "200 × 7"]);
});

test("rows are sorted, what is unknown last, equals as they were", () => {
  const column = { get: (row) => row.n };
  const rows = [{ n: 2, k: "a" }, { n: undefined, k: "b" }, { n: 5, k: "c" }, { n: 2, k: "d" }];
  assert.deepEqual(sorted(rows, column, true).map((row) => row.k), ["c", "a", "d", "b"]);
  assert.deepEqual(sorted(rows, column, false).map((row) => row.k), ["a", "d", "c", "b"]);
  assert.equal(sorted(rows, undefined, false), rows);
});

test("what a view shows follows from two documents", () => {
  const [before, doc] = [document(600, 1, 0, "calm"), document(601, 2, 0, "calm")];
  const [cache] = model.caches(doc, before);
  assert.equal(cache.off, 0);
  assert.ok(cache.saved > 0.9 && cache.requests > 0);
  doc.snapshot.weir.caches.assets.hit -= 3;
  assert.equal(model.caches(doc, before)[0].off, 3);
  const [app] = model.groups(doc, before);
  assert.equal(app.peers.length, 3);
  assert.ok(app.peers[0].rate > 0 && app.peers[0].reuse > 0.9);
  const lines = model.waterlines(doc);
  assert.ok(lines.every((line, at) => at === 0 || lines[at - 1].ratio >= line.ratio));
  assert.equal(model.zones(doc, null, "server_zones")[0].received, undefined);
  assert.equal(model.grew(5, 9, 1), undefined);
  assert.deepEqual(model.codes({ codes: { 200: 9, 404: 0, 502: 9 } }), [{ code: 200, count: 9 }, { code: 502, count: 9 }]);
});

test("protocols are rows with rates and shares of all requests", () => {
  const at = (ms, counts) => ({ at: ms, snapshot: { weir: { protocols: counts.map((requests, at) => ({ protocol: `HTTP/${at + 1}`, requests, received: requests * 10, sent: requests * 100 })) } } });
  const [one, , three] = model.protocols(at(3000, [30, 0, 90]), at(1000, [10, 0, 30]));
  assert.deepEqual(one, { protocol: "HTTP/1", requests: 30, rate: 10, share: 0.25, received: 100, sent: 1000 });
  assert.deepEqual([three.rate, three.share], [30, 0.75]);
  // A document of an older edge has none.
  assert.deepEqual(model.protocols({ at: 0, snapshot: { weir: {} } }, null), []);
});

test("sessions are rows of servers and of peers", () => {
  const at = (ms, connections, received) => ({
    at: ms,
    snapshot: {
      stream: {
        server_zones: { db: { connections, received, sent: 0 } },
        upstreams: { db: { peers: [{ id: 0, state: "up", active: 2, max_conns: 2, connections, received, sent: 0 }] } },
      },
    },
  });
  const { zones, groups } = model.sessions(at(2000, 14, 500), at(1000, 10, 100));
  assert.deepEqual([zones[0].name, zones[0].rate, zones[0].received], ["db", 4, 400]);
  assert.deepEqual([groups[0].name, groups[0].peers[0].state, groups[0].peers[0].rate], ["db", "busy", 4]);
  assert.deepEqual(model.sessions({ at: 0, snapshot: {} }, null), { zones: [], groups: [] });
});

test("an order to purge says what the form says", () => {
  assert.deepEqual(order({ what: "tag", text: "news", zone: "", soft: false }), { tag: "news" });
  assert.deepEqual(order({ what: "all", text: "left over", zone: "one", soft: true }), { all: true, zone: "one", soft: true });
});

test("closing at the timeout is noticed", () => {
  assert.ok(isNearTimeout({ count: 50, p50_us: 58_900_000 }, 60_000));
  assert.ok(!isNearTimeout({ count: 50, p50_us: 8_900_000 }, 60_000));
  assert.ok(!isNearTimeout({ count: 3, p50_us: 60_000_000 }, 60_000));
});

test("a description of elements is flat and holds no nothing", () => {
  assert.deepEqual(h("p", null, "a", [null, [1, false]], h("b")).children, ["a", "1", { tag: "b", props: {}, children: [] }]);
});

test("stretches before and after a moment are as long as each other", () => {
  const past = Array.from({ length: 10 }, (_, at) => ({ at, rps: at }));
  assert.deepEqual(model.stretches(past, 6, 300), { seconds: 3, before: past.slice(4, 7), after: past.slice(7, 10) });
  assert.equal(model.stretches(past, 99, 300).seconds, 0);
  assert.deepEqual([model.middle([3, undefined, 1, 2]), model.middle([1, 2]), model.middle([])], [2, 1.5, undefined]);
});

test("an axis is filled from the first second, and no peak of a place is lost", () => {
  const now = 1_795_363_200_000;
  assert.deepEqual(stretch(now, RANGES.minutes, now - 30_000), { from: now - 30_000, to: now });
  assert.deepEqual(stretch(now, RANGES.minutes, now - 3_600_000), { from: now - 600_000, to: now });
  assert.equal(stretch(now, RANGES.minutes, now).to - stretch(now, RANGES.minutes, now).from, 4000, "an axis has a length");
  // A point a second, not exactly.
  const live = Array.from({ length: 600 }, (_, at) => ({ at: now - (599 - at) * 1000 + (at % 3) * 20 - 40, rps: at === 300 ? 99 : 1, p99: null }));
  const of = placed(live, stretch(now, RANGES.minutes, 0));
  assert.deepEqual([of.points.length, of.width, of.to], [300, 2000, now]);
  assert.ok(of.points.every((point) => point?.rps >= 1 && !("p99" in point)), "no gaps");
  assert.equal(of.points.filter((point) => point.rps === 99).length, 1);
  const seconds = placed(live, { from: now - 60_000, to: now });
  assert.ok(seconds.width === 1000 && seconds.points.every(Boolean));
  const gap = placed([live[0], ...live.slice(400)], stretch(now, RANGES.minutes, 0));
  assert.ok(gap.points.slice(10, 190).every((point) => point === null));
  assert.equal(apart([{ at: 0 }, { at: 10 }, { at: 20 }, { at: 900 }]), 10);
});

test("ticks are round moments inside the axis", () => {
  const at = (text) => new Date(`2026-11-26T${text}`).getTime();
  const clock = ticks({ from: at("10:03:20"), to: at("10:13:20") });
  assert.deepEqual(clock.map(([, text]) => text), ["10:04", "10:06", "10:08", "10:10", "10:12"]);
  assert.ok(Math.abs(clock[0][0] - 40 / 600) < 1e-9);
  assert.deepEqual(ticks({ from: at("10:03:20"), to: at("10:03:50") }).map(([, text]) => text), ["10:03:20", "10:03:25", "10:03:30", "10:03:35", "10:03:40", "10:03:45", "10:03:50"]);
  const week = ticks({ from: at("10:00:00") - 7 * 86_400_000, to: at("10:00:00") });
  assert.ok(week.length >= 3 && week.length <= 6 && week.every(([place, text]) => place >= 0 && place <= 1 && /^11-\d\d$/.test(text)), `${week}`);
  assert.deepEqual([1000, 60_000, 3_600_000, 86_400_000].map((step) => moment(at("09:05:07"), step)), ["09:05:07", "09:05", "11-26 09:05", "11-26"]);
});

test("a part of an axis around a place stays inside it", () => {
  assert.deepEqual([around(0.5, 0.5), around(0, 0.5), around(1, 0.5)], [[0.25, 0.75], [0, 0.5], [0.5, 1]]);
});

test("bytes have an axis of KiB and MiB", () => {
  assert.deepEqual(scale([5.3 * 1024 * 1024], { binary: true }).ticks.map((n) => plain(units.bytes(n))), ["0 B", "2 MiB", "4 MiB", "6 MiB"]);
  assert.deepEqual(scale([300], { binary: true }).ticks, [0, 100, 200, 300]);
});

test("rows are found by all words, and only those that fail", () => {
  const rows = [{ name: "shop.example/api/", bad: true }, { name: "shop.example/", bad: false }, { name: "10.0.0.1:80", bad: true }];
  const seen = (find) => found(rows, find, (row) => row.name, (row) => row.bad).map((row) => row.name);
  assert.equal(seen(undefined).length, 3);
  assert.deepEqual(seen({ text: "API shop", only: false }), ["shop.example/api/"]);
  assert.deepEqual(seen({ text: "", only: true }), ["shop.example/api/", "10.0.0.1:80"]);
  assert.deepEqual(seen({ text: "nothing", only: false }), []);
});

test("a limit has the tone of its level, and tells a time only if the edge does", () => {
  assert.deepEqual(["fine", "near", "full", undefined].map((level) => model.toneOf({ level })), ["water", "warn", "bad", "water"]);
  const doc = document(600, 1, 0, "calm");
  const line = (more) => ({ ...doc.waterlines[1], kind: "fds", ratio: 0.2, trend: "rising", ...more });
  const facts = (line) => withClass(overview({ doc: { ...doc, waterlines: [line] }, before: null, docs: [doc], past: [], t: translator("en"), ui: { history: "minutes", zoom: null } })[1], "facts").map(text).join();
  assert.ok(facts(line()).includes("rising") && !facts(line()).includes("full in"));
  assert.ok(facts(line({ ratio: 0.3, eta_s: 153 })).includes("full in 2\u202fm 33\u202fs"));
  assert.ok(facts(line({ trend: "flat" })).includes("not rising"));
});

test("a canary shows its clients, and the evidence of each kind of harm", () => {
  const doc = document(60, 1, Date.UTC(2026, 10, 26, 8), "calm");
  const aspects = [{ name: "errors", old: 0.002, new: 0.83, evidence: 52.4 }, { name: "slower", old: 0.5, new: 0.51, evidence: 0.9 }];
  const canary = { phase: "rolled_back", file: "/new.conf", share: 0.1, old: { clients: 540 }, new: { clients: 60 }, evidence: 40.2, evidence_limit: 40, aspects };
  const card = (weir) => overview({ doc: { ...doc, snapshot: { ...doc.snapshot, weir } }, before: null, docs: [doc], past: [], t: translator("en"), ui: { history: "minutes", zoom: null } })[2];
  assert.equal(card(doc.snapshot.weir), null, "there was none");
  const said = plain(text(card({ ...doc.snapshot.weir, canary })));
  for (const part of ["Canary: /new.conf", "rolled back", "Judged: 60 clients of the new and 540 of the old", "Clients with errors", "52.4", "new 83 %, old 0.2 %", "Rank of the latency"]) assert.ok(said.includes(part), `${part}: ${said}`);
});

test("the tiles are of the seconds of the verdict, and say so", () => {
  const doc = document(600, 1, 0, "failing");
  doc.recent = { ...doc.recent, rps: 100, failed: 2, seconds: 10 };
  Object.assign(doc.waterlines.find((line) => line.kind === "machine_cpu"), { ratio: 0.97, used: 1.94, limit: 2 });
  units.speak("ko");
  const tiles = withClass(overview({ doc, before: null, docs: [doc], past: [], t: translator("ko"), ui: { history: "minutes", zoom: null } })[0], "tile").map((tile) => tile.children.slice(0, 3).map(text).map(plain));
  assert.deepEqual(tiles.map(([label]) => label), ["요청최근 10초", "실패최근 10초", "p99최근 10초", "연결지금", "송신최근 10초", "머신 CPU최근 10초"]);
  assert.ok(tiles[1][1] === "2/초" && tiles[1][2].startsWith("요청의 2 %"), tiles[1].join());
  assert.deepEqual(tiles[5].slice(1), ["97 %", "2코어 중"]);
});

test("a point of the history says by which reason requests failed", () => {
  assert.deepEqual(model.reasons({ at: 9, rps: 50, failed: 9, refused: 25, upstream: 2, timeout: 1, client: 4, weir: 6 }), { at: 9, limit: 25, upstream: 2, timeout: 1, client: 4, weir: 6 });
  assert.equal(model.reasons(null), null);
  // The errors have the axis of the overview: also of the time before the page was opened.
  const live = Array.from({ length: 300 }, (_, at) => ({ at: at * 1000, failed: at < 9 ? 7 : 0, refused: 0, upstream: 0, timeout: 0, client: 0, weir: at < 9 ? 7 : 0 }));
  const of = axis({ doc: { at: 299_000, snapshot: { weir: { uptime_ms: 900_000 } } }, ui: { zoom: null }, live, told: model.reasons });
  assert.deepEqual([of.points[0].weir, of.newest.weir, of.points.length], [7, 0, 299]);
});

test("samples of errors are told location by location", () => {
  assert.deepEqual(byPlace([{ number: 3, zone: "a/" }, { number: 2, server: "b", zone: "" }, { number: 1, zone: "a/" }]).map(([place, list]) => [place, list.map((one) => one.number)]), [["a/", [3, 1]], ["b", [2]]]);
});

test("what was seen of one thing is a point a second, across a feed that was opened again", () => {
  const whole = (seq, at, pid) => ({ seq, at, point: {}, past: [], snapshot: { nginx: { pid } } });
  let state = step(null, "whole", whole(1, 1000, 7));
  state = step(state, "delta", { seq: 2, at: 2000 });
  assert.deepEqual(step(null, "whole", whole(9, 9000, 7), state.docs).docs.map((doc) => doc.at), [1000, 2000, 9000]);
  assert.deepEqual(step(null, "whole", whole(9, 9000, 8), state.docs).docs.map((doc) => doc.at), [9000], "another process");
  assert.deepEqual(model.trail(state.docs, (doc, before) => ({ apart: doc.at - before.at })), [{ at: 1000 }, { at: 2000, apart: 1000 }]);
  for (let seq = 3; seq < POINTS_MAX + 10; seq++) state = step(state, "delta", { seq, at: seq * 1000 });
  assert.equal(state.docs.length, POINTS_MAX);
});

test("a part of a report's axis has its own ticks and phases", () => {
  const settings = { title: "Load", unit: "/s", shape: "lines", ticks: [[0, "0s"]], phases: [{ from: 0, to: 0.5, text: "warm", all: "warm" }, { from: 0.5, to: 1, text: "hold", all: "hold" }], series: [{ name: "sent", tone: "c0", dash: 0 }] };
  const rows = Array.from({ length: 21 }, (_, at) => [`${at}s`, String(at)]);
  const what = described(settings, rows, { from: 10, to: 20 });
  assert.deepEqual([what.series[0].values[0], what.series[0].values.at(-1), what.label(0)], [10, 20, "10s"]);
  assert.deepEqual(what.ticks[0], [0, "10s"]);
  assert.deepEqual(what.phases.map(({ from, to, text }) => [from, to, text]), [[0, 1, "hold"]]);
});

test("what can be done to a server follows from its state", () => {
  assert.deepEqual(possible({ state: "up", weight: 1 }), ["drain", "disable", "more"]);
  assert.deepEqual(possible({ state: "down", weight: 3 }), ["enable", "less", "more"]);
  assert.deepEqual(changes({ state: "draining", weight: 1 }).enable, { down: false, drain: false });
  assert.deepEqual(changes({ state: "down", weight: 1 }).less, { weight: 1 });
});

test("an order to purge is confirmed edge by edge", () => {
  assert.deepEqual(confirmed({ applied_on: ["a", "b"], behind: ["c"] }), [{ edge: "a", has: true }, { edge: "b", has: true }, { edge: "c", has: false }]);
  assert.deepEqual(confirmed({ applied: "everywhere", edges: 1, behind: [] }), []);
});

test("lines of logs go to their samples", () => {
  const logs = { logs: [{ file: "a", of: "app" }, { file: "b", of: "", note: { en: "no such file", ko: "없음" } }], found: [{ sample: 2, log: 0, by: "id", entries: ["x"], more: 0 }] };
  assert.deepEqual(about(logs, 2), [{ sample: 2, log: 0, by: "id", entries: ["x"], more: 0, file: "a", of: "app" }]);
  assert.deepEqual([about(logs, 3), about(null, 2)], [[], []]);
  assert.deepEqual(hindered(logs).map((log) => log.file), ["b"]);
});

test("a run of the lab says what its figures say, in both languages", () => {
  const run = labRun();
  const [en, ko] = ["en", "ko"].map(translator);
  assert.equal(plain(sentence(run, en)), "CPU for a request: 319 µs → 205 µs, a change of −36 %; −43 % … −27 % at 95 % confidence, 6 pairs.");
  assert.ok(sentence(run, ko).includes("6쌍"));
  assert.equal(sentence({ ...run, running: true, blocks: 3, of: 48 }, en), "running: 3 of at most 48 blocks");
  assert.equal(sentence({ ...run, metrics: [] }, en), run.verdict.text);
  assert.deepEqual(["better", "no difference", "trade-off", "", "what nobody knows"].map((name) => word(name, ko)), ["개선", "차이 없음", "트레이드오프", "진행 중", "what nobody knows"]);
  assert.deepEqual([signed(0.042), signed(-0.15), signed(0), signed(null)].map(plain), ["+4.2 %", "−15 %", "0 %", "–"]);
  assert.deepEqual([figureOf("p95", 12.4), figureOf("cpu", 205), figureOf("throughput", null), figureOf("else", 1200)].map(plain), ["12.4 ms", "205 µs", "–", "1.2k"]);
});

test("blocks lie on one axis of time, and only those that count are in the mean", () => {
  const block = (arm, started_ms, strip, spoiled = []) => ({ arm, started_ms, seconds: 2, strip, spoiled });
  const blocks = [block("A", 1000, [1, 3]), block("B", 5000, [5]), block("A", 9000, [3, 5, 9]), block("A", 13_000, [99], ["spoiled"])];
  assert.deepEqual(laid(blocks).map(({ left, width }) => [left, width].map((part) => Math.round(part * 14_000))), [[0, 2000], [4000, 2000], [8000, 2000], [12_000, 2000]]);
  assert.deepEqual([meanStrip(blocks, "A"), meanStrip(blocks, "B"), meanStrip([], "A"), laid([])], [[2, 4, 9], [5], [], []]);
});

test("what is beside the name of a line is the newest second, also where a place stands for two", () => {
  const one = { name: "failed", tone: "bad", values: [1, 2], now: 1 };
  const figure = chart({ title: "t", series: [one], format: units.si, ticks: [], latest: true });
  assert.equal(text(withClass(figure, "key")[0]), "failed1");
  assert.equal(withClass(figure, "area")[0].props["aria-label"], "t: failed 1");
});

test("each reason of the cache is explained as the guide explains it", async () => {
  const guide = await readFile(new URL("../../docs/guide/cache.md", import.meta.url), "utf8");
  const rows = guide.split("| reason | | |\n|---|---|---|\n")[1].split("\n\n")[0].split("\n").map((row) => row.split(" | "));
  assert.deepEqual(Object.entries(MEANINGS).map(([name, { en }]) => [`| \`${name}\``, `${en} |`]), rows.map(([name, , en]) => [name, en]));
  for (const [name, { ko }] of Object.entries(MEANINGS)) assert.match(ko, /[가-힣].*\.$/, name);
});

test("no Korean text of the dashboard has a word that the glossary replaces", async () => {
  const glossary = await readFile(new URL("../../docs/korean.md", import.meta.url), "utf8");
  const rows = glossary.split("|---|---|---|---|\n")[1].split("\n\n")[0].split("\n").map((row) => row.split("|").map((cell) => cell.trim()));
  const words = rows.flatMap(([, , , not]) => not.split(", ")).filter(Boolean);
  assert.ok(words.length > 60 && words.includes("애플리케이션"));
  const folder = new URL("../../crates/dash/", import.meta.url);
  const files = (await readdir(folder, { recursive: true })).filter((name) => /\.(rs|js)$/.test(name) && !name.endsWith("tests.rs"));
  for (const file of files) {
    for (const [, said] of (await readFile(new URL(file, folder), "utf8")).matchAll(/"([^"\n]*[가-힣][^"\n]*)"/g)) {
      for (const word of words) assert.ok(!said.includes(word), `${file}: ${word}: ${said}`);
    }
  }
});

test("the line to copy names the group and the unit that are known", () => {
  const groups = { backend: { peers: [{ server: "10.0.0.1:3000" }, { server: "10.0.0.2:3000" }] }, chat: { peers: [{ server: "10.0.0.1:3000" }] } };
  const samples = (...servers) => servers.map((upstream) => ({ upstream }));
  const running = [{ serves: [], unit: "cron.service" }, { serves: [{ address: "10.0.0.1:3000", name: "chat" }], unit: "shop3000.service" }];
  assert.equal(logLine(samples("10.0.0.2:3000", "10.0.0.1:3000"), groups, running), "dashboard_upstream_log journald:shop3000.service upstream=backend;");
  assert.equal(logLine(samples("10.0.0.1:3000", ""), groups, []), "dashboard_upstream_log FILE upstream=10.0.0.1:3000;", "two groups have this server");
  assert.equal(logLine(samples(""), groups, running), "dashboard_upstream_log FILE upstream=NAME;");
});

test("why a try failed is said in words of the edge", () => {
  const doc = { whys: { refused: { en: "connection refused", ko: "연결 거부" } } };
  assert.deepEqual(["en", "ko"].map((language) => why("refused", doc, translator(language))), ["connection refused", "연결 거부"]);
  assert.deepEqual([why("http_502", doc, translator("ko")), why("llamas", {}, translator("ko"))], ["502", "llamas"]);
});

test("a choice that is no trouble is not red, and a view without its folder says so", () => {
  const ui = { find: {}, may: {}, lab: { list: null } };
  const button = (only) => withClass(finder(ui, { id: "x", t: translator("en"), failing: 3, all: 9, seen: 9, only }), "only")[0].props.class;
  assert.ok(button().includes("some") && !button("Only young ones").includes("some"));
  assert.match(text(lab({ t: translator("ko"), ui })), /설정에 dashboard_lab이 없어.*dashboard_lab DIRECTORY;/);
});
