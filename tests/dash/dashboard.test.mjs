// Chromium on a loaded edge: every view, light and dark, wide and narrow.
//
//   npm ci --prefix tests/dash && cargo build && node --test tests/dash/dashboard.test.mjs
//
// look.mjs makes the pictures of docs/dashboard.

import assert from "node:assert/strict";
import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { SIZES, VIEWS, beyond, cut, launch, open, overflow, show, sideways, torn, violations } from "./browser.mjs";
import { TOKEN, run, stage } from "./stage.mjs";

let [edge, browser, deltas] = [];

/** The changes that the feed sends in a time. */
async function watched(ms) {
  const answer = await fetch(`${edge.url}/open/feed`);
  let text = "";
  const until = Date.now() + ms;
  for await (const piece of answer.body) {
    text += Buffer.from(piece).toString();
    if (Date.now() > until) break;
  }
  return text.split("\n\n").filter((event) => event.includes("event: delta"));
}

before(async () => {
  edge = await stage();
  browser = await launch();
  // What is about the last ten seconds has something to say by then. Meanwhile a viewer watches.
  deltas = await watched(12_000);
});
after(async () => {
  await browser?.close();
  await edge?.end();
});

/** What each view has to show on this edge. */
const SHOWN = {
  overview: [".waterline", ".path tbody tr", ".chart svg path", ".tile", ".ranked li", ".plot .ticks span"],
  zones: ["tbody tr", ".code", ".finder"],
  upstreams: ["tbody tr", ".mark"],
  caches: [".books .term", ".figure"],
  websockets: [".figure", ".spread li"],
  host: [".stacked .piece", "tbody tr", ".vmstat tbody tr", ".chart svg path"],
  processes: [".sparked", "tbody tr .term"],
  configuration: [".conffile"],
  errors: [".class", ".reason", ".chart"],
  lab: [".bands .ci", ".lane .bar.a", ".lane .bar.b", ".labsaid .words"],
};

/** One of each thing that has a page of its own. */
const DETAILS = async () => {
  const { snapshot } = await (await fetch(`${edge.url}/open/doc.json`)).json();
  return ["zones/server/shop.example", "zones/location/shop.example%2Fassets%2F", "upstreams/app", `upstreams/app/${encodeURIComponent(snapshot.http.upstreams.app.peers[0].server)}`, "caches/assets"];
};

// These take the longest. Each has a browser of its own, because a page behind another one draws nothing.
describe("every view", { concurrency: 2 }, () => {
  for (const size of Object.keys(SIZES)) {
    test(`${size} wide, light and dark`, async () => {
      const own = await launch();
      try {
        for (const theme of ["light", "dark"]) await everyView(own, size, theme);
      } finally {
        await own.close();
      }
    });
  }

  test("between a phone and a desk, a table that goes on to the right shows it, and the keyboard reaches it", async () => {
    const own = await launch();
    try {
      await between(own);
    } finally {
      await own.close();
    }
  });
});

async function everyView(browser, size, theme) {
  const language = theme === "dark" && size === "390" ? "ko" : "en";
  const page = await open(browser, `${edge.url}/open/`, { size, theme, language });
  for (const view of VIEWS) {
    await show(page, view);
    // Some views ask the edge for their data.
    for (const selector of SHOWN[view]) await page.waitForSelector(selector);
    if (view === "errors") {
      await page.click(".class");
      await page.waitForSelector(".sample");
    }
    await isSound(page, view, size);
  }
  // The colours are those of the views: one theme for each width shows all that there is.
  for (const view of (size === "390") === (theme === "light") ? await DETAILS() : []) {
    await show(page, view);
    await page.waitForFunction(() => [...document.querySelectorAll(".chart")].some((one) => [...one.querySelectorAll(".plot path")].some((path) => path.getBBox().width > 0)));
    await isSound(page, view, size);
  }
  assert.deepEqual(page.said, [], `${theme}, ${size} wide`);
  await page.close();
}

async function isSound(page, view, size) {
  assert.deepEqual(await violations(page), [], `${view}, ${size} wide: axe`);
  assert.ok((await overflow(page)) <= 0, `${view} is wider than the window of ${size}`);
  if (size === "390") assert.deepEqual(await cut(page), [], `${view}: cut`);
}

