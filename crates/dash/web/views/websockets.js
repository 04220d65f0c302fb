// Upgraded connections: how many, how long, why they end.

import { h } from "../dom.js";
import { between, grew, ms, trail } from "../model.js";
import { card, empty, figure, keys, stacked } from "../parts.js";
import { timed } from "../timeline.js";
import * as units from "../units.js";

const WORDS = { client: "ws.client", upstream: "ws.upstream", timeout: "ws.timeoutClose", edge: "ws.shutdown", shutdown: "ws.shutdown", error: "ws.error" };

/** Whether half of those that closed were about as old as the timeout. */
export const isNearTimeout = (age, timeout) => age.count >= 10 && timeout > 0 && Math.abs(age.p50_us / 1000 / timeout - 1) < 0.15;

export function websockets({ doc, before, docs, t, ui }) {
  const now = doc.snapshot.weir.websockets;
  const old = before?.snapshot.weir.websockets;
  const seconds = between(doc, before);
  const closes = Object.entries(now.closes ?? {}).sort((a, b) => b[1] - a[1]);
  const closed = closes.reduce((sum, [, count]) => sum + count, 0);
  const closedOld = old ? Object.values(old.closes ?? {}).reduce((sum, count) => sum + count, 0) : undefined;
  if (now.opened === 0) return card(t("nav.websockets"), null, empty(t("ws.none")));
  const pieces = closes.map(([why, count]) => ({ key: why, name: WORDS[why] ? t(WORDS[why]) : why, size: count, text: units.count(count), tone: `close-${why}` }));
  const messages = (name, count, before) =>
    count === null || count === undefined ? figure(name, units.NOTHING, t("ws.notLooked")) : figure(name, units.rate(grew(count, before, seconds)), units.count(count));
  const trip = (name, times) => (times?.count ? figure(name, units.time(ms(times, "p50_us")), `p95 ${units.time(ms(times, "p95_us"))}`) : null);
  return [
    card(
      t("nav.websockets"),
      now.timeout_ms ? t("ws.timeout", units.time(now.timeout_ms)) : null,
      h(
        "div",
        { class: "figures" },
        figure(t("ws.open"), units.count(now.open)),
        figure(t("ws.opened"), units.rate(grew(now.opened, old?.opened, seconds)), units.count(now.opened)),
        figure(t("ws.closed"), units.rate(grew(closed, closedOld, seconds)), units.count(closed)),
        figure(t("ws.in"), units.byteRate(grew(now.received, old?.received, seconds)), units.bytes(now.received)),
        figure(t("ws.out"), units.byteRate(grew(now.sent, old?.sent, seconds)), units.bytes(now.sent)),
        messages(t("ws.messagesIn"), now.messages_received, old?.messages_received),
        messages(t("ws.messagesOut"), now.messages_sent, old?.messages_sent),
        trip(t("ws.pingClient"), now.rtt_client),
        trip(t("ws.pingUpstream"), now.rtt_upstream),
      ),
      now.lost ? h("p", { class: "advice" }, t("ws.lost", units.count(now.lost))) : null,
    ),
    over({ doc, docs, t, ui }),
    h(
      "div",
      { class: "grid two" },
      card(t("ws.closes"), t("ws.closesHint"), closed ? [stacked(t("ws.closes"), pieces), keys(pieces), codes(now, t)] : empty(t("ws.noneClosed"))),
      card(t("ws.age"), t("ws.ageCount", units.count(now.age.count)), now.age.count ? [ages(now, t), spread(now, t)] : empty(t("ws.noneClosed"))),
    ),
  ];
}

/** Open connections and those that close, over time. */
function over({ doc, docs, t, ui }) {
  const live = trail(docs, (doc, before) => {
    const [now, old, seconds] = [doc.snapshot.weir.websockets, before.snapshot.weir.websockets, between(doc, before)];
    const sum = (closes) => Object.values(closes ?? {}).reduce((sum, count) => sum + count, 0);
    return { open: now.open, opened: grew(now.opened, old.opened, seconds), closed: grew(sum(now.closes), sum(old.closes), seconds), in: grew(now.messages_received ?? undefined, old.messages_received ?? undefined, seconds), out: grew(now.messages_sent ?? undefined, old.messages_sent ?? undefined, seconds) };
  });
  return timed({ doc, t, ui, live }, (one) => [
    one(t("ws.open"), units.si, [{ name: t("ws.open"), tone: "water", of: "open", fill: true }], { whole: true }),
    one(t("ws.perSecond"), units.si, [
      { name: t("ws.opened"), tone: "water", of: "opened" }, { name: t("ws.closed"), tone: "warn", of: "closed" },
      { name: t("ws.messagesIn"), tone: "deep", of: "in" }, { name: t("ws.messagesOut"), tone: "soft", of: "out" },
    ]),
  ]);
}

