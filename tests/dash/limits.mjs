// Pictures of a limit that comes near and is met: node tests/dash/limits.mjs DIR ports|files|table
//
// `ports` belongs into a network namespace of its own, with loopback up:
//   unshare -n sh -c 'ip link set lo up; node tests/dash/limits.mjs DIR ports'
// What must hold of the same three is tests/limits.rs.

import { spawn, spawnSync } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { launch, open } from "./browser.mjs";

const [dir = "/tmp/limits", kind = "files"] = process.argv.slice(2);
const weir = process.env.WEIR ?? fileURLToPath(new URL("../../target/debug/weir", import.meta.url));
const [EDGE, ORIGIN] = [20931, 20932];
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

const HELD = "GET /?delay=300s HTTP/1.1\r\nHost: a\r\n\r\n";
const UPGRADE = "GET /socket HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
const upgraded = "proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade;";
const KINDS = {
  ports: { http: "proxy_http_version 1.1; proxy_set_header Connection \"\"; proxy_connect_timeout 1s;", text: "GET /1k HTTP/1.0\r\n\r\n", every: 80 },
  files: { top: "worker_rlimit_nofile 120;", http: "", text: HELD, every: 400 },
  table: { events: "worker_connections 100;", http: upgraded, text: UPGRADE, every: 400 },
};
const { top = "", events = "", http, text, every } = KINDS[kind];

if (kind === "ports") {
  for (const setting of ["ip_local_port_range=50000 50199", "tcp_tw_reuse=0"]) spawnSync("sysctl", ["-qw", `net.ipv4.${setting}`]);
}
const place = await mkdtemp(join(tmpdir(), "weir-limits-"));
await mkdir(join(place, "logs"));
await mkdir(dir, { recursive: true });
await writeFile(join(place, "nginx.conf"), `daemon off; user root; worker_processes 1; pid weir.pid; error_log error.log; ${top}
events { ${events} }
http { access_log off; upstream app { server 127.0.0.1:${ORIGIN}; keepalive 0; }
  server { listen 127.0.0.1:${EDGE}; server_name shop.example; location / { proxy_pass http://app; ${http} } location /weir/ { dashboard; } } }`);
const children = [["origin", "--listen", `127.0.0.1:${ORIGIN}`], ["edge", "-p", place, "-c", "nginx.conf"]]
  .map((args) => spawn(weir, args, { cwd: place, stdio: "ignore" }));
await pause(1500);
const browser = await launch();
const page = await open(browser, `http://127.0.0.1:${EDGE}/weir/`, { size: 1440, theme: "light" });
const sockets = [];
const load = setInterval(() => {
  const socket = connect(EDGE, "127.0.0.1", () => socket.write(text));
  socket.on("error", () => {});
  socket.on("data", () => {});
  sockets.push(socket);
}, every);
const says = (word) => page.waitForFunction((word) => document.querySelector(".verdict")?.textContent.includes(word), { timeout: 90_000 }, word);
const shoot = async (moment) => {
  await page.evaluate(() => { const all = document.querySelector(".verdict button"); if (all?.getAttribute("aria-expanded") === "false") all.click(); });
  await pause(300);
  await page.screenshot({ path: join(dir, `limit-${kind}-${moment}.webp`), type: "webp", quality: 55 });
  await page.screenshot({ path: join(dir, `limit-${kind}-${moment}.png`) });
};
await says("will be used up");
await pause(5000);
await shoot("near");
await says("reached");
await pause(2500);
await shoot("met");
clearInterval(load);
for (const socket of sockets) socket.destroy();
await browser.close();
for (const child of children) child.kill();
await rm(place, { recursive: true, force: true });
