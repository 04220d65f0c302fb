// The page: state in, elements out, once a second and after each press.

import { draw, h } from "./dom.js";
import { SILENCE, follow } from "./feed.js";
import { WORDS, choose, translator } from "./i18n.js";
import { copyable, mark, way } from "./parts.js";
import * as units from "./units.js";
import { caches } from "./views/caches.js";
import { alarming, certificates } from "./views/certificates.js";
import { configuration } from "./views/configuration.js";
import { detail } from "./views/detail.js";
import { errors } from "./views/errors.js";
import { host } from "./views/host.js";
import { lab } from "./views/lab.js";
import { overview } from "./views/overview.js";
import { processes } from "./views/processes.js";
import { sessions } from "./views/sessions.js";
import { upstreams } from "./views/upstreams.js";
import { websockets } from "./views/websockets.js";
import { zones } from "./views/zones.js";

const VIEWS = { overview, zones, upstreams, sessions, caches, certificates, websockets, host, processes, errors, configuration, lab };
const THEMES = ["auto", "light", "dark"];
const STATE_TONES = { healthy: "good", near: "warn", limited: "bad", failing: "bad", waiting: "idle" };

const remembered = (name) => {
  try {
    return localStorage.getItem(`weir.${name}`);
  } catch {
    return null;
  }
};
const remember = (name, value) => {
  try {
    localStorage.setItem(`weir.${name}`, value);
  } catch {
    // A browser that keeps nothing asks again next time.
  }
};

let feed = null;
let link = "lost";
let heard = 0;

const ui = {
  language: remembered("language") in WORDS ? remembered("language") : choose(navigator.languages ?? [navigator.language]),
  theme: THEMES.includes(remembered("theme")) ? remembered("theme") : "auto",
  sort: {},
  open: new Set(),
  samples: {},
  evidence: false,
  token: { wrong: false },
  changed: {},
  may: {},
  lab: { list: null, run: null, id: null, asked: 0, runAsked: 0 },
  find: {},
  machine: { asked: false, rows: [], step: 3 },
  processes: { asked: 0, seen: null, trail: new Map() },
  configuration: { asked: 0, seen: null },
  history: "minutes",
  /** A part of the axis of time that is looked at, with the points that it holds on to. */
  zoom: null,
  /** The state at which the page was held. */
  paused: null,
  marked: 0,
  day: { name: "", points: null, asked: 0 },
  purge: { what: "tag", text: "", zone: "", soft: false, sure: false, working: false, answer: null },
  set(change) {
    Object.assign(ui, change);
    redraw();
  },
  hold(isHeld) {
    ui.set({ paused: isHeld ? feed : null });
  },
};

/** The place in the address: a view, and perhaps one thing of it. */
function place() {
  const [name, ...of] = location.hash.slice(2).split("/").map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  return Object.hasOwn(VIEWS, name) ? { name, of: of.filter(Boolean) } : { name: "overview", of: [] };
}
const view = () => place().name;

let isDue = false;
function redraw() {
  if (isDue) return;
  isDue = true;
  // A hidden page is drawn when it is looked at.
  if (document.hidden) return;
  requestAnimationFrame(() => {
    isDue = false;
    paint();
  });
}

function paint() {
  const t = translator(ui.language);
  units.speak(ui.language);
  const root = document.documentElement;
  if (root.lang !== ui.language) root.lang = ui.language;
  if (ui.theme === "auto") delete root.dataset.theme;
  else root.dataset.theme = ui.theme;
  const doc = (ui.paused ?? feed)?.doc;
  document.title = doc ? `${units.rate(doc.recent.rps)} · ${t(`state.${doc.verdict.state}`)} · weir` : "weir";
  const isStale = Boolean(doc) && (link !== "open" || Date.now() - heard > SILENCE);
  draw(
    document.getElementById("app"),
    head(doc, isStale, t),
    doc ? strip(doc, t) : null,
    doc ? tabs(doc, t) : null,
    h("main", { id: "main", class: isStale && !ui.paused ? "stale" : undefined, tabindex: -1 }, body(doc, t)),
    doc ? foot(doc, t) : null,
  );
  document.querySelectorAll(".tabs").forEach(reveal);
}

