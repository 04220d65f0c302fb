// Chromium over the views of a page: pictures, what the console said, what axe found.

import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import puppeteer from "puppeteer-core";

export const VIEWS = ["overview", "zones", "upstreams", "caches", "websockets", "host", "processes", "errors", "configuration", "lab"];
export const SIZES = { 1440: { width: 1440, height: 900 }, 390: { width: 390, height: 844 } };
const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export function launch() {
  return puppeteer.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--lang=en"],
  });
}

/** A page at one of `SIZES`, in a theme and a language, once the first second has come. */
export async function open(browser, url, { size, theme = "light", language = "en" }) {
  const page = await browser.newPage();
  page.said = [];
  page.on("console", (message) => ["error", "warn"].includes(message.type()) && page.said.push(message.text()));
  page.on("pageerror", (error) => page.said.push(String(error)));
  await page.setViewport(SIZES[size]);
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: theme }, { name: "prefers-reduced-motion", value: "reduce" }]);
  await page.evaluateOnNewDocument((language) => localStorage.setItem("weir.language", language), language);
  await page.goto(url, { waitUntil: "domcontentloaded" });
  await page.waitForSelector(".tabs", { timeout: 15_000 });
  return page;
}

export async function show(page, view) {
  await page.evaluate((view) => { location.hash = `#/${view}`; }, view);
  await page.waitForFunction((view) => location.hash === `#/${view}` && document.querySelector("[aria-current]")?.hash === `#/${view.split("/")[0]}`, {}, view);
  await new Promise((done) => setTimeout(done, 150));
}

/** What axe finds, as lines; none is wanted. Only what is serious or worse counts. */
export async function violations(page) {
  // The page's policy forbids script in markup; what comes by the debugger is not under it.
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  return violations
    .filter((finding) => ["serious", "critical"].includes(finding.impact))
    .flatMap((finding) => finding.nodes.map((node) => `${finding.id}: ${node.target.join(" ")}: ${node.any[0]?.message ?? finding.help}`));
}

/** Elements whose text is cut, or that lie outside the window; none is wanted. The row of views scrolls, and shows it. */
export const cut = (page) =>
  page.evaluate(() =>
    [...document.querySelectorAll("body *")]
      .filter((one) => one.getClientRects().length > 0 && !one.closest(".tabs, svg, .skip, thead, [role=meter], .rank, .track, .stacked, .area, .ticks, .copy, .ages, select"))
      .filter((one) => {
        const style = getComputedStyle(one);
        const isHidden = style.overflowX !== "visible" && one.scrollWidth > one.clientWidth + 1;
        return isHidden || (one.childElementCount === 0 && one.textContent.trim() && one.getBoundingClientRect().right > innerWidth + 1);
      })
      .map((one) => `${one.tagName}.${one.className}: ${one.textContent.slice(0, 60)}`),
  );

/** How much wider than the window the page is. */
export const overflow = (page) => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
