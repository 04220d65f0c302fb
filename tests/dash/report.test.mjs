// Chromium on the pages of `weir load` and `weir lab`: from a disk, light and dark, wide and narrow, with and without
// scripts.
//
//   npm ci --prefix tests/dash && cargo build && node --test tests/dash/report.test.mjs
//
// `WEIR=BIN` tests another binary.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { SIZES, cut, launch, overflow, sideways, violations } from "./browser.mjs";
import { RUNS } from "./runs.mjs";

const weir = process.env.WEIR ?? fileURLToPath(new URL("../../target/debug/weir", import.meta.url));
/** More paths than a table shows at first. */
const PATHS = 20;
let [place, browser, file, report] = [];

/** A run of a few seconds against a server that answers some requests with 503 and cuts some off. */
before(async () => {
  place = await mkdtemp(join(tmpdir(), "weir-report-"));
  const server = createServer((request, response) => {
    const number = Number(request.url.slice(2));
    // The last one, because a virtual user ends with it.
    if (number === PATHS - 1) request.socket.destroy();
    else setTimeout(() => response.writeHead(number % 10 === 3 ? 503 : 200).end("ok"), number);
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const flow = Array.from({ length: PATHS }, (_, at) => `      - get: { url: "/p${at}" }`).join("\n");
  await writeFile(join(place, "shop.yml"), `config:
  target: http://127.0.0.1:${server.address().port}
  plugins: { metrics-by-endpoint: {} }
  phases:
    - { name: warm, duration: 2, arrivalRate: 5 }
    - { name: "<b>hold</b>", duration: 3, arrivalRate: 10 }
scenarios:
  - flow:
${flow}
`);
  file = join(place, "shop.html");
  await promisify(execFile)(weir, ["load", "shop.yml", "-o", "shop.json", "--html", file], { cwd: place }).catch((error) => {
    throw new Error(`${error.stdout}\n${error.stderr}`);
  });
  server.close();
  report = JSON.parse(await readFile(join(place, "shop.json"), "utf8"));
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await rm(place, { recursive: true, force: true });
});

async function open({ size = "1440", theme = "light", scripts = true, path = file } = {}) {
  const page = await browser.newPage();
  page.said = [];
  page.asked = [];
  page.on("console", (message) => page.said.push(message.text()));
  page.on("pageerror", (error) => page.said.push(String(error)));
  page.on("request", (request) => page.asked.push(request.url()));
  await page.setViewport(SIZES[size]);
  await page.setJavaScriptEnabled(scripts);
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: theme }]);
  await page.goto(pathToFileURL(path).href, { waitUntil: "load" });
  return page;
}

const KOREAN = ["지연 시간", "부하", "상태 코드", "오류", "가상 사용자", "도착", "지연 시간의 분포"];
const CHARTS = ["Latency", "Load", "Status codes", "Errors", "Virtual users", "Arrivals", "How often each latency occurred"];
const titles = (page, selector) => page.$$eval(selector, (all) => all.map((one) => one.textContent));

for (const size of Object.keys(SIZES)) {
  for (const theme of ["light", "dark"]) {
    test(`the page of a report, ${theme}, ${size} wide`, async () => {
      const page = await open({ size, theme });
      assert.deepEqual(await titles(page, ".chart h3"), CHARTS);
      const empty = await page.$$eval(".chart", (all) => all.filter((one) => ![...one.querySelectorAll(".plot path")].some((path) => path.getBoundingClientRect().width > 0)).length);
      assert.equal(empty, 0, "every chart has something drawn");
      assert.equal((await page.$$(".drawn details[open]")).length, 0, "the tables of figures are folded");
      // The table of latencies scrolls in its frame; the page itself does not.
      assert.ok((await overflow(page)) <= 0, "wider than the window");
      if (size === "390") assert.deepEqual((await cut(page)).filter((one) => !/^DIV.*scroll|^T[DH]\./.test(one)), [], "cut");
      assert.deepEqual(page.said, []);
      assert.deepEqual(page.asked, [pathToFileURL(file).href], "one file that asks nobody");
      assert.deepEqual(await violations(page), [], "axe");
      await page.close();
    });
  }
}

for (const [size, theme] of [["1440", "light"], ["390", "dark"]]) {
  test(`the page of a stored report in Korean, ${theme}, ${size} wide`, async () => {
    const path = join(place, `shop-ko-${size}.html`);
    await promisify(execFile)(weir, ["load", "report", "shop.json", "-o", path, "--lang", "ko"], { cwd: place });
    const page = await open({ size, theme, path });
    assert.equal(await page.evaluate(() => document.documentElement.lang), "ko");
    assert.deepEqual(await titles(page, ".chart h3"), KOREAN);
    assert.ok((await overflow(page)) <= 0, "wider than the window");
    if (size === "390") assert.deepEqual((await cut(page)).filter((one) => !/^DIV.*scroll|^T[DH]\.|^CODE\./.test(one)), [], "cut");
    // Three small English words in a row are a sentence that was left.
    const text = await page.evaluate(() => document.body.innerText);
    assert.equal(text.split("\n").find((line) => /\b[a-z]{2,} [a-z]{2,} [a-z]{2,}\b/.test(line)), undefined);
    assert.match(text, /부하 생성기에 여유가 있었습니다|부하 생성기가 한도에 이르렀습니다|부하 생성기에 여유가 있었지만/);
    assert.deepEqual((await titles(page, ".phases span")).slice(2, 4), ["warm · 초당 5명", "<b>hold</b> · 초당 10명"]);
    assert.match(await page.$eval(".more", (one) => one.textContent), /20개 모두 보기/);
    assert.deepEqual(page.said, []);
    assert.deepEqual(await violations(page), [], "axe");
    await page.close();
  });
}