async function between(browser) {
  const all = [];
  for (const theme of ["light", "dark"]) {
    const page = await open(browser, `${edge.url}/open/`, { size: 1440, theme });
    await page.setViewport({ width: 800, height: 900 });
    for (const view of VIEWS) {
      await show(page, view);
      for (const selector of SHOWN[view]) await page.waitForSelector(selector);
      assert.ok((await overflow(page)) <= 0, `${view} is wider than the window`);
      assert.deepEqual(await violations(page), [], `${view}: axe`);
    }
    // Held, so that no figure changes between two looks.
    await show(page, "overview");
    await page.click(".pause");
    for (const view of VIEWS) {
      await show(page, view);
      const found = await sideways(page);
      assert.deepEqual(found.filter((one) => !one.isReached || !one.isMarked || one.isMarkedAtEnd), [], view);
      all.push(...found);
    }
    await page.close();
  }
  // Servers, peers, processes: at 800 px there are such tables.
  assert.ok(all.length >= 6, JSON.stringify(all));
}

test("at the width of a desk no table is cut, no name is torn, and the columns of the overview end together", async () => {
  for (const language of ["ko", "en"]) {
    const page = await open(browser, `${edge.url}/open/`, { size: 1440, language });
    for (const view of ["overview", "zones", "certificates", "websockets", "host", "processes", "errors"]) {
      await show(page, view);
      for (const selector of SHOWN[view] ?? ["tbody tr"]) await page.waitForSelector(selector);
      assert.deepEqual(await beyond(page), [], `${view}, ${language}`);
      assert.deepEqual(await torn(page), [], `${view}, ${language}`);
    }
    await show(page, "zones");
    // The server with TLS has two columns more than the others.
    assert.equal(await page.$eval(".card table", (table) => table.tHead.rows[0].cells.length), 17);
    await show(page, "overview");
    const ends = await page.$eval(".even", (grid) => [...grid.children].map((one) => Math.round(one.getBoundingClientRect().bottom)));
    assert.equal(new Set(ends).size, 1, ends.join());
    // A column that ends later than its last row is a hole within the card.
    const hole = await page.$eval(".even .waterlines", (list) => list.parentElement.getBoundingClientRect().bottom - (list.nextElementSibling ?? list).getBoundingClientRect().bottom);
    assert.ok(hole < 40, `${hole}`);
    await page.close();
  }
});

test("Korean pages say durations and reasons in Korean", async () => {
  const page = await open(browser, `${edge.url}/open/`, { size: 1440, language: "ko" });
  const texts = async (view, selector) => {
    await show(page, view);
    await page.waitForSelector(selector);
    return page.$$eval("main *", (all) => all.filter((one) => one.childElementCount === 0 && one.namespaceURI.endsWith("xhtml")).map((one) => one.textContent));
  };
  for (const [view, selector] of [["overview", ".tile"], ["certificates", "tbody tr"], ["websockets", ".spread li"], ["host", ".vmstat tbody tr"], ["processes", "tbody tr .term"]]) {
    const english = (await texts(view, selector)).filter((text) => /^[≤>]?\s*\d[\d.]*\u202f[smhd]\b/.test(text));
    assert.deepEqual(english, [], view);
  }
  assert.ok((await texts("host", ".figure")).some((text) => /^초당 [\d.]+ (µs|ms)$/.test(text.replace("\u202f", " "))));
  const errors = await texts("errors", ".class");
  assert.ok(errors.includes("502 연결 거부") && errors.includes("시도 실패: 연결 거부"), errors.filter((text) => /\d\d\d|시도/.test(text)).join());
  assert.ok((await texts("upstreams", ".code.c5")).includes("연결 거부"));
  assert.ok((await texts("caches", ".reasons li")).includes("저장된 응답이 아직 유효합니다."));
  await page.close();
});

