// One zone, one group, one peer, one cache: its figures and its own charts. The address names it.

import { h } from "../dom.js";
import { OUTCOMES, between, caches, classes, codes, groups, grew, trail, zones } from "../model.js";
import { capital, card, figure, mark, name, took, way } from "../parts.js";
import { timed } from "../timeline.js";
import * as units from "../units.js";
import { one as cacheCard } from "./caches.js";
import { TONES, told, why } from "./upstreams.js";

/** The page of the thing that an address names; null if there is no such page. @param {string} view */
export function detail(view, seen) {
  const { of } = seen;
  if (view === "zones" && of.length === 2) return zone(...of, seen);
  if (view === "upstreams" && of.length === 2) return peer(...of, seen);
  if (view === "upstreams" && of.length === 1) return group(of[0], seen);
  if (view === "caches" && of.length === 1) return cache(of[0], seen);
  return null;
}

/** The way back, and the name of the thing. */
function head(view, title, t, said) {
  return h(
    "nav",
    { class: "crumbs", "aria-label": t("crumbs.label") },
    h("a", { href: way(view) }, h("span", { "aria-hidden": "true" }, "← "), t(`nav.${view}`)),
    h("h2", { class: "of" }, title),
    said,
  );
}

const gone = (view, title, t) => [head(view, name(title), t), card(title, null, h("p", { class: "empty" }, t("crumbs.gone", title)))];

const STATUS = [
  { name: "2xx", tone: "water", of: "2xx" },
  { name: "3xx", tone: "deep", of: "3xx" },
  { name: "4xx", tone: "warn", of: "4xx" },
  { name: "5xx", tone: "bad", of: "5xx" },
];

/** Every status, with its count and its share. */
function statusList(responses, t) {
  const list = codes(responses);
  const all = list.reduce((sum, { count }) => sum + count, 0);
  const most = Math.max(1, ...list.map(({ count }) => count));
  return card(t("col.codes"), t("detail.sinceStart"),
    list.length === 0
      ? h("p", { class: "empty" }, t("zones.none"))
      : h("ul", { class: "ranked" }, list.map(({ code, count }) =>
        h("li", { key: String(code) },
          h("span", null, h("span", { class: `code c${Math.floor(code / 100)}` }, h("b", null, String(code)))),
          h("span", { class: `rank k${Math.floor(code / 100)}`, "aria-hidden": "true" }, h("i", { css: { width: `${(count / most) * 100}%` } })),
          h("b", null, units.count(count)),
          h("span", { class: "sub" }, units.percent(count / all))))));
}

function zone(kind, title, seen) {
  const { doc, before, docs, t, ui } = seen;
  const list = `${kind}_zones`;
  const row = zones(doc, before, list).find((row) => row.name === title);
  if (!row) return gone("zones", title, t);
  const live = trail(docs, (doc, before) => {
    const [now, old] = [doc, before].map((one) => one.snapshot.http[list]?.[title]);
    const [times, account] = [doc, before].map((one) => one.snapshot.weir[list]?.[title]);
    if (!now || !old) return {};
    const seconds = between(doc, before);
    const time = (quantile) => (times?.recent?.[quantile] === undefined ? null : times.recent[quantile] / 1000);
    return {
      rps: grew(now.requests, old.requests, seconds), failed: grew(times?.failed, account?.failed, seconds), limit: grew(times?.refused, account?.refused, seconds),
      p50: time("p50_us"), p95: time("p95_us"), p99: time("p99_us"),
      in: grew(now.received, old.received, seconds), out: grew(now.sent, old.sent, seconds), ...classes(now.responses, old.responses, seconds),
    };
  });
  return [
    head("zones", name(title), t, mark(row.failed > 0 ? "bad" : "good", row.failed > 0 ? t("state.failing") : t("state.healthy"))),
    card(t(kind === "server" ? "detail.server" : "detail.location"), null,
      h("div", { class: "figures" },
        figure(t("kpi.requests"), units.rate(row.rate), t("detail.highest", units.rate(row.max))),
        figure(capital(t("chart.failed")), units.rate(row.failed), t("detail.all", units.count(doc.snapshot.weir[list]?.[title]?.failed))),
        figure(capital(t("reason.limit")), units.rate(row.refused), t("detail.all", units.count(doc.snapshot.weir[list]?.[title]?.refused))),
        figure("p50", took(row.p50, t)), figure("p95", took(row.p95, t)), figure("p99", took(row.p99, t)),
        figure(t("col.in"), units.byteRate(row.received), units.bytes(row.zone.received)),
        figure(t("col.out"), units.byteRate(row.sent), units.bytes(row.zone.sent)),
        figure(t("col.discarded"), units.count(row.zone.discarded)))),
    timed({ doc, t, ui, live }, (one) => [
      one(t("chart.requests"), units.si, [
        { name: t("chart.answered"), tone: "water", of: "rps", fill: true }, { name: t("chart.failed"), tone: "bad", of: "failed", fill: true },
        { name: t("reason.limit"), tone: "warn", of: "limit" },
      ]),
      one(t("chart.latency"), units.time, [{ name: "p99", tone: "deep", of: "p99", fill: true }, { name: "p95", tone: "water", of: "p95" }, { name: "p50", tone: "soft", of: "p50" }], { exact: (ms) => took(ms, t) }),
      one(t("chart.statuses"), units.si, STATUS, { shape: "stack" }),
      one(t("chart.bytes"), units.byteRate, [{ name: t("col.out"), tone: "water", of: "out", fill: true }, { name: t("col.in"), tone: "deep", of: "in" }], { binary: true }),
    ]),
    statusList(row.zone.responses, t),
  ];
}

