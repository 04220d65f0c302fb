// What went wrong: classes in four groups, in each class the newest samples, and with each sample its lines of the logs.

import { h } from "../dom.js";
import { card, empty } from "../parts.js";
import * as units from "../units.js";
import { entries, notes } from "./logs.js";

/** To whom a class belongs, in the order in which they are shown. */
const KINDS = ["failed", "refused", "recovered", "client"];

export function errors({ doc, t, ui }) {
  const classes = (doc.snapshot.weir.errors ?? []).map((error, place) => ({ ...error, place }));
  classes.filter((error) => ui.open.has(error.class)).forEach((error) => renew(error, error.place, ui));
  if (classes.length === 0) return card(t("nav.errors"), null, empty(t("err.none")));
  const groups = KINDS.map((kind) => [kind, classes.filter((error) => error.kind === kind)]).filter(([, of]) => of.length > 0);
  return [
    h("p", { class: "hint" }, t("err.secret")),
    ...groups.map(([kind, of]) => card(t(`err.${kind}`), t(`err.${kind}.hint`), h("ul", { class: `errors ${kind}` }, of.map((error) => folded(error, t, ui))))),
  ];
}

/** A class, which opens to its samples. */
function folded(error, t, ui) {
  const isOpen = ui.open.has(error.class);
  const id = `samples-${error.class.replace(/[^a-z0-9]+/gi, "-")}`;
  return h(
    "li",
    { key: error.class },
    h(
      "button",
      {
        type: "button",
        class: "class",
        "aria-expanded": isOpen ? "true" : "false",
        "aria-controls": id,
        onclick: () => {
          const open = new Set(ui.open);
          if (!open.delete(error.class)) open.add(error.class);
          ui.set({ open });
        },
      },
      h("span", { class: "fold", "aria-hidden": "true" }, isOpen ? "▾" : "▸"),
      h("span", { class: "name" }, error.class),
      h("span", { class: "times" }, units.count(error.count)),
      h("span", { class: "last" }, `${t("err.last")} ${at(error.last)}`),
    ),
    h("div", { id, class: "samples", hidden: !isOpen }, isOpen ? samples(ui.samples[error.class], t) : null),
  );
}

const at = (text) => units.clock(Date.parse(text));

/** Samples older than this are asked for again when there are new ones, in milliseconds. */
const FRESH = 2000;

/** Asks for the samples of a class that has more than were seen, and for what logs say about them. */
function renew(kind, place, ui) {
  const known = ui.samples[kind.class];
  if (known && (known.count === kind.count || Date.now() - known.asked < FRESH)) return;
  ui.samples[kind.class] = { ...(known ?? { samples: null, logs: null }), count: kind.count, asked: Date.now() };
  const keep = (change) => ui.set({ samples: { ...ui.samples, [kind.class]: { ...ui.samples[kind.class], ...change } } });
  // The list may have changed its order meanwhile: what is of another class is not wanted.
  const ask = (name) =>
    fetch(`${name}?${place}`, { cache: "no-store" })
      .then((answer) => (answer.ok ? answer.json() : null))
      .then((got) => (got?.class === kind.class ? got : null));
  // Files take their time: the first samples are shown without them, all later ones only beside their lines.
  const first = known?.samples ? Promise.resolve() : ask("samples.json").then((got) => got && keep({ samples: got.samples }));
  first
    .then(() => ask("logs.json"))
    .catch(() => null)
    // Whoever was refused asks again.
    .then((got) => keep(got ? { count: got.count, samples: got.samples, logs: got } : { count: 0 }));
}

function samples(known, t) {
  const kind = known;
  if (!kind?.samples) return h("p", { class: "hint" }, t("wait"));
  return [
    h("p", { class: "hint" }, t("err.samples", kind.samples.length)),
    notes(kind.logs, kind.samples, t),
    h(
      "ol",
      null,
      kind.samples.map((sample) =>
        h(
          "li",
          { key: sample.number, class: "sample" },
          h(
            "div",
            { class: "facts" },
            h("b", null, at(sample.at)),
            sample.status ? h("span", { class: `code c${Math.floor(sample.status / 100)}` }, h("b", null, String(sample.status))) : null,
            h("span", { class: "request" }, sample.request || units.NOTHING),
            h("span", null, `${t("err.took")} ${units.time(sample.took_us / 1000)}`),
            h("span", null, `${t("err.from")} ${sample.client || units.NOTHING}`),
            sample.upstream ? h("span", null, `${t("err.upstream")} ${sample.upstream}`) : null,
          ),
          h("pre", { class: sample.line ? "line" : "line none", tabindex: 0, role: "region", "aria-label": t("err.line") }, sample.line || t("err.noLine")),
          entries(kind.logs, sample, t),
        ),
      ),
    ),
  ];
}
