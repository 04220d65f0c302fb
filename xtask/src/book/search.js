// The search of the book, in mdBook's own box.
//
// It looks for the words of a question in the texts of all sections (search-index.js), as parts of words: Korean adds
// particles to a noun, so a noun is the beginning or the middle of a word. If no section has a word, the search cuts
// letters off its end ("logs" finds "log", "연결을" finds "연결은").
"use strict";
(() => {
  const SHOWN_MAX = 30;
  /** Letters of a word that is cut no further. */
  const SHORTEST = 2;
  /** Letters of a text around the first word that was found. */
  const [BEFORE, AFTER] = [60, 180];
  const said = {
    en: { none: (query) => `Nothing found for “${query}”.`, some: (count, query) => `“${query}”: ${count} ${count === 1 ? "section" : "sections"}`, first: (shown) => `, the first ${shown}` },
    ko: { none: (query) => `“${query}”: 찾은 내용이 없습니다.`, some: (count, query) => `“${query}”: ${count}곳`, first: (shown) => ` 중 ${shown}곳` },
  }[document.documentElement.lang];

  const at = (id) => document.getElementById(`mdbook-${id}`);
  const [toggle, wrapper, form, box] = [at("search-toggle"), at("search-wrapper"), at("searchbar-outer"), at("searchbar")];
  const [outer, header, list, main] = [at("searchresults-outer"), at("searchresults-header"), at("searchresults"), document.querySelector("main")];
  const [title, address] = [document.title, new URL(location.href)];

  /** @type {{url: string, page: string, title: string, text: string, parts: string[]}[] | undefined} */
  let sections;

  const folded = (text) => text.normalize("NFC").toLowerCase();
  const wordsOf = (query) => folded(query).split(/\s+/).filter(Boolean);

  function load() {
    if (sections || document.getElementById("search-index")) return;
    const script = document.createElement("script");
    script.id = "search-index";
    script.src = `${path_to_root}search-index.js`;
    script.onload = () => {
      sections = globalThis.weirBook.map(([url, page, title, text]) => ({ url, page, title, text, parts: [title, page, text].map(folded) }));
      show();
    };
    document.head.append(script);
  }

  /** A word, shortened until a section has it. */
  function known(word) {
    let part = word;
    while (part.length > SHORTEST && !sections.some((section) => section.parts.some((text) => text.includes(part)))) part = part.slice(0, -1);
    return part;
  }

  /** A word to look for. A hit in the middle of a Latin word is worth little: "ports" is not what "reports" is about. */
  function wanted(part) {
    const border = "[^\\p{L}\\p{N}_]";
    const begin = /^[\w]/.test(part) ? `(?<=^|${border})` : "";
    return { part, begin: new RegExp(begin + escaped(part), "gu"), whole: new RegExp(`(?<=^|${border})${escaped(part)}(?=$|${border})`, "u") };
  }

  /** How well a section answers: nothing if it lacks a word. The phrase as a whole counts most; then titles; then whole words. */
  function score(section, words, phrase) {
    const [title, page, text] = section.parts;
    let sum = words.length > 1 && (text.includes(phrase) || title.includes(phrase)) ? 30 : 0;
    for (const { part, begin, whole } of words) {
      if (!section.parts.some((one) => one.includes(part))) return 0;
      const hits = (one) => one.match(begin)?.length ?? 0;
      sum += (hits(title) ? 12 : 0) + (hits(page) ? 6 : 0) + (whole.test(text) ? 3 : 0) + Math.log2(1 + hits(text)) + 0.1;
    }
    return sum;
  }

  const escaped = (text) => text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
  const anyOf = (parts) => new RegExp(`(${parts.map(escaped).sort((one, other) => other.length - one.length).join("|")})`, "i");

  /** A text as nodes; its parts that were asked for are in elements of this name. */
  function marked(text, parts, name) {
    return text.split(anyOf(parts)).map((piece, at) => (at % 2 === 0 ? piece : Object.assign(document.createElement(name), { textContent: piece })));
  }

  /** The text around the first of the words, from one space to another. */
  function excerpt({ text }, parts) {
    const found = Math.max(text.normalize("NFC").search(anyOf(parts)), 0);
    const from = found > BEFORE ? text.lastIndexOf(" ", found - BEFORE / 2) + 1 : 0;
    const space = text.indexOf(" ", from + BEFORE + AFTER);
    const end = space < 0 ? text.length : space;
    return `${from > 0 ? "… " : ""}${text.slice(from, end)}${end < text.length ? " …" : ""}`;
  }

  function row(section, parts) {
    const [path, id] = section.url.split("#");
    const link = document.createElement("a");
    link.href = `${path_to_root}${path}?highlight=${encodeURIComponent(parts.join(" "))}${id ? `#${id}` : ""}`;
    link.append(...marked(section.title && section.title !== section.page ? `${section.page} » ${section.title}` : section.page, parts, "em"));
    const teaser = document.createElement("span");
    teaser.className = "teaser";
    teaser.append(...marked(excerpt(section, parts), parts, "em"));
    const item = document.createElement("li");
    item.append(link, teaser);
    return item;
  }

  function show() {
    const query = box.value.trim();
    remember(query);
    outer.classList.toggle("hidden", query === "" || !sections);
    if (query === "" || !sections) return;
    const parts = [...new Set(wordsOf(query).map(known))];
    const words = parts.map(wanted);
    const found = sections.map((section) => ({ section, score: score(section, words, folded(query)) })).filter(({ score }) => score > 0);
    found.sort((one, other) => other.score - one.score);
    header.textContent = found.length === 0 ? said.none(query) : said.some(found.length, query) + (found.length > SHOWN_MAX ? said.first(SHOWN_MAX) : "");
    list.replaceChildren(...found.slice(0, SHOWN_MAX).map(({ section }) => row(section, parts)));
  }

  /** Keeps the question in the address, so that the way back from a result leads to the results. */
  function remember(query) {
    if (query) address.searchParams.set("search", query);
    else address.searchParams.delete("search");
    address.searchParams.delete("highlight");
    history.replaceState(null, title, address);
  }

  function open(isOpen) {
    wrapper.classList.toggle("hidden", !isOpen);
    toggle.setAttribute("aria-expanded", String(isOpen));
    if (!isOpen) {
      remember("");
      toggle.focus();
      return;
    }
    load();
    scrollTo(0, 0);
    box.focus();
    box.select();
  }

  /** Marks the words that led to this page, and scrolls to the first of them below the heading. */
  function mark(parts) {
    const texts = document.createTreeWalker(main, NodeFilter.SHOW_TEXT);
    const [nodes, wanted] = [[], anyOf(parts)];
    while (texts.nextNode()) if (wanted.test(texts.currentNode.data)) nodes.push(texts.currentNode);
    for (const node of nodes) node.replaceWith(...marked(node.data, parts, "mark"));
    const heading = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const isBelow = (one) => !heading || heading.contains(one) || heading.compareDocumentPosition(one) & Node.DOCUMENT_POSITION_FOLLOWING;
    [...main.querySelectorAll("mark")].find(isBelow)?.scrollIntoView({ block: "center" });
  }

  function key(event) {
    const isInside = wrapper.contains(document.activeElement);
    if (event.altKey || event.ctrlKey || event.metaKey || event.isComposing) return;
    const links = [...list.querySelectorAll("a")];
    const place = links.indexOf(document.activeElement);
    const move = { ArrowDown: place + 1, ArrowUp: place - 1, Enter: document.activeElement === box ? 0 : undefined }[event.key];
    if (!isInside) {
      const isTyping = /^(input|textarea|select)$/i.test(document.activeElement?.tagName ?? "");
      if (isTyping || !["/", "s", "S"].includes(event.key)) return;
      open(true);
    } else if (event.key === "Escape") open(false);
    else if (event.key === "Enter" && move === 0) links[0]?.click();
    else if (event.key !== "Enter" && move !== undefined) (links[move] ?? (move < 0 ? box : undefined))?.focus();
    else return;
    event.preventDefault();
  }

  // mdBook's own keys are off while the search has the focus.
  window.search = { hasFocus: () => wrapper.contains(document.activeElement) };
  box.setAttribute("aria-label", box.placeholder);
  toggle.addEventListener("click", () => open(wrapper.classList.contains("hidden")));
  box.addEventListener("input", show);
  form.addEventListener("submit", (event) => event.preventDefault());
  document.addEventListener("keydown", key);
  const asked = address.searchParams.get("search");
  const parts = wordsOf(address.searchParams.get("highlight") ?? "");
  if (parts.length > 0) mark(parts);
  if (asked) {
    box.value = asked;
    open(true);
  }
})();
