// The machine beneath: CPU by kind, waiting, pressure, throttling, each worker.

import { h } from "../dom.js";
import { between, grew, waterlineOf } from "../model.js";
import { card, figure, keys, stacked } from "../parts.js";
import { table } from "../table.js";
import * as units from "../units.js";
import { vmstat } from "./vmstat.js";

const KINDS = ["user", "system", "interrupts", "steal", "wait", "idle"];

export function host({ doc, before, t, ui }) {
  const { host } = doc.snapshot.weir;
  const pieces = KINDS.map((kind) => ({ key: kind, name: t(`host.${kind}`), size: host.cpu[kind], text: units.percent(host.cpu[kind]), tone: `cpu-${kind}` }));
  const told = (value, format) => (value === null || value === undefined ? units.NOTHING : format(value));
  const note = (value, text) => (value === null || value === undefined ? t("host.unknown") : text);
  const pressure = [["psiCpu", host.psi_cpu], ["psiMemory", host.psi_memory], ["psiIo", host.psi_io]];
  return [
    card(t("host.cpu"), t("kpi.cpus", units.si(waterlineOf(doc, "machine_cpu")?.limit ?? host.cpus)), stacked(t("host.cpu"), pieces, 1), keys(pieces)),
    card(
      t("nav.host"),
      null,
      h(
        "div",
        { class: "figures" },
        figure(t("host.queue"), told(host.run_queue_wait, (wait) => t("host.queueUnit", units.time(wait * 1000))), note(host.run_queue_wait, "")),
        figure(t("host.runnable"), told(host.runnable, units.count), told(host.load, (load) => `${t("host.load")}: ${units.share(load)}`)),
        figure(t("host.quota"), host.quota_cpus ? t("host.cores", units.si(host.quota_cpus)) : t("host.noQuota"), host.throttled !== null && host.throttled !== undefined ? t("host.throttled", units.percent(host.throttled)) : ""),
        pressure.map(([name, value]) => figure(`${t("host.psi")}: ${t(`host.${name}`)}`, told(value, units.percent), note(value, ""))),
        figure(t("host.memory"), units.bytes(host.memory_available), t("host.ofTotal", units.bytes(host.memory_total))),
        figure(t("host.rss"), units.bytes(host.rss)),
        figure(t("host.timeWait"), told(host.time_wait, units.count), note(host.time_wait, "")),
        figure(t("host.retransmits"), told(host.retransmits, units.rate), note(host.retransmits, "")),
      ),
    ),
    card(t("host.workers"), null, workers(doc, before, t, ui)),
    vmstat({ doc, t, ui }),
  ];
}

// Wake-ups of the worker's thread for each request.
function wakeups(row) {
  const each = row.cpu?.wakeups / row.rate;
  return Number.isFinite(each) ? each : undefined;
}

function workers(doc, before, t, ui) {
  const seconds = between(doc, before);
  const rows = (doc.snapshot.workers ?? []).map((worker, place) => ({
    worker,
    cpu: doc.snapshot.weir.workers?.find((cpu) => cpu.id === worker.id),
    rate: grew(worker.http.requests.total, before?.snapshot.workers?.[place]?.http.requests.total, seconds),
  }));
  const columns = [
    { key: "id", label: t("host.worker"), text: true, get: (row) => row.worker.id, show: (row) => `#${row.worker.id}` },
    { key: "cpu", label: t("host.cpu"), get: (row) => row.cpu?.cpu, show: (row) => units.percent(row.cpu?.cpu) },
    { key: "wait", label: t("host.wait4"), get: (row) => row.cpu?.wait, show: (row) => (row.cpu?.wait === null || row.cpu?.wait === undefined ? units.NOTHING : t("host.queueUnit", units.time(row.cpu.wait * 1000))) },
    { key: "rate", label: t("col.rate"), get: (row) => row.rate, show: (row) => units.rate(row.rate) },
    { key: "wakeups", label: t("host.wakeups"), get: wakeups, show: (row) => units.share(wakeups(row)) },
    { key: "requests", label: t("col.requests"), get: (row) => row.worker.http.requests.total, show: (row) => units.count(row.worker.http.requests.total) },
    { key: "active", label: t("chart.active"), get: (row) => row.worker.connections.active, show: (row) => units.count(row.worker.connections.active) },
    { key: "idle", label: t("chart.idle"), get: (row) => row.worker.connections.idle, show: (row) => units.count(row.worker.connections.idle) },
    { key: "accepted", label: t("host.accepted"), get: (row) => row.worker.connections.accepted, show: (row) => units.count(row.worker.connections.accepted) },
    { key: "dropped", label: t("host.dropped"), get: (row) => row.worker.connections.dropped, show: (row) => units.count(row.worker.connections.dropped) },
  ];
  return table(ui, { id: "workers", caption: t("host.workers"), columns, rows, rowKey: (row) => String(row.worker.id), sort: ["id", false] });
}
