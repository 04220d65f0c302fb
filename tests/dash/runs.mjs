// Runs of `weir lab` of every kind, as the lab keeps them, for the tests of their pages. The numbers are invented.

const said = (text, ...holes) => ({ text, holes });
const ids = { ab: "20261126-100000-001", aa: "20261126-100000-002", capacity: "20261126-100000-003", why: "20261126-100000-004", tune: "20261126-100000-005", factorial: "20261126-100000-006", elsewhere: "20261126-100000-007", lab: "20261126-100000-008" };
const blocks = (count, values) =>
  Array.from({ length: count }, (_, at) => {
    const arm = "ABBA"[at % 4];
    return { pair: at >> 1, arm, values: values(arm, at), strip: Array.from({ length: 20 }, (_, s) => (arm === "A" ? 280 : 300) + (s % 7) + at), spoiled: at === 5 ? ["other work used 9 % of the CPUs (at most 5 %)"] : [], cautions: [] };
  });
const metric = (key, before, after, effect, interval, verdict, text) => ({ key, before, after, effect, interval, verdict, text, pairs: 8, confidence: 0.95, threshold: 0.05, detectable: 0.04 });
const conf = { file: "/etc/nginx/sites/a-rather-long-name-of-a-configuration/before.conf", text: ["events { }", "http { server { listen 80; location / { proxy_pass http://127.0.0.1:3000; } } }"] };
const environment = { before: "nginx/1.22.1", after: "nginx/1.22.1", kernel: "6.1", cpus: 2, weir: "0.1.0" };
const load = { load: "/1k at 300 a second over 16 connections", load_said: said("LOAD_AT_RATE", "/1k", "300", "16") };
const metrics = [
  metric("throughput", 300.2, 300.4, 0.0003, [0, 0.0047], "no difference", "no difference above 3 %"),
  metric("p50", 0.75, 0.7, -0.045, [-0.175, 0.12], "inconclusive", "inconclusive: the interval reaches beyond 5 %"),
  metric("p99", 2.31, 1.9, -0.18, [-0.24, -0.11], "better", "faster by 11–24 %"),
  metric("errors", 0, 0, null, null, "no errors", "no errors"),
  metric("cpu", 319, 205, -0.36, [-0.43, -0.27], "better", "cheaper by 27–43 %"),
];
const ab = {
  version: 1, id: ids.ab, kind: "ab", started_ms: 1_795_376_281_105, ended_ms: 1_795_376_371_105, seed: 359_922, ...load, before: conf, after: { ...conf, file: "/etc/nginx/after.conf" },
  factor: "keepalive", changes: ["keepalive (in http/upstream app): none → 32"], environment, design: { primary: "cpu", threshold: 0.05, looks: [8], alpha: 0.05 }, asked: { block_s: 5, is_isolated: false, cpus: {} },
  blocks: blocks(16, (arm, at) => ({ cpu: (arm === "A" ? 319 : 205) + at, throughput: 300 })), metrics, verdict: { name: "better", text: "cheaper by 27–43 % (95 % CI), cpu 319→205 µs, 8 pairs" },
};
const why = {
  id: ids.why, kind: "why", seed: 7, ...load, before: conf, environment, lead: 0, knee: 190, ruled_out: ["edge CPU 20 %", "ports 3 of 200", "accept queues 0 of 511"], grew: [["bodies", 0.8]],
  findings: [{ subject: "edge → 127.0.0.1:3000: local ports", rule: "B01", evidence: [["count", "400 times no free local port"], ["use", "190 of 200 ports held"]], knob: "keepalive 64; in upstream app", expect: "connections stay open, and ports are free" }],
  signals: { load: { sent: 4000, well: 3600, good: "2xx and 3xx in time", statuses: { 200: 3600, 502: 400 }, answered: 4000 } }, unproved: "weir did not squeeze the ports: use --prove",
  verify: "weir lab ab /etc/nginx/before.conf /runs/20261126-100000-004.after.conf --rate 300 -c 16 /1k --together keepalive,proxy_http_version --metric errors",
  verdict: { name: "SUSPECTED", text: "SUSPECTED  edge → 127.0.0.1:3000: local ports   (rule B01)" },
};
const answer = (rate) => ({ load: { aggregate: { counters: { "http.codes.200": rate * 10 } }, weir: { started_ms: 0, ended_ms: 10_000, response: { count: rate * 10, p50: 1.5, p95: 4.1, p99: 6.2, p999: 9, max: 20 } } } });
const expectation = (edge, variant, holds) => ({ edge, variant, says: "answers a second rise when connections are kept", wanted: "at least 1,200", found: holds ? "1,400" : "900", holds });