test("the errors have the history of the overview, and a sample without a line has no empty frame", async () => {
  const page = await open(browser, `${edge.url}/open/`, { size: 1440 });
  const first = () => page.$eval(".plot .ticks", (ticks) => ticks.textContent);
  await page.click(".pause");
  const whole = await first();
  await show(page, "errors");
  // The page was opened a moment ago, the edge some time before.
  assert.equal(await first(), whole);
  await page.click(".pause");
  await page.click(".choices button:nth-of-type(2)");
  await page.waitForFunction(() => document.querySelector(".choices button:nth-of-type(2)").ariaPressed === "true" && document.querySelector(".charts .plot path.line"));
  await page.$$eval(".class", (all) => all.find((one) => one.querySelector(".name").textContent === "500").click());
  await page.waitForSelector(".sample");
  assert.deepEqual(await page.$$eval(".sample pre.line", (all) => all.map((one) => one.textContent).filter((text) => !text.trim() || text.includes("nothing was logged"))), []);
  // Its log is named; of the others the line to copy has what is known.
  await page.$$eval(".class", (all) => all.find((one) => one.querySelector(".name").textContent.startsWith("502")).click());
  await page.waitForFunction(() => [...document.querySelectorAll(".copyable code")].some((one) => /^dashboard_upstream_log FILE upstream=[\d.:]+;$/.test(one.textContent)));
  await page.close();
});

test("both processes of the edge are its own, and every group of an origin is named", async () => {
  const page = await open(browser, `${edge.url}/open/#/processes`, { size: 390, language: "ko" });
  await page.waitForSelector("tbody tr .term");
  const rows = await page.$$eval("tbody tr", (all) => all.map((row) => [row.querySelector("b").textContent, [...row.querySelectorAll("th .hint")].map((one) => one.innerText)]));
  const own = rows.filter(([, hints]) => hints.some((hint) => hint.includes("이 엣지")));
  assert.ok(own.length === 2 && own.some(([name]) => name === "weir: worker process"), JSON.stringify(rows.slice(0, 6)));
  const served = rows.flatMap(([, hints]) => hints).join(" ");
  assert.ok(served.includes("app 127.0.0.1:") && served.includes("reports 127.0.0.1:"), served);
  assert.doesNotMatch(served, /\d[a-z]/, "names do not run together");
  await page.close();
});

test("a thing has a page, an address of its own, and a way back", async () => {
  const page = await open(browser, `${edge.url}/open/#/zones`, { size: 1440 });
  const press = (text) => page.$$eval("main a", (all, text) => all.find((one) => one.textContent === text).click(), text);
  await page.waitForSelector("tbody a");
  await press("shop.example/assets/");
  await page.waitForSelector(".crumbs");
  assert.equal(await page.evaluate(() => location.hash), "#/zones/location/shop.example%2Fassets%2F");
  assert.deepEqual(await page.$$eval(".chart-title", (all) => all.map((one) => one.textContent)), ["Requests per second", "Request time", "Answers by status", "Bytes per second"]);
  await page.waitForFunction(() => [...document.querySelectorAll(".figure strong")].slice(0, 2).every((one) => one.textContent !== "–"));
  // Its own figures: the location of assets has some hundred requests a second, and none of them fails.
  const shown = await page.$$eval(".figure", (all) => all.slice(0, 2).map((one) => one.querySelector("strong").textContent));
  assert.ok(parseFloat(shown[0]) > 20 && shown[1] === "0/s", shown.join());
  await page.goBack();
  await page.waitForFunction(() => location.hash === "#/zones" && !document.querySelector(".crumbs"));
  await page.goForward();
  await page.waitForSelector(".crumbs");
  await page.click(".crumbs a");
  await page.waitForFunction(() => location.hash === "#/zones");
  await page.goto(`${edge.url}/open/#/caches/nothing`);
  await page.waitForFunction(() => document.querySelector(".empty")?.textContent.includes("no nothing in this configuration"));
  assert.deepEqual(page.said, []);
  await page.close();
});

