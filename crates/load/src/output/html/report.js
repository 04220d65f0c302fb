// The script of the report's page. The tables of the page have all figures; the script draws charts from them.

import { chart } from "../../../../dash/web/chart.js";
import { draw } from "../../../../dash/web/dom.js";
import { sorted } from "../../../../dash/web/table.js";
import * as units from "../../../../dash/web/units.js";

/** From so many rows on, a table shows only its first twelve, and a button shows the others. */
const ROWS_MANY = 16;

/**
 * A chart as `chart` takes it.
 * @param {object} settings from the page
 * @param {string[][]} rows of its table: the place, and a value for each series, or nothing
 */
export function described({ series, unit, ...settings }, rows) {
  const value = (text) => (text.trim() ? Number(text) : null);
  return {
    ...settings,
    series: series.map((one, at) => ({ ...one, values: rows.map((row) => value(row[at + 1])) })),
    heading: "h3",
    whole: !unit,
    format: { ms: units.time, "%": (n) => `${units.si(n)}\u202f%` }[unit] ?? units.si,
    exact: (n) => `${n} ${unit}`.trim(),
    label: (at) => rows[at][0],
  };
}

/** A cell as a table is sorted by it: its text, or its number if it has one. */
export function sortable(text, isText) {
  const number = parseFloat(text.replaceAll("\u00a0", ""));
  return isText ? text : Number.isNaN(number) ? null : number;
}

/** Draws the charts of a page, and makes its tables sort. @param {Document} page */
export function begin(page) {
  for (const card of page.querySelectorAll(".drawn")) {
    const rows = [...card.querySelectorAll("tbody tr")].map((row) => [...row.cells].map((cell) => cell.textContent));
    const settings = JSON.parse(card.querySelector("script").textContent);
    draw(card.querySelector(".drawing"), chart(described(settings, rows)));
    card.querySelector("details").open = false;
  }
  page.querySelectorAll("table.sorts").forEach(sorting);
}

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
  more.textContent = `Show all ${body.rows.length}`;
  table.classList.add("short");
  more.addEventListener("click", () => {
    table.classList.remove("short");
    more.remove();
  });
  table.after(more);
}
