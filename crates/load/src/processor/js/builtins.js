// The modules of Node that scripts import and that a few lines can give honestly. Anything else sends the processor
// to Node (modules.js).

const path = (() => {
  const normalize = (text) => {
    const isRooted = text.startsWith('/');
    const out = [];
    for (const part of text.split('/')) {
      if (part === '' || part === '.') continue;
      if (part !== '..') out.push(part);
      else if (out.length && out[out.length - 1] !== '..') out.pop();
      else if (!isRooted) out.push('..');
    }
    const plain = out.join('/') + (text.endsWith('/') && out.length ? '/' : '');
    return isRooted ? '/' + plain : plain || '.';
  };
  const join = (...parts) => normalize(parts.filter(Boolean).join('/') || '.');
  const resolve = (...parts) => {
    let text = '';
    for (const part of [facts.cwd, ...parts]) text = part.startsWith('/') ? part : part ? `${text}/${part}` : text;
    const plain = normalize(text);
    return plain.length > 1 ? plain.replace(/\/$/, '') : plain;
  };
  const basename = (text, ending = '') => {
    const name = text.replace(/\/+$/, '').split('/').pop();
    return ending && name.endsWith(ending) && name !== ending ? name.slice(0, -ending.length) : name;
  };
  const dirname = (text) => {
    const at = text.replace(/\/+$/, '').lastIndexOf('/');
    return at < 0 ? '.' : text.slice(0, at) || '/';
  };
  const extname = (text) => /(?<=[^/])\.[^./]*$/.exec(basename(text))?.[0] ?? '';
  const relative = (from, to) => {
    const [one, two] = [resolve(from), resolve(to)].map((text) => text.split('/').filter(Boolean));
    let same = 0;
    while (same < one.length && one[same] === two[same]) same += 1;
    return [...one.slice(same).map(() => '..'), ...two.slice(same)].join('/');
  };
  const parse = (text) => {
    const [base, ext] = [basename(text), extname(text)];
    const root = text.startsWith('/') ? '/' : '';
    return { root, dir: text.includes('/') ? dirname(text) : '', base, ext, name: ext ? base.slice(0, -ext.length) : base };
  };
  const made = { normalize, join, resolve, basename, dirname, extname, relative, parse, sep: '/', delimiter: ':' };
  made.isAbsolute = (text) => text.startsWith('/');
  made.format = ({ dir, root = '', base, name = '', ext = '' }) => (dir ? `${dir}/` : root) + (base ?? name + ext);
  made.posix = made;
  return made;
})();

const fileError = (call, file, [code, message]) =>
  Object.assign(new Error(`${code}: ${message}, ${call} '${file}'`), { code, path: file, syscall: call });
const fileName = (file) => (file instanceof URL ? fileURLToPath(file) : path.resolve(String(file)));
const fs = (() => {
  const readFileSync = (file, options) => {
    const { bytes, error } = native.readFile(fileName(file));
    if (error) throw fileError('open', file, error);
    const encoding = typeof options === 'string' ? options : options?.encoding;
    const read = Buffer.from(bytes);
    return encoding ? read.toString(encoding) : read;
  };
  const write = (file, data, isAppended) => {
    const bytes = typeof data === 'string' ? utf8Bytes(data) : data;
    const error = native.writeFile(fileName(file), Array.from(bytes), isAppended);
    if (error) throw fileError('open', file, error);
  };
  const writeFileSync = (file, data) => write(file, data, false);
  const appendFileSync = (file, data) => write(file, data, true);
  const existsSync = (file) => native.exists(fileName(file));
  const later = (fn) => async (...args) => fn(...args);
  const promises = { readFile: later(readFileSync), writeFile: later(writeFileSync), appendFile: later(appendFileSync) };
  const called = (fn) => (...args) => {
    const done = args.pop();
    promises[fn](...args).then((value) => done(null, value), done);
  };
  return { readFileSync, writeFileSync, appendFileSync, existsSync, promises, readFile: called('readFile'),
    writeFile: called('writeFile'), appendFile: called('appendFile') };
})();

const crypto = (() => {
  const bytesOf = (data, encoding) => Array.from(typeof data === 'string' ? encodingOf(encoding)[0](data) : data);
  const hasher = (finish) => {
    const given = [];
    const hash = {
      update(data, encoding) {
        for (const byte of bytesOf(data, encoding)) given.push(byte);
        return hash;
      },
      digest(encoding) {
        const digest = Buffer.from(finish(given));
        return encoding ? digest.toString(encoding) : digest;
      },
    };
    return hash;
  };
  const known = (name) => {
    const plain = String(name).toLowerCase().replace('-', '');
    if (!['md5', 'sha1', 'sha256', 'sha512'].includes(plain)) throw new Error(`Digest method not supported: ${name}`);
    return plain;
  };
  const createHash = (name) => {
    const plain = known(name);
    return hasher((bytes) => native.hash(plain, bytes));
  };
  const createHmac = (name, key) => {
    const [plain, secret] = [known(name), bytesOf(key)];
    return hasher((bytes) => native.hmac(plain, secret, bytes));
  };
  const randomInt = (min, max) => {
    const [low, high] = max === undefined ? [0, min] : [min, max];
    return low + Math.floor(Math.random() * (high - low));
  };
  const timingSafeEqual = (one, two) => Buffer.compare(one, two) === 0;
  const withCallback = (length, done) => {
    const bytes = randomBytes(length);
    return typeof done === 'function' ? setImmediate(done, null, bytes) : bytes;
  };
  return { createHash, createHmac, randomBytes: withCallback, randomUUID, randomInt, getRandomValues, timingSafeEqual };
})();

