// TCP and UDP: the sessions of `stream`, by server and by peer.

import { h } from "../dom.js";
import { sessions as rows } from "../model.js";
import { card, empty, mark } from "../parts.js";
import { table } from "../table.js";
import * as units from "../units.js";
import { TONES } from "./upstreams.js";

export function sessions({ doc, before, t, ui }) {
  const { zones, groups } = rows(doc, before);
  return [
    card(t("zones.servers"), null, zones.length ? zoneTable(zones, t, ui) : empty(t("sessions.none"))),
    groups.map(({ name, peers }) => h("div", { key: name }, card(name, null, peerTable(name, peers, t, ui)))),
  ];
}

/** Ended sessions by class of status; the class itself says which. */
function statuses(counts) {
  return h(
    "span",
    { class: "codes" },
    ["2xx", "4xx", "5xx"].filter((name) => counts?.[name] > 0).map((name) =>
      h("span", { key: name, class: `code c${name[0]}` }, h("b", null, name), " ", units.si(counts[name])),
    ),
  );
}

function zoneTable(list, t, ui) {
  const columns = [
    { key: "zone", label: t("col.zone"), text: true, get: (row) => row.name },
    { key: "rate", label: t("col.rate"), get: (row) => row.rate, show: (row) => units.rate(row.rate) },
    { key: "begun", label: t("sessions.begun"), get: (row) => row.zone.connections, show: (row) => units.count(row.zone.connections) },
    { key: "open", label: t("sessions.open"), get: (row) => row.zone.processing, show: (row) => units.count(row.zone.processing) },
    { key: "codes", label: t("col.codes"), text: true, get: (row) => row.zone.sessions?.["5xx"], show: (row) => statuses(row.zone.sessions) },
    { key: "discarded", label: t("col.discarded"), get: (row) => row.zone.discarded, show: (row) => units.count(row.zone.discarded) },
    { key: "in", label: t("col.in"), get: (row) => row.received, show: (row) => units.byteRate(row.received) },
    { key: "out", label: t("col.out"), get: (row) => row.sent, show: (row) => units.byteRate(row.sent) },
  ];
  return table(ui, { id: "sessions", caption: t("nav.sessions"), columns, rows: list, rowKey: (row) => row.name, sort: ["rate", true], by: t("find.order") });
}

function peerTable(name, peers, t, ui) {
  const columns = [
    { key: "peer", label: t("up.peer"), text: true, get: (row) => row.peer.server, show: (row) => h("span", { class: "whole" }, row.peer.server) },
    { key: "state", label: t("up.state"), text: true, get: (row) => row.state, show: (row) => mark(TONES[row.state] ?? "idle", t(`peer.${row.state}`)) },
    { key: "rate", label: t("col.rate"), get: (row) => row.rate, show: (row) => units.rate(row.rate) },
    { key: "open", label: t("sessions.open"), get: (row) => row.peer.active, show: (row) => units.count(row.peer.active) + (row.peer.max_conns ? ` / ${units.count(row.peer.max_conns)}` : "") },
    { key: "connect", label: t("sessions.connect"), get: (row) => row.peer.connect_time, show: (row) => units.time(row.peer.connect_time) },
    { key: "first", label: t("sessions.first"), get: (row) => row.peer.first_byte_time, show: (row) => units.time(row.peer.first_byte_time) },
    { key: "fails", label: t("up.fails"), get: (row) => row.peer.fails, show: (row) => units.count(row.peer.fails) },
    { key: "in", label: t("col.in"), get: (row) => row.received, show: (row) => units.byteRate(row.received) },
    { key: "out", label: t("col.out"), get: (row) => row.sent, show: (row) => units.byteRate(row.sent) },
  ];
  const tone = (row) => (TONES[row.state] === "bad" ? "failing" : "");
  return table(ui, { id: `session peers ${name}`, caption: name, columns, rows: peers, rowKey: (row) => String(row.peer.id), tone, by: t("find.order") });
}
