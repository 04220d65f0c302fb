// Serves the page with a made-up feed, so that it can be looked at and worked on without an edge:
//   node tests/dash/fixture.mjs [PORT] [calm|rising|failing]
// The numbers are invented, the shape is that of `dash::feed`.

import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";

const web = fileURLToPath(new URL("../../crates/dash/web/", import.meta.url));
const TYPES = { html: "text/html; charset=utf-8", js: "text/javascript", css: "text/css", svg: "image/svg+xml" };
const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'";

const times = (count, p50, p95, p99) => ({ count, sum_us: count * p50, p50_us: p50, p95_us: p95, p99_us: p99, max_us: p99 * 3 });
const iso = (at) => new Date(at).toISOString();
const wave = (s, period, low, high) => low + ((Math.sin((s / period) * 2 * Math.PI) + 1) / 2) * (high - low) * (0.92 + 0.16 * Math.random());

export function point(s, mood) {
  const rps = wave(s, 240, 480, 1240);
  const failed = mood === "failing" ? rps * 0.12 : s % 97 < 2 ? 3 : 0;
  return { at: 0, rps, failed, refused: wave(s, 60, 0, 4), upstream: failed * 0.1, timeout: failed * 0.9, weir: 0, client: wave(s, 200, 0, 1), p50: wave(s, 180, 2.1, 4.8), p95: wave(s, 180, 9, 24), p99: wave(s, 150, 18, 72),
    active: wave(s, 240, 90, 260), idle: wave(s, 300, 700, 900), received: rps * 640, sent: rps * 18_400, cpu: wave(s, 240, 0.32, 0.71), steal: wave(s, 90, 0, 0.03) };
}

const both = (en, ko) => ({ en, ko });
function waterline(kind, of, unit, name, used, limit, max, set_by, extra) {
  const ratio = used / limit;
  return { kind, of, object: both(of, of.replace("worker", "워커")), unit, name, used, limit, max: Math.max(max, used), ratio, level: ratio >= 0.95 ? "full" : ratio >= 0.8 ? "near" : "fine", hits: 0, set_by, trend: "flat", ...extra };
}

function responses(total, bad) {
  const codes = { 200: Math.round(total * 0.93), 304: Math.round(total * 0.05), 404: Math.round(total * 0.02), 502: bad, 504: Math.round(bad / 9) };
  return { "1xx": 0, "2xx": codes[200], "3xx": codes[304], "4xx": codes[404], "5xx": codes[502] + codes[504], codes, total };
}

const sample = (i, now) => ({ number: 4 - i, ids: [], at: iso(now - i * 3000), client: `192.0.2.${20 + i}`, server: "shop.example", zone: "shop.example/api/", request: `GET /api/orders/${4000 + i}`, status: 504, upstream: "10.0.0.23:3000", took_us: 60_002_113, line: `2026/11/22 16:0${i}:11 [error] 4121#4123: *98${i}11 upstream timed out (110: Connection timed out) while reading response header from upstream, client: 192.0.2.${20 + i}, server: shop.example, request: "GET /api/orders/${4000 + i} HTTP/1.1", upstream: "http://10.0.0.23:3000/api/orders/${4000 + i}", host: "shop.example"` });

function samples(place, now) {
  const list = [0, 1, 2, 3].map((i) => sample(i, now));
  return place === 0
    ? { class: "504 timeout", kind: "failed", count: 12, samples: list }
    : { class: "limit_req", kind: "refused", count: 41, last: iso(start + (s - 3) * 1000) },
          { class: "499", kind: "client", count: 31, samples: [{ ...list[2], status: 499, line: "" }] };
}

function logs(place, now) {
  const entry = (i) => [`${iso(now - i * 3000 - 59_900)}  INFO 1 --- [nio-8080-exec-${i}] c.e.shop.Orders : GET /api/orders/${4000 + i}`, `${iso(now - i * 3000 - 100)} ERROR 1 --- [nio-8080-exec-${i}] c.e.shop.Orders : pool exhausted\n\tat com.example.shop.Pool.take(Pool.java:91)`];
  return {
    ...samples(place, now),
    logs: [{ file: "/var/log/shop/app.log", of: "app" }, { file: "/var/log/shop/worker.log", of: "", note: both("weir may not read the file: allow it for the user of the workers, for example with setfacl -m u:www-data:r FILE", "weir에 읽기 권한이 없습니다: 워커의 사용자에게 권한을 주세요. 예: setfacl -m u:www-data:r FILE") }],
    found: [{ sample: 4, log: 0, by: "id", entries: entry(0), more: 0 }, { sample: 3, log: 0, by: "time", entries: entry(1), more: 12 }],
  };
}