const promisify = (fn) => (...args) =>
  new Promise((resolve, reject) => fn(...args, (error, value) => (error ? reject(error) : resolve(value))));
promisify.custom = Symbol.for('nodejs.util.promisify.custom');
const util = {
  promisify: (fn) => (fn === setTimeout ? sleepFor : promisify(fn)),
  callbackify: (fn) => (...args) => {
    const done = args.pop();
    fn(...args).then((value) => done(null, value), done);
  },
  inspect,
  format,
  inherits: (child, parent) => void Object.setPrototypeOf(child.prototype, parent.prototype),
  isDeepStrictEqual: (one, two) => inspect(one, { depth: null }) === inspect(two, { depth: null }),
  deprecate: (fn) => fn,
  types: { isPromise: (value) => value instanceof Promise, isDate: (value) => value instanceof Date },
  TextEncoder,
  TextDecoder,
};
const sleepFor = (ms, value) => new Promise((resolve) => setTimeout(resolve, ms, value));

const querystring = {
  stringify: (object, separator = '&', equals = '=') =>
    Object.entries(object ?? {}).flatMap(([name, value]) => [value].flat().map((one) =>
      encodeURIComponent(name) + equals + (['string', 'number', 'boolean', 'bigint'].includes(typeof one) ? encodeURIComponent(one) : ''))).join(separator),
  parse: (text, separator = '&', equals = '=') => {
    const all = Object.create(null);
    for (const pair of String(text).split(separator).filter(Boolean)) {
      const [name, ...rest] = pair.split(equals);
      const [key, value] = [formDecode(name), formDecode(rest.join(equals))];
      all[key] = key in all ? [all[key], value].flat() : value;
    }
    return all;
  },
  escape: encodeURIComponent,
  unescape: decodeURIComponent,
};
querystring.encode = querystring.stringify;
querystring.decode = querystring.parse;

const fileURLToPath = (url) => decodeURIComponent(new URL(String(url)).pathname);
const url = {
  URL,
  URLSearchParams,
  fileURLToPath,
  pathToFileURL: (file) => new URL('file://' + encodeURI(path.resolve(file))),
  format: (given) => (typeof given === 'string' ? given : given.href ?? String(given)),
};

class EventEmitter {
  #listeners = new Map();
  on(name, fn) {
    this.#listeners.set(name, [...(this.#listeners.get(name) ?? []), fn]);
    return this;
  }
  addListener(name, fn) {
    return this.on(name, fn);
  }
  once(name, fn) {
    const once = (...args) => {
      this.off(name, once);
      fn.apply(this, args);
    };
    once.listener = fn;
    return this.on(name, once);
  }
  off(name, fn) {
    const all = this.#listeners.get(name) ?? [];
    this.#listeners.set(name, all.filter((own) => own !== fn && own.listener !== fn));
    return this;
  }
  removeListener(name, fn) {
    return this.off(name, fn);
  }
  removeAllListeners(name) {
    if (name === undefined) this.#listeners.clear();
    else this.#listeners.delete(name);
    return this;
  }
  listenerCount(name) {
    return this.#listeners.get(name)?.length ?? 0;
  }
  listeners(name) {
    return [...(this.#listeners.get(name) ?? [])];
  }
  setMaxListeners() {
    return this;
  }
  emit(name, ...args) {
    const all = this.#listeners.get(name) ?? [];
    if (name === 'error' && all.length === 0) throw args[0];
    for (const fn of all) fn.apply(this, args);
    return all.length > 0;
  }
}
EventEmitter.EventEmitter = EventEmitter;

class AssertionError extends Error {
  name = 'AssertionError';
  code = 'ERR_ASSERTION';
}
const assert = (() => {
  const check = (holds, message, otherwise) => {
    if (!holds) throw message instanceof Error ? message : new AssertionError(message ?? otherwise);
  };
  const same = (one, two) => inspect(one, { depth: null }) === inspect(two, { depth: null });
  const ok = (value, message) => check(value, message, 'The expression evaluated to a falsy value');
  const strictEqual = (one, two, message) =>
    check(Object.is(one, two), message, `Expected values to be strictly equal: ${inspect(one)} !== ${inspect(two)}`);
  const notStrictEqual = (one, two, message) => check(!Object.is(one, two), message, 'Expected values not to be equal');
  const deepStrictEqual = (one, two, message) =>
    check(same(one, two), message, `Expected values to be deeply equal: ${inspect(one)} and ${inspect(two)}`);
  const equal = (one, two, message) => check(one == two, message, `${inspect(one)} == ${inspect(two)}`);
  const fail = (message) => check(false, message, 'Failed');
  const made = Object.assign((value, message) => ok(value, message), { ok, strictEqual, notStrictEqual, deepStrictEqual, equal });
  return Object.assign(made, { deepEqual: deepStrictEqual, fail, AssertionError, strict: made });
})();

const BUILTINS = {
  path, fs, 'fs/promises': fs.promises, crypto, util, querystring, url, events: EventEmitter, assert,
  buffer: { Buffer }, os: { EOL: '\n', hostname: () => facts.hostname, platform: () => 'linux', tmpdir: () => '/tmp', cpus: () => facts.cpus },
  timers: { setTimeout, setInterval, setImmediate, clearTimeout, clearInterval: clearTimeout, clearImmediate: clearTimeout },
  'timers/promises': { setTimeout: sleepFor, setImmediate: (value) => sleepFor(0, value) },
  process, console, perf_hooks: { performance }, string_decoder: undefined,
};
delete BUILTINS.string_decoder;