test("rows are found by a text, by failing, and in the order that is asked for", async () => {
  const page = await open(browser, `${edge.url}/open/#/zones`, { size: 1440 });
  const names = () => page.$$eval("main .card:nth-of-type(2) tbody th", (all) => all.map((one) => one.textContent));
  const settled = (wanted) => page.waitForFunction((wanted) => JSON.stringify([...document.querySelectorAll("main .card:nth-of-type(2) tbody th")].map((one) => one.textContent)) === wanted, {}, JSON.stringify(wanted));
  await page.waitForSelector(".find");
  const all = await names();
  await page.keyboard.press("/");
  await page.keyboard.type("shop assets");
  await settled(["shop.example/assets/"]);
  assert.match(await page.$eval(".finder [role=status]", (one) => one.textContent), /^1 of \d+$/);
  await page.$eval(".find", (field) => { field.value = ""; field.dispatchEvent(new Event("input")); });
  await page.waitForFunction((count) => document.querySelectorAll("main .card:nth-of-type(2) tbody th").length === count, {}, all.length);
  await page.click(".only");
  const failing = ["shop.example/broken/", "shop.example/stock/"];
  await page.waitForFunction((wanted) => [...document.querySelectorAll("main .card:nth-of-type(2) tbody th")].map((one) => one.textContent).sort().join() === wanted, {}, failing.join());
  // A second without a failure changes nothing: ten seconds count.
  await new Promise((done) => setTimeout(done, 2000));
  assert.deepEqual((await names()).sort(), failing);
  await page.click(".only");
  await page.waitForFunction((count) => document.querySelectorAll("main .card:nth-of-type(2) tbody th").length === count, {}, all.length);
  await page.$$eval("main .card:nth-of-type(2) th button", (heads) => heads[0].click());
  await settled([...all].sort((a, b) => a.localeCompare(b)));
  await page.close();
  // Errors are sorted by a choice.
  const errors = await open(browser, `${edge.url}/open/#/errors`, { size: 1440 });
  await errors.waitForSelector(".sorting select");
  for (const by of ["now", "last", "total"]) {
    await errors.select(".sorting select", by);
    await errors.waitForFunction((by) => document.querySelector(".sorting select").value === by, {}, by);
  }
  await errors.waitForFunction(() => {
    const counts = [...document.querySelectorAll(".errors.of-failed .total")].map((one) => Number(one.textContent.replaceAll(",", "")));
    return counts.length >= 2 && counts.every((count, at) => at === 0 || counts[at - 1] >= count);
  });
  await errors.close();
  // On a narrow screen a choice stands for the head, and every column is there.
  const narrow = await open(browser, `${edge.url}/open/#/upstreams`, { size: 390, language: "ko" });
  await narrow.waitForSelector(".order select");
  const seen = await narrow.$eval("table.cards tbody tr", (row) => [...row.cells].map((cell) => [cell.dataset.label, cell.getBoundingClientRect().width > 0 || cell.className.includes("bare")]));
  assert.ok(seen.length > 10 && seen.every(([, is]) => is), JSON.stringify(seen));
  assert.match(await narrow.$eval(".tabs", (row) => row.dataset.more), /right/);
  await narrow.close();
});

test("one cursor goes through all charts, a drag zooms, and the page can be held", async () => {
  const page = await open(browser, `${edge.url}/open/`, { size: 1440 });
  const tips = () => page.$$eval(".area", (all) => all.map((one) => (getComputedStyle(one.querySelector(".tip")).display === "none" ? null : one.querySelector(".tip").innerText.split("\n")[0])));
  const areas = await page.$$(".area");
  assert.equal(areas.length, 6);
  await areas[2].scrollIntoView();
  const box = await areas[2].boundingBox();
  await page.mouse.move(box.x + box.width * 0.6, box.y + 30);
  const read = await tips();
  assert.match(read[0], /^\d\d:\d\d:\d\d$/);
  assert.equal(new Set(read).size, 1, `${read}`);
  // A drag shows a part, in all charts; the address of the view stays.
  const span = () => page.$$eval(".plot .ticks", (all) => all.map((one) => one.textContent));
  const whole = await span();
  await page.mouse.move(box.x + box.width * 0.3, box.y + 30);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.5, box.y + 40, { steps: 4 });
  assert.equal(await page.$$eval(".area[data-drags]", (all) => all.length), 6);
  await page.mouse.up();
  await page.waitForSelector(".back");
  await page.waitForFunction((whole) => document.querySelector(".plot .ticks").textContent !== whole, {}, whole[0]);
  assert.equal(new Set(await span()).size, 1);
  const zoomed = await span();
  await new Promise((done) => setTimeout(done, 2200));
  assert.deepEqual(await span(), zoomed, "a part stays where it is");
  assert.deepEqual(await violations(page), [], "zoomed");
  await page.click(".back");
  await page.waitForFunction(() => !document.querySelector(".back"));
  // By the keyboard.
  await areas[0].focus();
  await page.keyboard.press("End");
  await page.keyboard.press("ArrowLeft");
  assert.equal(new Set(await tips()).size, 1);
  await page.keyboard.press("+");
  await page.waitForSelector(".back");
  await page.keyboard.press("0");
  await page.waitForFunction(() => !document.querySelector(".back"));
  // Held: nothing moves, and the page says so.
  await page.click(".pause");
  await page.waitForFunction(() => document.querySelector(".link").textContent.includes("paused"));
  const held = await page.$eval(".clock", (one) => one.textContent);
  await new Promise((done) => setTimeout(done, 2500));
  assert.equal(await page.$eval(".clock", (one) => one.textContent), held);
  assert.deepEqual(await violations(page), [], "held");
  await page.click(".pause");
  await page.waitForFunction((held) => document.querySelector(".clock").textContent !== held, {}, held);
  assert.deepEqual(page.said, []);
  await page.close();
});