const LAB_AT = 1_795_376_281_105;
export function labRun(id = "20261122-193801-105") {
  const arms = [..."ABBABAABABBA"];
  const metric = (key, before, after, effect, interval, verdict) => ({ key, before, after, effect, interval, verdict, pairs: 6, confidence: 0.95, threshold: 0.05, detectable: 0.04, text: verdict });
  const shown = arms.map((arm, at) => ({ pair: at >> 1, arm, started_ms: LAB_AT + at * 7000, seconds: 5, requests: 1500, failed: 0, value: arm === "A" ? 319 + at : 205 + at, strip: Array.from({ length: 20 }, (_, s) => (arm === "A" ? 280 : 300) + 8 * Math.sin(s + at)), spoiled: at === 5 ? ["other work used 9 % of the CPUs (at most 5 %)"] : [], cautions: [], edge_cpu: arm === "A" ? 0.096 : 0.061, client_cpu: 0.21, client_core: 0.3, lag_ms: 0.4, foreign: at === 5 ? 0.09 : 0.01, steal: 0 }));
  return { ...labRuns().runs[0], id, changes: ["keepalive: absent → 32 (upstream was)"], no_effect: [], edges: ["nginx/1.22.1", "nginx/1.22.1"], seed: 359_922, primary: "cpu", shown,
    metrics: [metric("throughput", 300.2, 300.4, 0.0003, [0, 0.0047], "no difference"), metric("p50", 0.75, 0.7, -0.045, [-0.175, 0.12], "inconclusive"), metric("errors", 0, 0, null, null, "no errors"), metric("cpu", 319, 205, -0.36, [-0.43, -0.27], "better")] };
}
const labRuns = () => ({ more: 3, runs: [
  { id: "20261122-193801-105", kind: "ab", factor: "keepalive", before: "/etc/nginx/before.conf", after: "/etc/nginx/after.conf", load: "/1k at 300 a second over 16 connections", started_ms: LAB_AT, ended_ms: LAB_AT + 90_000, blocks: 12, of: 12, verdict: { name: "better", text: "cheaper by 27–43 % (95 % CI), cpu 319→205 µs, 6 pairs" } },
  { id: "20261122-183801-101", kind: "capacity", factor: "", before: "/etc/nginx/before.conf", after: "", load: "/", started_ms: LAB_AT - 3_600_000, blocks: 9, verdict: { name: "", text: "1,400 requests a second" } },
  { id: "20261122-173801-100", note: "\"20261122-173801-100.json\" is not a run of a lab" },
] });