test("between a phone and a desk, a table that goes on to the right shows it, and the keyboard reaches it", async () => {
  for (const theme of ["light", "dark"]) {
    const page = await open({ theme });
    await page.setViewport({ width: 800, height: 900 });
    await page.$$eval("details", (all) => all.forEach((one) => { one.open = true; }));
    const found = await sideways(page);
    assert.ok(found.some((one) => one.name.includes("Latency")) && found.some((one) => one.name.includes("Histograms")), JSON.stringify(found));
    assert.deepEqual(found.filter((one) => !one.isReached || !one.isMarked || one.isMarkedAtEnd), []);
    assert.ok((await overflow(page)) <= 0);
    assert.deepEqual(await violations(page), [], "axe");
    await page.close();
  }
});

test("a pointer and the keyboard read the figures that the table has", async () => {
  const page = await open();
  const row = (at) => page.$$eval(".drawn", (all, at) => [...[...all[1].querySelectorAll("tbody tr")].at(at).cells].map((cell) => cell.textContent.trim()), at);
  const load = (await page.$$(".area"))[1];
  const tip = () => load.$eval(".tip", (tip) => (getComputedStyle(tip).display === "none" ? null : tip.innerText));
  assert.equal(await tip(), null);
  await page.$$eval(".drawn details", (all) => (all[1].open = true));
  await load.scrollIntoView();
  const box = await load.boundingBox();
  for (const [part, at] of [[0.001, 0], [0.5, Math.round((report.weir.series.length - 1) / 2)], [0.999, -1]]) {
    await page.mouse.move(box.x + box.width * part, box.y + 40);
    const [time, requests] = await row(at);
    // A place that the run hardly covers has no rate.
    assert.equal(await tip(), requests ? `${time}\nrequests  ${requests} /s` : time);
  }
  await page.mouse.move(1, 1);
  assert.equal(await tip(), null);
  await load.focus();
  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowRight");
  assert.equal((await tip()).split("\n")[0], (await row(1))[0]);
  await page.keyboard.press("Escape");
  assert.equal(await tip(), null);
  assert.match(await load.evaluate((area) => area.ariaLabel), /^Load, per second; one point for each 1s: requests \d/);
  assert.deepEqual((await titles(page, ".phases span")).slice(2, 4), ["warm · 5 a second", "<b>hold</b> · 10 a second"]);
  await page.close();
});

test("without a script the tables have all figures, on a screen and on paper", async () => {
  for (const media of ["screen", "print"]) {
    const page = await open({ size: "390", scripts: false });
    await page.emulateMediaType(media);
    assert.match((await titles(page, "noscript")).join(), /The tables have all figures/);
    assert.deepEqual(await titles(page, ".drawn summary"), CHARTS.map((title) => `${title} in figures`));
    const tables = await page.$$eval(".drawn table", (all) => all.map((one) => [one.getBoundingClientRect().height > 0, one.tBodies[0].rows.length]));
    const seconds = report.weir.series.length;
    assert.deepEqual(tables.slice(0, 6), Array(6).fill([true, seconds]));
    const figures = await page.$eval(".drawn tbody", (body) => [...body.rows].map((row) => row.cells[2].textContent));
    assert.deepEqual(figures, report.weir.series.response.p99.map((ms) => (ms === null ? "" : String(Number(ms.toPrecision(4))))));
    if (media === "print") {
      const cut = await page.$$eval(".drawn .scroll", (all) => all.filter((one) => one.scrollHeight > one.clientHeight + 1).length);
      assert.equal(cut, 0, "paper does not scroll");
    }
    assert.ok((await overflow(page)) <= 0);
    await page.close();
  }
});

test("a script that the page did not come with does not run", async () => {
  const page = await open();
  await page.evaluate(() => {
    const script = document.createElement("script");
    script.textContent = "document.title = 'changed'";
    document.body.append(script);
  });
  assert.equal(await page.title(), "shop.yml");
  assert.match(page.said.join(), /Content Security Policy/);
  await page.close();
});

