// What went wrong: classes, in each the newest samples, and with each sample its line of the log.

import { h } from "../dom.js";
import { card, empty } from "../parts.js";
import * as units from "../units.js";

export function errors({ doc, t, ui }) {
  const classes = doc.snapshot.weir.errors ?? [];
  if (classes.length === 0) return card(t("nav.errors"), null, empty(t("err.none")));
  return card(
    t("nav.errors"),
    t("err.secret"),
    h(
      "ul",
      { class: "errors" },
      classes.map((kind) => {
        const isOpen = ui.open.has(kind.class);
        const id = `samples-${kind.class.replace(/[^a-z0-9]+/gi, "-")}`;
        return h(
          "li",
          { key: kind.class },
          h(
            "button",
            {
              type: "button",
              class: "class",
              "aria-expanded": isOpen ? "true" : "false",
              "aria-controls": id,
              onclick: () => {
                const open = new Set(ui.open);
                if (!open.delete(kind.class)) open.add(kind.class);
                ui.set({ open });
              },
            },
            h("span", { class: "fold", "aria-hidden": "true" }, isOpen ? "▾" : "▸"),
            h("span", { class: "name" }, kind.class),
            h("span", { class: "times" }, units.count(kind.count)),
            h("span", { class: "last" }, `${t("err.last")} ${at(kind.last)}`),
          ),
          h("div", { id, class: "samples", hidden: !isOpen }, isOpen ? samples(kind, t) : null),
        );
      }),
    ),
  );
}

const at = (text) => units.clock(Date.parse(text));

function samples(kind, t) {
  return [
    h("p", { class: "hint" }, t("err.samples", kind.samples.length)),
    h(
      "ol",
      null,
      kind.samples.map((sample) =>
        h(
          "li",
          { class: "sample" },
          h(
            "div",
            { class: "facts" },
            h("b", null, at(sample.at)),
            sample.status ? h("span", { class: `code c${Math.floor(sample.status / 100)}` }, h("b", null, String(sample.status))) : null,
            h("span", { class: "request" }, sample.request || units.NOTHING),
            h("span", null, `${t("err.took")} ${units.time(sample.took_us / 1000)}`),
            h("span", null, `${t("err.client")} ${sample.client || units.NOTHING}`),
            sample.upstream ? h("span", null, `${t("err.upstream")} ${sample.upstream}`) : null,
          ),
          h("pre", { class: sample.line ? "line" : "line none", tabindex: 0, role: "region", "aria-label": t("err.line") }, sample.line || t("err.noLine")),
        ),
      ),
    ),
  ];
}