/** Ages on a line from nothing to the longest, with the timeout marked. */
function ages(now, t) {
  const marks = [
    ["p50", ms(now.age, "p50_us")],
    ["p95", ms(now.age, "p95_us")],
    ["p99", ms(now.age, "p99_us")],
    ["max", ms(now.age, "max_us")],
  ];
  const end = Math.max(now.timeout_ms || 0, ...marks.map(([, at]) => at)) * 1.05;
  const place = (at) => `${((at / end) * 100).toFixed(1)}%`;
  return [
    h(
      "div",
      { class: "ages", role: "img", "aria-label": marks.map(([name, at]) => `${name} ${units.time(at)}`).join(", ") },
      h("span", { class: "range", css: { width: place(marks[1][1]) } }),
      marks.map(([name, at]) => h("span", { key: name, class: "tick", css: { left: place(at) } })),
      now.timeout_ms ? h("span", { class: "timeout", css: { left: place(now.timeout_ms) } }) : null,
    ),
    keys([...marks.map(([name, at]) => ({ key: name, name, text: units.time(at), tone: "plain" })),
      ...(now.timeout_ms ? [{ key: "timeout", name: "proxy_read_timeout", text: units.time(now.timeout_ms), tone: "warn" }] : [])]),
    isNearTimeout(now.age, now.timeout_ms) ? h("p", { class: "advice" }, t("ws.near")) : null,
  ];
}

/** Codes that RFC 6455 §7.4.1 and its registry explain; applications have 3000 and above. */
const CODES = new Set([1000, 1001, 1002, 1003, 1005, 1006, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014]);

/** Close codes, most first, and who sent them. */
function codes(now, t) {
  const all = [...(now.codes ?? [])].sort((a, b) => b.count - a.count);
  const name = ({ code, by }) => [code || t("ws.otherCode"), CODES.has(code) ? t(`wscode.${code}`) : null, by === "nobody" ? null : t(WORDS[by])].filter(Boolean).join(" · ");
  return all.length ? [h("h3", null, t("ws.codes")), h("p", { class: "hint" }, t("ws.codesHint")), keys(all.map((one) => ({ key: `${one.code} ${one.by}`, name: name(one), text: units.count(one.count), tone: `close-${one.by === "nobody" ? "error" : one.by}` })))] : null;
}

/** How many closed at which age; the bucket in which the timeout strikes stands out. */
function spread(now, t) {
  const most = Math.max(1, ...(now.ages ?? []).map((bucket) => bucket.count));
  const seconds = now.timeout_ms / 1000;
  // An idle connection is ended just after its timeout.
  const struck = (now.ages ?? []).findIndex(({ to_s: to }) => seconds > 0 && (to ?? Infinity) > seconds);
  const there = (now.ages ?? []).flatMap(({ count }, at) => (count > 0 ? [at] : []));
  const [first, last] = [there[0] ?? 0, there[there.length - 1] ?? -1];
  return h(
    "ol",
    { class: "spread", "aria-label": t("ws.age") },
    (now.ages ?? []).map(({ to_s: to, count }, at) => {
      // From the first age that occurred to the last, and the one in which the timeout strikes.
      if (at !== struck && (at < first || at > last)) return null;
      const name = (to ?? null) === null ? `> ${units.time(now.ages[at - 1].to_s * 1000)}` : `≤ ${units.time(to * 1000)}`;
      return h("li", { key: name, class: at === struck ? "struck" : "" },
        h("span", { class: "name" }, name),
        h("span", { class: "count", css: { width: `${((count / most) * 45).toFixed(1)}%` } }),
        h("b", null, units.count(count)),
        at === struck ? h("span", { class: "note" }, "proxy_read_timeout") : null);
    }),
  );
}
