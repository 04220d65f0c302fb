// The machine over time, with the columns of vmstat(8).

import { h } from "../dom.js";
import { card, empty } from "../parts.js";
import { axis, controls, drawer } from "../timeline.js";
import * as units from "../units.js";

/** Seconds that one row of the table stands for. */
const STEPS = [1, 3, 10, 60];
const ROWS_SHOWN = 15;
const ROWS_MAX = 600;

const COLUMNS = ["r", "b", "swpd", "free", "buff", "cache", "si", "so", "bi", "bo", "in", "cs", "us", "sy", "id", "wa", "st"];
const SIZES = new Set(["swpd", "free", "buff", "cache", "si", "so", "bi", "bo"]);
const SHARES = new Set(["us", "sy", "id", "wa", "st"]);

/** Ten minutes of rows: those that the edge kept, and the seconds since. */
function renew(doc, ui) {
  const { machine } = ui;
  if (!machine.asked) {
    machine.asked = true;
    fetch("machine.json", { cache: "no-store" })
      .then((answer) => (answer.ok ? answer.json() : null))
      .then((seen) => {
        const rows = (seen?.rows ?? []).map(([at, ...figures]) => Object.fromEntries([["at", at], ...seen.columns.map((name, place) => [name, figures[place]])]));
        const later = ui.machine.rows.filter((row) => row.at > (rows[rows.length - 1]?.at ?? 0));
        ui.set({ machine: { ...ui.machine, rows: [...rows, ...later].slice(-ROWS_MAX) } });
      })
      .catch(() => {});
  }
  const { vm, cpu } = doc.snapshot.weir.host;
  if (vm && !(machine.rows[machine.rows.length - 1]?.at >= doc.at)) {
    const row = { at: doc.at, ...vm, us: cpu.user, sy: cpu.system + cpu.interrupts, id: cpu.idle, wa: cpu.wait, st: cpu.steal };
    machine.rows = [...machine.rows, row].slice(-ROWS_MAX);
  }
  return machine.rows;
}

export function vmstat({ doc, t, ui }) {
  const rows = renew(doc, ui);
  if (rows.length === 0) return null;
  const points = rows.map((row) => ({ ...row, used: row.buff + row.cache }));
  const of = axis({ doc, ui, live: points });
  const one = drawer(of, { t, ui, live: points });
  const has = (...names) => points.some((point) => names.some((name) => point[name] > 0));
  return [
    controls([], { doc, t, ui, said: t("vm.title") }),
    h(
      "div",
      { class: "grid two charts" },
      one(t("vm.cpu"), units.percent, [
        { name: t("host.user"), tone: "water", of: "us" },
        { name: t("host.system"), tone: "deep", of: "sy", dash: 1 },
        ...(has("wa") ? [{ name: t("host.wait"), tone: "warn", of: "wa", dash: 2 }] : []),
        ...(has("st") ? [{ name: t("host.steal"), tone: "bad", of: "st", dash: 3 }] : []),
      ]),
      one(t("vm.tasks"), units.si, [{ name: t("vm.r"), tone: "water", of: "r", fill: true }, { name: t("vm.b"), tone: "warn", of: "b", dash: 1 }], { whole: true }),
      one(t("vm.memory"), units.bytes, [
        { name: t("vm.free"), tone: "water", of: "free" },
        { name: t("vm.cache"), tone: "soft", of: "used", dash: 1 },
        ...(has("swpd") ? [{ name: t("vm.swpd"), tone: "bad", of: "swpd", dash: 2 }] : []),
      ], { binary: true }),
      one(t("vm.switches"), units.si, [{ name: t("vm.cs"), tone: "water", of: "cs" }, { name: t("vm.in"), tone: "soft", of: "in", dash: 1 }]),
      has("bi", "bo") ? one(t("vm.disk"), units.byteRate, [{ name: t("vm.bi"), tone: "water", of: "bi" }, { name: t("vm.bo"), tone: "deep", of: "bo", dash: 1 }], { binary: true }) : null,
      has("si", "so") ? one(t("vm.swap"), units.byteRate, [{ name: t("vm.si"), tone: "warn", of: "si" }, { name: t("vm.so"), tone: "bad", of: "so", dash: 1 }], { binary: true }) : null,
    ),
    card(t("vm.rows"), t("vm.hint"), steps(ui, t), listing(rows, ui, t)),
  ];
}

function steps(ui, t) {
  return h(
    "div",
    { class: "choices", role: "group", "aria-label": t("vm.every") },
    STEPS.map((seconds) => h("button", { key: String(seconds), type: "button", class: "quiet", "aria-pressed": ui.machine.step === seconds ? "true" : "false", onclick: () => ui.set({ machine: { ...ui.machine, step: seconds } }) }, units.span(seconds))),
  );
}

/** Rows of so many seconds: sizes and tasks as they were at the end, rates and shares as means. */
export function grouped(rows, step) {
  const last = rows[rows.length - 1]?.at ?? 0;
  const groups = new Map();
  for (const row of rows) {
    const number = Math.floor((last - row.at) / (step * 1000));
    groups.set(number, [...(groups.get(number) ?? []), row]);
  }
  const mean = (group, name) => group.reduce((sum, row) => sum + row[name], 0) / group.length;
  const atEnd = new Set(["r", "b", "swpd", "free", "buff", "cache"]);
  return [...groups.values()].map((group) =>
    Object.fromEntries([["at", group[group.length - 1].at], ...COLUMNS.map((name) => [name, atEnd.has(name) ? group[group.length - 1][name] : mean(group, name)])]),
  );
}

function listing(rows, ui, t) {
  const shown = grouped(rows, ui.machine.step).slice(-ROWS_SHOWN).reverse();
  if (shown.length === 0) return empty(t("wait"));
  const told = (row, name) => (SHARES.has(name) ? String(Math.round(row[name] * 100)) : SIZES.has(name) ? units.bytes(row[name]) : units.si(Math.round(row[name])));
  return h(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": t("vm.rows") },
    h(
      "table",
      { class: "vmstat" },
      h("thead", null, h("tr", null, h("th", { scope: "col", class: "text" }, t("vm.time")), COLUMNS.map((name) => h("th", { key: name, scope: "col", class: "number", title: t(`vm.${name}`) }, name)))),
      h("tbody", null, shown.map((row) => h("tr", { key: String(row.at) }, h("th", { scope: "row", class: "text" }, units.clock(row.at)), COLUMNS.map((name) => h("td", { key: name, class: "number" }, told(row, name)))))),
    ),
  );
}