function body(doc, t) {
  if (link === "refused") return token(t);
  if (!doc) return h("p", { class: "empty big" }, t("wait"));
  const { name, of } = place();
  const { before, past, docs } = ui.paused ?? feed;
  const seen = { doc, before, past, docs, t, ui, of };
  return (of.length ? detail(name, seen) : null) ?? VIEWS[name](seen);
}

function head(doc, isStale, t) {
  const silence = units.span((Date.now() - heard) / 1000);
  const word = ui.paused ? t("link.paused") : link === "refused" ? t("link.refused") : !isStale && link === "open" ? t("link.open") : doc ? t("link.stale", silence) : t("link.lost");
  const next = THEMES[(THEMES.indexOf(ui.theme) + 1) % THEMES.length];
  return h(
    "header",
    { class: "top" },
    h(
      "a",
      { class: "brand", href: "#/overview" },
      h("svg", { viewBox: "0 0 32 32", "aria-hidden": "true" }, h("rect", { width: 32, height: 32, rx: 7 }),
        h("path", { class: "wave", d: "M4 12c3-3 5-3 8 0s5 3 8 0 5-3 8 0" }), h("path", { class: "fall", d: "M10 20v7M16 18v9M22 20v7" })),
      "weir",
    ),
    h("span", { class: "link", role: "status" }, mark(!isStale && link === "open" && !ui.paused ? "good" : "warn", word)),
    h("span", { class: "gap" }),
    doc ? h("time", { class: "clock" }, units.clock(doc.at)) : null,
    ui.paused ? h("button", { type: "button", class: "quiet", onclick: () => ui.hold(false) }, h("span", { "aria-hidden": "true" }, "▶ "), t("pause.go")) : null,
    h("button", { type: "button", class: "quiet", lang: ui.language === "ko" ? "en" : "ko", onclick: () => { const language = ui.language === "ko" ? "en" : "ko"; remember("language", language); ui.set({ language }); } }, t("language")),
    h("button", { type: "button", class: "quiet theme", title: t(`theme.${ui.theme}`), "aria-label": t(`theme.${ui.theme}`), onclick: () => { remember("theme", next); ui.set({ theme: next }); } }, { auto: "◐", light: "○", dark: "●" }[ui.theme]),
  );
}

function strip(doc, t) {
  const { verdict } = doc;
  const tone = STATE_TONES[verdict.state] ?? "idle";
  return h(
    "section",
    { class: `verdict ${tone}`, "aria-label": t("verdict.label") },
    h(
      "button",
      { type: "button", "aria-expanded": ui.evidence ? "true" : "false", "aria-controls": "evidence", onclick: () => ui.set({ evidence: !ui.evidence }) },
      mark(tone, t(`state.${verdict.state}`)),
      h("span", { class: "words" }, t.of(verdict.words)),
      h("span", { class: "fold" }, t("verdict.evidence"), h("span", { "aria-hidden": "true" }, ui.evidence ? " ▾" : " ▸")),
    ),
    h(
      "div",
      { id: "evidence", hidden: !ui.evidence },
      h("ul", null, (verdict.evidence ?? []).map((line) => h("li", null, t.of(line)))),
      verdict.remedy ? h("p", { class: "remedy" }, h("b", null, t("verdict.try")), " ", copyable(t.of(verdict.remedy), t)) : null,
      h("p", null, h("a", { href: evidenceAt(verdict) }, t("verdict.see"), h("span", { "aria-hidden": "true" }, " →"))),
    ),
  );
}

/** Limits that a view other than the overview explains. */
const EXPLAINED = { ports: "upstreams", pool: "upstreams", upstream_conns: "upstreams", upstream_queue: "upstreams", cache_size: "caches", worker_cpu: "host", machine_cpu: "processes", cpu_quota: "host", cpu_credits: "host", memory: "host", tx_link: "host" };

