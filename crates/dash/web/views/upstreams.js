// Groups and their peers: who serves, how well connections are kept, why tries fail.

import { h } from "../dom.js";
import { failed, groups, lately } from "../model.js";
import { card, copyable, empty, mark, took, way } from "../parts.js";
import { finder, found, table } from "../table.js";
import * as units from "../units.js";
import { statuses } from "./zones.js";

export const TONES = { up: "good", busy: "warn", draining: "warn", checking: "idle", down: "idle", unavail: "bad", unhealthy: "bad" };

export function upstreams({ doc, before, docs, t, ui }) {
  const recent = groups(doc, lately(docs));
  const list = groups(doc, before).map((one, at) => ({ ...one, peers: one.peers.map((row, place) => ({ ...row, failing: recent[at].peers[place].failing })) }));
  if (list.length === 0) return card(t("nav.upstreams"), null, empty(t("up.none")));
  const rows = list.flatMap(({ name, peers }) => peers.map((row) => ({ ...row, group: name })));
  const words = (row) => `${row.group} ${row.peer.server} ${row.peer.name ?? ""} ${row.state} ${t(`peer.${row.state}`)}`;
  const shown = new Set(found(rows, ui.find.upstreams, words, isFailing).map((row) => `${row.group} ${row.peer.id}`));
  const changeable = new Set(doc.snapshot.weir.changeable ?? []);
  // Said once, not beneath each group.
  const locked = ui.may.servers ? null : h("p", { class: "hint" }, t("up.locked"), " ", copyable("dashboard_token FILE;", t));
  return [
    finder(ui, { id: "upstreams", t, failing: rows.filter(isFailing).length, all: rows.length, seen: shown.size }),
    list.map(({ name, group, peers }) => {
      const seen = peers.filter((row) => shown.has(`${name} ${row.peer.id}`));
      if (seen.length === 0 && peers.length > 0) return null;
      const may = Boolean(ui.may.servers) && changeable.has(name);
      return h(
        "div",
        { key: name },
        card(
          h("a", { class: "plain", href: way("upstreams", name) }, name),
          told(group, t),
          peerTable(name, seen, may, doc, t, ui),
          may ? h("p", { class: "answer", role: "status" }, ui.changed[name] ? mark(ui.changed[name].tone, ui.changed[name].text) : "") : ui.may.servers ? h("p", { class: "hint" }, t("up.static")) : null,
        ),
      );
    }),
    shown.size === 0 ? empty(t("find.none")) : null,
    locked,
  ];
}

/** Whether a peer is out of service, or requests to it failed in the last ten seconds. */
export const isFailing = (row) => TONES[row.state] === "bad" || row.failing > 0;

/** What is to be said of a group as a whole. */
export function told(group, t) {
  const notes = [t("up.kept", units.count(group.keepalive))];
  if (group.queue) {
    notes.push(t("up.queue", units.count(group.queue.size), units.count(group.queue.max_size)));
    if (group.queue.overflows > 0) notes.push(t("up.overflows", units.count(group.queue.overflows)));
  }
  return notes.join(" · ");
}

/** Why a try at a server failed, in words; `http_502` and unknown reasons go by themselves. */
export const why = (reason, doc, t) => (doc.whys?.[reason] ? t.of(doc.whys[reason]) : reason.replace(/^http_/, ""));

function failures(row, doc, t) {
  const reasons = Object.entries(row.cost?.fails ?? {}).sort((a, b) => b[1] - a[1]);
  if (reasons.length === 0) return units.count(row.peer.fails);
  const last = row.cost?.last_error ? h("span", { class: "said" }, row.cost.last_error) : null;
  return [h("span", { class: "codes" }, reasons.slice(0, 4).map(([reason, count]) => h("span", { key: reason, class: "code c5" }, h("b", null, why(reason, doc, t)), " ", units.si(count)))), last];
}

/** What a press changes: the words of NGINX Plus' API. */
export const changes = (peer) => ({
  drain: { drain: true },
  disable: { down: true },
  // A server that drains comes back with its first words.
  enable: { down: false, ...(peer.state === "draining" ? { drain: false } : {}) },
  less: { weight: Math.max(1, peer.weight - 1) },
  more: { weight: peer.weight + 1 },
});

