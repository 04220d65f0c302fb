// Servers and locations: what comes, what is answered, how long it takes.

import { h } from "../dom.js";
import { codes, failed, lately, zones as rows } from "../model.js";
import { capital, card, empty, name, took, way } from "../parts.js";
import { finder, found, table } from "../table.js";
import * as units from "../units.js";
import { protocols } from "./protocols.js";

export function zones({ doc, before, docs, t, ui }) {
  const http = doc.snapshot.http;
  const [servers, locations] = ["server_zones", "location_zones"].map((kind) => {
    const recent = rows(doc, lately(docs), kind);
    return rows(doc, before, kind).map((row, at) => ({ ...row, failing: recent[at].failed > 0 }));
  });
  const all = [...servers, ...locations];
  const words = (row) => `${row.name} ${Object.keys(row.zone.responses.codes ?? {}).join(" ")}`;
  const [s, l] = [servers, locations].map((list) => found(list, ui.find.zones, words, isFailing));
  return [
    finder(ui, { id: "zones", t, failing: all.filter(isFailing).length, all: all.length, seen: s.length + l.length }),
    card(t("zones.servers"), null, servers.length ? zoneTable("servers", t("zones.servers"), s, t, ui, "server") : empty(t("zones.none"))),
    card(t("zones.locations"), null, locations.length ? zoneTable("locations", t("zones.locations"), l, t, ui, "location") : empty(t("zones.none"))),
    protocols({ doc, before, t, ui }),
    limits(http, t, ui),
  ];
}

/** Whether requests of a zone failed in the last ten seconds. */
const isFailing = (row) => row.failing;

/** Statuses as text, each class with a tone; the number itself says which. */
export function statuses(responses) {
  const list = codes(responses);
  if (list.length === 0) return null;
  return h(
    "span",
    { class: "codes" },
    list.slice(0, 6).map(({ code, count }) =>
      h("span", { key: String(code), class: `code c${Math.floor(code / 100)}` }, h("b", null, String(code)), " ", units.si(count)),
    ),
    list.length > 6 ? h("span", { class: "code" }, `+${list.length - 6}`) : null,
  );
}

function zoneTable(id, caption, list, t, ui, kind) {
  const isServer = kind === "server";
  const columns = [
    { key: "zone", label: t("col.zone"), text: true, get: (row) => row.name, show: (row) => h("a", { href: way("zones", kind, row.name) }, name(row.name)) },
    { key: "rate", label: t("col.rate"), get: (row) => row.rate, show: (row) => units.rate(row.rate) },
    { key: "failed", label: capital(t("chart.failed")), get: (row) => row.failed, show: (row) => (row.failed > 0 ? h("span", { class: "bad-ink" }, units.rate(row.failed)) : units.rate(row.failed)) },
    { key: "refused", label: capital(t("reason.limit")), get: (row) => row.refused, show: (row) => units.rate(row.refused) },
    { key: "avg", label: t("col.avg"), get: (row) => row.average, show: (row) => units.rate(row.average) },
    { key: "max", label: t("col.max"), get: (row) => row.max, show: (row) => units.rate(row.max) },
    { key: "requests", label: t("col.requests"), get: (row) => row.zone.requests, show: (row) => units.count(row.zone.requests) },
    ...(isServer ? [{ key: "inflight", label: t("col.inflight"), get: (row) => row.zone.processing, show: (row) => units.count(row.zone.processing) }] : []),
    { key: "codes", label: t("col.codes"), text: true, wide: true, get: (row) => failed(row.zone.responses), show: (row) => statuses(row.zone.responses) },
    { key: "discarded", label: t("col.discarded"), get: (row) => row.zone.discarded, show: (row) => units.count(row.zone.discarded) },
    { key: "p50", label: "p50", get: (row) => row.p50, show: (row) => took(row.p50, t) },
    { key: "p95", label: "p95", get: (row) => row.p95, show: (row) => took(row.p95, t) },
    { key: "p99", label: "p99", get: (row) => row.p99, show: (row) => took(row.p99, t) },
    { key: "in", label: t("col.in"), get: (row) => row.received, show: (row) => units.byteRate(row.received) },
    { key: "out", label: t("col.out"), get: (row) => row.sent, show: (row) => units.byteRate(row.sent) },
    ...(isServer && list.some((row) => row.zone.ssl)
      ? [
          { key: "handshakes", label: t("col.handshakes"), get: (row) => row.handshakes, show: (row) => units.share(row.handshakes) },
          { key: "resumed", label: t("col.resumed"), get: (row) => row.resumed, show: (row) => units.percent(row.resumed) },
        ]
      : []),
  ];
  return table(ui, { id, caption, columns, rows: list, rowKey: (row) => row.name, sort: ["rate", true], tone: (row) => (isFailing(row) ? "failing" : ""), none: t("find.none"), by: t("find.order") });
}

function limits(http, t, ui) {
  const rows = [
    ...Object.entries(http.limit_reqs ?? {}).map(([name, zone]) => ({ name, kind: "limit_req", zone })),
    ...Object.entries(http.limit_conns ?? {}).map(([name, zone]) => ({ name, kind: "limit_conn", zone })),
  ];
  if (rows.length === 0) return null;
  const dry = (row) => row.zone.rejected + (row.zone.rejected_dry_run ?? 0);
  const columns = [
    { key: "zone", label: t("col.zone"), text: true, get: (row) => row.name },
    { key: "kind", label: t("col.kind"), text: true, get: (row) => row.kind },
    { key: "passed", label: t("col.passed"), get: (row) => row.zone.passed, show: (row) => units.count(row.zone.passed) },
    { key: "delayed", label: t("col.delayed"), get: (row) => row.zone.delayed, show: (row) => units.count(row.zone.delayed) },
    { key: "rejected", label: t("col.rejected"), get: dry, show: (row) => units.count(row.zone.rejected) + (row.zone.rejected_dry_run ? ` (+${units.count(row.zone.rejected_dry_run)} dry_run)` : "") },
  ];
  return card(t("zones.limits"), null, table(ui, { id: "limits", caption: t("zones.limits"), columns, rows, rowKey: (row) => `${row.kind} ${row.name}`, sort: ["rejected", true], by: t("find.order") }));
}
