// The book of `cargo xtask book` in Chromium, from its files, as a reader without a network opens it.
//
//   cargo xtask book && node --test tests/dash/book.test.mjs
//
// Every page of both languages, wide and narrow: nothing fails to load, nothing comes from elsewhere, every link leads to a
// page and a heading, every picture is there, nothing is wider than the window. The search finds the pages that have a word.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { after, before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { SIZES, launch, overflow, violations } from "./browser.mjs";

const book = process.env.BOOK ?? fileURLToPath(new URL("../../target/book/html", import.meta.url));
const top = pathToFileURL(`${book}/`).href;
const LANGUAGES = ["en", "ko"];
/** Words in the middle of pages. */
const WORDS = { en: ["TIME_WAIT", "proxy_cache_revalidate", "ports rest", "loopback"], ko: ["프로세스", "생성기", "병목", "keepalive", "응답을 비교"] };

let browser;
let page;
/** What a page said that it should not, and what it asked others for. */
let wrong = [];
/** The pages by their addresses: the text, the ids, the links. */
const seen = new Map();

before(async () => {
  assert.ok(existsSync(`${book}/index.html`), `${book} has no book: cargo xtask book`);
  browser = await launch();
  page = await browser.newPage();
  page.on("console", (message) => ["error", "warn"].includes(message.type()) && wrong.push(`${page.url()}: ${message.text()}`));
  page.on("pageerror", (error) => wrong.push(`${page.url()}: ${error}`));
  page.on("request", (request) => /^(file|data):/.test(request.url()) || wrong.push(`${page.url()}: asks for ${request.url()}`));
  page.on("requestfailed", (request) => wrong.push(`${page.url()}: ${request.url()}: ${request.failure().errorText}`));
});
after(() => browser?.close());

const said = () => wrong.splice(0);
const pathOf = (url) => decodeURIComponent(new URL(url).pathname);

/** The addresses of all pages of a language, from the list beside the pages. */
async function addresses(language) {
  await page.goto(`${top}${language}/toc.html`);
  return page.$$eval("a", (all) => [...new Set(all.map((one) => one.href.split("#")[0]))]);
}

for (const [size, viewport] of Object.entries(SIZES)) {
  test(`every page at ${size} px`, { timeout: 600_000 }, async () => {
    await page.setViewport(viewport);
    for (const language of LANGUAGES) {
      const all = await addresses(language);
      assert.ok(all.length > 60, `only ${all.length} pages in ${language}`);
      for (const url of [...all, `${top}index.html`]) {
        await page.goto(url, { waitUntil: "load" });
        const what = await page.evaluate(async () => {
          // A browser decodes pictures that are out of sight when somebody scrolls to them.
          await Promise.all([...document.images].map((image) => image.decode().catch(() => {})));
          return {
            text: document.querySelector("main")?.textContent ?? "",
            ids: [...document.querySelectorAll("[id]")].map((one) => one.id),
            links: [...document.querySelectorAll("a[href]")].map((one) => one.href),
            lost: [...document.images].filter((image) => image.naturalWidth === 0).map((image) => image.src),
          };
        });
        seen.set(url, { ...what, language });
        assert.deepEqual(what.lost, [], `${url} has lost pictures`);
        assert.ok((await overflow(page)) <= 0, `${url} is wider than ${size} px`);
      }
      assert.deepEqual(said(), []);
    }
  });
}

test("every link leads to a page and a heading", () => {
  const broken = [];
  let count = 0;
  for (const [from, { links }] of seen) {
    for (const link of links.filter((link) => link.startsWith("file:"))) {
      const [url, id] = link.split("#");
      const to = seen.get(url);
      count++;
      // A picture, as it is.
      if (!to && /\.webp$/.test(url) && existsSync(pathOf(url))) continue;
      if (!to) broken.push(`${from}: ${link}: no such page`);
      else if (id && !to.ids.includes(decodeURIComponent(id))) broken.push(`${from}: ${link}: no such heading`);
    }
  }
  assert.deepEqual(broken, []);
  assert.ok(count > 4000, `only ${count} links`);
});

/** Types a question into the search of the page that is open, and waits for the answer. */
async function ask(question) {
  await page.keyboard.press("/");
  await page.waitForSelector("#mdbook-search-wrapper:not(.hidden)");
  await page.type("#mdbook-searchbar", question);
  await page.waitForFunction((question) => document.querySelector("#mdbook-searchresults-header").textContent.includes(question), {}, question);
  return page.$$eval("#mdbook-searchresults a", (all) => all.map((one) => one.href));
}

