// A loaded edge: two applications, a cache, WebSockets, a server with TLS, and some of everything going wrong.

import { spawn, spawnSync } from "node:child_process";
import { appendFile, mkdtemp, mkdir, rm, writeFile } from "node:fs/promises";
import { createServer as createApplication, request } from "node:http";
import { request as requestTls } from "node:https";
import { createServer, connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const weir = process.env.WEIR ?? fileURLToPath(new URL("../../target/debug/weir", import.meta.url));
export const TOKEN = "a token for tests only";

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

// Below Linux's ephemeral range, so that no outgoing connection takes it, and not in the blocks of ../ports.py.
async function freePort() {
  for (let tries = 0; tries < 100; tries++) {
    const port = 10_000 + Math.floor(Math.random() * 10_000);
    const server = createServer();
    const is = await new Promise((done) => {
      server.on("error", () => done(false));
      server.listen(port, "127.0.0.1", () => server.close(() => done(true)));
    });
    if (is) return port;
  }
  throw new Error("no free port");
}

async function accepts(port) {
  for (let tries = 0; tries < 100; tries++) {
    const is = await new Promise((done) => {
      const socket = connect(port, "127.0.0.1", () => { socket.destroy(); done(true); });
      socket.on("error", () => done(false));
    });
    if (is) return;
    await pause(100);
  }
  throw new Error(`nothing accepts on port ${port}`);
}

const conf = ({ edge, tls, one, two, dead, stock }, extra) => `
daemon off; user root; worker_processes 2; pid weir.pid; error_log error.log info;
events { worker_connections 512; }
http {
  access_log off;
  dashboard_history day;
  dashboard_lab runs;
  dashboard_upstream_log stock.log upstream=127.0.0.1:${stock};
  limit_req_zone $binary_remote_addr zone=login:1m rate=20r/s;
  proxy_cache_path cache keys_zone=assets:4m max_size=32m;
  upstream app { zone app 64k; server 127.0.0.1:${one} max_conns=256; server 127.0.0.1:${two}; keepalive 32; }
  upstream reports { server 127.0.0.1:${dead} max_fails=2 fail_timeout=3s; server 127.0.0.1:${two} backup; }
  server {
    listen 127.0.0.1:${edge}; server_name shop.example;
    location / { proxy_pass http://app; }
    location /login { limit_req zone=login burst=5 nodelay; proxy_pass http://app; }
    location /reports/ { proxy_pass http://reports; }
    location /stock/ { proxy_pass http://127.0.0.1:${stock}; proxy_set_header X-Request-ID $request_id; }
    location /broken/ { proxy_pass http://127.0.0.1:${dead}; }
    location /assets/ { proxy_pass http://app; proxy_cache assets; proxy_cache_valid 200 2s; proxy_cache_lock on;
      proxy_cache_use_stale updating error; proxy_cache_background_update on; }
    location /socket { proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection upgrade; proxy_read_timeout 2s; }
    location /open/ { dashboard; }
    location /weir/ { dashboard; dashboard_token token; }
    ${extra ?? ""}
  }
  server {
    listen 127.0.0.1:${tls} ssl; server_name secure.shop.example.kr; ssl_certificate cert.pem; ssl_certificate_key key.pem;
    location / { proxy_pass http://app; }
  }
}
`;

export const RUN = "20261122-193801-105";

/** A run as weir lab keeps it. */
export function run(id, done = 12) {
  const started = 1_795_376_281_105;
  const blocks = [..."ABBABAABABBA"].slice(0, done).map((arm, at) => ({
    pair: at >> 1, arm, attempt: 0, started_ms: started + at * 7000, requests: 1500, errors: {}, values: { cpu: (arm === "A" ? 319 : 205) + at, throughput: 300, p50: 0.7 },
    strip: Array.from({ length: 20 }, (_, s) => (arm === "A" ? 280 : 300) + (s % 7)), spoiled: at === 5 ? ["other work used 9 % of the CPUs (at most 5 %)"] : [], cautions: [],
    usage: { seconds: 5, edge_cpu_s: arm === "A" ? 0.48 : 0.31, client_core: 0.3, foreign: at === 5 ? 0.09 : 0.01, steal: 0 }, generator: { cpu: 0.21, lag_p99_ms: 0.4 },
  }));
  const metric = (key, before, after, effect, interval, verdict) => ({ key, before, after, effect, interval, verdict, pairs: 6, confidence: 0.95, threshold: 0.05, detectable: 0.04, text: verdict });
  const told = { version: 1, id, kind: "ab", started_ms: started, seed: 359_922, load: "/1k at 300 a second over 16 connections", before: { file: "/etc/nginx/before.conf" }, after: { file: "/etc/nginx/after.conf" },
    factor: "keepalive", changes: ["keepalive (in http/upstream app): none → 32"], no_effect: [], design: { primary: "cpu", threshold: 0.05, looks: [6], alpha: 0.05 }, blocks_max: 12, blocks };
  if (done < 12) return told;
  return { ...told, ended_ms: started + 90_000, environment: { before: "nginx/1.22.1", after: "nginx/1.22.1" }, verdict: { name: "better", text: "cheaper by 27–43 % (95 % CI), cpu 319→205 µs, 6 pairs" },
    metrics: [metric("throughput", 300.2, 300.4, 0.0003, [0, 0.0047], "no difference"), metric("p50", 0.75, 0.7, -0.045, [-0.175, 0.12], "inconclusive"), metric("errors", 0, 0, null, null, "no errors"), metric("cpu", 319, 205, -0.36, [-0.43, -0.27], "better")] };
}

/** Starts it; `end` stops everything that was started. */
export async function stage(extra) {
  const place = await mkdtemp(join(tmpdir(), "weir-dash-"));
  const ports = {};
  for (const name of ["edge", "tls", "one", "two", "dead", "stock"]) ports[name] = await freePort();
  await mkdir(join(place, "logs"));
  await writeFile(join(place, "nginx.conf"), conf(ports, extra));
  await writeFile(join(place, "token"), `${TOKEN}\n`);
  const made = spawnSync("openssl", ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem", "-days", "60", "-subj", "/CN=secure.shop.example.kr"], { cwd: place });
  if (made.status !== 0) throw new Error(`openssl: ${made.error ?? made.stderr}`);
  await mkdir(join(place, "runs"));
  await writeFile(join(place, "runs", `${RUN}.json`), JSON.stringify(run(RUN)));
  const children = [];
  const start = (args) => {
    const child = spawn(weir, args, { cwd: place, stdio: ["ignore", "ignore", process.env.VERBOSE ? "inherit" : "ignore"] });
    children.push(child);
    return child;
  };
  start(["origin", "--listen", `127.0.0.1:${ports.one}`]);
  start(["origin", "--listen", `127.0.0.1:${ports.two}`]);
  // An application that fails, and says why in its log.
  const stock = createApplication((asked, answer) => {
    const line = `${new Date().toISOString()} ERROR [${asked.headers["x-request-id"]}] no answer from the warehouse for ${asked.url}\n\tat Stock.count (stock.js:41)\n`;
    appendFile(join(place, "stock.log"), line).then(() => answer.writeHead(500).end("no stock"));
  });
  await new Promise((done) => stock.listen(ports.stock, "127.0.0.1", done));
  const edge = start(["edge", "-p", place, "-c", "nginx.conf", "-e", "error.log"]);
  for (const name of ["edge", "one", "two"]) await accepts(ports[name]);
  const url = `http://127.0.0.1:${ports.edge}`;
  let isOn = true;
  const often = (every, path, of) => (async () => {
    for (let n = 0; isOn; n++) {
      await fetch(url + path(n), { signal: AbortSignal.timeout(4000), ...of }).then((answer) => answer.arrayBuffer()).catch(() => {});
      await pause(every);
    }
  })();
  const busy = [
    often(2, (n) => `/api/orders/${n}?size=2048&delay=3ms`),
    often(3, (n) => `/catalogue/${n}?size=16k&delay=8ms`),
    often(2, (n) => `/assets/app-${n % 40}.js?size=8k&delay=20ms`),
    often(5, (n) => `/assets/app-${(n * 7) % 40}.js?size=8k&delay=20ms`),
    often(20, () => "/login?delay=1ms"),
    often(150, (n) => `/reports/${n}`),
    often(400, (n) => `/broken/${n}?token=hidden`),
    often(900, (n) => `/stock/${n}?session=hidden`),
    often(90, (n) => `/api/none/${n}?status=404`),
  ];
  const secure = setInterval(() => {
    const asked = requestTls({ port: ports.tls, host: "127.0.0.1", path: "/", headers: { Host: "secure.shop.example.kr" }, rejectUnauthorized: false, agent: false }, (answer) => answer.resume());
    asked.on("error", () => {});
    asked.end();
  }, 250);
  const sockets = setInterval(() => {
    const asked = request(`${url}/socket`, { headers: { Connection: "Upgrade", Upgrade: "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==" } });
    asked.on("error", () => {});
    asked.on("upgrade", (_, socket) => {
      socket.on("error", () => {});
      // A masked text frame: "hello".
      socket.write(Buffer.from([0x81, 0x85, 0, 0, 0, 0, ...Buffer.from("hello")]));
      setTimeout(() => socket.destroy(), Math.random() * 5000);
    });
    asked.end();
  }, 200);
  return {
    url,
    place,
    process: edge,
    async end() {
      isOn = false;
      clearInterval(sockets);
      clearInterval(secure);
      await Promise.allSettled(busy);
      for (const child of children) child.kill("SIGTERM");
      await Promise.all(children.map((child) => child.exitCode ?? new Promise((done) => child.on("exit", done))));
      stock.closeAllConnections();
      await new Promise((done) => stock.close(done));
      await rm(place, { recursive: true, force: true });
    },
  };
}
