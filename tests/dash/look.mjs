// The pictures of the documents, which are looked at before they are kept: every view of the dashboard on a loaded edge,
// and every report, light and dark, wide and narrow, in English and Korean.
//
//   node tests/dash/look.mjs [dash] [load] [lab]         into docs/, as WebP
//   LOOK=DIR node tests/dash/look.mjs                    into DIR, as PNG
//   RUNS=DIR node tests/dash/look.mjs lab                runs that weir lab kept, one of each kind
//
// A narrow picture is the whole page; a wide one is a window and a half.

import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { SIZES, VIEWS, launch, open, overflow, show } from "./browser.mjs";
import { RUNS } from "./runs.mjs";
import { stage } from "./stage.mjs";

const weir = process.env.WEIR ?? fileURLToPath(new URL("../../target/debug/weir", import.meta.url));
const docs = fileURLToPath(new URL("../../docs/", import.meta.url));
const wanted = process.argv.slice(2);
const wants = (name) => wanted.length === 0 || wanted.includes(name);
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
/** Light and wide is English, dark and narrow is Korean; and the other way round. */
const LOOKS = [["1440", "light", "en"], ["390", "dark", "ko"], ["1440", "dark", "ko"], ["390", "light", "en"]];
/** Seconds for which the edge is busy before its pictures are made. */
const BUSY_S = Number(process.env.BUSY ?? 120);

const run = promisify(execFile);
if (!(await run("fc-list", [":lang=ko"])).stdout) throw new Error("no font has Korean letters: apt install fonts-noto-cjk");
const browser = await launch();

async function shoot(page, folder, name, size) {
  const tall = await page.evaluate(() => document.documentElement.scrollHeight);
  const clip = { x: 0, y: 0, width: SIZES[size].width, height: Math.min(tall, size === "1440" ? 1350 : 2300) };
  const wide = await overflow(page);
  if (wide > 0) console.log(`${name}: wider than the window by ${wide}`);
  const to = process.env.LOOK ? join(process.env.LOOK, `${name}.png`) : join(docs, folder, `${name}.webp`);
  await page.screenshot({ path: to, clip, captureBeyondViewport: true, ...(process.env.LOOK ? {} : { type: "webp", quality: 26 }) });
}

async function dash() {
  const edge = await stage();
  await pause(BUSY_S * 1000);
  const { snapshot } = await (await fetch(`${edge.url}/open/doc.json`)).json();
  const peer = snapshot.http.upstreams.app.peers[0].server;
  const details = { zone: "zones/location/shop.example%2F", peer: `upstreams/app/${encodeURIComponent(peer)}`, cache: "caches/assets" };
  for (const [size, theme, language] of LOOKS) {
    const page = await open(browser, `${edge.url}/open/`, { size, theme, language });
    // Charts of one thing begin when the page is opened.
    await pause(40_000);
    for (const [name, view] of [...VIEWS.map((view) => [view, view]), ...Object.entries(details)]) {
      await show(page, view);
      if (view === "errors") await page.$$eval(".class", (all) => all.find((one) => one.querySelector(".name").textContent === "500")?.click());
      await pause(view === "errors" ? 2500 : 1200);
      await shoot(page, "dashboard", `${name}-${theme}-${size}`, size);
    }
    await page.close();
  }
  await edge.end();
}

/** The pages of files, in each look. @param {(language: string) => Promise<string>} of */
async function pages(folder, name, of) {
  for (const [size, theme, language] of LOOKS) {
    const page = await browser.newPage();
    await page.setViewport(SIZES[size]);
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: theme }]);
    await page.goto(pathToFileURL(await of(language)).href, { waitUntil: "load" });
    await shoot(page, folder, `${name}-${theme}-${size}`, size);
    await page.close();
  }
}

async function load(place) {
  const server = createServer((request, response) => {
    const number = request.url.length * 7 % 23;
    setTimeout(() => response.writeHead(request.url.includes("search") && Math.random() < 0.04 ? 503 : 200).end("ok"), 2 + number * Math.random());
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  await writeFile(join(place, "shop.yml"), `config:
  target: http://127.0.0.1:${server.address().port}
  plugins: { metrics-by-endpoint: {} }
  phases:
    - { name: warm up, duration: 10, arrivalRate: 4, rampTo: 20 }
    - { name: hold, duration: 20, arrivalRate: 20 }
scenarios:
  - flow:
      - get: { url: "/" }
      - get: { url: "/search?q=lamp" }
      - think: 0.3
      - get: { url: "/product/41" }
      - get: { url: "/cart" }
`);
  await run(weir, ["load", "shop.yml", "-o", "shop.json", "--html", "shop.html"], { cwd: place }).catch(() => {});
  server.close();
  server.closeAllConnections();
  await pages("guide/load", "report", async (language) => {
    const to = join(place, `load-${language}.html`);
    await run(weir, ["load", "report", "shop.json", "-o", to, "--lang", language], { cwd: place });
    return to;
  });
}

/** One run of each kind: those that were kept, and invented ones for the other kinds. */
async function runs() {
  const kept = new Map(RUNS.map((run) => [run.kind, run]));
  const names = process.env.RUNS ? (await readdir(process.env.RUNS)).filter((name) => name.endsWith(".json")).sort() : [];
  for (const name of names) {
    const run = JSON.parse(await readFile(join(process.env.RUNS, name), "utf8"));
    if (kept.has(run.kind)) kept.set(run.kind, run);
  }
  return kept;
}

async function lab(place) {
  for (const [kind, one] of await runs()) {
    // These have the parts of a comparison, and no others.
    if (["aa", "elsewhere"].includes(kind) && !process.env.LOOK) continue;
    const stored = join(place, `${one.id}.json`);
    await writeFile(stored, JSON.stringify(one));
    await pages("labs", kind === "lab" ? "experiment" : kind, async (language) => {
      const to = join(place, `${kind}-${language}.html`);
      await run(weir, ["lab", "--lang", language, "report", stored, "--html", to], { cwd: place });
      return to;
    });
  }
}

const place = await mkdtemp(join(tmpdir(), "weir-look-"));
if (process.env.LOOK) await mkdir(process.env.LOOK, { recursive: true });
else for (const folder of ["dashboard", "labs", "guide/load"]) await mkdir(join(docs, folder), { recursive: true });
if (wants("load")) await load(place);
if (wants("lab")) await lab(place);
if (wants("dash")) await dash();
await browser.close();
await rm(place, { recursive: true, force: true });