test("the table of endpoints sorts, and shows all its rows on demand", async () => {
  const page = await open();
  const column = (at) => page.$$eval(".sorts tbody tr", (rows, at) => rows.filter((row) => row.getBoundingClientRect().height > 0).map((row) => row.cells[at].textContent), at);
  assert.equal((await column(0)).length, 12);
  await page.click(".more");
  assert.equal((await column(0)).length, PATHS);
  const press = async (at) => {
    await page.click(`.sorts th:nth-child(${at + 1}) button`);
    return [await page.$eval(`.sorts th:nth-child(${at + 1})`, (head) => head.ariaSort), await column(at)];
  };
  const names = Array.from({ length: PATHS }, (_, at) => `/p${at}`).sort((a, b) => a.localeCompare(b));
  assert.deepEqual(await press(0), ["ascending", names]);
  assert.deepEqual(await press(0), ["descending", [...names].reverse()]);
  const [order, medians] = await press(4);
  const known = medians.filter((text) => text !== "–").map(Number);
  assert.equal(order, "descending");
  assert.deepEqual(known, [...known].sort((a, b) => b - a));
  assert.equal(medians.indexOf("–"), medians.includes("–") ? known.length : -1, "what is unknown comes last");
  await page.close();
});

test("one cursor and one zoom go through the charts of a run, and the theme can be chosen", async () => {
  const page = await open();
  const areas = await page.$$(".area");
  await areas[0].scrollIntoView();
  const box = await areas[0].boundingBox();
  await page.mouse.move(box.x + box.width * 0.5, box.y + 40);
  const read = () => page.$$eval(".area[data-group]", (all) => all.map((one) => one.querySelector(".tip").innerText.split("\n")[0]));
  assert.deepEqual([new Set(await read()).size, (await read()).length], [1, 6]);
  const ticks = () => page.$$eval(".drawn .ticks", (all) => all.map((one) => one.textContent));
  const whole = await ticks();
  await page.mouse.move(box.x + box.width * 0.2, box.y + 40);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.7, box.y + 40, { steps: 3 });
  await page.mouse.up();
  const zoomed = await ticks();
  assert.ok(zoomed.slice(0, 6).every((text, at) => text !== whole[at]), `${zoomed} ${whole}`);
  assert.equal(zoomed[6], whole[6], "the histogram is not over time");
  assert.deepEqual(await violations(page), []);
  await page.$$eval(".drawing > button", (all) => all[0].click());
  assert.deepEqual(await ticks(), whole);
  const paper = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  const light = await paper();
  for (const name of ["light", "dark"]) {
    await page.click(".theme");
    assert.match(await page.$eval(".theme", (one) => one.ariaLabel), new RegExp(name));
  }
  assert.notEqual(await paper(), light);
  assert.deepEqual(page.said, []);
  await page.close();
});

for (const run of RUNS) {
  test(`the page of a run of weir lab: ${run.kind}`, async () => {
    const stored = join(place, `${run.id}.json`);
    await writeFile(stored, JSON.stringify(run));
    for (const [size, theme, lang] of [["1440", "light", "en"], ["390", "dark", "ko"]]) {
      const path = join(place, `${run.kind}-${lang}.html`);
      await promisify(execFile)(weir, ["lab", "--lang", lang, "report", stored, "--html", path], { cwd: place });
      const page = await open({ size, theme, path });
      assert.deepEqual(page.asked, [pathToFileURL(path).href], "one file that asks nobody");
      assert.deepEqual(page.said, []);
      assert.ok((await overflow(page)) <= 0, "wider than the window");
      // Blocks of text as a terminal shows them scroll in their frame.
      assert.deepEqual((await cut(page)).filter((one) => !one.startsWith("PRE") && !(size === "1440" && one.includes("overs"))), [], "cut");
      assert.deepEqual(await violations(page), [], "axe");
      if (["ab", "aa", "elsewhere"].includes(run.kind)) {
        // The verdict of each figure is in sight, its numbers stand beside its bar, and minus signs are real.
        const rows = await page.$$eval(".changes li", (all) => all.map((one) => ({ text: one.innerText, bar: one.querySelector(".ci")?.getBoundingClientRect().width ?? 0, right: one.querySelector(".lasts").getBoundingClientRect().right })));
        assert.equal(rows.length, run.metrics.length);
        assert.ok(rows.every((row, at) => row.text.includes(run.metrics[at].text) && row.right <= SIZES[size].width), JSON.stringify(rows));
        assert.ok(rows[4].bar > 3 && /−36.%/.test(rows[4].text) && !/-\d/.test(rows[4].text), rows[4].text);
        assert.equal((await page.$$(".columns span")).length, 16);
      }
      if (size === "1440") {
        await page.setViewport({ width: 800, height: 900 });
        await page.$$eval("details", (all) => all.forEach((one) => { one.open = true; }));
        assert.deepEqual((await sideways(page)).filter((one) => !one.isReached || !one.isMarked || one.isMarkedAtEnd), []);
        await page.setViewport(SIZES[size]);
      }
      if (run.kind === "why") {
        assert.match(await page.$eval(".verdict .mark", (one) => one.textContent), /SUSPECTED/);
        assert.ok((await page.$$(".found dt")).length >= 8);
        assert.equal(await page.$eval(".copyable code", (one) => one.textContent), run.verify);
        assert.ok(await page.$eval(".copy", (one) => !one.hidden));
      }
      await page.close();
    }
  });
}