/** Which of them there are for a peer in its state. */
export function possible(peer) {
  const weights = peer.weight > 1 ? ["less", "more"] : ["more"];
  if (peer.state === "down") return ["enable", ...weights];
  if (peer.state === "draining") return ["enable", "disable", ...weights];
  return ["drain", "disable", ...weights];
}

const SIGNS = { less: "−", more: "+" };

function buttons(group, peer, t, ui) {
  return h(
    "span",
    { class: "buttons" },
    possible(peer).map((what) =>
      h(
        "button",
        {
          key: what,
          type: "button",
          class: "quiet",
          "aria-label": t(`up.do.${what}`, peer.server),
          onclick: () => change(group, peer, what, t, ui),
        },
        SIGNS[what] ?? t(`up.${what}`),
      ),
    ),
  );
}

async function change(group, peer, what, t, ui) {
  const say = (tone, text) => ui.set({ changed: { ...ui.changed, [group]: { tone, text } } });
  try {
    const answer = await fetch(`upstreams/${encodeURIComponent(group)}/servers/${peer.id}`, {
      method: "PATCH",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(changes(peer)[what]),
    });
    const said = answer.ok ? null : await answer.json().catch(() => null);
    if (answer.ok) say("good", t(`up.done.${what}`, peer.server, changes(peer)[what].weight));
    else say("bad", t("up.refused", said?.error?.text ?? answer.status));
  } catch (error) {
    say("bad", t("up.refused", String(error.message ?? error)));
  }
}

function peerTable(name, peers, may, doc, t, ui) {
  const columns = [
    {
      key: "peer",
      width: 12.5,
      label: t("up.peer"),
      text: true,
      get: (row) => row.peer.server,
      show: (row) => [
        h("a", { class: "whole", href: way("upstreams", name, row.peer.server) }, row.peer.server),
        row.peer.name && row.peer.name !== row.peer.server ? h("span", { class: "sub" }, row.peer.name) : null,
        row.peer.backup || row.peer.weight > 1
          ? h("span", { class: "sub" }, [row.peer.backup ? t("up.backup") : "", row.peer.weight > 1 ? t("up.weight", row.peer.weight) : ""].filter(Boolean).join(", "))
          : null,
      ],
    },
    { key: "state", width: 7.5, label: t("up.state"), text: true, get: (row) => row.state, show: (row) => mark(TONES[row.state] ?? "idle", t(`peer.${row.state}`)) },
    { key: "rate", width: 5.5, label: t("col.rate"), get: (row) => row.rate, show: (row) => units.rate(row.rate) },
    { key: "active", width: 6, label: t("up.active"), get: (row) => row.peer.active, show: (row) => units.count(row.peer.active) + (row.peer.max_conns ? ` / ${units.count(row.peer.max_conns)}` : "") },
    { key: "codes", width: 12, label: t("col.codes"), text: true, wide: true, get: (row) => failed(row.peer.responses), show: (row) => statuses(row.peer.responses) },
    { key: "reuse", width: 5.5, label: t("up.reuse"), get: (row) => row.reuse, show: (row) => units.percent(row.reuse) },
    { key: "opened", width: 5, label: t("up.opened"), get: (row) => row.opened, show: (row) => units.rate(row.opened) },
    { key: "idle", width: 4, label: t("up.idle"), get: (row) => row.cost?.idle, show: (row) => units.count(row.cost?.idle) },
    { key: "connect", width: 7.3, label: t("up.connect"), get: (row) => row.connect, show: (row) => took(row.connect, t) },
    { key: "header", width: 6.5, label: t("up.header"), get: (row) => row.header, show: (row) => took(row.header, t) },
    { key: "response", width: 7, label: t("up.response"), get: (row) => row.response, show: (row) => took(row.response, t) },
    { key: "retries", width: 5, label: t("up.retries"), get: (row) => row.cost?.retries, show: (row) => units.count(row.cost?.retries) },
    { key: "fails", label: t("up.fails"), text: true, wide: true, get: (row) => row.peer.fails, show: (row) => failures(row, doc, t) },
  ];
  if (may) columns.splice(2, 0, { key: "change", width: 15, label: t("up.change"), text: true, wide: true, get: (row) => row.state, show: (row) => buttons(name, row.peer, t, ui) });
  const tone = (row) => (isFailing(row) ? "failing" : "");
  return table(ui, { id: `peers ${name}`, caption: name, columns, rows: peers, rowKey: (row) => String(row.peer.id), tone, by: t("find.order") });
}