export function document(s, seq, start, mood) {
  const n = 1000 * s;
  const p = point(s, mood);
  const bad = mood === "failing" ? Math.round(n * 0.1) : 12;
  const ports = mood === "calm" ? 3120 : Math.min(28_232, 14_000 + s * 9);
  const zone = (share, ssl) => ({ processing: Math.round(p.active * share), requests: Math.round(n * share), responses: responses(Math.round(n * share), Math.round(bad * share)), discarded: 3, received: n * 640 * share, sent: n * 18_400 * share,
    ...(ssl ? { ssl: { handshakes: Math.round(n * 0.04), handshakes_failed: 2, session_reuses: Math.round(n * 0.031) } } : {}) });
  const zoneTimes = (share) => ({ rate: p.rps * share, rate_max: 1310 * share, recent: times(Math.round(p.rps * 10 * share), p.p50 * 1000, p.p95 * 1000, p.p99 * 1000), total: times(n, 3000, 14_000, 40_000), failed: Math.round(bad * share), refused: Math.round((41 + s) * share) });
  const peer = (id, server, state, extra) => ({ id, server, name: server, backup: false, weight: 1, state, active: Math.round(p.active / 3), requests: Math.round(n / 3), responses: responses(Math.round(n / 3), id === 2 ? bad : 0), sent: n, received: n * 9, fails: id === 2 ? bad : 0, unavail: id === 2 ? 2 : 0, downtime: 0, ...extra });
  const cost = (id, server) => ({ server, opened: Math.round(n / 3 / (mood === "calm" ? 80 : 1.02)), reused: Math.round(n / 3), idle: 31, retries: id === 2 ? 9 : 0, connect: { recent: times(120, 210, 480, 900) }, header: { recent: times(3000, 1900, 9000, 31_000) }, response: { recent: times(3000, 2300, 11_000, 42_000) },
    fails: id === 2 ? { timeout: bad, refused: 2 } : {}, last_error: id === 2 ? "upstream timed out (110: Connection timed out) while reading response header from upstream" : "" });
  const servers = ["10.0.0.21:3000", "10.0.0.22:3000", "10.0.0.23:3000"];
  const account = { requests: 0, hit: Math.round(n * 0.41), stale: 14, updating: Math.round(n * 0.002), revalidated: 96, miss: 150 + Math.round(s / 3), expired: Math.round(s * 0.6), bypass: Math.round(n * 0.011), error: 7, fetches: 260 + Math.round(s), waited: 812 + s, wait: times(800, 21_000, 88_000, 160_000), objects: 4183, memory: 61 << 20, memory_max: 128 << 20, purged: 42,
    reasons: { "set-cookie": 412, "no-store": 96, authorization: 31, "too large": 4 } };
  account.requests = ["hit", "stale", "updating", "revalidated", "miss", "expired", "bypass", "error"].reduce((sum, name) => sum + account[name], 0);
  const path = [["accept", 40, 120, 300], ["tls", 900, 1800, 3100], ["queue", 4, 9, 40], ["auth", 800, 1900, 4000], ["read", 60, 400, 2100], ["cache", 11, 30, 80], ["pool", 3, 8, 20], ["connect", 210, 480, 900], ["wait", 1900, 9000, 31_000], ["body", 300, 1400, 5200], ["write", 60, 210, 900], ["rate", 0, 0, 0]]
    .map(([step, a, b, c]) => ({ step, recent: times(Math.round(p.rps * ({ accept: 0.6, tls: 0.4, connect: 0.2 }[step] ?? 10)), a, b, c), total: times(n, a, b, c) }));
  const portsLine = waterline("ports", servers[0], "count", both("Ports to an upstream peer", "업스트림 피어로 가는 포트"), ports, 28_232, ports, "net.ipv4.ip_local_port_range", mood === "calm" ? {} : { trend: "rising", level: "near", eta_s: (28_232 - ports) / 9, hits: mood === "failing" ? 40_772 : 0 });
  const verdict = {
    calm: { state: "healthy", words: both("limited by CPU of worker 0 (0.71) · headroom ×1.4 · next: Connections (0.28)", "가장 먼저 도달할 한도: 워커 0의 CPU (0.71) · 여유 ×1.4 · 다음: 연결 (0.28)"), evidence: [both("CPU of worker 0: 0.71 of 1 core, highest 0.82", "워커 0의 CPU: 1코어 중 0.71, 최고 0.82"), both("No request has failed in the last 10 s", "최근 10초 동안 실패한 요청이 없습니다")] },
    rising: { state: "near", words: both(`Ports to 10.0.0.21:3000 (${(ports / 28_232).toFixed(2)}) run out in ${Math.round((28_232 - ports) / 9)} s`, `10.0.0.21:3000으로 가는 포트 (${(ports / 28_232).toFixed(2)})가 ${Math.round((28_232 - ports) / 9)}초 뒤에 바닥납니다`), evidence: [both(`${ports} of 28,232 ports, 9 more each second`, `포트 28,232개 중 ${ports}개, 초당 9개씩 늘어납니다`), both("One new connection for each request: connections are not kept", "요청마다 새 연결을 엽니다: 연결이 유지되지 않습니다")], remedy: both("upstream app { keepalive 64; }", "upstream app { keepalive 64; }") },
    failing: { state: "failing", words: both("12 % of requests fail: timeout (504 timeout)", "요청의 12 %가 실패합니다: 시간 초과 (504 timeout)"), evidence: [both("504: 118/s, all from 10.0.0.23:3000", "504: 초당 118건, 모두 10.0.0.23:3000에서")] },
  }[mood];
  return {
    v: 1, seq, at: start + s * 1000, whys: { timeout: both("timeout", "시간 초과"), refused: both("connection refused", "연결 거부") }, verdict, point: { ...p, at: start + s * 1000 },
    recent: { seconds: 10, rps: p.rps, failed: p.failed, refused: p.refused, upstream: p.upstream, timeout: p.timeout, received: p.received, sent: p.sent },
    waterlines: [
      waterline("connections", "", "count", both("Connections", "연결"), p.active + p.idle, 4096, 1630, "worker_connections"),
      waterline("fds", "", "count", both("Open files", "열린 파일"), p.active * 2 + 900, 65_536, 2210, "RLIMIT_NOFILE"),
      portsLine,
      waterline("accept_queue", "0.0.0.0:443", "count", both("Accept queue", "accept 큐"), 3, 511, 66, "listen backlog"),
      waterline("worker_cpu", "worker 0", "cores", both("CPU of a worker", "워커의 CPU"), p.cpu, 1, 0.82, ""),
      waterline("machine_cpu", "", "cores", both("Machine CPU", "머신 CPU"), p.cpu * 2, 2, 1.64, "the machine's CPUs"),
      waterline("cache_size", "assets", "bytes", both("Cache on disk", "디스크 캐시"), 412 << 20, 1 << 30, 520 << 20, "proxy_cache_path max_size"),
    ],
    snapshot: {
      nginx: { version: "1.31.5", build: "weir 0.1.0", address: "", generation: 3, load_timestamp: iso(start), timestamp: iso(start + s * 1000), pid: 4121, ppid: 1 },
      connections: { accepted: 9000 + s * 40, dropped: 0, active: Math.round(p.active), idle: Math.round(p.idle) },
      http: {
        requests: { total: n, current: Math.round(p.active) },
        server_zones: { "shop.example": zone(0.82, true), "static.example": zone(0.17, true), "127.0.0.1:9144": zone(0.01) },
        location_zones: { "shop.example/api/": zone(0.5), "shop.example/": zone(0.32), "static.example/assets/": zone(0.17), "127.0.0.1:9144/": zone(0.01) },
        caches: { assets: { size: 412 << 20, max_size: 1 << 30, cold: false } },
        limit_conns: { perip: { passed: 41_220, rejected: 12, rejected_dry_run: 0 } },
        limit_reqs: { login: { passed: 3120, delayed: 88, rejected: 41, delayed_dry_run: 0, rejected_dry_run: 7 } },
        upstreams: { app: { peers: [peer(0, servers[0], "up", { max_conns: 512 }), peer(1, servers[1], "up"), peer(2, servers[2], mood === "failing" ? "unavail" : "up")], keepalive: 93, zombies: 0, zone: "app", queue: { size: 2, max_size: 100, overflows: 0 } },
          "reports:8080": { peers: [{ ...peer(0, "10.0.1.9:8080", "draining"), backup: true, weight: 5 }], keepalive: 2, zombies: 0, zone: "reports:8080" } },
      },
      workers: [0, 1].map((id) => ({ id, pid: 4123 + id, connections: { accepted: 4500 + s * 20, dropped: 0, active: Math.round(p.active / 2), idle: Math.round(p.idle / 2) }, http: { requests: { total: n / 2, current: 40 } } })),
      weir: {
        uptime_ms: 3_600_000 * 31 + s * 1000, recent_ms: 10_000, path,
        server_zones: { "shop.example": zoneTimes(0.82), "static.example": zoneTimes(0.17), "127.0.0.1:9144": zoneTimes(0.01) },
        location_zones: { "shop.example/api/": zoneTimes(0.5), "shop.example/": zoneTimes(0.32), "static.example/assets/": zoneTimes(0.17), "127.0.0.1:9144/": zoneTimes(0.01) },
        upstreams: { app: servers.map((server, id) => cost(id, server)), "reports:8080": [cost(0, "10.0.1.9:8080")] },
        caches: { assets: account },
        protocols: [0.5, 0.3, 0.2].map((share, at) => ({ protocol: `HTTP/${at + 1}`, requests: Math.round(n * share), received: n * share * 400, sent: n * share * 9000 })),
        quic: { active: 38, accepted: 2100 + s * 3, refused: 0, handshakes_failed: { no_application_protocol: 2, timeout: 11 }, version_negotiations: 1, retries: 0, early_data: 410, stateless_resets: 3, migrations: 12, lost_packets: 900 + s,
          datagrams: { received: n * 3, sent: n * 7, unsent: 0, dropped: { full: 0, garbage: 40, unknown_id: 7 }, forwarded: { process: 0, worker: 61 } } },
        websockets: { open: 412, opened: 9320 + s, closes: { client: 7100, timeout: 1620, upstream: 190, shutdown: 12, error: 3 }, received: n * 80, sent: n * 420, age: times(8925, 58_900_000, 61_200_000, 64_000_000), timeout_ms: 60_000 },
        host: { cpus: 2, cpu: { user: p.cpu * 0.5, system: p.cpu * 0.34, interrupts: p.cpu * 0.13, steal: p.steal, wait: 0.004, idle: 1 - p.cpu * 0.97 - p.steal - 0.004 }, run_queue_wait: 0.11, runnable: 3, load: 1.24, psi_cpu: 0.06, psi_memory: null, psi_io: 0.01, quota_cpus: null, throttled: null, memory_total: 8 << 28, memory_available: 5 << 28, rss: 96 << 20, time_wait: ports, retransmits: 0.4 },
        workers: [0, 1].map((id) => ({ id, cpu: p.cpu * (id ? 0.84 : 1), wait: 0.05 })),
        errors: [
          { class: "504 timeout", title: both("504 timeout", "504 시간 초과"), kind: "failed", reason: "timeout", count: bad, last: iso(start + s * 1000) },
          { class: "limit_req", title: both("limit_req", "limit_req"), kind: "refused", reason: "limit", count: 41 + s, last: iso(start + (s - 3) * 1000) },
          { class: "499", title: both("499", "499"), kind: "client", reason: "client", count: 31, last: iso(start + (s - 40) * 1000) },
        ],
        names_merged: 0,
      },
    },
  };
}

