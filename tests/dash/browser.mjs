// Chromium over the views of a page: pictures, what the console said, what axe found.

import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import puppeteer from "puppeteer-core";

export const VIEWS = ["overview", "zones", "upstreams", "caches", "websockets", "host", "processes", "errors", "configuration", "lab"];
export const SIZES = { 1440: { width: 1440, height: 900 }, 390: { width: 390, height: 844 } };
/** Milliseconds until a test gives up waiting for a page: far longer than anything here takes. */
const PATIENCE = 60_000;
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
  page.setDefaultTimeout(PATIENCE);
  page.said = [];
  page.on("console", (message) => ["error", "warn"].includes(message.type()) && page.said.push(message.text()));
  page.on("pageerror", (error) => page.said.push(String(error)));
  await page.setViewport(SIZES[size]);
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: theme }, { name: "prefers-reduced-motion", value: "reduce" }]);
  await page.evaluateOnNewDocument((language) => localStorage.setItem("weir.language", language), language);
  await page.goto(url, { waitUntil: "domcontentloaded" });
  await page.waitForSelector(".tabs");
  return page;
}

export async function show(page, view) {
  await page.evaluate((view) => { location.hash = `#/${view}`; }, view);
  await page.waitForFunction((view) => location.hash === `#/${view}` && document.querySelector("[aria-current]")?.hash === `#/${view.split("/")[0]}`, {}, view);
  await new Promise((done) => setTimeout(done, 150));
}

/** The room beside the last column of a table, in pixels. */
const ROOM = 24;

/** Does something while no frame has the mark that it goes on. */
async function unmarked(page, what) {
  // The page's policy forbids a style of others in the document, but not a sheet of the debugger's.
  await page.evaluate(() => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(".scroll, .overs, .listing, .report pre { background-image: none !important; }");
    document.adoptedStyleSheets = [sheet];
  });
  try {
    return await what();
  } finally {
    await page.evaluate(() => { document.adoptedStyleSheets = []; });
  }
}

/**
 * The frames that scroll sideways: whether the keyboard reaches each and a name says what it is, and whether its right edge
 * has a mark, where the way begins and where it ends. The page must not change meanwhile.
 */
export async function sideways(page) {
  const blank = await page.browser().newPage();
  // A page behind another one draws nothing.
  await page.bringToFront();
  // A row under the pointer has a colour of its own, and the rows move below it.
  await page.mouse.move(0, 0);
  const count = await page.evaluate(() => {
    const goesOn = (one) => /auto|scroll/.test(getComputedStyle(one).overflowX) && one.getClientRects().length > 0 && one.scrollWidth > one.clientWidth + 1;
    globalThis.sideways = [...document.querySelectorAll("body *")].filter((one) => !one.matches(".tabs, select") && goesOn(one));
    return globalThis.sideways.length;
  });
  const found = [];
  for (let at = 0; at < count; at++) {
    const marks = [];
    for (const isEnd of [false, true]) {
      const clip = await page.evaluate((at, isEnd) => {
        const one = globalThis.sideways[at];
        one.scrollIntoView({ block: "center", behavior: "instant" });
        one.scrollTo({ left: isEnd ? one.scrollWidth : 0, behavior: "instant" });
        const { x, y, bottom } = one.getBoundingClientRect();
        // Without the rounded corners, and inside of the last pixel, which the frame may share with its border.
        const [top, end] = [Math.max(y + 14, 0), Math.min(bottom - 14, innerHeight)];
        return { x: x + one.clientLeft + one.clientWidth - 8 + scrollX, y: top + scrollY, width: 6, height: end - top };
      }, at, isEnd);
      await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
      const look = () => page.screenshot({ clip, encoding: "base64", captureBeyondViewport: false });
      // A mark is as high as its frame; a figure that changes between the two looks is not.
      marks.push((await differing(blank, await look(), await unmarked(page, look))) > 0.3);
    }
    const [name, hidden, isReached] = await page.evaluate((at) => {
      const one = globalThis.sideways[at];
      one.scrollTo({ left: 0, behavior: "instant" });
      return [`${one.tagName}.${one.className} ${one.ariaLabel ?? ""}`, one.scrollWidth - one.clientWidth, one.tabIndex === 0 && (one.tagName === "PRE" || (one.role === "region" && Boolean(one.ariaLabel)))];
    }, at);
    // Fewer pixels are the room beside the last column, and nothing that a reader misses.
    found.push({ name, isReached, isMarked: marks[0] || hidden < ROOM, isMarkedAtEnd: marks[1] });
  }
  await blank.close();
  return found;
}

/** The share of the pixels in which two pictures differ. */
const differing = (blank, one, other) =>
  blank.evaluate(async (pictures) => {
    const [first, second] = await Promise.all(pictures.map(async (picture) => {
      const image = new Image();
      image.src = `data:image/png;base64,${picture}`;
      await image.decode();
      const paper = new OffscreenCanvas(image.width, image.height).getContext("2d");
      paper.drawImage(image, 0, 0);
      return new Uint32Array(paper.getImageData(0, 0, image.width, image.height).data.buffer);
    }));
    return first.filter((pixel, at) => pixel !== second[at]).length / first.length;
  }, [one, other]);

/** What axe finds, as lines; none is wanted. Only what is serious or worse counts. */
export async function violations(page) {
  // The page's policy forbids script in markup; what comes by the debugger is not under it.
  await page.evaluate(axe);
  // axe cannot judge a text on a gradient, so the marks of frames that scroll are off while it looks.
  const { violations } = await unmarked(page, () => page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] })));
  return violations
    .filter((finding) => ["serious", "critical"].includes(finding.impact))
    .flatMap((finding) => finding.nodes.map((node) => `${finding.id}: ${node.target.join(" ")}: ${node.any[0]?.message ?? finding.help}`));
}

/**
 * Elements whose text is cut, or that lie outside the window; none is wanted. The row of views and the columns of vmstat
 * scroll, and show it.
 */
export const cut = (page) =>
  page.evaluate(() =>
    [...document.querySelectorAll("body *")]
      .filter((one) => one.getClientRects().length > 0 && !one.closest(".tabs, .scroll:has(.vmstat), svg, .skip, thead, [role=meter], .rank, .track, .stacked, .area, .ticks, .copy, .ages, select"))
      .filter((one) => {
        const style = getComputedStyle(one);
        const isHidden = style.overflowX !== "visible" && one.scrollWidth > one.clientWidth + 1;
        return isHidden || (one.childElementCount === 0 && one.textContent.trim() && one.getBoundingClientRect().right > innerWidth + 1);
      })
      .map((one) => `${one.tagName}.${one.className}: ${one.textContent.slice(0, 60)}`),
  );

/** Pieces of names that are broken into two lines; none is wanted. A name may break only between two of them. */
export const torn = (page) =>
  page.evaluate(() => [...document.querySelectorAll(".name .whole, .term, td.number")].filter((one) => one.getClientRects().length > 1 || (one.matches("td") && one.firstElementChild?.getClientRects().length > 1)).map((one) => one.textContent));

/** Frames of tables that go on to the right. */
export const beyond = (page) =>
  page.evaluate(() => [...document.querySelectorAll(".scroll, .overs")].filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => `${one.ariaLabel}: ${one.scrollWidth - one.clientWidth}`));

/** How much wider than the window the page is. */
export const overflow = (page) => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
