// Numbers as people read them; "–" is what is not known. Spans and rates have the units of the language of `speak`.

const UNITS = {
  en: { d: "\u202fd", h: "\u202fh", m: "\u202fm", s: "\u202fs", each: "/s" },
  ko: { d: "일", h: "시간", m: "분", s: "초", each: "/초" },
};

let unit = UNITS.en;

/** Chooses the language of units. @param {string} language */
export function speak(language) {
  unit = UNITS[language] ?? UNITS.en;
}

export const NOTHING = "–";

/** Whether there is a number. @param {unknown} n */
export const known = (n) => typeof n === "number" && Number.isFinite(n);

const trim = (n, digits) => n.toFixed(digits);

/** Three significant figures at most: 0.42, 7.3, 128. @param {number} n */
function short(n) {
  const size = Math.abs(n);
  // By way of a number: no zeros at the end.
  return String(Number(trim(n, size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2)));
}

function scaled(n, base, names, gap) {
  let step = 0;
  while (Math.abs(n) >= base * 0.9995 && step < names.length - 1) {
    n /= base;
    step += 1;
  }
  return short(n) + (names[step] ? gap + names[step] : "");
}

/** A count in full, in groups of three: 28,232. @param {number} [n] */
export function count(n) {
  if (!known(n)) return NOTHING;
  return String(Math.round(n)).replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

/** A count in short: 1.24k. @param {number} [n] */
export const si = (n) => (known(n) ? scaled(n, 1000, ["", "k", "M", "G", "T"], "") : NOTHING);

/** A number each second: 412/s. @param {number} [n] */
export const rate = (n) => (known(n) ? si(n) + unit.each : NOTHING);

/** Bytes: 1.5 MiB. @param {number} [n] */
export const bytes = (n) => (known(n) ? scaled(n, 1024, ["B", "KiB", "MiB", "GiB", "TiB"], "\u202f") : NOTHING);

/** Bytes each second. @param {number} [n] */
export const byteRate = (n) => (known(n) ? bytes(n) + unit.each : NOTHING);

/** Milliseconds in the unit that suits: 430 µs, 12.4 ms, 1.2 s or 1.2초. @param {number} [ms] */
export function time(ms) {
  if (!known(ms)) return NOTHING;
  if (ms === 0) return "0\u202fms";
  if (ms < 0.9995) return short(Math.round(ms * 1000)) + "\u202fµs";
  if (ms < 999.5) return short(ms) + "\u202fms";
  if (ms < 60_000) return short(ms / 1000) + unit.s;
  return span(ms / 1000);
}

/** Seconds as days, hours, minutes: 3 d 4 h or 3일 4시간. @param {number} [seconds] */
export function span(seconds) {
  if (!known(seconds)) return NOTHING;
  seconds = Math.max(0, Math.round(seconds));
  const parts = [
    [Math.floor(seconds / 86_400), unit.d],
    [Math.floor(seconds / 3600) % 24, unit.h],
    [Math.floor(seconds / 60) % 60, unit.m],
    [seconds % 60, unit.s],
  ];
  const first = parts.findIndex(([n]) => n > 0);
  if (first < 0) return `0${unit.s}`;
  return parts
    .slice(first, first + 2)
    .filter(([n]) => n > 0)
    .map(([n, name]) => n + name)
    .join(" ");
}

/** A share of one as percent: 0.4 %, 93 %. @param {number} [share] */
export function percent(share) {
  if (!known(share)) return NOTHING;
  const n = share * 100;
  if (n > 0 && n < 0.05) return "<0.1\u202f%";
  if (n > 99.9 && n < 100) return "99.9\u202f%";
  return trim(n, n < 9.95 && n % 1 !== 0 ? 1 : 0) + "\u202f%";
}

/** A share of one with two digits: 0.93. @param {number} [share] */
export const share = (share) => (known(share) ? (share > 0 && share < 0.005 ? "<0.01" : trim(share, 2)) : NOTHING);

/** A time of day with seconds. @param {number} [unixMs] */
export function clock(unixMs) {
  if (!known(unixMs)) return NOTHING;
  const date = new Date(unixMs);
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map((n) => String(n).padStart(2, "0")).join(":");
}