/** One run of each kind. */
export const RUNS = [
  ab,
  { ...ab, id: ids.aa, kind: "aa", after: null, changes: [], verdict: { name: "no difference", text: "no false alarm: this machine can detect 4 %" } },
  {
    id: ids.capacity, kind: "capacity", seed: 3, ...load, before: conf, environment, objective: "p95 ≤ 20 ms", verdict: { name: "", text: "capacity 400/s at p95 ≤ 20 ms" },
    steps: [[200], [400], [600, "p95 30 ms"], [500, "p95 24 ms"], [450, "p95 21 ms"]].map(([rate, why]) => ({ rate, passed: !why, ...(why ? { why } : {}) })),
    usl: { sigma: 0.05, kappa: 0.001, peak_in_flight: 30, peak_interval: [25, 40] },
  },
  why,
  {
    id: ids.tune, kind: "tune", seed: 5, ...load, before: conf, environment, diff: "--- before.conf\n+++ after.conf\n@@ -1,3 +1,4 @@\n upstream app {\n+    keepalive 64;\n", verdict: { name: "tuned", text: "1 of 2 knobs helps: keepalive" },
    tries: [
      { knob: "keepalive", says: "keep connections to the application open", changes: ["keepalive (in http/upstream app): none → 64"], run: ids.ab, is_kept: true, verdict: { name: "better", text: "cheaper by 27–43 %" } },
      { knob: "reuseport", says: "a queue of its own for each worker", changes: ["listen: 80 → 80 reuseport"], run: ids.aa, is_kept: false, verdict: { name: "no difference", text: "no difference above 5 %" } },
    ],
  },
  {
    ...ab, id: ids.factorial, kind: "factorial", metrics: [], design: { primary: "p95", rounds: 8, alpha: 0.0167 }, cells: ["nothing", "with gzip", "with keepalive", "with gzip and keepalive"],
    factors: [{ name: "gzip", changes: ["gzip: off → on"] }, { name: "keepalive", changes: ["keepalive: none → 32"] }],
    blocks: Array.from({ length: 16 }, (_, at) => ({ cell: at % 4, values: { p95: 30 - at }, spoiled: [] })),
    effects: [[1, "gzip", 0.1, [0.05, 0.16]], [2, "keepalive", -0.2, [-0.26, -0.12]], [3, "gzip with keepalive", 0.01, [-0.04, 0.05]]].map(([mask, of, effect, interval]) => ({ metric: "p95", mask, of, effect, interval })),
    verdict: { name: "", text: "keepalive: faster by 12–26 %; gzip: slower by 5–16 %" },
  },
  { ...ab, id: ids.elsewhere, kind: "elsewhere", within: [{ arm: "A", throughput: 900, interval: [890, 910], label: "within" }] },
  {
    id: ids.lab, kind: "lab", name: "s0", title: "kept connections", prior: "nginx's documentation says so", seed: 9, verdict: { name: "fails", text: "1 of 3 expectations fails" }, environment,
    edges: [{ edge: "nginx", version: "nginx/1.22.1", seconds: 3.4 }, { edge: "weir", version: "weir/0.1.0", seconds: 2 }],
    expected: [expectation("nginx", "kept", true), expectation("weir", "kept", true), expectation("nginx", "each closed", false)],
    blocks: [["nginx", "kept", 1400], ["weir", "kept", 1650], ["nginx", "each closed", 900], ["weir", "each closed", 1010]].map(([edge, variant, rate]) => ({ edge, variant, strip: Array.from({ length: 20 }, (_, at) => rate + (at % 5) * 9), waterlines: [{ what: "ports to 127.0.0.1:3000", most: 90, limit: 100, unit: "" }], answer: answer(rate) })),
  },
];
