// How a virtual user's call into the processor goes, in QuickJS.
//
// `context.vars` is a proxy over the virtual user's variables, which stay where they are: a step that sets one of fifty
// costs one. Objects and lists that were read or set are written back when the call ends, so changes inside are seen.

const FUNCTION = 0, BEFORE_REQUEST = 1, AFTER_RESPONSE = 2, ON_ERROR = 3, WHILE_TRUE = 4, IF_TRUE = 5,
  CONNECT = 6;

/** Kinds whose callers want a value. */
const HANDS_BACK = [false, true, false, false, true, true, true];

/** Virtual users whose leftovers are kept, oldest forgotten first. */
const KEPT_MAX = 50000;

/** What a virtual user left that `Value` cannot hold: dates, functions, instances, and members of `context`. */
const kept = new Map();

const keep = (uid) => {
  let all = kept.get(uid);
  if (all === undefined) {
    if (kept.size >= KEPT_MAX) kept.delete(kept.keys().next().value);
    kept.set(uid, (all = { vars: new Map(), members: null }));
  }
  return all;
};

/** Large values of the plan that many virtual users read: made once. */
const shared = [];
const sharedValue = (index) => (shared[index] ??= native.shared(index));

const isObject = (value) => (typeof value === 'object' && value !== null) || typeof value === 'function';

const varsHandler = {
  get(call, name) {
    const { touched } = call;
    if (touched !== undefined && touched.has(name)) return touched.get(name);
    if (typeof name === 'symbol') return undefined;
    const value = native.get(call.id, name);
    if (kept.size > 0) {
      const original = kept.get(call.uid)?.vars.get(name);
      if (original !== undefined && native.isKept(call.id, call.uid, name)) {
        touch(call, name, original);
        return original;
      }
    }
    switch (typeof value) {
      case 'undefined':
        return Object.prototype[name];
      case 'bigint':
        return sharedValue(Number(value));
      case 'object':
        if (value !== null) touch(call, name, value);
    }
    return value;
  },
  set(call, name, value) {
    if (typeof name === 'symbol') return true;
    if (isObject(value)) touch(call, name, value);
    else {
      call.touched?.delete(name);
      put(call, name, value);
    }
    return true;
  },
  has: (call, name) => call.touched?.has(name) || (typeof name === 'string' && native.get(call.id, name) !== undefined),
  deleteProperty(call, name) {
    call.touched?.delete(name);
    if (typeof name === 'string') put(call, name, undefined);
    return true;
  },
  ownKeys(call) {
    const names = new Set(native.names(call.id));
    if (call.touched !== undefined) for (const name of call.touched.keys()) names.add(name);
    return [...names];
  },
  getOwnPropertyDescriptor(call, name) {
    if (!varsHandler.has(call, name)) return undefined;
    return { value: varsHandler.get(call, name), writable: true, enumerable: true, configurable: true };
  },
  defineProperty(call, name, { value, get }) {
    return varsHandler.set(call, name, get ? get() : value);
  },
};

const touch = (call, name, value) => (call.touched ??= new Map()).set(name, value);

const put = (call, name, value) => {
  if (native.set(call.id, name, value)) {
    keep(call.uid).vars.set(name, value);
    native.keep(call.id, call.uid, name);
  } else if (kept.size > 0) kept.get(call.uid)?.vars.delete(name);
};

/** Where a context has its call: a private member would cost a function call of its own. */
const IN_CALL = Symbol('call');

/** `context`: what is not asked for is not made. */
class Context {
  constructor(call) {
    this[IN_CALL] = call;
    this.vars = new Proxy(call, varsHandler);
    this._uid = call.uid;
  }
  get funcs() {
    return (this[IN_CALL].funcs ??= functionsFor(functions, this));
  }
  get _jar() {
    const { id } = this[IN_CALL];
    return (this[IN_CALL].jar ??= new Jar({
      list: () => native.cookies(id) ?? [],
      put: (text, url) => native.putCookie(id, text, url),
      clear: () => native.clearCookies(id),
    }));
  }
  get sockets() {
    return socketsOf(wireFor(this[IN_CALL]));
  }
  get ws() {
    return webSocketOf(wireFor(this[IN_CALL]));
  }
  get scenario() {
    return (this[IN_CALL].scenario ??= native.scenario(this[IN_CALL].id));
  }
}
const OWN_MEMBERS = 2;

/** Parameters of so many members are made ready for. */
const STEPS_MAX = 32;

/**
 * Objects with the first, the first two, … of these members. QuickJS remembers which member follows which only while an
 * object stands at that place; these do, so the next object of the kind is not worked out anew.
 */
const steps = (prototype, names) =>
  names.slice(0, STEPS_MAX).map((_, at) => {
    const object = Object.create(prototype);
    for (const name of names.slice(0, at + 1)) object[name] = undefined;
    return object;
  });
// On the class, since what no function names is freed.
Context.steps = [
  steps(Object.prototype, ['id', 'uid', 'kind', 'isInside', 'context', 'vars']),
  steps(Context.prototype, [IN_CALL, 'vars', '_uid']),
];

