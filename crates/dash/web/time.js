// The axis of time: which stretch is shown, its places, its ticks. Pure.

/** Lengths of time that can be shown, in seconds. */
export const RANGES = { minutes: 600, hour: 3600, day: 86_400, week: 604_800, month: 2_592_000 };

/** Places of an axis, at most. */
const PLACES_MAX = 300;
/** The shortest axis, in milliseconds. */
const AXIS_MIN = 4000;

/**
 * The stretch of a range: it ends now, and begins no earlier than the first value.
 * @param {number} now @param {number} seconds @param {number} [first] the time of the first value
 */
export function stretch(now, seconds, first) {
  const from = Math.max(now - seconds * 1000, first ?? 0);
  return { from: Math.min(from, now - AXIS_MIN), to: now };
}

/**
 * The points of a stretch, at even distances: each place has the highest value of each figure, so that no peak is
 * lost. A single place without a point, between two that have one, gets the later one: seconds are not exact.
 * @param {any[]} points in order of time @param {{from: number, to: number}} of
 * @param {number} [apart] milliseconds between two points
 */
export function placed(points, { from, to }, apart = 1000) {
  const width = Math.max(apart, (to - from) / PLACES_MAX);
  const count = Math.max(2, Math.ceil((to - from) / width));
  const out = Array(count).fill(null);
  for (const point of points) {
    if (!point || point.at > to) continue;
    const at = count - 1 - Math.floor((to - point.at) / width);
    if (at < 0) continue;
    const most = (out[at] ??= {});
    for (const name in point) if (Number.isFinite(point[name]) && !(most[name] >= point[name])) most[name] = point[name];
  }
  for (let at = 1; at < count - 1; at++) if (!out[at] && out[at - 1] && out[at + 1]) out[at] = out[at + 1];
  return { points: out, from: to - (count - 1) * width, to, width };
}

/** Distances between ticks, in seconds. */
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 345_600, 604_800];
const TICKS_MAX = 6;

const two = (n) => String(n).padStart(2, "0");

/** A moment, as exact as its distance to the next one asks for. */
export function moment(at, stepMs) {
  if (!Number.isFinite(at)) return "";
  const date = new Date(at);
  const [day, time] = [`${two(date.getMonth() + 1)}-${two(date.getDate())}`, `${two(date.getHours())}:${two(date.getMinutes())}`];
  if (stepMs >= 86_400_000) return day;
  if (stepMs >= 600_000) return `${day} ${time}`;
  return stepMs >= 60_000 ? time : `${time}:${two(date.getSeconds())}`;
}

/** Round moments of an axis: their places, 0 to 1, and their words. @returns {[number, string][]} */
export function ticks({ from, to }) {
  const step = (STEPS.find((step) => (to - from) / 1000 / step <= TICKS_MAX) ?? STEPS[STEPS.length - 1]) * 1000;
  // Round by the clock on the wall.
  const zone = new Date(to).getTimezoneOffset() * 60_000;
  const out = [];
  for (let at = Math.ceil((from - zone) / step) * step + zone; at <= to; at += step) {
    out.push([(at - from) / (to - from), step >= 86_400_000 ? moment(at, step) : moment(at, Math.min(step, 60_000))]);
  }
  return out;
}
