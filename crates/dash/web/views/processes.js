// The programs of the machine: those behind the edge first, then the busiest. Node, Java, php-fpm, MariaDB or Redis
// compete with weir for the same CPUs and the same memory.

import { spark } from "../chart.js";
import { h } from "../dom.js";
import { card, empty, mark, way } from "../parts.js";
import { finder, found, table } from "../table.js";
import * as units from "../units.js";

/** How often the edge is asked, in milliseconds. */
const EVERY = 1000;
/** Seconds of CPU that are drawn. */
const TRAIL_MAX = 120;
/** A process that is younger, in seconds, has just been started. */
const YOUNG = 60;

/** The programs of the machine, no older than so many milliseconds; asks for them, and keeps what their CPU was. */
export function programs(ui, age = EVERY) {
  const { processes } = ui;
  if (ui.paused || Date.now() - processes.asked < age) return processes.seen;
  processes.asked = Date.now();
  fetch("processes.json", { cache: "no-store" })
    .then((answer) => (answer.ok ? answer.json() : null))
    .then((seen) => {
      if (!seen) return;
      const trail = new Map();
      for (const program of seen.programs) {
        trail.set(key(program), [...(ui.processes.trail.get(key(program)) ?? []), program.cpus].slice(-TRAIL_MAX));
      }
      ui.set({ processes: { ...ui.processes, seen, trail } });
    })
    .catch(() => {});
  return processes.seen;
}

const key = (program) => `${program.name} ${program.pid}`;

export function processes({ doc, t, ui }) {
  const seen = programs(ui);
  const { trail } = ui.processes;
  if (!seen) return card(t("nav.processes"), null, empty(t("wait")));
  const total = doc.snapshot.weir.host.memory_total;
  const columns = [
    { key: "name", label: t("proc.program"), text: true, wide: true, get: (one) => one.name, show: (one) => program(one, t) },
    { key: "cpus", label: t("proc.cpu"), get: (one) => one.cpus, show: (one) => h("span", { class: "sparked" }, spark(trail.get(key(one)) ?? []), units.percent(one.cpus)) },
    { key: "resident", label: t("proc.memory"), get: (one) => one.resident, show: (one) => `${units.bytes(one.resident)} (${units.percent(one.resident / total)})` },
    { key: "pids", label: t("proc.processes"), get: (one) => one.pids, show: (one) => units.count(one.pids) },
    { key: "threads", label: t("proc.threads"), get: (one) => one.threads, show: (one) => units.count(one.threads) },
    { key: "pid", label: "pid", get: (one) => one.pid, show: (one) => String(one.pid) },
    { key: "youngest", label: t("proc.since"), get: (one) => one.youngest, show: (one) => (one.youngest < YOUNG && one.serves.length ? mark("warn", units.span(one.youngest)) : units.span(one.youngest)) },
    { key: "listens", label: t("proc.listens"), text: true, wide: true, get: (one) => one.listens.join(" "), show: (one) => one.listens.length === 0 ? "" : h("span", { class: "terms" }, one.listens.map((at) => h("span", { key: at, class: "term" }, at))) },
  ];
  const words = (one) => `${one.name} ${one.pid} ${one.listens.join(" ")} ${one.serves.map((origin) => `${origin.name} ${origin.address}`).join(" ")}`;
  const isYoung = (one) => one.serves.length > 0 && one.youngest < YOUNG;
  const rows = found(seen.programs, ui.find.processes, words, isYoung);
  return [
    finder(ui, { id: "processes", t, failing: seen.programs.filter(isYoung).length, all: seen.programs.length, seen: rows.length, only: t("proc.young") }),
    card(
      t("nav.processes"),
      t("proc.hint"),
      table(ui, { id: "processes", caption: t("nav.processes"), columns, rows, none: t("find.none"), by: t("find.order"), rowKey: key, sort: ["", false] }),
      seen.more > 0 ? h("p", { class: "hint foot" }, t("proc.more", units.count(seen.more))) : null,
      elsewhere(seen, t),
    ),
  ];
}

/** The name of a program, and what it is for the edge. */
function program(one, t) {
  const serves = one.serves.map((origin) => h("a", { key: `${origin.name} ${origin.address}`, href: way("upstreams", origin.name), class: "term" }, origin.name === origin.address ? origin.name : `${origin.name} ${origin.address}`));
  return h("span", { class: "stackedcell" }, h("b", null, one.name), one.is_own ? h("span", { class: "hint" }, t("proc.own")) : null, serves.length ? h("span", { class: "hint terms" }, h("span", null, t("proc.serves")), serves) : null);
}

/** Origins without a process on this machine. */
function elsewhere(seen, t) {
  if (seen.elsewhere.length === 0) return null;
  return h("p", { class: "hint foot" }, t(seen.is_root ? "proc.elsewhere" : "proc.unseen", seen.elsewhere.join(", ")));
}