function group(title, seen) {
  const { doc, before, docs, t, ui } = seen;
  const found = groups(doc, before).find((one) => one.name === title);
  if (!found) return gone("upstreams", title, t);
  const tones = ["water", "deep", "violet", "moss", "soft", "warn"];
  const shown = found.peers.slice(0, tones.length);
  const live = trail(docs, (doc, before) => Object.fromEntries(groupsOf(doc, before, title).flatMap((row) => [[row.peer.server, row.rate], [`${row.peer.server} p95`, row.response]])));
  return [
    head("upstreams", title, t, h("span", { class: "hint" }, told(found.group, t))),
    timed({ doc, t, ui, live }, (one) => [
      one(t("chart.requests"), units.si, shown.map((row, at) => ({ name: row.peer.server, tone: tones[at], of: row.peer.server }))),
      one(t("up.response"), units.time, shown.map((row, at) => ({ name: row.peer.server, tone: tones[at], of: `${row.peer.server} p95` })), { exact: (ms) => took(ms, t) }),
    ]),
    card(t("detail.peers"), shown.length < found.peers.length ? t("detail.first", shown.length, found.peers.length) : null,
      h("ul", { class: "ranked" }, found.peers.map((row) =>
        h("li", { key: String(row.peer.id) }, h("a", { class: "whole", href: way("upstreams", title, row.peer.server) }, row.peer.server),
          h("span", null, mark(TONES[row.state] ?? "idle", t(`peer.${row.state}`))), h("b", null, units.rate(row.rate)), h("span", { class: "sub" }, `p95 ${took(row.response, t)}`))))),
  ];
}

const groupsOf = (doc, before, title) => groups(doc, before).find((one) => one.name === title)?.peers ?? [];