/** The view that has the evidence of a verdict. */
export function evidenceAt({ state, group, limit }) {
  if (group) return way("upstreams", group);
  if (state === "failing") return way("errors");
  return way(EXPLAINED[limit?.kind] ?? "overview");
}

function tabs(doc, t) {
  // A tab for what the configuration or the viewer does not have only takes room.
  const shown = {
    lab: Boolean(ui.may.lab),
    sessions: Object.keys(doc.snapshot.stream?.server_zones ?? {}).length > 0,
    certificates: (doc.snapshot.weir.certificates ?? []).length > 0,
  };
  const counts = {
    errors: (doc.snapshot.weir.errors ?? []).filter((error) => error.kind === "failed").length,
    certificates: alarming(doc.snapshot.weir.certificates, doc.at),
    configuration: doc.snapshot.weir.is_last_load_refused ? 1 : 0,
  };
  return h(
    "nav",
    { class: "tabs", "aria-label": t("nav.label"), onscroll: (event) => shade(event.currentTarget) },
    Object.keys(VIEWS).filter((name) => shown[name] !== false || view() === name).map((name) =>
      h("a", { key: name, href: `#/${name}`, "aria-current": view() === name ? "page" : undefined }, t(`nav.${name}`), counts[name] ? h("span", { class: "badge" }, String(counts[name])) : null),
    ),
  );
}

/** On a narrow screen the row of views scrolls: the view that is shown is in sight, once it is chosen. */
let revealed = "";
function reveal(row) {
  const chosen = row.querySelector("[aria-current]");
  if (chosen && revealed !== chosen.hash) {
    revealed = chosen.hash;
    row.scrollLeft = chosen.offsetLeft - (row.clientWidth - chosen.offsetWidth) / 2;
  }
  shade(row);
}

/** Shows at which ends the row of views goes on. */
function shade(row) {
  row.dataset.more = `${row.scrollLeft > 4 ? "left" : ""} ${row.scrollLeft + row.clientWidth < row.scrollWidth - 4 ? "right" : ""}`;
}
globalThis.addEventListener("resize", () => document.querySelectorAll(".tabs").forEach(shade));

function token(t) {
  return h(
    "form",
    {
      class: "card token",
      onsubmit: async (event) => {
        event.preventDefault();
        const answer = await fetch("token", { method: "POST", body: event.target.elements.token.value }).catch(() => null);
        if (answer?.status === 204) globalThis.location.reload();
        else ui.set({ token: { wrong: true } });
      },
    },
    h("h2", null, t("token.title")),
    h("p", { class: "hint" }, t("token.text")),
    h("label", null, t("token.label"), h("input", { type: "password", name: "token", required: true, autocomplete: "current-password" })),
    h("button", { type: "submit", class: "primary" }, t("token.send")),
    h("p", { role: "alert", class: "answer" }, ui.token.wrong ? mark("bad", t("token.wrong")) : ""),
  );
}

function foot(doc, t) {
  const { nginx, weir } = doc.snapshot;
  return h(
    "footer",
    null,
    h("span", null, t("foot.weir", nginx.build || nginx.version, nginx.generation, nginx.pid, units.span(weir.uptime_ms / 1000))),
    weir.names_merged > 0 ? h("span", null, t("foot.merged", units.count(weir.names_merged))) : null,
  );
}

globalThis.addEventListener("hashchange", () => {
  ui.zoom = null;
  redraw();
  globalThis.scrollTo(0, 0);
});
globalThis.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest?.("input, select, textarea");
  if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  const field = document.querySelector(".find");
  if (field) event.preventDefault();
  field?.focus();
});
document.addEventListener("visibilitychange", () => {
  isDue = false;
  redraw();
});
setInterval(() => {
  if (Date.now() - heard > SILENCE) redraw();
}, 1000);
follow("feed", (event) => {
  link = event.link;
  if (event.may) ui.may = event.may;
  if (event.state) {
    feed = event.state;
    heard = Date.now();
  }
  redraw();
});
paint();
