// How a virtual user's call into the processor goes, in QuickJS.
//
// `context.vars` is a proxy over the virtual user's variables, which stay where they are: a step that sets one of fifty
// costs one. Objects and lists that were read or set are written back when the call ends, so changes inside are seen.

const FUNCTION = 0, BEFORE_REQUEST = 1, AFTER_RESPONSE = 2, ON_ERROR = 3, WHILE_TRUE = 4, IF_TRUE = 5,
  CONNECT = 6;

/** Large values of the plan that many virtual users read: made once. */
const shared = [];
const sharedValue = (index) => (shared[index] ??= native.shared(index));

const isObject = (value) => (typeof value === 'object' && value !== null) || typeof value === 'function';

const varsHandler = {
  get(seat, name) {
    const { touched, kept } = seat;
    if (touched !== undefined && touched.has(name)) return touched.get(name);
    if (typeof name === 'symbol') return undefined;
    const value = native.get(seat.id, name);
    if (kept !== undefined) {
      const original = kept.get(name);
      if (original !== undefined && native.isKept(seat.id, seat.uid, name)) {
        touch(seat, name, original);
        return original;
      }
    }
    switch (typeof value) {
      case 'undefined':
        return Object.prototype[name];
      case 'bigint':
        return sharedValue(Number(value));
      case 'object':
        if (value !== null) touch(seat, name, value);
    }
    return value;
  },
  set(seat, name, value) {
    if (typeof name === 'symbol') return true;
    if (isObject(value)) touch(seat, name, value);
    else {
      seat.touched?.delete(name);
      put(seat, name, value);
    }
    return true;
  },
  has: (seat, name) => seat.touched?.has(name) || (typeof name === 'string' && native.get(seat.id, name) !== undefined),
  deleteProperty(seat, name) {
    seat.touched?.delete(name);
    if (typeof name === 'string') put(seat, name, undefined);
    return true;
  },
  ownKeys(seat) {
    const names = new Set(native.names(seat.id));
    if (seat.touched !== undefined) for (const name of seat.touched.keys()) names.add(name);
    return [...names];
  },
  getOwnPropertyDescriptor(seat, name) {
    if (!varsHandler.has(seat, name)) return undefined;
    return { value: varsHandler.get(seat, name), writable: true, enumerable: true, configurable: true };
  },
  defineProperty(seat, name, { value, get }) {
    return varsHandler.set(seat, name, get ? get() : value);
  },
};

const touch = (seat, name, value) => (seat.touched ??= new Map()).set(name, value);

const put = (seat, name, value) => {
  if (native.set(seat.id, name, value)) {
    (seat.kept ??= new Map()).set(name, value);
    native.keep(seat.id, seat.uid, name);
  } else seat.kept?.delete(name);
};

/** Where a context has its seat: a private member would cost a function call of its own. */
const SEAT = Symbol('seat');

/** `context`: what is not asked for is not made. */
class Context {
  constructor(seat) {
    this[SEAT] = seat;
    this.vars = seat.vars;
    this._uid = seat.uid;
  }
  get funcs() {
    return (this[SEAT].funcs ??= functionsFor(functions, this));
  }
  get _jar() {
    const seat = this[SEAT];
    return (seat.jar ??= new Jar({
      list: () => native.cookies(seat.id) ?? [],
      put: (text, url) => native.putCookie(seat.id, text, url),
      clear: () => native.clearCookies(seat.id),
    }));
  }
  get sockets() {
    return socketsOf(wireFor(this[SEAT]));
  }
  get ws() {
    return webSocketOf(wireFor(this[SEAT]));
  }
  get scenario() {
    return (this[SEAT].scenario ??= native.scenario(this[SEAT].id));
  }
}

/**
 * A virtual user's place, for all its calls: as in Artillery its functions see one `context`, so what they put there
 * stays. All members stand there from the beginning, since setting one costs a tenth of adding it.
 */
