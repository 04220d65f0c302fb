// What both engines give a processor: metrics, templates, the names of errors, and which functions there are.
// Read inside a function of its own, before quick.js or host.js.

/** The name after `errors.`; undefined when the value is no error (artillery.md 1.6). */
const errorName = (error) => {
  if (error === undefined || error === null || error === false || error === '' || error === 0) return undefined;
  return String(error.code || messageOf(error) || (typeof error === 'object' ? 'undefined' : error));
};

/** The message; QuickJS's two most frequent ones in the words of Node. */
const messageOf = ({ message }) =>
  typeof message !== 'string' ? message : message.replace(/^cannot (read|set) property '(.*)' of (null|undefined)$/s,
    (_, verb, name, what) => `Cannot ${verb} properties of ${what} (${verb === 'read' ? 'reading' : 'setting'} '${name}')`);

/** Functions by name: what the default export holds, then what is exported by name. */
const functionsOf = (exported) => {
  const all = {};
  const inner = exported && exported.default;
  for (const source of [typeof exported === 'function' ? {} : exported, inner]) {
    if (source === null || (typeof source !== 'object' && typeof source !== 'function')) continue;
    for (const name of Object.keys(source)) {
      if (typeof source[name] === 'function' && !(name in all)) all[name] = source[name];
    }
  }
  return all;
};

/** Artillery calls back what is a plain function, and awaits everything else. */
const isCallbackForm = (fn) => fn.constructor.name === 'Function';

/** `ee`: what is emitted ends in `count(kind, name, value)`, kinds being 0 counter, 1 histogram, 2 rate, 3 error. */
const emitter = (count) => {
  const ee = {
    emit(kind, name, value) {
      switch (kind) {
        case 'counter':
          count(0, String(name), Number(value));
          break;
        case 'histogram':
        case 'summary':
          count(1, String(name), Number(value));
          break;
        case 'customStat':
          if (name) count(1, String(name.stat), Number(name.value));
          break;
        case 'rate':
          count(2, String(name), 1);
          break;
        case 'error':
          count(3, String(name), 1);
          break;
        default:
          return false;
      }
      return true;
    },
  };
  // Nothing is ever emitted to a processor, so listeners are never called.
  for (const name of ['on', 'once', 'off', 'addListener', 'removeListener', 'removeAllListeners', 'setMaxListeners']) {
    ee[name] = () => ee;
  }
  return ee;
};

/** lodash's `get` for a path as text. */
const getPath = (object, path) => {
  if (object !== null && object !== undefined && path in Object(object)) return object[path];
  let here = object;
  for (const [, plain, index, quoted] of path.matchAll(/([^.[\]]+)|\[(-?\d+)\]|\[["']([^"']*)["']\]/g)) {
    if (here === null || here === undefined) return undefined;
    here = here[plain ?? index ?? quoted];
  }
  return here;
};

