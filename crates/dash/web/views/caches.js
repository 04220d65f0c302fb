// Caches: what came of each request, in books that add up; and orders to forget.

import { h } from "../dom.js";
import { ASKED, OUTCOMES, caches as rows, ms, part } from "../model.js";
import { card, copyable, empty, figure, mark, stacked, way } from "../parts.js";
import { MEANINGS } from "../reasons.js";
import { finder, found, table } from "../table.js";
import * as units from "../units.js";

export function caches({ doc, before, t, ui }) {
  const list = rows(doc, before);
  if (list.length === 0) return card(t("nav.caches"), null, empty(t("cache.none")));
  const shown = list.length > 1 ? found(list, ui.find.caches, (row) => row.name, isFailing) : list;
  return [
    list.length > 1 ? finder(ui, { id: "caches", t, failing: list.filter(isFailing).length, all: list.length, seen: shown.length }) : null,
    list.length > 1 ? card(t("nav.caches"), null, beside(shown, t, ui)) : null,
    shown.map((row) => h("div", { key: row.name }, one(row, doc, t))),
    shown.length === 0 ? empty(t("find.none")) : null,
    purge(list, t, ui),
  ];
}

/** Several caches beside each other. */
function beside(list, t, ui) {
  const columns = [
    { key: "name", label: t("purge.zone"), text: true, get: (row) => row.name, show: (row) => h("a", { href: way("caches", row.name) }, row.name) },
    { key: "requests", label: t("cache.clients"), get: (row) => row.requests, show: (row) => units.rate(row.requests) },
    { key: "fetches", label: t("cache.origin"), get: (row) => row.fetches, show: (row) => units.rate(row.fetches) },
    { key: "saved", label: t("detail.saved"), get: (row) => row.saved, show: (row) => units.percent(row.saved) },
    { key: "ended", label: t("cache.error"), get: (row) => row.ended, show: (row) => units.rate(row.ended) },
    { key: "size", label: t("cache.fill"), get: (row) => row.cache.size, show: (row) => units.bytes(row.cache.size) },
  ];
  return table(ui, { id: "caches", caption: t("nav.caches"), columns, rows: list, rowKey: (row) => row.name, sort: ["requests", true], tone: (row) => (isFailing(row) ? "failing" : ""), none: t("find.none"), by: t("find.order") });
}

/** Whether requests of a cache end early now, or its counters do not add up. */
const isFailing = (row) => row.ended > 0 || (row.off !== 0 && !row.underway);

/** All that is to be said of one cache. */
export function one(row, doc, t) {
  const { cache, account } = row;
  const fill = cache.max_size ? part(cache.size, cache.max_size) : undefined;
  const pieces = OUTCOMES.map((outcome) => ({
    key: outcome,
    name: t(`cache.${outcome}`),
    size: account[outcome] ?? 0,
    text: units.count(account[outcome] ?? 0),
    tone: `outcome-${ASKED.has(outcome) ? "origin" : outcome === "error" ? "error" : "cache"} o-${outcome}`,
  }));
  const reasons = Object.entries(account.reasons ?? {}).sort((a, b) => b[1] - a[1]);
  return card(
    h("a", { class: "plain", href: way("caches", row.name) }, row.name),
    row.saved === undefined ? null : t("cache.saved", units.percent(row.saved)),
    h(
      "div",
      { class: "figures" },
      figure(t("cache.clients"), units.rate(row.requests), units.count(account.requests)),
      figure(t("cache.origin"), units.rate(row.fetches), units.count(account.fetches)),
      figure(t("cache.waited"), units.count(account.waited), t("cache.waitP95", units.time(ms(account.wait, "p95_us")))),
      figure(t("cache.fill"), fill === undefined ? units.bytes(cache.size) : units.percent(fill),
        cache.max_size ? `${units.bytes(cache.size)} / ${units.bytes(cache.max_size)}` : t("cache.noMax")),
      figure(t("cache.memory"), units.bytes(account.memory), account.memory_max ? `/ ${units.bytes(account.memory_max)}` : ""),
      figure(t("cache.objects"), units.count(account.objects), [cache.cold ? t("cache.cold") : null, t("cache.purged", units.count(account.purged))].filter(Boolean).join(" · ")),
    ),
    h(
      "div",
      { class: "books" },
      h("h3", null, t("cache.books"), " ", balance(row, t)),
      stacked(t("cache.books"), pieces, account.requests),
      h(
        "p",
        { class: "sum" },
        h("b", null, units.count(account.requests)),
        ` ${t("cache.requests")} = `,
        pieces.map((piece, at) => [at ? " + " : "", h("span", { key: piece.key, class: piece.size ? "term" : "term zero" }, h("b", null, piece.text), ` ${piece.name}`)]),
      ),
    ),
    h("h3", null, t("cache.reasons")),
    reasons.length === 0
      ? h("p", { class: "hint" }, t("cache.noReasons"))
      : h("ul", { class: "reasons" }, reasons.slice(0, REASONS_MAX).map(([reason, count]) =>
          h("li", { key: reason }, h("code", null, reason), h("b", null, units.count(count)), h("span", { class: "sub" }, t.of(MEANINGS[reason]))))),
  );
}

