// Tables: a sticky head whose cells sort, and a first column that stays in sight.

import { h } from "./dom.js";

/**
 * @typedef {{key: string, label: string, get: (row: any) => any, show?: (row: any) => any, text?: boolean,
 *   first?: "up" | "down"}} Column `get` is what is sorted by, `show` what is seen; `text` is set to the left
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

/**
 * A table whose order is kept in `ui.sort` under its name.
 * @param {any} ui
 * @param {{id: string, caption: string, columns: Column[], rows: any[], rowKey: (row: any) => string,
 *   sort?: [string, boolean], tone?: (row: any) => string}} what
 */
export function table(ui, { id, caption, columns, rows, rowKey, sort, tone }) {
  const [by, descending] = ui.sort[id] ?? sort ?? ["", false];
  const chosen = columns.find((column) => column.key === by);
  return h(
    "div",
    { class: "scroll", key: id, tabindex: 0, role: "region", "aria-label": caption },
    h(
      "table",
      null,
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
                {
                  type: "button",
                  onclick: () => ui.set({ sort: { ...ui.sort, [id]: [column.key, isChosen ? !descending : !column.text] } }),
                },
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
            columns.map((column, at) =>
              h(
                at === 0 ? "th" : "td",
                { class: column.text ? "text" : "number", scope: at === 0 ? "row" : undefined },
                (column.show ?? column.get)(row),
              ),
            ),
          ),
        ),
      ),
    ),
  );
}
