// Charts: numbers become paths, and paths with axes, a legend and a pointer become a figure. The dashboard and the
// report of `weir load` draw with this file; chart.css is its style.

import { h } from "./dom.js";
import { pointing } from "./pointer.js";

/** Width and height of a drawing. It stretches with the page. */
const WIDTH = 1000;
const HEIGHT = 200;
/** Intervals that an axis has at most. */
const STEPS_MAX = 4;
/** The part of its place that a column fills. */
const COLUMN = 0.92;
/** Room for rounding errors of logarithms and divisions. */
const TINY = 1e-9;

/** The largest of the numbers; 0 if none is larger. @param {(number | null | undefined)[]} values */
const most = (values) => values.reduce((most, n) => (Number.isFinite(n) && n > most ? n : most), 0);

/** A round number not below: 1, 2, 5 times a power of ten. @param {number} n */
export function ceiling(n) {
  if (!(n > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(n));
  for (const step of [1, 2, 5, 10]) if (n <= step * power * 1.0000001) return step * power;
  return 10 * power;
}

/**
 * The axis of values: its ticks, and the height of a value as a part of the whole, 0 to 1.
 * @param {(number | null | undefined)[]} values
 * @param {{log?: boolean, whole?: boolean, binary?: boolean}} kind `whole`: values are counts, so no tick lies between
 *   two of them; `binary`: they are bytes, so ticks are round in KiB and MiB
 */
export function scale(values, { log = false, whole = false, binary = false } = {}) {
  const high = most(values);
  if (log && high > 0) {
    const low = values.reduce((least, n) => (n > 0 && n < least ? n : least), high);
    const from = Math.floor(Math.log10(low) + TINY);
    const to = Math.max(from + 1, Math.ceil(Math.log10(high) - TINY));
    const ticks = Array.from({ length: to - from + 1 }, (_, at) => 10 ** (from + at));
    return { ticks, part: (n) => (n > 0 ? (Math.log10(n) - from) / (to - from) : 0) };
  }
  const unit = binary && high > 0 ? 1024 ** Math.max(0, Math.floor(Math.log(high) / Math.log(1024) + TINY)) : 1;
  const step = Math.max(high > 0 ? ceiling(high / STEPS_MAX / unit) * unit : 1, whole || binary ? 1 : 0);
  const steps = Math.max(1, Math.ceil(high / step - TINY));
  return { ticks: Array.from({ length: steps + 1 }, (_, at) => at * step), part: (n) => n / (steps * step) };
}

/** @typedef {{width: number, height: number, slots: number, part: (n: number) => number}} Size */

/** The distance of a value from the top. */
const drop = (value, { height, part }) => (height * (1 - Math.min(Math.max(part(value), 0), 1))).toFixed(1);

/**
 * The path of a line; a number that is missing leaves a gap. Places are counted from the right end.
 * @param {(number | null | undefined)[]} values
 * @param {Size} size
 */
export function line(values, size) {
  const across = size.width / Math.max(1, size.slots - 1);
  const left = size.width - (values.length - 1) * across;
  let path = "";
  let pen = false;
  values.forEach((value, at) => {
    if (Number.isFinite(value)) path += `${pen ? "L" : "M"}${(left + at * across).toFixed(1)} ${drop(value, size)}`;
    pen = Number.isFinite(value);
  });
  return path;
}

const pieces = (path) => path.split("M").filter(Boolean);

/** A dot for each number between two gaps, because a line of one point cannot be seen. */
export const dots = (values, size) =>
  pieces(line(values, size))
    .filter((piece) => !piece.includes("L"))
    .map((piece) => `M${piece}h0`)
    .join("");

/** The line, filled down to the ground. */
export function area(values, size) {
  const across = size.width / Math.max(1, size.slots - 1);
  return pieces(line(values, size))
    .map((piece) => {
      const places = piece.split("L");
      const [first, last] = [places[0].split(" ")[0], places[places.length - 1].split(" ")[0]];
      const right = places.length === 1 ? (Number(first) + across).toFixed(1) : last;
      return `M${first} ${size.height}L${piece}L${right} ${size.height}Z`;
    })
    .join("");
}

/** An area for each list of numbers, on top of the areas before it. */
export function stacked(lists, size) {
  let below = [];
  return lists.map((values) => {
    const ground = values.map((_, at) => below[at] ?? 0);
    below = ground.map((n, at) => n + (Number.isFinite(values[at]) ? values[at] : 0));
    const [up, down] = [below, ground].map((edge) => line(edge, size).slice(1));
    return up ? `M${up}L${down.split("L").reverse().join("L")}Z` : "";
  });
}

/** Columns side by side; a place without a positive number stays empty. */
export function columns(values, size) {
  const across = size.width / Math.max(1, values.length);
  const wide = (across * COLUMN).toFixed(1);
  return values
    .map((value, at) => (value > 0 ? `M${(at * across).toFixed(1)} ${size.height}V${drop(value, size)}h${wide}V${size.height}Z` : ""))
    .join("");
}

/** One point for each `by` of them: their largest, so that no peak is lost. */
export function thin(values, by) {
  if (by <= 1) return values;
  const out = [];
  for (let end = values.length; end > 0; end -= by) {
    const group = values.slice(Math.max(0, end - by), end).filter((n) => Number.isFinite(n));
    out.unshift(group.length ? Math.max(...group) : null);
  }
  return out;
}

/** A line without axes, beside a number that says where it ends; it fills its width from the first second on. */
export function spark(values, tone = "water") {
  const max = ceiling(most(values));
  const thinned = thin(values, Math.ceil(values.length / 120));
  const size = { width: 120, height: 28, slots: Math.max(2, thinned.length), part: (n) => n / max };
  return h(
    "svg",
    { class: `spark ${tone}`, viewBox: "0 -2 120 32", preserveAspectRatio: "none", "aria-hidden": "true" },
    h("path", { class: "fill", d: area(thinned, size) }),
    h("path", { class: "line", d: line(thinned, size) }),
  );
}

/**
 * A chart with axes for several series; each has a dash of its own besides its colour.
 * @param {object} what
 * @param {string} what.title
 * @param {string} [what.note] the text beside the title
 * @param {string} [what.heading] the element of the title
 * @param {{name: string, tone: string, values: (number | null | undefined)[], now?: number | null, dash?: number,
 *   fill?: boolean}[]} what.series `now`: the newest value, where it is not the last of the values
 * @param {"lines" | "log" | "stack" | "columns"} [what.shape] lines over an axis from zero or over a logarithmic one,
 *   stacked areas, or transparent columns
 * @param {(n: number) => string} what.format a number on the axis
 * @param {boolean} [what.whole] the values are counts
 * @param {boolean} [what.binary] the values are bytes
 * @param {[number, string][]} what.ticks positions, 0 to 1, and texts under the chart
 * @param {{from: number, to: number, text: string, all: string}[]} [what.phases] parts of the axis of time; `all` is
 *   the text without regard to the room
 * @param {number} [what.slots] places from the left end to the right one; by default as many as there are values
 * @param {number} [what.by] how many values become one point
 * @param {boolean} [what.latest] the newest value matters most: the legend and the chart's name say it
 * @param {(at: number) => string} [what.label] the name of a place; with it, a pointer and the keyboard read values
 * @param {(n: number) => string} [what.exact] a value that the pointer reads
 * @param {string} [what.group] charts of one group have one cursor
 * @param {(from: number, to: number) => void} [what.zoom] shows a part of the axis, 0 to 1
 * @param {() => void} [what.back] shows the whole axis again
 */
export function chart(what) {
  const { title, note, heading = "span", shape = "lines", format, ticks, phases = [], by = 1, latest, label } = what;
  const series = what.series.map((one, at) => ({ dash: at, ...one, values: thin(one.values, by) }));
  const lists = series.map((one) => one.values);
  const count = most(lists.map((values) => values.length));
  const slots = Math.max(count, Math.ceil((what.slots ?? 0) / by));
  const tops = Array.from({ length: count }, (_, at) => lists.reduce((sum, values) => sum + (values[at] || 0), 0));
  const axis = scale(shape === "stack" ? tops : lists.flat(), { log: shape === "log", whole: what.whole, binary: what.binary });
  const size = { width: WIDTH, height: HEIGHT, slots, part: axis.part };
  const place = shape === "columns" ? (at) => (at + 0.5) / count : (at) => 1 - (count - 1 - at) / Math.max(1, slots - 1);
  const read = (at) => ({
    place: place(at),
    // The first point may stand for fewer values than the others.
    title: label(Math.max(...what.series.map((one) => one.values.length)) - 1 - (count - 1 - at) * by),
    rows: series.flatMap((one) => {
      const value = one.values[one.values.length - count + at];
      return Number.isFinite(value) ? [[one.tone, one.name, (what.exact ?? format)(value)]] : [];
    }),
  });
  const find = (part) => (shape === "columns" ? Math.floor(part * count) : Math.round((part - 1) * (slots - 1)) + count - 1);
  return h(
    "figure",
    { class: `chart chart-${shape}` },
    h("figcaption", null, h(heading, { class: "chart-title" }, title), note ? h("span", { class: "chart-note" }, note) : null, legend(series, shape, latest ? (what.exact ?? format) : null)),
    h(
      "div",
      { class: "plot" },
      h("div", { class: "scale" }, axis.ticks.map((n) => h("span", { css: { bottom: percent(axis.part(n)) } }, format(n)))),
      h(
        "div",
        { class: "area", role: "img", "aria-label": `${note ? `${title}, ${note}` : title}: ${said(series, what.exact ?? format, latest)}`, "data-group": what.group, ...(label && count ? pointing({ count, find, read, zoom: what.zoom, back: what.back }) : null) },
        h(
          "svg",
          { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" },
          axis.ticks.map((n) => h("line", { class: "grid", x1: 0, x2: WIDTH, y1: drop(n, size), y2: drop(n, size) })),
          phases.filter(({ from }) => from > 0).map(({ from }) => h("line", { class: "begins", x1: from * WIDTH, x2: from * WIDTH, y1: 0, y2: HEIGHT })),
          drawn(series, shape, size),
        ),
        label ? [h("div", { class: "brush" }), h("div", { class: "cursor" }), h("div", { class: "tip", own: true })] : null,
      ),
      h("div", { class: "ticks" }, ticks.map(([at, text]) => h("span", { class: at < 0.03 ? "first" : at > 0.97 ? "last" : "", css: { left: percent(at) } }, text))),
      phases.length
        ? h("div", { class: "phases" }, phases.map(({ from, to, text, all }) => h("span", { title: all, css: { left: percent(from), width: percent(Math.max(0, to - from)) } }, text)))
        : null,
    ),
  );
}

const percent = (part) => `${(part * 100).toFixed(2)}%`;

const last = (one) => one.values[one.values.length - 1];

/** The newest value of a series: also where a place stands for the highest of several. */
const newest = (one) => (one.now === undefined ? last(one) : one.now);

/** The chart in words: the newest value of each series, or the lowest and the highest. */
function said(series, format, latest) {
  const words = series.map((one) => {
    const values = one.values.filter(Number.isFinite);
    if (latest) return `${one.name} ${format(newest(one))}`;
    return values.length ? `${one.name} ${format(values.reduce((a, b) => Math.min(a, b)))} … ${format(most(values))}` : "";
  });
  return words.filter(Boolean).join(", ");
}

function legend(series, shape, format) {
  const mark = (one) => (shape === "stack" || shape === "columns" ? { class: "fill", d: "M6 -1H16V9H6Z" } : { class: `line d${one.dash}`, d: "M0 4L22 4" });
  const key = (one) =>
    h(
      "span",
      { class: `key ${one.tone}` },
      h("svg", { viewBox: "0 -1 22 10", class: "swatch", "aria-hidden": "true" }, h("path", mark(one))),
      one.name,
      format ? h("b", null, format(newest(one))) : null,
    );
  return h("span", { class: "legend" }, series.map(key));
}

function drawn(series, shape, size) {
  const layers = shape === "stack" ? stacked(series.map((one) => one.values), size) : series.map((one) => (shape === "columns" ? columns(one.values, size) : ""));
  return series.map((one, at) =>
    h(
      "g",
      { class: one.tone },
      layers[at] ? h("path", { class: "fill", d: layers[at] }) : null,
      shape === "stack" || shape === "columns"
        ? null
        : [one.fill ? h("path", { class: "fill", d: area(one.values, size) }) : null, h("path", { class: `line d${one.dash}`, d: line(one.values, size) }), h("path", { class: "dot", d: dots(one.values, size) })],
    ),
  );
}