for (const [language, words] of Object.entries(WORDS)) {
  test(`the search finds the pages that have a word: ${language}`, async () => {
    for (const word of words) {
      const has = [...seen].filter(([, one]) => one.language === language && one.text.replace(/\s+/g, " ").toLowerCase().includes(word.toLowerCase()));
      const expected = new Set(has.map(([url]) => pathOf(url)));
      assert.ok(expected.size > 0, `no page has ${word}`);
      await page.goto(`${top}${language}/docs/guide/index.html`);
      const found = await ask(word);
      const pages = new Set(found.map(pathOf));
      // The search shows the best sections; if these are all, they are of all pages that have the word.
      if (found.length < 30) for (const path of expected) assert.ok(pages.has(path), `${word}: ${path} was not found`);
      assert.ok(expected.has(pathOf(found[0])), `${word}: the first result is ${found[0]}`);
      await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
      assert.equal(pathOf(page.url()), pathOf(found[0]));
      const mark = await page.$eval("mark", (one) => ({ text: one.textContent, y: one.getBoundingClientRect().y }));
      assert.ok(word.toLowerCase().includes(mark.text.toLowerCase()), `${word}: ${mark.text} is marked`);
      await page.goBack();
      assert.equal(await page.$eval("#mdbook-searchbar", (box) => box.value), word, "the way back leads to the results");
    }
    assert.deepEqual(said(), []);
  });
}

test("a part of a Korean word is found", async () => {
  const url = `${top}ko/docs/guide/first-hour.html`;
  const [longest] = seen.get(url).text.match(/[가-힣]+/g).sort((one, other) => other.length - one.length);
  const part = longest.slice(1, -1);
  assert.ok(part.length > 2, longest);
  await page.goto(`${top}ko/index.html`);
  assert.ok((await ask(part)).some((found) => pathOf(found) === pathOf(url)), part);
  assert.match(await page.$eval("#mdbook-searchresults", (list) => list.innerHTML), new RegExp(`<em>${part}</em>`));
  assert.deepEqual(said(), []);
});

test("a word with another ending is found, and nonsense is not", async () => {
  await page.goto(`${top}ko/index.html`);
  // No page has the noun with this ending.
  assert.ok(![...seen.values()].some(({ text }) => text.includes("대시보드에게서")));
  const found = await ask("대시보드에게서");
  assert.ok(found.some((url) => pathOf(url).endsWith("/docs/guide/dashboard.html") || pathOf(url).endsWith("/index.html")), found.join("\n"));
  await page.goto(`${top}ko/index.html`);
  assert.deepEqual(await ask("쀍뛟 zqxj"), []);
  assert.match(await page.$eval("#mdbook-searchresults-header", (header) => header.textContent), /찾은 내용이 없습니다/);
  await page.keyboard.press("Escape");
  assert.ok(await page.$("#mdbook-search-wrapper.hidden"));
  assert.deepEqual(said(), []);
});

test("each page leads to the same page in the other language", async () => {
  for (const path of ["index.html", "docs/guide/first-hour.html", "docs/guide/load/report.html"]) {
    await page.goto(`${top}en/${path}`);
    for (const language of ["ko", "en"]) {
      await Promise.all([page.waitForNavigation(), page.click("a.language")]);
      assert.equal(page.url(), `${top}${language}/${path}`);
      assert.equal(await page.evaluate(() => document.documentElement.lang), language);
    }
  }
  assert.equal(await page.$eval("main", (main) => main.lang), "en");
  await page.goto(`${top}ko/docs/guide/first-hour.html`);
  assert.match(await page.$eval("main h1", (one) => one.textContent), /처음 한 시간/);
  assert.equal(await page.$eval("#mdbook-search-toggle", (one) => one.ariaLabel), "검색창 열기와 닫기");
});

/** Faults of mdBook's own page, and code that scrolls: Chromium and Firefox let the keyboard into it without being asked. */
const NOT_OURS = /^(aria-allowed-attr: #mdbook-sidebar-toggle|scrollable-region-focusable): /;

test("a screen reader can use it", async () => {
  for (const path of ["en/index.html", "ko/docs/guide/index.html", "en/docs/reference/directives.html"]) {
    await page.goto(top + path);
    await ask("nginx");
    assert.deepEqual((await violations(page)).filter((one) => !NOT_OURS.test(one)), [], path);
  }
});