test("the verdict leads to its evidence, a line can be copied, and the theme is chosen", async () => {
  const page = await open(browser, `${edge.url}/open/`, { size: 1440 });
  await page.click(".verdict button");
  await page.waitForSelector("#evidence a");
  const to = await page.$eval("#evidence a", (one) => one.hash);
  assert.match(to, /^#\/(errors|host|processes|overview|upstreams|caches)/);
  await page.click("#evidence a");
  await page.waitForFunction((to) => location.hash === to, {}, to);
  await show(page, "upstreams");
  await page.evaluate(() => Object.defineProperty(navigator, "clipboard", { value: { writeText: async (text) => { globalThis.written = text; } } }));
  await page.click("main .copy");
  await page.waitForFunction(() => globalThis.written === "dashboard_token FILE;" && document.querySelector("main .copy").dataset.said === "Copied");
  const paper = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  const light = await paper();
  await page.click(".theme");
  await page.click(".theme");
  await page.waitForFunction((light) => getComputedStyle(document.documentElement).backgroundColor !== light, {}, light);
  await page.click(".theme");
  await page.close();
});

test("one press on a class of errors shows what the upstream's log says of each request", async () => {
  for (const [size, theme, language] of [["1440", "light", "en"], ["390", "dark", "ko"]]) {
    const page = await open(browser, `${edge.url}/open/`, { size, theme, language });
    await show(page, "errors");
    await page.$$eval(".class", (all) => all.find((one) => one.querySelector(".name").textContent === "500").click());
    await page.waitForSelector(".found pre");
    const of = await page.$$eval(".sample", (all) => all.map((one) => [one.querySelector(".request").textContent, one.querySelector(".found pre")?.textContent]));
    const asked = of.filter(([request]) => request.startsWith("GET /stock/"));
    assert.ok(asked.length > 0);
    for (const [request, lines] of asked) {
      assert.match(lines, /no answer from the warehouse/);
      // Of its own request, by the id that weir sent with it, and without its query.
      assert.ok(lines.includes(`for ${request.slice(4)}?`) && lines.includes("at Stock.count") && !lines.includes("hidden"), `${request}: ${lines}`);
    }
    assert.deepEqual(await violations(page), []);
    assert.ok((await overflow(page)) <= 0);
    assert.deepEqual(page.said, []);
    await page.close();
  }
});

test("a lab that runs shows its blocks as they come, and its verdict when it has one", async () => {
  const [page, id] = [await open(browser, `${edge.url}/open/`, { size: 390, theme: "dark", language: "ko" }), "20261122-203801-106"];
  const tell = async (done, end) => {
    const path = join(edge.place, "runs", id);
    await writeFile(`${path}.new`, JSON.stringify(run(id, done)));
    await rename(`${path}.new`, `${path}.${end}`);
  };
  const bars = (count) => page.waitForFunction((count) => document.querySelectorAll(".lane.tall .bar").length === count, {}, count);
  await tell(3, "running");
  await show(page, "lab");
  await bars(3);
  assert.match(await page.$eval(".labsaid", (said) => said.textContent), /진행 중: 최대 12블록 중 3블록/);
  assert.equal((await page.$$(".bands")).length, 0, "no interval before its time");
  await tell(7, "running");
  await bars(7);
  await tell(12, "json");
  await rm(join(edge.place, "runs", `${id}.running`));
  await bars(12);
  await page.waitForSelector(".bands .ci");
  assert.match(await page.$eval(".labsaid", (said) => said.textContent), /개선.*요청당 CPU: 319/);
  // Another run is one press away.
  await page.$$eval(".short tbody button", (all) => all.at(-1).click());
  await page.waitForFunction(() => document.querySelector(".short tbody button[aria-pressed=true]")?.textContent.endsWith("-105"));
  assert.deepEqual([await violations(page), page.said], [[], []]);
  await rm(join(edge.place, "runs", `${id}.json`));
  await page.close();
});

test("verdict, tile and errors mean the same by failed, and refusals of limit_req stand apart", async () => {
  const page = await open(browser, `${edge.url}/open/`, { size: 1440 });
  const doc = await (await fetch(`${edge.url}/open/doc.json`)).json();
  const [shop, account] = [doc.snapshot.http, doc.snapshot.weir].map((part) => part.server_zones["shop.example"]);
  const answered = Object.entries(shop.responses.codes).filter(([code]) => code >= 500).reduce((sum, [, count]) => sum + count, 0);
  const of = (kind) => doc.snapshot.weir.errors.filter((error) => error.kind === kind);
  const sum = (kind) => of(kind).reduce((sum, error) => sum + error.count, 0);
  // Nothing is cut here: all that fails is answered 5xx, and limit_req refuses with 503.
  assert.ok(account.refused > 50 && account.failed > 10, JSON.stringify(account));
  // Counters are read while requests end: a few may be in one and not yet in the other.
  const same = (one, other) => assert.ok(Math.abs(one - other) <= 3, `${one} and ${other}`);
  same(account.failed + account.refused, answered);
  same(sum("failed"), account.failed);
  same(sum("refused"), account.refused);
  assert.deepEqual(of("refused").map((error) => error.class), ["limit_req"]);
  assert.deepEqual(of("recovered").map((error) => error.class), ["try connection refused"], "the backup answers for the dead server");
  assert.ok(!of("failed").some((error) => error.class === "503"));
  const tile = await page.$$eval(".tile", (all) => all.find((tile) => tile.querySelector(".label span").textContent === "Failed").textContent);
  // The words of the errors.
  assert.match(tile, /upstream [\d.]+\/s.*limit [\d.]+\/s/);
  const reasons = (kind) => of(kind).map((error) => error.reason);
  assert.deepEqual([reasons("refused"), [...new Set(reasons("failed"))], reasons("recovered")], [["limit"], ["upstream"], ["upstream"]]);
  const { failed: failing, refused, upstream, timeout } = doc.point;
  assert.ok(refused > 0 && Math.abs(failing - upstream - timeout) <= 2, JSON.stringify(doc.point));
  // Some four requests of a thousand a second fail: the tile with the refusals in it would say several times that.
  const failed = Number(tile.match(/^Failedlast \d+\u202fs([\d.]+)\/s/)[1]);
  assert.ok(failed < 10, tile);
  await show(page, "errors");
  const groups = await page.$$eval("main .card", (all) => all.filter((card) => card.querySelector("h2")).map((card) => [card.querySelector("h2").textContent, [...card.querySelectorAll(".name")].map((name) => name.textContent)]));
  assert.deepEqual(groups.find(([title]) => title === "Refused as configured")?.[1], ["limit_req"]);
  assert.deepEqual(groups.find(([title]) => title.startsWith("Failed tries"))?.[1], ["try connection refused"]);
  await page.close();
});

test("what needs a token is only shown where there is one", async () => {
  const page = await open(browser, `${edge.url}/open/`, { size: 1440 });
  await show(page, "upstreams");
  assert.equal((await page.$$(".buttons")).length, 0);
  await show(page, "caches");
  assert.equal((await page.$$("form.purge")).length, 0);
  assert.equal((await fetch(`${edge.url}/open/purge`, { method: "POST", body: '{"all":true}' })).status, 403);
  await page.close();
});

test("the books of the cache add up, and what was hit is there", async () => {
  const page = await open(browser, `${edge.url}/open/`, { size: 1440 });
  await show(page, "caches");
  // At any moment: what is under way is all that may be amiss, and the page says how much that is.
  for (let second = 0; second < 4; second++) {
    assert.match(await page.$eval(".books .mark", (mark) => mark.textContent), /the counters add up/);
    await new Promise((done) => setTimeout(done, 1000));
  }
  await page.close();
});

test("the page is followed by the keyboard alone", async () => {
  const page = await open(browser, `${edge.url}/open/`, { size: 1440 });
  const reached = new Set();
  for (let n = 0; n < 16; n++) {
    await page.keyboard.press("Tab");
    reached.add(await page.evaluate(() => document.activeElement.hash ?? document.activeElement.className));
  }
  for (const hash of ["#main", "#/zones", "#/errors"]) assert.ok(reached.has(hash), `${hash} not among ${[...reached]}`);
  await page.focus('a[href="#/zones"]');
  await page.keyboard.press("Enter");
  await page.waitForSelector("th button");
  await page.focus("th button");
  await page.keyboard.press("Enter");
  await page.waitForSelector("th[aria-sort=ascending]");
  assert.equal(await page.$eval("th[aria-sort=ascending]", (th) => th.textContent.slice(0, 4)), "Zone");
  // A redraw each second leaves the focus where it is.
  await new Promise((done) => setTimeout(done, 1500));
  assert.equal(await page.evaluate(() => document.activeElement.closest("th")?.getAttribute("aria-sort")), "ascending");
  await page.close();
});

test("a token is asked for, and opens", async () => {
  const page = await browser.newPage();
  await page.goto(`${edge.url}/weir/`);
  await page.waitForSelector(".token input");
  await page.type(".token input", "not the token");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector(".token .answer").textContent.includes("token is wrong"));
  await page.$eval(".token input", (input) => { input.value = ""; });
  await page.type(".token input", TOKEN);
  await Promise.all([page.waitForSelector(".tabs"), page.keyboard.press("Enter")]);
  await show(page, "caches");
  await page.type(".purge input[type=text]", "nothing-has-this-tag");
  await page.click(".purge button");
  await page.waitForFunction(() => document.querySelector(".purge + .answer").textContent.includes("Purged on 1"));
  assert.deepEqual(await violations(page), []);
  await page.close();
});