const seatFor = (uid) => {
  const seat = {
    uid,
    // The call under way, or the last one.
    id: 0,
    isBusy: false,
    // What the call hands back when it ends.
    value: null,
    context: undefined,
    vars: undefined,
    done: undefined,
    touched: undefined,
    // What a virtual user left that `Value` cannot hold: dates, functions, instances.
    kept: undefined,
    funcs: undefined,
    jar: undefined,
    scenario: undefined,
    // Whose branch this is.
    trunk: undefined,
  };
  seat.vars = new Proxy(seat, varsHandler);
  seat.context = new Context(seat);
  return seat;
};

/**
 * `next` or `done` of a call. It serves the next calls too, a closure being dear, until a call ends later than it returns:
 * from then on the old one is nobody's.
 */
const doneFor = (seat) => {
  const done = (error) => {
    if (seat.done === done) finish(seat, error);
  };
  return (seat.done = done);
};

/** A seat for a call beside another of the same virtual user: in `parallel` each branch has variables of its own. */
const branchOf = (trunk) => {
  const seat = seatFor(trunk.uid);
  seat.kept = trunk.kept;
  seat.trunk = trunk;
  Object.assign(seat.context, membersOf(trunk.context));
  return seat;
};

/** What functions put on a context. */
const membersOf = ({ vars, _uid, [SEAT]: seat, ...members }) => members;

/** The seat of the call that has not returned yet, and its outcome. */
let inside, outcome;

/** Ends a call, once: writes back what was touched, then tells the outcome. */
const finish = (seat, error) => {
  if (!seat.isBusy) return;
  seat.isBusy = false;
  try {
    if (seat.touched || seat.context.vars !== seat.vars) writeBack(seat);
  } catch (failed) {
    error ??= failed;
  }
  error = error ? errorName(error) : undefined;
  const { value } = seat;
  seat.value = null;
  if (seat.trunk) rejoin(seat);
  // A call that ends before it returns says so by what `invoke` returns.
  if (inside === seat) outcome = error ?? value;
  else {
    seat.done = undefined;
    native.finish(seat.id, error, value);
  }
};

const writeBack = (seat) => {
  const { context } = seat;
  if (context.vars !== seat.vars) {
    replaceVars(seat, context.vars);
    context.vars = seat.vars;
  }
  if (seat.touched !== undefined) writeTouched(seat);
};

const writeTouched = (seat) => {
  const { touched } = seat;
  seat.touched = undefined;
  for (const [name, value] of touched) if (typeof name === 'string') put(seat, name, value);
};

/** What a branch put on its context is on the virtual user's from now on. */
const rejoin = ({ trunk, context, kept }) => {
  if (trunk.context === null) return;
  Object.assign(trunk.context, membersOf(context));
  trunk.kept ??= kept;
};

/** A script that assigned `context.vars` means all of them. */
const replaceVars = (seat, vars) => {
  const given = isObject(vars) ? vars : {};
  for (const name of native.names(seat.id)) if (!(name in given)) varsHandler.deleteProperty(seat, name);
  for (const name of Object.keys(given)) varsHandler.set(seat, name, given[name]);
};

/**
 * Calls an exported function: `code` is its number times eight, and the kind. The outcome is what this returns: an
 * error's name, what is handed back, or null; or else, undefined being returned, it goes to `native.finish(id, …)` later.
 */
const invoke = (seat, id, code, first, second) => {
  seat = begun(seat, id);
  const { fn, isPlain } = entries[code >> 3];
  try {
    callWith(seat, fn, isPlain, code & 7, first, second);
  } catch (error) {
    finish(seat, error ?? 'undefined');
  }
  inside = undefined;
  return outcome;
};

/** The same for `beforeRequest`, whose parameters `make` makes. */
const beforeOf = ({ fn, isPlain }) => (seat, id, make, uuid) => {
  // `begun`, written out: this is called for each request.
  if (seat.isBusy) seat = branchOf(seat);
  seat.id = id;
  seat.isBusy = true;
  seat.touched = outcome = undefined;
  inside = seat;
  const params = (seat.value = make(uuid));
  try {
    if (isPlain) fn(params, seat.context, ee, seat.done ?? doneFor(seat));
    else await_(seat, fn(params, seat.context, ee));
  } catch (error) {
    finish(seat, error ?? 'undefined');
  }
  make.last = params;
  inside = undefined;
  return outcome;
};

