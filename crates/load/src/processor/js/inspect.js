// `console.log`'s way of showing values, as Node does it for what scripts print.

/** Levels shown; deeper ones are `[Object]`. */
const INSPECT_DEPTH = 2;
/** Members shown of a list; the rest is counted. */
const INSPECT_ITEMS = 100;
const LINE_CHARS = 72;

const inspect = (value, options) => show(value, options?.depth === null ? Infinity : (options?.depth ?? INSPECT_DEPTH), []);

const show = (value, depth, around) => {
  switch (typeof value) {
    case 'string':
      return quote(value);
    case 'bigint':
      return `${value}n`;
    case 'function':
      return value.name ? `[Function: ${value.name}]` : '[Function (anonymous)]';
    case 'object':
      break;
    default:
      return Object.is(value, -0) ? '-0' : String(value);
  }
  if (value === null) return 'null';
  if (around.includes(value)) return '[Circular *1]';
  if (value instanceof Error) return value.stack ? `${value}\n${value.stack.trimEnd()}` : `[${value}]`;
  if (value instanceof Date) return value.toISOString();
  if (value instanceof RegExp) return String(value);
  if (value instanceof Promise) return 'Promise {}';
  const name = value.constructor?.name ?? '[Object: null prototype]';
  if (depth < 0) return Array.isArray(value) ? '[Array]' : `[${name}]`;
  return showParts(value, name, depth, [...around, value]);
};

const quote = (text) => {
  const mark = !text.includes("'") ? "'" : !text.includes('"') ? '"' : !text.includes('`') ? '`' : "'";
  const escapes = { '\n': '\\n', '\t': '\\t', '\r': '\\r', '\\': '\\\\' };
  const inner = text.replace(/[\n\t\r\\]/g, (c) => escapes[c]);
  return mark + (mark === "'" ? inner.replaceAll("'", "\\'") : inner) + mark;
};

const showParts = (value, name, depth, around) => {
  if (Array.isArray(value) || ArrayBuffer.isView(value)) {
    const items = Array.from(value.slice(0, INSPECT_ITEMS), (item) => show(item, depth - 1, around));
    if (value.length > INSPECT_ITEMS) items.push(`... ${value.length - INSPECT_ITEMS} more items`);
    return lay(Array.isArray(value) ? '' : `${name}(${value.length}) `, '[', items, ']');
  }
  if (value instanceof Map) {
    const items = [...value].map(([k, v]) => `${show(k, depth - 1, around)} => ${show(v, depth - 1, around)}`);
    return lay(`Map(${value.size}) `, '{', items, '}');
  }
  if (value instanceof Set) {
    return lay(`Set(${value.size}) `, '{', [...value].map((item) => show(item, depth - 1, around)), '}');
  }
  const key = (text) => (/^[A-Za-z_$][\w$]*$/.test(text) ? text : quote(text));
  const items = Object.keys(value).map((k) => `${key(k)}: ${show(value[k], depth - 1, around)}`);
  return lay(name === 'Object' ? '' : `${name} `, '{', items, '}');
};

const lay = (before, open, items, close) => {
  if (items.length === 0) return `${before}${open}${close}`;
  const line = items.join(', ');
  if (line.length <= LINE_CHARS && !line.includes('\n')) return `${before}${open} ${line} ${close}`;
  return `${before}${open}\n${items.map((item) => '  ' + item.replaceAll('\n', '\n  ')).join(',\n')}\n${close}`;
};

/** `util.format`. */
const format = (...args) => {
  let text = '';
  if (typeof args[0] === 'string') {
    text = args.shift().replace(/%[sdifjoOc%]/g, (mark) => (mark === '%%' ? '%' : args.length ? formatOne(mark, args.shift()) : mark));
    if (args.length) text += ' ';
  }
  return text + args.map((value) => (typeof value === 'string' ? value : inspect(value))).join(' ');
};

const formatOne = (mark, value) => {
  switch (mark) {
    case '%s':
      return typeof value === 'string' ? value : inspect(value, { depth: 0 });
    case '%d':
      return String(Number(value));
    case '%i':
      return String(parseInt(value, 10));
    case '%f':
      return String(parseFloat(value));
    case '%j':
      return JSON.stringify(value);
    case '%c':
      return '';
    default:
      return inspect(value);
  }
};