test("servers are drained, disabled, enabled and weighed by buttons, and only with the token", async () => {
  const page = await open(browser, `${edge.url}/open/`, { size: 1440 });
  assert.equal((await fetch(`${edge.url}/open/upstreams/app/servers/0`, { method: "PATCH", body: '{"down":true}' })).status, 403);
  await page.setCookie(...(await signIn()));
  await page.goto(`${edge.url}/weir/#/upstreams`);
  await page.waitForSelector(".buttons");
  const press = async (label) => {
    await page.$$eval(".buttons button", (all, label) => all.find((one) => one.getAttribute("aria-label").startsWith(label)).focus(), label);
    await page.keyboard.press("Enter");
  };
  const says = (word) => page.waitForFunction((word) => document.querySelector(".answer .mark.good")?.textContent.includes(word), {}, word);
  const stands = (word) => page.waitForFunction((word) => document.querySelector(".buttons").closest("tr").querySelector(".mark")?.textContent.includes(word), {}, word);
  await press("Drain"); await says("drains"); await stands("draining");
  await press("Enable"); await says("enabled"); await stands("up");
  await press("Disable"); await says("disabled"); await stands("down");
  await press("Enable"); await says("enabled"); await stands("up");
  await press("More weight"); await says("weight 2");
  await page.waitForFunction(() => document.querySelector(".buttons").closest("tr").textContent.includes("weight 2"));
  await press("Less weight"); await says("weight 1");
  assert.deepEqual(await violations(page), []);
  const elsewhere = await page.evaluate(() => fetch("upstreams/app/servers/0", { method: "DELETE" }).then((answer) => answer.status));
  assert.equal(elsewhere, 405);
  await page.close();
});

