// Tables: a sticky head whose cells sort, a first column that stays in sight, rows that stand on a narrow screen as
// cards with the names of their columns, and a bar that finds rows.

import { h } from "./dom.js";

/**
 * @typedef {{key: string, label: string, get: (row: any) => any, show?: (row: any) => any, text?: boolean,
 *   wide?: boolean, width?: number}} `get` gives the value that sorts the rows, `show` the cell; `text` is set to the left;
 *   `wide` takes a row of its own where rows are cards; with a `width`, in em, all tables of one kind have the same grid
 */

/** Rows in the order asked for; equals stay as they were. @param {any[]} rows */
export function sorted(rows, column, descending) {
  if (!column) return rows;
  const order = descending ? -1 : 1;
  return rows
    .map((row, at) => ({ row, at, by: column.get(row) }))
    .sort((a, b) => {
      // What is not known comes last, whichever way.
      const [gone, missing] = [a.by ?? null, b.by ?? null].map((by) => by === null);
      if (gone || missing) return Number(gone) - Number(missing) || a.at - b.at;
      const sign = typeof a.by === "string" ? a.by.localeCompare(b.by) : a.by - b.by;
      return sign * order || a.at - b.at;
    })
    .map(({ row }) => row);
}

/** The rows that are looked for: all words of the text are in their own. @param {any[]} rows */
export function found(rows, { text = "", only = false } = {}, words, isFailing) {
  const wanted = text.toLowerCase().split(/\s+/).filter(Boolean);
  return rows.filter((row) => {
    const own = words(row).toLowerCase();
    return (!only || isFailing(row)) && wanted.every((word) => own.includes(word));
  });
}

/**
 * The bar that finds rows by a text, or only rows that fail. `ui.find` keeps its state under its name.
 * @param {any} ui
 * @param {{id: string, t: any, failing: number, all: number, seen: number,
 *   only?: string}} what `only` names another choice, which is no trouble
 */
export function finder(ui, { id, t, failing, all, seen, only }) {
  const now = ui.find[id] ?? { text: "", only: false };
  const set = (change) => ui.set({ find: { ...ui.find, [id]: { ...now, ...change } } });
  return h(
    "div",
    { class: "finder", role: "search" },
    h("input", { type: "search", class: "find", "aria-label": t("find.label"), placeholder: t("find.hint"), autocomplete: "off", spellcheck: "false", value: now.text, oninput: (event) => set({ text: event.target.value }) }),
    h("button", { type: "button", class: `quiet only ${failing > 0 && !only ? "some" : ""}`, "aria-pressed": now.only ? "true" : "false", onclick: () => set({ only: !now.only }) }, only ?? t("find.failing", failing)),
    h("span", { class: "hint", role: "status" }, now.text || now.only ? t("find.seen", seen, all) : ""),
  );
}

/**
 * A table whose order is kept in `ui.sort` under its name.
 * @param {any} ui
 * @param {{id: string, caption: string, columns: Column[], rows: any[], rowKey: (row: any) => string,
 *   sort?: [string, boolean], tone?: (row: any) => string, none?: string, by?: string}} what `none` stands where no row
 *   is; `by` names the choice of an order where the head has no room
 */
export function table(ui, { id, caption, columns, rows, rowKey, sort, tone, none, by: orderBy }) {
  const [by, descending] = ui.sort[id] ?? sort ?? ["", false];
  const chosen = columns.find((column) => column.key === by);
  const order = (key, isDown) => ui.set({ sort: { ...ui.sort, [id]: [key, isDown] } });
  return h(
    "div",
    { class: "tabled", key: id },
    orderBy && rows.length > 1
      ? h("label", { class: "order" }, orderBy,
        h("select", { onchange: (event) => order(event.target.value, !columns.find((column) => column.key === event.target.value)?.text) },
          columns.map((column) => h("option", { key: column.key, value: column.key, selected: column.key === by }, column.label))))
      : null,
    h(
      "div",
      { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
      h(
        "table",
        { class: columns[0]?.width ? "cards fixed" : "cards" },
        columns[0]?.width ? h("colgroup", null, columns.map((column) => h("col", { key: column.key, css: { width: column.width ? `${column.width}em` : "auto" } }))) : null,
        h(
          "thead",
          null,
          h(
            "tr",
            null,
            columns.map((column) => {
              const isChosen = column === chosen;
              const direction = isChosen ? (descending ? "descending" : "ascending") : "none";
              return h(
                "th",
                { scope: "col", class: column.text ? "text" : "number", "aria-sort": direction },
                h(
                  "button",
                  { type: "button", onclick: () => order(column.key, isChosen ? !descending : !column.text) },
                  column.label,
                  h("span", { class: "arrow", "aria-hidden": "true" }, isChosen ? (descending ? "▼" : "▲") : ""),
                ),
              );
            }),
          ),
        ),
        h(
          "tbody",
          null,
          sorted(rows, chosen, descending).map((row) =>
            h(
              "tr",
              { key: rowKey(row), class: tone?.(row) || undefined },
              columns.map((column, at) => {
                const shown = (column.show ?? column.get)(row);
                const kinds = [column.text ? "text" : "number", column.wide ? "wide" : "", shown === "" || shown === null || shown === undefined ? "bare" : ""];
                return h(
                  at === 0 ? "th" : "td",
                  { class: kinds.filter(Boolean).join(" "), scope: at === 0 ? "row" : undefined, "data-label": at === 0 ? undefined : column.label },
                  at === 0 ? shown : h("span", { class: "cell" }, shown),
                );
              }),
            ),
          ),
          rows.length === 0 && none ? h("tr", { key: "none" }, h("td", { colspan: columns.length, class: "text empty" }, none)) : null,
        ),
      ),
    ),
  );
}
