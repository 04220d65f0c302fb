// Globals that Node has and QuickJS has not, as far as load scripts use them. What is missing here is named in
// `NODE_ONLY` of modules.js, so that such a script goes to Node instead of failing in the middle of a run.

// Timers: kept in order; Rust runs those that are due and is told when the next one is.
const timers = [];
let timersMade = 0;

class Timeout {
  constructor(fn, args, every, at) {
    Object.assign(this, { fn, args, every, at, id: (timersMade += 1) });
  }
  ref() {
    return this;
  }
  unref() {
    return this;
  }
  hasRef() {
    return true;
  }
  refresh() {
    return this;
  }
  [Symbol.toPrimitive]() {
    return this.id;
  }
}

const addTimer = (timer) => {
  let at = timers.length;
  while (at > 0 && timers[at - 1].at > timer.at) at -= 1;
  timers.splice(at, 0, timer);
  if (at === 0) native.wakeAt(timer.at);
  return timer;
};

const startTimer = (fn, ms, args, isRepeated) => {
  if (typeof fn !== 'function') throw new TypeError('The "callback" argument must be of type function');
  const wait = ms >= 1 && ms <= 0x7fffffff ? Number(ms) : 1;
  return addTimer(new Timeout(fn, args, isRepeated ? wait : 0, native.now() + wait));
};

const setTimeout = (fn, ms, ...args) => startTimer(fn, ms, args, false);
const setInterval = (fn, ms, ...args) => startTimer(fn, ms, args, true);
const setImmediate = (fn, ...args) => addTimer(new Timeout(fn, args, 0, native.now()));
const clearTimeout = (timer) => {
  const at = timers.findIndex((own) => own === timer || own.id === timer);
  if (at >= 0) timers.splice(at, 1)[0].every = 0;
  else if (timer instanceof Timeout) timer.every = 0;
};

/** Runs one timer that is due; false if none is. The next one's moment is told either way. */
const runTimer = () => {
  const timer = timers[0];
  if (timer === undefined) return false;
  const now = native.now();
  // The worker's clock counts whole milliseconds, so a timer may be woken a little early.
  if (timer.at > now + 1) {
    native.wakeAt(timer.at);
    return false;
  }
  timers.shift();
  if (timer.every > 0) {
    timer.at = Math.max(now, timer.at) + timer.every;
    addTimer(timer);
  }
  timer.fn(...timer.args);
  return true;
};

const say = (...args) => native.say(format(...args));
const counts = new Map();
const began = new Map();
const console = {
  log: say,
  info: say,
  debug: say,
  warn: say,
  error: say,
  trace: say,
  dir: (value, options) => native.say(inspect(value, options)),
  table: say,
  assert: (holds, ...args) => void (holds || say('Assertion failed', ...args)),
  count: (label = 'default') => {
    counts.set(label, (counts.get(label) ?? 0) + 1);
    say(`${label}: ${counts.get(label)}`);
  },
  time: (label = 'default') => void began.set(label, native.now()),
  timeEnd: (label = 'default') => say(`${label}: ${(native.now() - began.get(label)).toFixed(3)}ms`),
  group() {},
  groupEnd() {},
};

const hrtime = (before) => {
  const ns = Math.round(native.now() * 1e6);
  const now = [Math.floor(ns / 1e9), ns % 1e9];
  if (!before) return now;
  const [seconds, rest] = [now[0] - before[0], now[1] - before[1]];
  return rest < 0 ? [seconds - 1, rest + 1e9] : [seconds, rest];
};
hrtime.bigint = () => BigInt(Math.round(native.now() * 1e6));

const process = {
  env: native.environment(),
  argv: ['node', facts.file],
  execArgv: [],
  pid: facts.pid,
  platform: 'linux',
  arch: facts.arch,
  version: 'v22.18.0',
  versions: { node: '22.18.0', quickjs: 'ng' },
  cwd: () => facts.cwd,
  uptime: () => native.now() / 1000,
  hrtime,
  nextTick: (fn, ...args) => queueMicrotask(() => fn(...args)),
  memoryUsage: () => ({ rss: 0, heapTotal: 0, heapUsed: 0, external: 0, arrayBuffers: 0 }),
  stdout: { write: (text) => (native.say(String(text).replace(/\n$/, '')), true), isTTY: false },
  stderr: { write: (text) => (native.say(String(text).replace(/\n$/, '')), true), isTTY: false },
  on: () => process,
  once: () => process,
  off: () => process,
  removeListener: () => process,
  emitWarning: (text) => native.say(`Warning: ${text}`),
};

const performance = { now: () => native.now(), timeOrigin: Date.now() - native.now(), mark() {}, measure() {} };

const randomBytes = (length) => Buffer.from(native.randomBytes(length));
const getRandomValues = (array) => {
  const bytes = native.randomBytes(array.byteLength);
  new Uint8Array(array.buffer, array.byteOffset, array.byteLength).set(bytes);
  return array;
};
const randomUUID = () => native.uuid();

const structuredClone = (value, made = new Map()) => {
  if (typeof value === 'function' || typeof value === 'symbol') throw new Error('value could not be cloned');
  if (value === null || typeof value !== 'object') return value;
  if (made.has(value)) return made.get(value);
  const remember = (copy) => (made.set(value, copy), copy);
  if (value instanceof Date) return remember(new Date(value));
  if (value instanceof RegExp) return remember(new RegExp(value));
  if (ArrayBuffer.isView(value)) return remember(value.slice());
  const inner = (item) => structuredClone(item, made);
  if (value instanceof Map) {
    const copy = remember(new Map());
    for (const [k, v] of value) copy.set(inner(k), inner(v));
    return copy;
  }
  if (value instanceof Set) {
    const copy = remember(new Set());
    for (const item of value) copy.add(inner(item));
    return copy;
  }
  const copy = remember(Array.isArray(value) ? [] : value instanceof Error ? new Error(value.message) : {});
  for (const name of Object.keys(value)) copy[name] = inner(value[name]);
  return copy;
};

const exitCode = { value: undefined, changed: (code) => native.exitCode(Number(code)) };
const ee = emitter(native.count);
const functions = makeFunctions(native.functionAdded);
const artillery = makeArtillery(facts, say, exitCode);

for (const [name, value] of Object.entries({
  global: globalThis, setTimeout, setInterval, setImmediate, clearTimeout, clearInterval: clearTimeout,
  clearImmediate: clearTimeout, console, process, performance, structuredClone, Buffer, TextEncoder, TextDecoder, atob, btoa,
  URL, URLSearchParams, artillery, crypto: { randomUUID, getRandomValues },
})) {
  Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
}
if (typeof globalThis.queueMicrotask !== 'function') {
  globalThis.queueMicrotask = (fn) => void Promise.resolve().then(fn);
}