/** The cookie that the token gives. */
async function signIn() {
  const answer = await fetch(`${edge.url}/weir/token`, { method: "POST", body: TOKEN });
  const [name, value] = answer.headers.get("set-cookie").split(";")[0].split("=");
  return [{ name, value, url: `${edge.url}/weir/`, path: "/weir/" }];
}

test("the history is drawn for each range, and a marked moment divides before from after", async () => {
  for (const [size, theme, language] of [["1440", "light", "en"], ["390", "dark", "ko"]]) {
    const page = await open(browser, `${edge.url}/open/`, { size, theme, language });
    // The edge has run for half a minute: each range begins there.
    for (let nth = 2; nth <= 5; nth++) {
      await page.click(`.choices button:nth-of-type(${nth})`);
      await page.waitForFunction((nth) => document.querySelector(`.choices button:nth-of-type(${nth})`).ariaPressed === "true" && document.querySelectorAll(".charts .plot path.line").length >= 8, {}, nth);
    }
    assert.deepEqual(await violations(page), [], "history");
    if (size === "390") assert.deepEqual(await cut(page), []);
    else {
      await page.click(".choices button:nth-of-type(6)");
      await (await page.waitForSelector(".card.wide .primary")).click();
      await page.waitForFunction(() => document.querySelector(".compared").textContent.includes("→"));
      assert.ok((await page.$$(".chart")).length >= 4);
      assert.deepEqual(await violations(page), [], "compare");
    }
    assert.ok((await overflow(page)) <= 0);
    assert.deepEqual(page.said, []);
    await page.close();
  }
  const now = Date.now();
  const of = async (seconds) => (await fetch(`${edge.url}/open/day.json?${now - seconds * 1000}-${now}`)).json();
  const [hour, month] = [await of(3600), await of(2_592_000)];
  // The load may begin at the end of the first ten seconds, or after it.
  const loaded = hour.slice(hour[0].refused > 0 ? 0 : 1);
  assert.ok(loaded.length >= 2 && loaded.every((point) => point.rps > 0 && point.refused > 0 && point.upstream > 0), JSON.stringify(hour));
  assert.ok(month.length > 0 && month.at(-1).at + 600_000 > hour.at(-1).at, "ten minutes that are not whole yet are there");
});

