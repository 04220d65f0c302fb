// Requests by protocol, and the connections of QUIC beneath HTTP/3.

import { h } from "../dom.js";
import { between, grew, protocols as rows } from "../model.js";
import { card, figure } from "../parts.js";
import { table } from "../table.js";
import * as units from "../units.js";

export function protocols({ doc, before, t, ui }) {
  const list = rows(doc, before);
  if (list.length === 0) return null;
  return card(t("proto.title"), t("proto.hint"), protocolTable(list, t, ui), quic({ doc, before, t }));
}

function protocolTable(list, t, ui) {
  const columns = [
    { key: "protocol", label: t("proto.name"), text: true, get: (row) => row.protocol },
    { key: "rate", label: t("col.rate"), get: (row) => row.rate, show: (row) => units.rate(row.rate) },
    { key: "requests", label: t("col.requests"), get: (row) => row.requests, show: (row) => units.count(row.requests) },
    { key: "share", label: t("proto.share"), get: (row) => row.share, show: (row) => units.percent(row.share) },
    { key: "in", label: t("col.in"), get: (row) => row.received, show: (row) => units.byteRate(row.received) },
    { key: "out", label: t("col.out"), get: (row) => row.sent, show: (row) => units.byteRate(row.sent) },
  ];
  return table(ui, { id: "protocols", caption: t("proto.title"), columns, rows: list, rowKey: (row) => row.protocol, by: t("find.order") });
}

/** The sum of a map of counts. */
const sum = (counts) => Object.values(counts ?? {}).reduce((all, count) => all + count, 0);

/** Reasons that have a word; the others are alerts of TLS, with the names of RFC 8446. */
const WORDS = new Set(["timeout", "closed", "transport", "shutdown", "garbage", "unknown_id", "full", "worker", "process"]);

/** The reasons with a count, the most frequent first. */
const reasons = (counts, t) =>
  Object.entries(counts ?? {}).filter(([, count]) => count > 0).sort((a, b) => b[1] - a[1]).slice(0, 3)
    .map(([reason, count]) => `${WORDS.has(reason) ? t(`quicwhy.${reason}`) : reason} ${units.si(count)}`).join(" · ");

/** What weir sees of QUIC; nothing where no datagram has come. */
function quic({ doc, before, t }) {
  const now = doc.snapshot.weir.quic;
  if (!now?.datagrams?.received) return null;
  const [old, seconds] = [before?.snapshot.weir.quic, between(doc, before)];
  const events = [["retries", now.retries], ["early", now.early_data], ["migrations", now.migrations], ["resets", now.stateless_resets], ["versions", now.version_negotiations], ["refused", now.refused]];
  return [
    h("h3", null, t("quic.title")),
    h(
      "div",
      { class: "figures" },
      figure(t("quic.active"), units.count(now.active), t("quic.accepted", units.count(now.accepted))),
      figure(t("quic.failed"), units.count(sum(now.handshakes_failed)), reasons(now.handshakes_failed, t)),
      figure(t("quic.in"), units.rate(grew(now.datagrams.received, old?.datagrams.received, seconds)), units.count(now.datagrams.received)),
      figure(t("quic.out"), units.rate(grew(now.datagrams.sent, old?.datagrams.sent, seconds)), units.count(now.datagrams.sent)),
      figure(t("quic.lost"), units.rate(grew(now.lost_packets, old?.lost_packets, seconds)), units.count(now.lost_packets)),
      figure(t("quic.dropped"), units.count(sum(now.datagrams.dropped)), reasons(now.datagrams.dropped, t)),
      figure(t("quic.forwarded"), units.count(sum(now.datagrams.forwarded)), reasons(now.datagrams.forwarded, t)),
      events.filter(([, count]) => count > 0).map(([event, count]) => figure(t(`quic.${event}`), units.count(count))),
    ),
  ];
}
