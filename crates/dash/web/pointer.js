// Reading a chart: a pointer at its place, arrow keys from place to place, and one cursor through all charts of a
// group. Dragging, or the keys + and −, shows a part of the axis.

import { draw, h } from "./dom.js";

/** A drag shorter than this part of the axis is a press. */
const DRAG_MIN = 0.015;
/** The part of the axis that the key + keeps. */
const CLOSER = 0.5;

/** @typedef {{count: number, find: (part: number) => number, read: (at: number) => {place: number, title: string,
 *   rows: [string, string, string][]}, zoom?: (from: number, to: number) => void, back?: () => void}} Reading `count`
 *   places; `find` the place at a part of the width; `read` the words of a place */

/** All areas that the cursor of one goes through. */
const grouped = (area) => (area.dataset.group ? [...area.ownerDocument.querySelectorAll(`.area[data-group="${area.dataset.group}"]`)] : [area]);

/**
 * Moves the cursor. The words stay as they are while new values come, so that a screen reader does not read them each
 * second; only the words of the chart that is pointed at are announced.
 */
function show(area, part) {
  for (const one of grouped(area)) {
    const reading = one.weirReading;
    if (!reading) continue;
    const at = Math.min(reading.count - 1, Math.max(0, reading.find(part)));
    one.weirPlace = at;
    const { place, title, rows } = reading.read(at);
    const [cursor, tip] = [".cursor", ".tip"].map((name) => one.querySelector(name));
    if (one === area) tip.setAttribute("role", "status");
    else tip.removeAttribute("role");
    draw(tip, title, rows.map(([tone, name, text]) => h("div", { class: tone }, h("i"), `${name}  ${text}`)));
    one.dataset.reads = "";
    const [x, room] = [place * one.clientWidth, 12];
    cursor.style.left = `${x}px`;
    const right = x + room + tip.offsetWidth <= one.clientWidth;
    tip.style.left = `${right ? x + room : Math.max(0, x - room - tip.offsetWidth)}px`;
  }
}

function hide(area) {
  for (const one of grouped(area)) {
    delete one.weirPlace;
    delete one.dataset.reads;
    delete one.dataset.drags;
    delete one.weirFrom;
  }
}

const partOf = (event) => {
  const box = event.currentTarget.getBoundingClientRect();
  return Math.min(1, Math.max(0, (event.clientX - box.left) / Math.max(1, box.width)));
};

function brush(area, to) {
  const [left, right] = [Math.min(area.weirFrom, to), Math.max(area.weirFrom, to)];
  for (const one of grouped(area)) {
    one.dataset.drags = "";
    const { style } = one.querySelector(".brush");
    [style.left, style.width] = [`${left * 100}%`, `${(right - left) * 100}%`];
  }
}

/** The part of the axis around a place that is `share` of it. @returns {[number, number]} */
export function around(place, share) {
  const from = Math.min(1 - share, Math.max(0, place - share / 2));
  return [from, from + share];
}

function pressed(event) {
  const area = event.currentTarget;
  const { count, read, zoom, back } = area.weirReading;
  const now = area.weirPlace ?? -1;
  const to = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: count - 1 }[event.key];
  if (to !== undefined) {
    event.preventDefault();
    show(area, read(Math.min(count - 1, Math.max(0, to))).place);
  } else if ((event.key === "+" || event.key === "=") && zoom) {
    event.preventDefault();
    zoom(...around(now < 0 ? 0.75 : read(now).place, CLOSER));
  } else if ((event.key === "-" || event.key === "0") && back) {
    event.preventDefault();
    back();
  } else if (event.key === "Escape") {
    if (now < 0 && back) back();
    hide(area);
  }
}

/** The listeners with which an area of a chart reads its values. @param {Reading} reading */
export function pointing(reading) {
  return {
    tabindex: 0,
    weirReading: reading,
    onpointerdown: (event) => {
      const area = event.currentTarget;
      if (event.button === 0 && area.weirReading.zoom) {
        area.weirFrom = partOf(event);
        area.setPointerCapture?.(event.pointerId);
      }
      show(area, partOf(event));
    },
    onpointermove: (event) => {
      const area = event.currentTarget;
      show(area, partOf(event));
      if (area.weirFrom !== undefined && Math.abs(partOf(event) - area.weirFrom) >= DRAG_MIN) brush(area, partOf(event));
    },
    onpointerup: (event) => {
      const area = event.currentTarget;
      const [from, to] = [area.weirFrom, partOf(event)];
      if (from === undefined) return;
      const isDrag = Math.abs(to - from) >= DRAG_MIN;
      const { zoom } = area.weirReading;
      hide(area);
      if (isDrag) zoom?.(Math.min(from, to), Math.max(from, to));
      else show(area, to);
    },
    onpointercancel: (event) => hide(event.currentTarget),
    ondblclick: (event) => event.currentTarget.weirReading.back?.(),
    onpointerleave: (event) => {
      if (event.currentTarget.weirFrom === undefined) hide(event.currentTarget);
    },
    onblur: (event) => hide(event.currentTarget),
    onkeydown: pressed,
  };
}