/** Reasons that are listed, the most frequent first. */
const REASONS_MAX = 12;

/** Whether the books add up: what is counted by its status already, and not yet as ended, is under way. */
function balance(row, t) {
  if (row.off === 0) return mark("good", t("cache.adds"));
  return row.underway ? mark("good", t("cache.underway", units.count(-row.off))) : mark("bad", t("cache.off", units.count(row.off)));
}

const WHATS = ["key", "prefix", "tag", "all"];

function purge(list, t, ui) {
  if (!ui.may.purge) return card(t("purge.title"), null, h("p", { class: "hint" }, t("purge.locked"), " ", copyable("dashboard_token FILE;", t)));
  const form = ui.purge;
  const set = (change) => ui.set({ purge: { ...form, sure: false, ...change } });
  const asks = form.what !== "all";
  return card(
    t("purge.title"),
    null,
    h(
      "form",
      {
        class: "purge",
        onsubmit: (event) => {
          event.preventDefault();
          if (!asks && !form.sure) return ui.set({ purge: { ...form, sure: true } });
          send(form, set, t);
        },
      },
      h(
        "label",
        null,
        t("purge.what"),
        h("select", { onchange: (event) => set({ what: event.target.value }) }, WHATS.map((what) => h("option", { key: what, value: what, selected: what === form.what }, t(`purge.${what}`)))),
      ),
      asks
        ? h("label", { class: "wide" }, t("purge.text"), h("input", { type: "text", required: true, maxlength: 4096, autocomplete: "off", spellcheck: "false", oninput: (event) => set({ text: event.target.value }) }))
        : null,
      h(
        "label",
        null,
        t("purge.zone"),
        h("select", { onchange: (event) => set({ zone: event.target.value }) },
          h("option", { value: "", selected: form.zone === "" }, t("purge.every")),
          list.map((row) => h("option", { key: row.name, value: row.name, selected: form.zone === row.name }, row.name))),
      ),
      h("label", { class: "check" }, h("input", { type: "checkbox", onchange: (event) => set({ soft: event.target.checked }) }), t("purge.soft")),
      h("button", { type: "submit", class: "primary" }, form.working ? t("purge.working") : form.sure ? t("purge.sure") : t("purge.send")),
    ),
    h("p", { class: "answer", role: "status" }, form.answer ? mark(form.answer.tone, form.answer.text) : ""),
    confirmed(form.answer?.said).length > 0
      ? h(
          "ul",
          { class: "edges", "aria-label": t("purge.edges") },
          confirmed(form.answer.said).map(({ edge, has }) => h("li", { key: edge }, mark(has ? "good" : "warn", edge), " ", h("span", { class: "sub" }, t(has ? "purge.has" : "purge.notYet")))),
        )
      : null,
  );
}

/** The order of a form, as the edge reads it. */
export function order({ what, text, zone, soft }) {
  const order = what === "all" ? { all: true } : { [what]: text };
  if (zone) order.zone = zone;
  if (soft) order.soft = true;
  return order;
}

/** The edges of an answer, and whether each has applied the order; none where there is no log of several edges. */
export const confirmed = (said) => [
  ...(said?.applied_on ?? []).map((edge) => ({ edge, has: true })),
  ...(said?.behind ?? []).map((edge) => ({ edge, has: false })),
];

async function send(form, set, t) {
  set({ working: true });
  try {
    const answer = await fetch("purge", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(order(form)) });
    const said = await answer.json();
    if (answer.status === 200) set({ working: false, answer: { tone: "good", said, text: t("purge.done", said.edges ?? 1, units.time(said.ms)) } });
    else if (answer.status === 202) set({ working: false, answer: { tone: "warn", said, text: t("purge.behind", (said.behind ?? []).join(", ")) } });
    else set({ working: false, answer: { tone: "bad", text: t("purge.failed", said.message ?? answer.status) } });
  } catch (error) {
    set({ working: false, answer: { tone: "bad", text: t("purge.failed", String(error.message ?? error)) } });
  }
}
