// Groups and their peers: who serves, how well connections are kept, why tries fail.

import { h } from "../dom.js";
import { groups } from "../model.js";
import { card, empty, mark } from "../parts.js";
import { table } from "../table.js";
import * as units from "../units.js";
import { statuses } from "./zones.js";

const TONES = { up: "good", busy: "warn", draining: "warn", checking: "idle", down: "idle", unavail: "bad", unhealthy: "bad" };

export function upstreams({ doc, before, t, ui }) {
  const list = groups(doc, before);
  if (list.length === 0) return card(t("nav.upstreams"), null, empty(t("up.none")));
  return list.map(({ name, group, peers }) => {
    const notes = [t("up.kept", units.count(group.keepalive))];
    if (group.queue) {
      notes.push(t("up.queue", units.count(group.queue.size), units.count(group.queue.max_size)));
      if (group.queue.overflows > 0) notes.push(t("up.overflows", units.count(group.queue.overflows)));
    }
    return h("div", { key: name }, card(name, notes.join(" · "), peerTable(name, peers, t, ui)));
  });
}

function failures(row) {
  const reasons = Object.entries(row.cost?.fails ?? {}).sort((a, b) => b[1] - a[1]);
  if (reasons.length === 0) return units.count(row.peer.fails);
  return h("span", { class: "codes" }, reasons.slice(0, 4).map(([reason, count]) => h("span", { key: reason, class: "code c5" }, h("b", null, reason), " ", units.si(count))));
}

function peerTable(name, peers, t, ui) {
  const columns = [
    {
      key: "peer",
      label: t("up.peer"),
      text: true,
      get: (row) => row.peer.server,
      show: (row) => [
        row.peer.server,
        row.peer.name && row.peer.name !== row.peer.server ? h("span", { class: "sub" }, row.peer.name) : null,
        row.peer.backup || row.peer.weight > 1
          ? h("span", { class: "sub" }, [row.peer.backup ? t("up.backup") : "", row.peer.weight > 1 ? t("up.weight", row.peer.weight) : ""].filter(Boolean).join(", "))
          : null,
      ],
    },
    { key: "state", label: t("up.state"), text: true, get: (row) => row.state, show: (row) => mark(TONES[row.state] ?? "idle", t(`peer.${row.state}`)) },
    { key: "rate", label: t("col.rate"), get: (row) => row.rate, show: (row) => units.rate(row.rate) },
    { key: "active", label: t("up.active"), get: (row) => row.peer.active, show: (row) => units.count(row.peer.active) + (row.peer.max_conns ? ` / ${units.count(row.peer.max_conns)}` : "") },
    { key: "codes", label: t("col.codes"), text: true, get: (row) => row.peer.responses["5xx"], show: (row) => statuses(row.peer.responses) },
    { key: "reuse", label: t("up.reuse"), get: (row) => row.reuse, show: (row) => units.percent(row.reuse) },
    { key: "opened", label: t("up.opened"), get: (row) => row.opened, show: (row) => units.rate(row.opened) },
    { key: "idle", label: t("up.idle"), get: (row) => row.cost?.idle, show: (row) => units.count(row.cost?.idle) },
    { key: "connect", label: t("up.connect"), get: (row) => row.connect, show: (row) => units.time(row.connect) },
    { key: "header", label: t("up.header"), get: (row) => row.header, show: (row) => units.time(row.header) },
    { key: "response", label: t("up.response"), get: (row) => row.response, show: (row) => units.time(row.response) },
    { key: "retries", label: t("up.retries"), get: (row) => row.cost?.retries, show: (row) => units.count(row.cost?.retries) },
    { key: "fails", label: t("up.fails"), text: true, get: (row) => row.peer.fails, show: failures },
    { key: "last", label: t("up.last"), text: true, get: (row) => row.cost?.last_error ?? "", show: (row) => h("span", { class: "said" }, row.cost?.last_error || units.NOTHING) },
  ];
  const tone = (row) => (TONES[row.state] === "bad" ? "failing" : "");
  return table(ui, { id: `peers ${name}`, caption: name, columns, rows: peers, rowKey: (row) => String(row.peer.id), tone });
}