function peer(title, server, seen) {
  const { doc, before, docs, t, ui } = seen;
  const row = groupsOf(doc, before, title).find((row) => row.peer.server === server);
  if (!row) return gone("upstreams", `${title} ${server}`, t);
  const live = trail(docs, (doc, before) => {
    const now = groupsOf(doc, before, title).find((row) => row.peer.server === server);
    const old = before.snapshot.http.upstreams?.[title]?.peers?.find((peer) => peer.server === server);
    if (!now || !old) return {};
    return { rate: now.rate, failed: now.failing, active: now.peer.active, idle: now.cost?.idle, opened: now.opened, connect: now.connect, header: now.header, response: now.response, ...classes(now.peer.responses, old.responses, between(doc, before)) };
  });
  const reasons = Object.entries(row.cost?.fails ?? {}).sort((a, b) => b[1] - a[1]);
  return [
    head("upstreams", [h("a", { class: "plain", href: way("upstreams", title) }, title), " ", h("span", { class: "whole" }, server)], t, mark(TONES[row.state] ?? "idle", t(`peer.${row.state}`))),
    card(t("up.peer"), row.peer.name && row.peer.name !== server ? row.peer.name : null,
      h("div", { class: "figures" },
        figure(t("kpi.requests"), units.rate(row.rate), units.count(row.peer.requests)),
        figure(t("up.active"), units.count(row.peer.active), row.peer.max_conns ? `/ ${units.count(row.peer.max_conns)} (max_conns)` : ""),
        figure(t("up.reuse"), units.percent(row.reuse), `${t("up.opened")} ${units.rate(row.opened)}`),
        figure(t("up.idle"), units.count(row.cost?.idle)),
        figure(t("up.connect"), took(row.connect, t)), figure(t("up.header"), took(row.header, t)), figure(t("up.response"), took(row.response, t)),
        figure(t("up.fails"), units.count(row.peer.fails), reasons.map(([reason, count]) => `${why(reason, doc, t)} ${units.si(count)}`).join(", ")),
        figure(t("up.retries"), units.count(row.cost?.retries))),
      row.cost?.last_error ? [h("h3", null, t("up.last")), h("pre", { class: "line", tabindex: 0, role: "region", "aria-label": t("up.last") }, row.cost.last_error)] : null),
    timed({ doc, t, ui, live }, (one) => [
      one(t("chart.requests"), units.si, [{ name: t("chart.answered"), tone: "water", of: "rate", fill: true }, { name: t("chart.failed"), tone: "bad", of: "failed", fill: true }]),
      one(t("chart.latency"), units.time, [{ name: t("up.response"), tone: "deep", of: "response", fill: true }, { name: t("up.header"), tone: "water", of: "header" }, { name: t("up.connect"), tone: "soft", of: "connect" }], { exact: (ms) => took(ms, t) }),
      one(t("chart.statuses"), units.si, STATUS, { shape: "stack" }),
      one(t("detail.connections"), units.si, [{ name: t("up.active"), tone: "water", of: "active", fill: true }, { name: t("up.idle"), tone: "soft", of: "idle" }, { name: t("up.opened"), tone: "warn", of: "opened" }]),
    ]),
    statusList(row.peer.responses, t),
  ];
}

function cache(title, seen) {
  const { doc, before, docs, t, ui } = seen;
  const row = caches(doc, before).find((row) => row.name === title);
  if (!row) return gone("caches", title, t);
  const live = trail(docs, (doc, before) => {
    const [now, old] = [doc, before].map((one) => one.snapshot.weir.caches?.[title]);
    if (!now || !old) return {};
    const seconds = between(doc, before);
    const rates = Object.fromEntries([...OUTCOMES, "requests", "fetches", "waited"].map((name) => [name, grew(now[name], old[name], seconds)]));
    const saved = rates.requests > 0 ? 1 - Math.min(1, rates.fetches / rates.requests) : null;
    return { ...rates, saved, size: doc.snapshot.http.caches?.[title]?.size, memory: now.memory };
  });
  const tones = { hit: "water", stale: "moss", updating: "soft", revalidated: "deep", miss: "violet", expired: "warn", bypass: "soft", error: "bad" };
  return [
    head("caches", title, t),
    cacheCard(row, doc, t),
    timed({ doc, t, ui, live }, (one) => [
      one(t("chart.requests"), units.si, [{ name: t("cache.clients"), tone: "water", of: "requests", fill: true }, { name: t("cache.origin"), tone: "deep", of: "fetches", fill: true }]),
      one(t("detail.saved"), units.percent, [{ name: t("detail.saved"), tone: "water", of: "saved", fill: true }]),
      one(t("detail.outcomes"), units.si, OUTCOMES.filter((outcome) => row.account[outcome] > 0).map((outcome) => ({ name: t(`cache.${outcome}`), tone: tones[outcome], of: outcome })), { shape: "stack" }),
      one(t("cache.fill"), units.bytes, [{ name: t("detail.disk"), tone: "water", of: "size", fill: true }, { name: t("cache.memory"), tone: "deep", of: "memory" }], { binary: true }),
    ]),
  ];
}