test("a pointer and the keyboard read values of a chart, while seconds pass", async () => {
  const page = await open(browser, `${edge.url}/open/`, { size: 1440 });
  const area = (await page.$$(".area"))[1];
  const tip = () => area.$eval(".tip", (tip) => (getComputedStyle(tip).display === "none" ? null : tip.innerText));
  const clock = /^\d\d:\d\d:\d\d\n/;
  await area.scrollIntoView();
  const box = await area.boundingBox();
  await page.mouse.move(box.x + box.width - 2, box.y + 30);
  const read = await tip();
  assert.match(read, clock);
  assert.match(read, /p99 {2}[\d.]+\u202f[µm]?s/);
  await new Promise((done) => setTimeout(done, 2200));
  assert.equal(await tip(), read, "the words stay while the chart moves on");
  await page.mouse.move(1, 1);
  assert.equal(await tip(), null);
  await area.focus();
  await page.keyboard.press("End");
  assert.match(await tip(), clock);
  await page.keyboard.press("Escape");
  assert.equal(await tip(), null);
  assert.match(await area.evaluate((one) => one.ariaLabel), /^Request time: p99 [\d.]+/);
  assert.deepEqual([await violations(page), page.said], [[], []]);
  await page.close();
});

test("a feed that breaks comes back by itself", async () => {
  const page = await open(browser, `${edge.url}/open/`, { size: 390 });
  // The process that serves is the keeper's child.
  const keeper = edge.process.pid;
  const server = Number((await readFile(`/proc/${keeper}/task/${keeper}/children`, "utf8")).trim());
  process.kill(server, "SIGSTOP");
  await page.waitForFunction(() => document.querySelector("main.stale"));
  process.kill(server, "SIGCONT");
  await page.waitForFunction(() => !document.querySelector("main.stale"));
  // A reload ends streams; the page comes again.
  edge.process.kill("SIGHUP");
  await page.waitForFunction(() => document.querySelector("footer").textContent.includes("generation 2"));
  await page.close();
});

// In a typical second about half of the quantiles change. On a busy machine nearly all of them do, which is 1 KB more.
test("a second costs a viewer 7 KB at most, typically", () => {
  const sizes = deltas.map((event) => event.length).sort((a, b) => a - b);
  assert.ok(sizes.length >= 5, `${sizes.length} events`);
  console.log(`delta: median ${sizes[sizes.length >> 1]} bytes, largest ${sizes.at(-1)}`);
  assert.ok(sizes[sizes.length >> 1] <= 7 * 1024, `${sizes}`);
});
