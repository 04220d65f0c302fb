// A loaded edge: two applications, a cache, WebSockets, TLS-less, and some of everything going wrong.

import { spawn } from "node:child_process";
import { mkdtemp, mkdir, rm, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { createServer, connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const weir = process.env.WEIR ?? fileURLToPath(new URL("../../target/debug/weir", import.meta.url));
export const TOKEN = "a token for tests only";

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

async function freePort() {
  const server = createServer();
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address();
  await new Promise((done) => server.close(done));
  return port;
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

const conf = ({ edge, one, two, dead }, extra) => `
daemon off; user root; worker_processes 2; pid weir.pid; error_log error.log info;
events { worker_connections 512; }
http {
  access_log off;
  dashboard_history day;
  limit_req_zone $binary_remote_addr zone=login:1m rate=20r/s;
  proxy_cache_path cache keys_zone=assets:4m max_size=32m;
  upstream app { zone app 64k; server 127.0.0.1:${one} max_conns=256; server 127.0.0.1:${two}; keepalive 32; }
  upstream reports { server 127.0.0.1:${dead} max_fails=2 fail_timeout=3s; server 127.0.0.1:${two} backup; }
  server {
    listen 127.0.0.1:${edge}; server_name shop.example;
    location / { proxy_pass http://app; }
    location /login { limit_req zone=login burst=5 nodelay; proxy_pass http://app; }
    location /reports/ { proxy_pass http://reports; }
    location /broken/ { proxy_pass http://127.0.0.1:${dead}; }
    location /assets/ { proxy_pass http://app; proxy_cache assets; proxy_cache_valid 200 2s; proxy_cache_lock on;
      proxy_cache_use_stale updating error; proxy_cache_background_update on; }
    location /socket { proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection upgrade; proxy_read_timeout 2s; }
    location /open/ { dashboard; }
    location /weir/ { dashboard; dashboard_token token; }
    ${extra ?? ""}
  }
}
`;

/** Starts it; `end` stops everything that was started. */
export async function stage(extra) {
  const place = await mkdtemp(join(tmpdir(), "weir-dash-"));
  const ports = {};
  for (const name of ["edge", "one", "two", "dead"]) ports[name] = await freePort();
  await mkdir(join(place, "logs"));
  await writeFile(join(place, "nginx.conf"), conf(ports, extra));
  await writeFile(join(place, "token"), `${TOKEN}\n`);
  const children = [];
  const start = (args) => {
    const child = spawn(weir, args, { cwd: place, stdio: ["ignore", "ignore", process.env.VERBOSE ? "inherit" : "ignore"] });
    children.push(child);
    return child;
  };
  start(["origin", "--listen", `127.0.0.1:${ports.one}`]);
  start(["origin", "--listen", `127.0.0.1:${ports.two}`]);
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
    often(90, (n) => `/api/none/${n}?status=404`),
  ];
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
      await Promise.allSettled(busy);
      for (const child of children) child.kill("SIGTERM");
      await Promise.all(children.map((child) => child.exitCode ?? new Promise((done) => child.on("exit", done))));
      await rm(place, { recursive: true, force: true });
    },
  };
}