/** Points of a stretch of the history. */
const day = (from, to, mood) => Array.from({ length: 360 }, (_, at) => ({ ...point(at * 3, mood), at: from + ((to - from) * at) / 360 }));

export function serve(port, mood = "calm") {
  const start = Date.now() - 600_000;
  const server = createServer(async (request, response) => {
    const path = new URL(request.url, "http://x").pathname.slice(1) || "index.html";
    if (path === "feed") {
      response.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
      let [s, seq] = [600, 1];
      const past = Array.from({ length: 600 }, (_, at) => ({ ...point(at, mood), at: start + at * 1000 }));
      response.write(`event: may\ndata: {"purge":true,"servers":true,"lab":true}\n\n`);
      response.write(`event: whole\ndata: ${JSON.stringify({ ...document(s, seq, start, mood), past })}\n\n`);
      const timer = setInterval(() => response.write(`event: delta\ndata: ${JSON.stringify(document(++s, ++seq, start, mood))}\n\n`), 1000);
      request.on("close", () => clearInterval(timer));
      return;
    }
    if (path === "samples.json") return response.end(JSON.stringify(samples(Number(request.url.split("?")[1]), Date.now())));
    if (path === "logs.json") return response.end(JSON.stringify(logs(Number(request.url.split("?")[1]), Date.now())));
    if (path === "runs.json") return response.end(JSON.stringify(request.url.includes("?") ? labRun(request.url.split("?")[1]) : labRuns()));
    if (path === "day.json") return response.end(JSON.stringify(day(...request.url.split("?")[1].split("-").map(Number), mood)));
    if (path === "doc.json") return response.end();
    if (path === "purge") return response.end(JSON.stringify({ applied: "everywhere", edges: 3, behind: [], ms: 41.2 }));
    try {
      const text = await readFile(web + path.replaceAll("..", ""));
      response.writeHead(200, { "Content-Type": TYPES[path.split(".").pop()] ?? "text/plain", "Content-Security-Policy": POLICY });
      response.end(text);
    } catch {
      response.writeHead(404).end();
    }
  });
  return new Promise((done) => server.listen(port, "127.0.0.1", () => done(server)));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const server = await serve(Number(process.argv[2] ?? 9150), process.argv[3]);
  console.log(`http://127.0.0.1:${server.address().port}/`);
}
