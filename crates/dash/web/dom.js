// A description of elements, and what makes the document equal to it. Elements that stay are kept, so that focus,
// selection and scroll positions survive a redraw each second.

const SVG = "http://www.w3.org/2000/svg";
const SVG_TAGS = new Set(["svg", "path", "line", "g", "rect", "circle", "text", "polyline", "title"]);

/**
 * An element to be. Children may be strings, numbers, elements, lists of them, or nothing.
 * @param {string} tag
 * @param {Record<string, any> | null} [props] attributes; `on…` is a listener, `css` an object of style properties,
 *   `key` what a child of a list is recognised by, `own` says that the element's children are not described here,
 *   `weir…` a value that listeners find at the element
 * @param {...any} children
 */
export function h(tag, props, ...children) {
  return { tag, props: props ?? {}, children: flat(children, []) };
}

function flat(list, out) {
  for (const child of list) {
    if (Array.isArray(child)) flat(child, out);
    else if (child !== null && child !== undefined && child !== false && child !== true) {
      out.push(typeof child === "object" ? child : String(child));
    }
  }
  return out;
}

/** Makes the children of an element those described. */
export function draw(parent, ...children) {
  children = flat(children, []);
  const keyed = new Map();
  for (const node of parent.childNodes) if (node.weirKey !== undefined) keyed.set(node.weirKey, node);
  let at = parent.firstChild;
  for (const child of children) {
    const key = child.props?.key;
    let node = key === undefined ? at : keyed.get(key);
    if (node && fits(node, child)) {
      if (node !== at) parent.insertBefore(node, at);
      else at = at.nextSibling;
      update(node, child);
    } else {
      parent.insertBefore(make(child, parent), at);
    }
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

function fits(node, child) {
  if (typeof child === "string") return node.nodeType === 3;
  return node.nodeType === 1 && node.localName === child.tag && node.weirKey === child.props.key;
}

function make(child, parent) {
  if (typeof child === "string") return document.createTextNode(child);
  const isSvg = SVG_TAGS.has(child.tag) && (child.tag !== "title" || parent.namespaceURI === SVG);
  const node = isSvg ? document.createElementNS(SVG, child.tag) : document.createElement(child.tag);
  node.weirKey = child.props.key;
  update(node, child);
  return node;
}

function update(node, child) {
  if (typeof child === "string") {
    if (node.data !== child) node.data = child;
    return;
  }
  const before = node.weirProps ?? {};
  for (const name in before) if (!(name in child.props)) put(node, name, before[name], undefined);
  for (const name in child.props) put(node, name, before[name], child.props[name]);
  node.weirProps = child.props;
  if (!child.props.own) draw(node, child.children);
}

function put(node, name, before, now) {
  if (name === "key" || name === "own") return;
  if (name.startsWith("on") || name.startsWith("weir")) {
    node[name] = now ?? null;
  } else if (name === "css") {
    // By way of the object model: the policy of the page allows no style in markup.
    for (const property in before) if (!now || !(property in now)) node.style.removeProperty(property);
    for (const property in now) if (before?.[property] !== now[property]) node.style.setProperty(property, now[property]);
  } else if (name === "value" || name === "checked" || name === "open") {
    // What the user has done since stays, unless the description itself has changed.
    if (before !== now) node[name] = now ?? "";
  } else if (before !== now) {
    if (now === undefined || now === null || now === false) node.removeAttribute(name);
    else node.setAttribute(name, now === true ? "" : now);
  }
}
