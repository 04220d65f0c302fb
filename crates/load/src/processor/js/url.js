// `URL` and `URLSearchParams` for the URLs load scripts handle: special schemes, no IDNA.

const PORTS = { 'http:': '80', 'https:': '443', 'ws:': '80', 'wss:': '443', 'ftp:': '21' };
const formEncode = (text) =>
  encodeURIComponent(text).replace(/%20|[!'()~]/g, (c) => (c === '%20' ? '+' : '%' + c.charCodeAt(0).toString(16).toUpperCase()));
const formDecode = (text) => {
  const spaced = text.replaceAll('+', ' ');
  try {
    return decodeURIComponent(spaced);
  } catch {
    return spaced;
  }
};
const escapeIn = (text, unsafe) => text.replace(unsafe, (c) => (c === '%' ? c : encodeURIComponent(c.toWellFormed())));

class URLSearchParams {
  #pairs = [];
  #changed = null;
  constructor(given = '', changed = null) {
    if (typeof given === 'string') this.#pairs = URLSearchParams.#parse(given);
    else if (given?.[Symbol.iterator]) this.#pairs = Array.from(given, ([name, value]) => [String(name), String(value)]);
    else this.#pairs = Object.entries(given ?? {}).map(([name, value]) => [name, String(value)]);
    this.#changed = changed;
  }
  static #parse(text) {
    return text.replace(/^\?/, '').split('&').filter(Boolean).map((pair) => {
      const at = pair.indexOf('=');
      return at < 0 ? [formDecode(pair), ''] : [formDecode(pair.slice(0, at)), formDecode(pair.slice(at + 1))];
    });
  }
  #tell() {
    this.#changed?.(this.toString());
  }
  get size() {
    return this.#pairs.length;
  }
  get(name) {
    return this.#pairs.find(([own]) => own === name)?.[1] ?? null;
  }
  getAll(name) {
    return this.#pairs.filter(([own]) => own === name).map(([, value]) => value);
  }
  has(name) {
    return this.#pairs.some(([own]) => own === name);
  }
  append(name, value) {
    this.#pairs.push([String(name), String(value)]);
    this.#tell();
  }
  set(name, value) {
    const at = this.#pairs.findIndex(([own]) => own === name);
    if (at < 0) return this.append(name, value);
    this.#pairs[at][1] = String(value);
    this.#pairs = this.#pairs.filter(([own], index) => own !== name || index <= at);
    this.#tell();
  }
  delete(name) {
    this.#pairs = this.#pairs.filter(([own]) => own !== name);
    this.#tell();
  }
  sort() {
    this.#pairs.sort(([one], [two]) => (one < two ? -1 : one > two ? 1 : 0));
    this.#tell();
  }
  forEach(fn, self) {
    for (const [name, value] of this.#pairs) fn.call(self, value, name, this);
  }
  entries() {
    return this.#pairs.map(([name, value]) => [name, value]).values();
  }
  keys() {
    return this.#pairs.map(([name]) => name).values();
  }
  values() {
    return this.#pairs.map(([, value]) => value).values();
  }
  [Symbol.iterator]() {
    return this.entries();
  }
  toString() {
    return this.#pairs.map(([name, value]) => `${formEncode(name)}=${formEncode(value)}`).join('&');
  }
}

const URL_PARTS = /^([A-Za-z][A-Za-z0-9+.-]*:)(?:\/\/(?:([^/?#@]*)@)?(\[[^\]]*\]|[^/?#:]*)(?::(\d*))?)?([^?#]*)(\?[^#]*)?(#.*)?$/s;

class URL {
  #query;
  constructor(text, base) {
    this.#read(URL.#absolute(String(text).trim(), base), String(text));
  }
  static canParse(text, base) {
    try {
      return Boolean(new URL(text, base));
    } catch {
      return false;
    }
  }
  static #absolute(text, base) {
    if (/^[A-Za-z][A-Za-z0-9+.-]*:/.test(text) || base === undefined) return text;
    const from = new URL(base);
    const root = `${from.protocol}//${from.username ? from.username + (from.password && ':' + from.password) + '@' : ''}${from.host}`;
    if (text.startsWith('//')) return from.protocol + text;
    if (text.startsWith('/')) return root + text;
    if (text.startsWith('?')) return root + from.pathname + text;
    if (text.startsWith('#') || text === '') return root + from.pathname + from.search + text;
    return root + from.pathname.replace(/[^/]*$/, '') + text;
  }
  #read(text, given) {
    const found = URL_PARTS.exec(text);
    const protocol = found?.[1].toLowerCase();
    const isSpecial = protocol in PORTS;
    if (!found || (isSpecial && !found[3]) || Number(found[4] ?? 0) > 65535) {
      throw Object.assign(new TypeError('Invalid URL'), { code: 'ERR_INVALID_URL', input: given });
    }
    const [, , login = '', host = '', port = '', path, query = '', hash = ''] = found;
    const at = login.indexOf(':');
    this.protocol = protocol;
    this.username = at < 0 ? login : login.slice(0, at);
    this.password = at < 0 ? '' : login.slice(at + 1);
    this.hostname = host.toLowerCase();
    this.port = port === PORTS[protocol] ? '' : port && String(Number(port));
    this.pathname = isSpecial ? URL.#plainPath(path) : path;
    this.search = query;
    this.hash = hash === '#' ? '' : escapeIn(hash, /[\s"<>`\u0080-\u{10ffff}]/gu);
  }
  static #plainPath(path) {
    const out = [];
    const parts = escapeIn(path.replaceAll('\\', '/'), /[\s"<>`{}^\u0080-\u{10ffff}]/gu).split('/').slice(1);
    parts.forEach((part, index) => {
      const isLast = index === parts.length - 1;
      if (part === '..') out.pop();
      else if (part !== '.') out.push(part);
      if (isLast && (part === '.' || part === '..')) out.push('');
    });
    return '/' + out.join('/');
  }
  get search() {
    return this.#query.text;
  }
  set search(text) {
    text = String(text);
    const query = { text: text === '' || text === '?' ? '' : escapeIn(text[0] === '?' ? text : '?' + text, /[\s"<>'\u0080-\u{10ffff}]/gu) };
    query.params = new URLSearchParams(query.text, (now) => (query.text = now && '?' + now));
    this.#query = query;
  }
  get searchParams() {
    return this.#query.params;
  }
  get host() {
    return this.hostname + (this.port && ':' + this.port);
  }
  set host(text) {
    [, this.hostname, this.port = ''] = /^(\[[^\]]*\]|[^:]*)(?::(\d*))?/.exec(text);
  }
  get origin() {
    return this.protocol in PORTS ? `${this.protocol}//${this.host}` : 'null';
  }
  get href() {
    const login = this.username || this.password ? `${this.username}${this.password && ':' + this.password}@` : '';
    const slashes = this.protocol in PORTS || this.hostname || this.protocol === 'file:' ? '//' : '';
    return `${this.protocol}${slashes}${login}${this.host}${this.pathname}${this.search}${this.hash}`;
  }
  set href(text) {
    this.#read(String(text), text);
  }
  toString() {
    return this.href;
  }
  toJSON() {
    return this.href;
  }
}
