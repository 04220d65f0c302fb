// Small charts as SVG: paths from numbers, nothing else.

import { h } from "./dom.js";

/** A round number not below: 1, 2, 5 times a power of ten. @param {number} n */
export function ceiling(n) {
  if (!(n > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(n));
  for (const step of [1, 2, 2.5, 5, 10]) if (n <= step * power * 1.0000001) return step * power;
  return 10 * power;
}

/**
 * The path of a line; a number that is not there leaves a gap. Places are counted from the right end.
 * @param {(number | null | undefined)[]} values
 * @param {{width: number, height: number, max: number, slots: number}} size
 */
export function line(values, { width, height, max, slots }) {
  const across = width / Math.max(1, slots - 1);
  const left = width - (values.length - 1) * across;
  let path = "";
  let pen = false;
  values.forEach((value, at) => {
    if (value === null || value === undefined || !Number.isFinite(value)) {
      pen = false;
      return;
    }
    const y = height - (Math.min(Math.max(value, 0), max) / max) * height;
    path += `${pen ? "L" : "M"}${(left + at * across).toFixed(1)} ${y.toFixed(1)}`;
    pen = true;
  });
  return path;
}

/** The same, filled down to the ground. */
export function area(values, size) {
  const path = line(values, size);
  if (!path) return "";
  const across = size.width / Math.max(1, size.slots - 1);
  return path
    .split("M")
    .filter(Boolean)
    .map((piece) => {
      const places = piece.split("L");
      const [first, last] = [places[0].split(" ")[0], places[places.length - 1].split(" ")[0]];
      const right = places.length === 1 ? (Number(first) + across).toFixed(1) : last;
      return `M${first} ${size.height}L${piece}L${right} ${size.height}Z`;
    })
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

/** A line without axes, beside a number that says where it ends. */
export function spark(values, tone = "water") {
  const size = { width: 120, height: 28, max: ceiling(Math.max(0, ...values.filter(Number.isFinite))), slots: 120 };
  const thinned = thin(values, 5).slice(-120);
  return h(
    "svg",
    { class: `spark ${tone}`, viewBox: "0 -2 120 32", preserveAspectRatio: "none", "aria-hidden": "true" },
    h("path", { class: "fill", d: area(thinned, size) }),
    h("path", { class: "line", d: line(thinned, size) }),
  );
}

/**
 * A chart with a scale, for several series; each has a dash of its own besides its colour.
 * @param {{title: string, series: {name: string, tone: string, values: number[], fill?: boolean}[],
 *   format: (n: number) => string, times: [string, string], window: number}} what
 */
export function chart({ title, series, format, times, window }) {
  const seen = series.flatMap((s) => s.values.filter(Number.isFinite));
  const max = ceiling(Math.max(0, ...seen));
  const size = { width: 600, height: 150, max, slots: Math.ceil(window / 2) };
  const last = (s) => s.values[s.values.length - 1];
  const words = series.map((s) => `${s.name} ${format(last(s))}`).join(", ");
  return h(
    "figure",
    { class: "chart" },
    h(
      "figcaption",
      null,
      h("span", { class: "chart-title" }, title),
      h(
        "span",
        { class: "legend" },
        series.map((s, at) =>
          h(
            "span",
            { class: `key ${s.tone}` },
            h("svg", { viewBox: "0 0 22 8", class: "swatch", "aria-hidden": "true" }, h("path", { class: `line d${at}`, d: "M0 4L22 4" })),
            s.name,
            h("b", null, format(last(s))),
          ),
        ),
      ),
    ),
    h(
      "div",
      { class: "plot" },
      h("span", { class: "scale top" }, format(max)),
      h("span", { class: "scale mid" }, format(max / 2)),
      h(
        "svg",
        { viewBox: `0 0 ${size.width} ${size.height}`, preserveAspectRatio: "none", role: "img", "aria-label": `${title}: ${words}` },
        h("line", { class: "grid", x1: 0, x2: size.width, y1: 0.5, y2: 0.5 }),
        h("line", { class: "grid", x1: 0, x2: size.width, y1: size.height / 2, y2: size.height / 2 }),
        h("line", { class: "grid ground", x1: 0, x2: size.width, y1: size.height - 0.5, y2: size.height - 0.5 }),
        series.map((s, at) => {
          const values = thin(s.values, 2);
          return h(
            "g",
            { class: s.tone },
            s.fill ? h("path", { class: "fill", d: area(values, size) }) : null,
            h("path", { class: `line d${at}`, d: line(values, size) }),
          );
        }),
      ),
    ),
    h("div", { class: "times" }, h("span", null, times[0]), h("span", null, times[1])),
  );
}