/** The seat for a call that begins. */
const begun = (seat, id) => {
  if (seat.isBusy) seat = branchOf(seat);
  seat.id = id;
  seat.isBusy = true;
  seat.touched = outcome = undefined;
  return (inside = seat);
};

const callWith = (seat, fn, isPlain, kind, first, second) => {
  const { context } = seat;
  const next = seat.done ?? doneFor(seat);
  switch (kind) {
    case FUNCTION:
      return isPlain ? void fn(context, ee, next) : await_(seat, fn(context, ee));
    case BEFORE_REQUEST:
      seat.value = first;
      return isPlain ? void fn(first, context, ee, next) : await_(seat, fn(first, context, ee));
    case AFTER_RESPONSE:
      return isPlain ? void fn(first, second, context, ee, next) : await_(seat, fn(first, second, context, ee));
    case ON_ERROR:
      return void fn(failure(first), second, context, ee, next);
    case WHILE_TRUE:
      return void fn(context, (goesOn) => {
        if (seat.done !== next) return;
        seat.value = Boolean(goesOn);
        next();
      });
    case CONNECT:
      seat.value = first;
      return isPlain ? void fn(first, context, next) : await_(seat, fn(first, context));
    case IF_TRUE:
      seat.value = Boolean(fn(context.vars));
      return next();
  }
};

const failure = ({ name, message, code }) => Object.assign(new Error(message ?? name), code ? { code } : {});

/** Artillery awaits what is no plain function: what it answers counts for nothing, and what it throws is the error. */
const await_ = (seat, promise) => {
  const next = seat.done ?? doneFor(seat);
  Promise.resolve(promise).then(() => next(), (error) => next(error ?? 'undefined'));
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
const wireFor = (seat) => {
  const number = native.wire(seat.id);
  if (number !== undefined) wireOf(number).contexts.add(seat);
  return number;
};

/** Something came for listeners, or their connections are gone. */
const hear = (number, kind, place, text, answer) => {
  if (kind === undefined) return wireGone(number);
  wireHeard(number, kind, place, text, answer);
  // Objects that a listener changed inside of: a call that is not over writes them back itself.
  for (const seat of wires.get(number)?.contexts ?? []) if (!seat.isBusy && seat.touched !== undefined) writeTouched(seat);
};

/** A function a template calls. */
const callTemplate = (name, args) => {
  const fn = functions[name];
  return typeof fn === 'function' ? fn(...args) : undefined;
};

/** Members of an object that is made ready for. */
const STEPS_MAX = 32;

/**
 * Readies a function that makes objects with these names. QuickJS remembers which member follows which only while an
 * object stands at that place: some do, so the next object of the kind is not worked out anew. What was made last stands
 * where the hook left it.
 */
const prepare = (make, objects) => {
  make.last = undefined;
  make.steps = objects.map((names) =>
    names.slice(0, STEPS_MAX).map((_, at) => {
      const object = {};
      for (const name of names.slice(0, at + 1)) object[name] = undefined;
      return object;
    }));
  return make;
};

let entries = [];
/** The processor's functions; their names in order. */
const setEntries = (exported) => {
  const all = functionsOf(exported);
  entries = Object.values(all).map((fn) => ({ fn, isPlain: isCallbackForm(fn) }));
  return Object.keys(all);
};
/** `beforeRequest` calls of them, in order. */
const befores = () => entries.map(beforeOf);

/** A virtual user is over. Without circles what is done with is freed at once, and the collector has nothing to look for. */
const forget = (seat) => {
  seat.isBusy = false;
  seat.context = seat.vars = seat.value = null;
  seat.done = seat.touched = seat.kept = seat.funcs = seat.jar = undefined;
};