const VARIABLE = /\{{2,3}\s*([\w\s$.[\]'"-]+?)\s*\}{2,3}/;
const CALL = /\{{2,3}\s*(\$\w+)\(([\w\s,$.]*)\)\s*\}{2,3}/;
/** Templates put into one text, when values bring new ones. */
const EXPANSIONS_MAX = 1000;

const templateText = (text, context) => {
  const { vars = {}, funcs = {} } = context || {};
  let found;
  for (let round = 0; round < EXPANSIONS_MAX && (found = CALL.exec(text)); round += 1) {
    const fn = funcs[found[1]];
    if (typeof fn !== 'function') return undefined;
    const value = fn(...found[2].split(',').map((argument) => argument.trim()).filter(Boolean).map(literal));
    if (found[0] === text) return value;
    text = text.replace(found[0], () => shown(value));
  }
  for (let round = 0; round < EXPANSIONS_MAX && (found = VARIABLE.exec(text)); round += 1) {
    const value = getPath(vars, found[1].trim());
    if (found[0] === text && round === 0) return value;
    text = text.replace(found[0], () => shown(value));
  }
  return text;
};

const literal = (text) => (text !== '' && Number.isFinite(Number(text)) ? Number(text) : text);
const shown = (value) => (value !== null && typeof value === 'object' ? JSON.stringify(value) : String(value));

/** `artillery.util.template`: texts, and trees of them with their keys. */
const template = (value, context) => {
  if (typeof value === 'string') return value.includes('{{') ? templateText(value, context) : value;
  if (Array.isArray(value)) return value.map((item) => template(item, context));
  if (value === null || typeof value !== 'object' || Object.getPrototypeOf(value) !== Object.prototype) return value;
  return Object.fromEntries(Object.entries(value).map(([k, v]) => [template(k, context), template(v, context)]));
};

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
const OWN_FUNCTIONS = {
  $randomNumber: (min, max) => Math.floor(Math.random() * (Number(max) - Number(min) + 1)) + Number(min),
  $randomString: (length = 10) =>
    Array.from({ length: Number(length) }, () => LETTERS[Math.floor(Math.random() * LETTERS.length)]).join(''),
};

/** `context.funcs`; `added(name)` hears of new ones. */
const makeFunctions = (added) =>
  new Proxy(Object.assign({}, OWN_FUNCTIONS), {
    set(all, name, fn) {
      all[name] = fn;
      if (typeof name === 'string') added(name);
      return true;
    },
  });

/** `context.funcs` of one virtual user, which has `$template` too. */
const functionsFor = (functions, context) =>
  new Proxy(functions, {
    get: (all, name) =>
      name === '$template' ? (value) => template(value, { vars: context.vars, funcs: all }) : all[name],
  });

/**
 * `context._jar`: of npm's tough-cookie what a processor has use for. The cookies are weir's: `list()` has them all,
 * `put(text, url)` sets one and says whether it could, `clear()` forgets them.
 */
class Jar {
  #cookies;
  constructor(cookies) {
    this.#cookies = cookies;
    Object.defineProperty(this, 'store', { get: storeOf(cookies), enumerable: true });
    for (const name of ['getCookies', 'getCookieString', 'setCookie', 'removeAllCookies', 'serialize']) {
      Object.defineProperty(this, name, { value: (...args) => answered(() => this[`${name}Sync`](...args), args.at(-1)) });
    }
  }
  getCookiesSync(url) {
    const { host, path, isSecure } = placeOf(url);
    const isFor = (cookie) =>
      (cookie.hostOnly ? host === cookie.domain : host === cookie.domain || host.endsWith(`.${cookie.domain}`)) &&
      (path === cookie.path || path.startsWith(cookie.path.endsWith('/') ? cookie.path : `${cookie.path}/`)) &&
      (isSecure || !cookie.secure);
    return this.#cookies.list().filter(isFor).sort((a, b) => b.path.length - a.path.length).map(cookieOf);
  }
  getCookieStringSync(url) {
    return this.getCookiesSync(url).map((cookie) => cookie.cookieString()).join('; ');
  }
  setCookieSync(cookie, url) {
    if (!this.#cookies.put(String(cookie), String(url))) throw new Error('Cookie failed to parse');
    return cookie;
  }
  removeAllCookiesSync() {
    this.#cookies.clear();
  }
  serializeSync() {
    return { version: 'tough-cookie', storeType: 'MemoryCookieStore', rejectPublicSuffixes: true, cookies: this.#cookies.list().map(cookieOf) };
  }
  toJSON() {
    return this.serializeSync();
  }
}

/** Cookies by domain, path and name. */
const storeOf = (cookies) => () => {
  const idx = {};
  for (const cookie of cookies.list()) ((idx[cookie.domain] ??= {})[cookie.path] ??= {})[cookie.key] = cookieOf(cookie);
  return { synchronous: true, idx };
};

const cookieOf = ({ expires, ...cookie }) => {
  const made = expires === undefined ? { ...cookie } : { ...cookie, expires: new Date(expires) };
  const cookieString = () => `${cookie.key}=${cookie.value}`;
  const toString = () => `${cookieString()}; ${cookie.hostOnly ? '' : `Domain=${cookie.domain}; `}Path=${cookie.path}`;
  return Object.defineProperties(made, { cookieString: { value: cookieString }, toString: { value: toString } });
};

const placeOf = (url) => {
  const [, scheme, authority, path] = /^(?:(\w+):\/\/)?([^/?#]*)([^?#]*)/.exec(String(url));
  const host = authority.replace(/^.*@/, '').replace(/:\d+$/, '').toLowerCase();
  return { host, path: path || '/', isSecure: scheme === 'https' || scheme === 'wss' };
};

/** What a call without `Sync` gives: to its callback if it has one, or as a promise. */
const answered = (work, callback) => {
  if (typeof callback !== 'function') return new Promise((resolve) => resolve(work()));
  let value;
  try {
    value = work();
  } catch (error) {
    return void callback(error);
  }
  return void callback(null, value);
};

/** `global.artillery`. */
const makeArtillery = (facts, log, exitCode) => ({
  testRunId: facts.testRunId,
  version: facts.version,
  log,
  util: { template },
  metrics: { event() {} },
  plugins: [],
  stash: null,
  get suggestedExitCode() {
    return exitCode.value;
  },
  set suggestedExitCode(code) {
    exitCode.value = code;
    exitCode.changed(code);
  },
});
