// What logs of upstreams say about samples of errors.

import { h } from "../dom.js";
import { copyable, mark } from "../parts.js";
import { programs } from "./processes.js";

/** What was found about one sample, log by log. @param {{logs: any[], found: any[]}} logs */
export const about = (logs, number) =>
  (logs?.found ?? []).filter((one) => one.sample === number).map((one) => ({ ...one, ...logs.logs[one.log] }));

/** Logs that could not be read, or not as they should. */
export const hindered = (logs) => (logs?.logs ?? []).filter((log) => log.note);

/**
 * The line that names a log of the upstream of these samples, as far as it is known: the unit of the program that listens
 * there, and the group; the server itself, if several groups have it. The rest is for the reader.
 * @param {any} groups the groups of upstreams @param {any[]} running programs of the machine
 */
export function logLine(samples, groups, running) {
  const servers = [...new Set(samples.map((sample) => sample.upstream).filter(Boolean))];
  const having = Object.entries(groups ?? {}).filter(([, group]) => servers.every((server) => group.peers?.some((peer) => peer.server === server)));
  const upstream = having.length === 1 ? having[0][0] : servers[0];
  const unit = running.find((program) => program.unit && program.serves.some((origin) => servers.includes(origin.address)))?.unit;
  return `dashboard_upstream_log ${unit ? `journald:${unit}` : "FILE"} upstream=${upstream ?? "NAME"};`;
}

const name = (log) => (log.of ? `${log.file} (${log.of})` : log.file);

/** What is to be known of the logs before anything in them is read. */
export function notes(logs, samples, doc, t, ui) {
  if (!logs) return null;
  if (logs.logs.length === 0) {
    if (!samples.some((sample) => sample.upstream)) return null;
    const line = logLine(samples, doc.snapshot.http.upstreams, programs(ui, 10_000)?.programs ?? []);
    return h("p", { class: "hint" }, t("log.none"), " ", copyable(line, t), line.includes("FILE") ? ` ${t("log.file")}` : "");
  }
  const bad = hindered(logs);
  return bad.length ? h("ul", { class: "lognotes" }, bad.map((log) => h("li", { key: name(log) }, mark("warn", name(log)), " ", t.of(log.note)))) : null;
}

/** The entries about one sample. */
export function entries(logs, sample, t) {
  if (!logs || logs.logs.length === 0 || !sample.upstream) return null;
  const found = about(logs, sample.number);
  if (found.length === 0) return h("p", { class: "hint" }, t("log.nothing"));
  return found.map((one) =>
    h(
      "div",
      { key: `${one.log}`, class: "found" },
      h("p", { class: "hint" }, h("b", null, name(one)), " · ", t(`logby.${one.by}`), one.more > 0 ? ` · ${t("log.more", one.more)}` : ""),
      h("pre", { class: "line", tabindex: 0, role: "region", "aria-label": name(one) }, one.entries.join("\n")),
    ),
  );
}