/** Ends a call, once: writes back what was touched, then tells the outcome. */
const finish = (call, error, value) => {
  const { context } = call;
  if (context === null) return;
  try {
    writeBack(call, context);
  } catch (failed) {
    error ??= failed;
  }
  // Without circles what is done with is freed at once, and the collector has nothing to look for.
  call.context = call.vars = null;
  if (call.funcs !== undefined) call.funcs = null;
  // A call that ends before it returns, and hands nothing back, says so by what `invoke` returns.
  if (call.isInside && !HANDS_BACK[call.kind]) call.outcome = errorName(error) ?? null;
  else native.finish(call.id, errorName(error), value);
};

const writeBack = (call, context) => {
  if (context.vars !== call.vars) replaceVars(call, context.vars);
  if (call.touched !== undefined) {
    for (const [name, value] of call.touched) if (typeof name === 'string') put(call, name, value);
  }
  const members = Object.keys(context);
  if (members.length > OWN_MEMBERS) {
    const extra = {};
    for (const name of members) if (name !== 'vars' && name !== '_uid') extra[name] = context[name];
    keep(call.uid).members = extra;
    native.keep(call.id, call.uid);
  }
};

/** A script that assigned `context.vars` means all of them. */
const replaceVars = (call, vars) => {
  const given = isObject(vars) ? vars : {};
  for (const name of native.names(call.id)) if (!(name in given)) varsHandler.deleteProperty(call, name);
  for (const name of Object.keys(given)) varsHandler.set(call, name, given[name]);
};

/**
 * Calls an exported function. The outcome is what this returns, null or the error's name; or else, undefined being
 * returned, it goes to `native.finish(id, …)`, now or later.
 */
const invoke = (id, index, kind, uid, first, second) => {
  const entry = entries[index];
  const { fn, isPlain } = entry;
  if (entry.steps === null && isObject(first)) entry.steps = steps(Object.prototype, Object.keys(first));
  // A member costs half as much as the whole of a short function: what few calls need is added when it is needed. The
  // context is there until the call is over.
  const call = { id, uid, kind, isInside: true, context: undefined, vars: undefined };
  const context = new Context(call);
  call.context = context;
  call.vars = context.vars;
  if (kept.size > 0) Object.assign(context, kept.get(uid)?.members);
  try {
    if (isPlain || (kind >= ON_ERROR && kind !== CONNECT)) callBack(call, fn, kind, context, first, second);
    else await_(call, fn, kind, context, first, second);
  } catch (error) {
    finish(call, error ?? 'undefined');
  }
  call.isInside = false;
  return call.outcome;
};

const callBack = (call, fn, kind, context, first, second) => {
  const done = (error) => finish(call, error, first);
  switch (kind) {
    case FUNCTION:
      return void fn(context, ee, done);
    case BEFORE_REQUEST:
      return void fn(first, context, ee, done);
    case AFTER_RESPONSE:
      return void fn(first, second, context, ee, done);
    case ON_ERROR:
      return void fn(failure(first), second, context, ee, done);
    case WHILE_TRUE:
      return void fn(context, (goesOn) => finish(call, undefined, Boolean(goesOn)));
    case CONNECT:
      return void fn(first, context, done);
    case IF_TRUE:
      return finish(call, undefined, Boolean(fn(context.vars)));
  }
};

const failure = ({ name, message, code }) => Object.assign(new Error(message ?? name), code ? { code } : {});

const await_ = (call, fn, kind, context, first, second) => {
  let promise;
  if (kind === FUNCTION) promise = fn(context, ee);
  else if (kind === BEFORE_REQUEST) promise = fn(first, context, ee);
  else if (kind === CONNECT) promise = fn(first, context);
  else promise = fn(first, second, context, ee);
  Promise.resolve(promise).then(() => finish(call, undefined, first), (error) => finish(call, error ?? 'undefined'));
};

/** What wires.js needs of weir. */
const wiring = {
  kind: native.wireKind,
  places: native.wirePlaces,
  isOpen: native.wireIsOpen,
  listen: native.wireListen,
  emit: native.wireEmit,
  close: native.wireClose,
  failed: (error) => native.say(`Error in a listener of the processor: ${error?.stack ? `${error}\n${error.stack}` : error}`),
};

/** The number of a virtual user's connections; its context is remembered, for what listeners do to its variables. */
const wireFor = (call) => {
  const number = native.wire(call.id);
  if (number !== undefined) wireOf(number).contexts.add(call);
  return number;
};

/** Something came for listeners, or their connections are gone. */
const hear = (number, kind, place, text, answer) => {
  if (kind === undefined) return wireGone(number);
  wireHeard(number, kind, place, text, answer);
  // Objects that a listener changed inside of: a call that is not over writes them back itself.
  for (const call of wires.get(number)?.contexts ?? []) {
    if (call.context !== null || call.touched === undefined) continue;
    for (const [name, value] of call.touched) if (typeof name === 'string') put(call, name, value);
  }
};

/** A function a template calls. */
const callTemplate = (name, args) => {
  const fn = functions[name];
  return typeof fn === 'function' ? fn(...args) : undefined;
};

let entries = [];
/** The processor's functions; their names in order. */
const setEntries = (exported) => {
  const all = functionsOf(exported);
  entries = Object.values(all).map((fn) => ({ fn, isPlain: isCallbackForm(fn), steps: null }));
  return Object.keys(all);
};
const forget = (uid) => void kept.delete(uid);
