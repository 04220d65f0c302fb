// The script of the report's page. The tables of the page have all figures; the script draws charts from them.

import { chart } from "../../../../dash/web/chart.js";
import { draw, h } from "../../../../dash/web/dom.js";
import { sorted } from "../../../../dash/web/table.js";
import * as units from "../../../../dash/web/units.js";

/** From so many rows on, a table shows only its first twelve, and a button shows the others. */
const ROWS_MANY = 16;

/** Ticks of a part of an axis, at most. */
const TICKS_MAX = 6;

/**
 * A chart as `chart` takes it.
 * @param {object} settings from the page
 * @param {string[][]} rows of its table: the place, and a value for each series, or nothing
 * @param {{from: number, to: number} | null} [zoom] the rows that are shown; all of them without it
 * @param {object} [more] what the page adds
 */
export function described({ series, unit, ...settings }, rows, zoom = null, more = {}) {
  const value = (text) => (text.trim() ? Number(text) : null);
  const shown = zoom ? rows.slice(zoom.from, zoom.to + 1) : rows;
  return {
    ...settings,
    ...(zoom ? partly(settings, rows, zoom) : null),
    ...more,
    series: series.map((one, at) => ({ ...one, values: shown.map((row) => value(row[at + 1])) })),
    heading: "h3",
    whole: !unit,
    format: { ms: units.time, "%": (n) => `${units.si(n)}\u202f%` }[unit] ?? units.si,
    exact: (n) => `${n} ${unit}`.trim(),
    label: (at) => shown[at][0],
  };
}

/** The ticks and the phases of a part of the axis. */
function partly({ phases = [] }, rows, { from, to }) {
  const [first, whole] = [from / Math.max(1, rows.length - 1), (to - from) / Math.max(1, rows.length - 1)];
  const every = Math.max(1, Math.ceil((to - from) / TICKS_MAX));
  const ticks = rows.slice(from, to + 1).flatMap((row, at) => (at % every === 0 ? [[at / (to - from), row[0]]] : []));
  const at = (part) => Math.min(1, Math.max(0, (part - first) / whole));
  return { ticks, phases: phases.map((phase) => ({ ...phase, from: at(phase.from), to: at(phase.to) })).filter((phase) => phase.to > phase.from) };
}

/** A cell as a table is sorted by it: its text, or its number if it has one. */
export function sortable(text, isText) {
  const number = parseFloat(text.replaceAll("\u00a0", ""));
  return isText ? text : Number.isNaN(number) ? null : number;
}

/** Draws the charts of a page, and makes its tables sort. @param {Document} page */
export function begin(page) {
  units.speak(page.documentElement.lang);
  const charts = [...page.querySelectorAll(".drawn")].map((card) => {
    const rows = [...card.querySelectorAll("tbody tr")].map((row) => [...row.cells].map((cell) => cell.textContent));
    card.querySelector("details").open = false;
    return { card, rows, settings: JSON.parse(card.querySelector("script").textContent) };
  });
  // Charts over the same times have one cursor and one zoom.
  const isTimed = ({ settings, rows }) => settings.shape !== "columns" && rows.length > 2;
  const paint = (zoom) => {
    for (const one of charts) {
      const { length } = one.rows;
      const state = zoom?.length === length && isTimed(one) ? zoom : null;
      const index = (part) => (state?.from ?? 0) + Math.round(part * ((state?.to ?? length - 1) - (state?.from ?? 0)));
      const more = {
        group: `time-${length}`,
        zoom: (from, to) => paint({ from: Math.min(index(from), length - 3), to: Math.max(index(to), Math.min(index(from), length - 3) + 2), length }),
        back: () => zoom && paint(null),
      };
      draw(one.card.querySelector(".drawing"), chart(described(one.settings, one.rows, state, isTimed(one) ? more : {})), state ? whole(page, () => paint(null)) : null);
    }
  };
  paint(null);
  page.querySelectorAll("table.sorts").forEach(sorting);
}

/** The way back from a part of the axis. */
const whole = (page, back) =>
  h("button", { type: "button", class: "quiet", onclick: back }, isKorean(page) ? "← 전체 시간" : "← Whole time");

const isKorean = (page) => page.documentElement.lang === "ko";

function sorting(table) {
  const [body, heads] = [table.tBodies[0], [...table.querySelectorAll("th")]];
  heads.forEach((head, at) =>
    head.querySelector("button").addEventListener("click", () => {
      const isText = at === 0 || head.className === "t";
      // Names begin with the first, numbers with the largest.
      const [usual, other] = at === 0 ? ["ascending", "descending"] : ["descending", "ascending"];
      const order = head.getAttribute("aria-sort") === usual ? other : usual;
      for (const one of heads) one.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", order);
      body.append(...sorted([...body.rows], { get: (row) => sortable(row.cells[at].textContent, isText) }, order === "descending"));
    }),
  );
  if (body.rows.length < ROWS_MANY) return;
  const more = table.ownerDocument.createElement("button");
  more.className = "more";
  more.textContent = isKorean(table.ownerDocument) ? `${body.rows.length}개 모두 보기` : `Show all ${body.rows.length}`;
  table.classList.add("short");
  more.addEventListener("click", () => {
    table.classList.remove("short");
    more.remove();
  });
  table.after(more);
}
