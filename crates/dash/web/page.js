// The two buttons of the reports of `weir load` and `weir lab`: one switches between light and dark, one copies a line.

import { copy } from "./parts.js";

const THEMES = ["auto", "light", "dark"];
const SIGNS = { auto: "◐", light: "○", dark: "●" };

/** The words of the page, as its maker wrote them. @param {Element} button */
const said = (button, name) => button.getAttribute(`data-${name}`);

function dress(button, theme) {
  const root = button.ownerDocument.documentElement;
  if (theme === "auto") root.removeAttribute("data-theme");
  else root.setAttribute("data-theme", theme);
  button.textContent = SIGNS[theme];
  button.setAttribute("aria-label", said(button, theme));
  button.title = said(button, theme);
}

/** Begins the page. @param {Document} page */
export function begin(page) {
  const button = page.querySelector(".theme");
  let theme = "auto";
  dress(button, theme);
  button.hidden = false;
  button.addEventListener("click", () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    dress(button, theme);
  });
  for (const one of page.querySelectorAll(".copy")) {
    one.hidden = false;
    one.addEventListener("click", async () => {
      one.setAttribute("data-said", said(one, (await copy(one.previousElementSibling.textContent)) ? "done" : "failed"));
      setTimeout(() => one.removeAttribute("data-said"), 2000);
    });
  }
}
