// What logs of upstreams say about samples of errors.

import { h } from "../dom.js";
import { copyable, mark } from "../parts.js";

/** What was found about one sample, log by log. @param {{logs: any[], found: any[]}} logs */
export const about = (logs, number) =>
  (logs?.found ?? []).filter((one) => one.sample === number).map((one) => ({ ...one, ...logs.logs[one.log] }));

/** Logs that could not be read, or not as they should. */
export const hindered = (logs) => (logs?.logs ?? []).filter((log) => log.note);

const name = (log) => (log.of ? `${log.file} (${log.of})` : log.file);

/** What is to be known of the logs before anything in them is read. */
export function notes(logs, samples, t) {
  if (!logs) return null;
  const asked = samples.some((sample) => sample.upstream);
  if (logs.logs.length === 0) return asked ? h("p", { class: "hint" }, t("log.none"), " ", copyable("dashboard_upstream_log FILE upstream=NAME;", t)) : null;
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
