// Runs a processor in Node: frames of four bytes of length and JSON come in over descriptor 0, a socket, and answers go
// back over it. The other end is node.rs; wire.rs says how values are written.

const fs = require('node:fs');
const net = require('node:net');
const path = require('node:path');
const Module = require('node:module');
const { pathToFileURL } = require('node:url');
const { format } = require('node:util');
const { Writable } = require('node:stream');

/** Virtual users whose context is kept, oldest forgotten first. */
const CONTEXTS_MAX = 50000;
const SPECIAL = '\u0000w', REFERENCE = '\u0000r';
const SPECIALS = { undefined: undefined, NaN: NaN, Infinity: Infinity, '-Infinity': -Infinity };

const socket = new net.Socket({ fd: 0, readable: true, writable: true });
const sendText = (text) => {
  const length = Buffer.allocUnsafe(4);
  length.writeUInt32BE(Buffer.byteLength(text));
  socket.cork();
  socket.write(length);
  socket.write(text);
  socket.uncork();
};
const send = (message) => sendText(JSON.stringify(message));

// Descriptor 1 has its own use, below: what is written to it goes where console.log goes.
Object.defineProperty(process, 'stdout', { value: new Writable(), configurable: true, enumerable: true });

const say = (...args) => send({ op: 'say', text: format(...args) });
for (const name of ['log', 'info', 'debug', 'warn', 'error', 'trace']) console[name] = say;
for (const stream of [process.stdout, process.stderr]) {
  stream.write = (text, encoding, done) => {
    send({ op: 'say', text: String(text).replace(/\n$/, '') });
    const called = typeof encoding === 'function' ? encoding : done;
    if (called) setImmediate(called);
    return true;
  };
}

let emitted = [];
const flush = () => {
  if (emitted.length) send({ op: 'emit', list: emitted.splice(0) });
};
const ee = emitter((kind, name, value) => {
  if (emitted.push([kind, name, value]) === 1) setImmediate(flush);
});
const functions = makeFunctions((name) => send({ op: 'function', name }));
const exitCode = { value: undefined, changed: (code) => send({ op: 'exit', code: Number(code) }) };

const replace = function (key, value) {
  const original = this[key];
  if (Buffer.isBuffer(original)) return original.toString();
  if (original === undefined) return { [SPECIAL]: 'undefined' };
  if (typeof original === 'number' && !Number.isFinite(original)) return { [SPECIAL]: String(original) };
  return typeof value === 'bigint' ? Number(value) : value;
};
/** A value as it travels; undefined for what cannot. */
const encode = (value) => {
  if (value === undefined || typeof value === 'function' || typeof value === 'symbol') return undefined;
  try {
    return JSON.stringify(value, replace);
  } catch {
    return undefined;
  }
};
const revive = (key, value) =>
  value !== null && typeof value === 'object' && SPECIAL in value ? SPECIALS[value[SPECIAL]] : value;
const decode = (text) => (text.includes('\\u0000w') ? JSON.parse(text, revive) : JSON.parse(text));

const references = [];
const contexts = new Map();

class Context {
  constructor(uid, scenario) {
    this.vars = {};
    this._uid = uid;
    this.scenario = scenario;
    Object.defineProperty(this, 'funcs', { value: functionsFor(functions, this), configurable: true, writable: true });
    Object.defineProperty(this, 'known', { value: new Map() });
    // What came with the last call, and what was done to it since.
    Object.defineProperty(this, 'cookies', { value: { all: [], changes: [] } });
    Object.defineProperty(this, 'wires', { value: undefined, writable: true });
    Object.defineProperty(this, '_jar', { value: new Jar(cookiesOf(this.cookies)), writable: true });
  }
  get sockets() {
    return socketsOf(wireFor(this));
  }
  get ws() {
    return webSocketOf(wireFor(this));
  }
}

/** Virtual users' connections as weir told of them: their kind, and which namespaces are connected. */
const told = new Map();
let lastAnswer = 0;

/** What wires.js needs of weir. */
const wiring = {
  kind: (number) => told.get(number)?.kind,
  places: (number) => [...(told.get(number)?.places.keys() ?? [])],
  isOpen: (number, place) => told.get(number)?.places.get(place) === true,
  listen: (number) => send({ op: 'listen', number }),
  emit(number, place, text, wantsAnswer) {
    const answer = wantsAnswer ? (lastAnswer += 1) : undefined;
    send({ op: 'emit', number, place, text, answer });
    return answer;
  },
  close(number, place) {
    told.get(number)?.places.set(place, false);
    send({ op: 'close', number, place });
  },
  failed: (error) => say('Error in a listener of the processor:', (error && error.stack) || error),
};

/** The number of a virtual user's connections; its context is remembered, for what listeners do to its variables. */
const wireFor = (context) => {
  if (context.wires !== undefined) wireOf(context.wires).contexts.add(context);
  return context.wires;
};

/** Something came for listeners, or their connections are gone. */
const hear = ({ number, kind, place, text, answer }) => {
  if (kind === undefined) return told.delete(number) && wireGone(number);
  if (kind === CONNECTED || kind === LOST) told.get(number)?.places.set(place, kind === CONNECTED);
  wireHeard(number, kind, place, text, answer);
  // What they set at once; after a pause of theirs it is told with what comes next.
  for (const context of wires.get(number)?.contexts ?? []) {
    const [changed, gone] = changes(context);
    if (changed || gone.length) sendText(`{"op":"left","number":${number},"vars":{${changed}},"gone":${JSON.stringify(gone)}}`);
  }
};

const cookiesOf = (cookies) => ({
  list: () => cookies.all,
  put(text, url) {
    const cookie = readCookie(text, url);
    if (cookie === undefined) return false;
    const isOther = ({ key, domain, path }) => key !== cookie.key || domain !== cookie.domain || path !== cookie.path;
    cookies.all = [...cookies.all.filter(isOther), cookie];
    return cookies.changes.push([text, url]) > 0;
  },
  clear() {
    cookies.all = [];
    cookies.changes.push(null);
  },
});

/** A Set-Cookie text as far as functions of the same call see it; weir reads it again. */
const readCookie = (text, url) => {
  const [, key, value, rest] = /^\s*([^=;]+?)\s*=\s*([^;]*?)\s*(?:;(.*))?$/.exec(text) ?? [];
  if (key === undefined) return undefined;
  const { host, path } = placeOf(url);
  const set = (name) => new RegExp(`(?:^|;)\\s*${name}\\s*=\\s*\\.?([^;]*)`, 'i').exec(rest ?? '')?.[1].trim();
  const domain = set('domain');
  const folder = path.slice(0, path.lastIndexOf('/')) || '/';
  return { key, value, domain: domain || host, path: set('path') || folder, hostOnly: !domain, secure: /;\s*secure\b/i.test(text) };
};

const contextOf = ({ uid, scenario, vars, cookies, wires }) => {
  let context = contexts.get(uid);
  if (context === undefined) {
    if (contexts.size >= CONTEXTS_MAX) contexts.delete(contexts.keys().next().value);
    contexts.set(uid, (context = new Context(uid, references[scenario])));
  }
  context.cookies.all = cookies ?? [];
  if (wires !== undefined) {
    const { number, kind, open, shut } = wires;
    context.wires = number;
    told.set(number, { kind, places: new Map([...open.map((place) => [place, true]), ...shut.map((place) => [place, false])]) });
  }
  const { known } = context;
  for (const name of Object.keys(context.vars)) if (!(name in vars) && known.has(name)) delete context.vars[name];
  for (const [name, value] of Object.entries(vars)) {
    const isReference = value !== null && typeof value === 'object' && REFERENCE in value;
    const text = isReference ? `@${value[REFERENCE]}` : encode(value);
    // What the processor itself left keeps its identity: dates, instances, lists it holds elsewhere.
    if (known.get(name) === text && name in context.vars) continue;
    known.set(name, text);
    context.vars[name] = isReference ? references[value[REFERENCE]] : value;
  }
  return context;
};

/** What the call changed: texts by name, and names that are gone. */
const changes = (context) => {
  const { known } = context;
  const vars = context.vars !== null && typeof context.vars === 'object' ? context.vars : (context.vars = {});
  const changed = [], gone = [];
  for (const name of Object.keys(vars)) {
    const before = known.get(name);
    if (before?.[0] === '@' && vars[name] === references[before.slice(1)]) continue;
    const text = encode(vars[name]);
    if (text === before) continue;
    if (text === undefined) gone.push(name), known.delete(name);
    else changed.push(`${JSON.stringify(name)}:${text}`), known.set(name, text);
  }
  for (const name of known.keys()) if (!(name in vars)) gone.push(name), known.delete(name);
  return [changed.join(','), gone];
};

const FUNCTION = 0, BEFORE_REQUEST = 1, AFTER_RESPONSE = 2, ON_ERROR = 3, WHILE_TRUE = 4, IF_TRUE = 5, CONNECT = 6;
let processor = {};

const call = async (message) => {
  const { id, name, kind } = message;
  const context = contextOf(message);
  let isOver = false;
  const finish = (error, value) => {
    if (isOver) return;
    isOver = true;
    flush();
    const [changed, gone] = changes(context);
    const parts = [`"op":"end","id":${id},"vars":{${changed}},"gone":${JSON.stringify(gone)}`];
    const made = context.cookies.changes.splice(0);
    if (made.length) parts.push(`"cookies":${JSON.stringify(made)}`);
    const named = errorName(error);
    if (named !== undefined) parts.push(`"error":${JSON.stringify(named)}`);
    const text = kind === AFTER_RESPONSE ? undefined : encode(value);
    if (text !== undefined) parts.push(`"value":${text}`);
    sendText(`{${parts.join(',')}}`);
  };
  try {
    const fn = processor[name];
    const args = argumentsOf(message, context);
    if (kind === IF_TRUE) return finish(undefined, Boolean(fn(context.vars)));
    if (kind === WHILE_TRUE) return void fn(context, (goesOn) => finish(undefined, Boolean(goesOn)));
    if (kind === ON_ERROR || isCallbackForm(fn)) return void fn(...args, (error) => finish(error, message.first));
    await fn(...args);
    finish(undefined, message.first);
  } catch (error) {
    finish(error ?? 'undefined');
  }
};

const argumentsOf = ({ kind, first, second }, context) => {
  switch (kind) {
    case BEFORE_REQUEST:
      return [first, context, ee];
    case AFTER_RESPONSE:
      return [first, second, context, ee];
    case ON_ERROR:
      return [Object.assign(new Error(first.message ?? first.name), first.code ? { code: first.code } : {}), second, context, ee];
    case CONNECT:
      return [first, context];
    default:
      return [context, ee];
  }
};

class Refusal extends Error {}

const isTypescript = (file) => /\.[mc]?tsx?$/.test(file);

/** The folder of a program on PATH, behind its links. */
const folderOf = (program) => {
  for (const folder of (process.env.PATH ?? '').split(path.delimiter)) {
    try {
      return path.dirname(fs.realpathSync(path.join(folder, program)));
    } catch {}
  }
  return undefined;
};

const found = (name, folder) => {
  try {
    return require.resolve(name, { paths: [folder] });
  } catch {
    return undefined;
  }
};

/** esbuild: that of the script, beside it or above it; or Artillery's own; or the one on PATH. */
const bundler = (folder) => {
  const artillery = found('artillery/package.json', folder);
  const folders = [folder, artillery && path.dirname(artillery), folderOf('artillery'), folderOf('esbuild')];
  for (const from of folders.filter(Boolean)) {
    for (const name of ['esbuild', 'esbuild-wasm']) {
      const file = found(name, from);
      if (file) return require(file);
    }
  }
  return undefined;
};

const INSTALL = (folder) => `run \`npm install esbuild\` in ${folder}`;

const bundled = (file, esbuild) => {
  const built = esbuild.buildSync({ entryPoints: [file], bundle: true, platform: 'node', format: 'cjs', packages: 'external',
    sourcemap: 'inline', write: false, logLevel: 'silent' });
  const module = new Module(file);
  module.filename = file;
  module.paths = Module._nodeModulePaths(path.dirname(file));
  module._compile(built.outputFiles[0].text, file);
  return module.exports;
};

/** Node itself only removes the types of a file that is otherwise JavaScript. */
const stripped = async (file) => {
  const folder = path.dirname(file);
  if (!process.features.typescript) {
    throw new Refusal(`TypeScript needs esbuild, which this script does not have (Node.js ${process.version} reads no TypeScript itself): ${INSTALL(folder)}`);
  }
  try {
    return await import(pathToFileURL(file).href);
  } catch (error) {
    const place = sourceOf(error);
    const what = firstLine(error) + (place ? ` (${place})` : '');
    if (isForEsbuild(error, file)) {
      throw new Refusal(`${what}. Without esbuild, Node.js ${process.version} only removes types: no \`enum\`, no \`namespace\`, no parameter properties, no \`<T>x\`, no imports without an extension: ${INSTALL(folder)}`);
    }
    if (isUnread(error)) throw new Refusal(`${what}. esbuild reads more: ${INSTALL(folder)}`);
    throw error;
  }
};

const firstLine = (error) => String(error?.message ?? error).split('\n')[0];

/** The first file and line in the stack of an error; undefined if it names only Node's own files. */
const sourceOf = (error) => /(?:^|at |\()(?:file:\/\/)?(\/.*?:\d+)/m.exec(error?.stack)?.[1];

const isMissing = (error) => /MODULE_NOT_FOUND$/.test(error?.code ?? '');

/** Whether Node could not read a file. A function of the file that throws a SyntaxError is in the stack. */
const isUnread = (error) => error instanceof SyntaxError && !/^ +at .*file:\/\//m.test(error.stack);

/** Whether esbuild would read what Node did not. */
const isForEsbuild = (error, file) =>
  /UNSUPPORTED_TYPESCRIPT|ERR_UNKNOWN_FILE_EXTENSION|ERR_UNSUPPORTED_DIR_IMPORT|ERR_IMPORT_ATTRIBUTE/.test(error?.code ?? '') ||
  (isMissing(error) && isNear(error, file));

/** Whether the missing file is a folder, or has another extension: esbuild finds both. */
const isNear = (error, file) => {
  const name = /module '([./][^']*)'/.exec(firstLine(error))?.[1];
  if (name === undefined) return false;
  const wanted = path.resolve(path.dirname(error.requireStack?.[0] ?? file), name);
  const stem = wanted.replace(/\.[cm]?jsx?$/, '');
  const near = ['.ts', '.tsx', '.mts', '.cts', '.js', '.jsx', '.json'].map((extension) => stem + extension);
  return [wanted, ...near].some((other) => fs.existsSync(other));
};

const exportsOf = async (file) => {
  if (!isTypescript(file)) return import(pathToFileURL(file).href);
  const esbuild = bundler(path.dirname(file));
  return esbuild ? bundled(file, esbuild) : stripped(file);
};

const load = async ({ file, facts, isScript }) => {
  try {
    globalThis.artillery = makeArtillery(facts, say, exitCode);
    const exported = await exportsOf(file);
    if (!isScript) {
      processor = functionsOf(exported);
      return send({ op: 'ready', names: Object.keys(processor) });
    }
    const own = exported.default;
    const script = own && typeof own === 'object' && (own.config || own.scenarios) ? { ...exported, ...own, default: undefined } : exported;
    const named = (key, value) => (typeof value === 'function' ? value.name : value);
    send({ op: 'script', value: JSON.parse(JSON.stringify({ ...script, default: undefined, 'module.exports': undefined }, named)) });
  } catch (error) {
    send({ op: 'refused', message: refusal(error, file) });
  }
};

/** Why a file did not load, and what to do where that is known. */
const refusal = (error, file) => {
  if (!isMissing(error)) return error instanceof Refusal ? error.message : String(error?.stack || error);
  const line = error.message.split('\n')[0];
  const name = /(?:module|package) '((?:@[^/']+\/)?[^./'@][^/']*)/.exec(line)?.[1];
  return name ? `${line}: run \`npm install ${name}\` in ${path.dirname(file)}` : line;
};

const take = (text) => {
  const message = decode(text);
  switch (message.op) {
    case 'call':
      return void call(message);
    case 'reference':
      references[message.index] = message.value;
      return undefined;
    case 'heard':
      return void hear(message);
    case 'forget':
      return void contexts.delete(message.uid);
    default:
      return void load(message);
  }
};

/** Calls `each` with the text of every frame that comes. */
const readFrames = (stream, each) => {
  let held = [], heldBytes = 0, wanted = 4;
  stream.on('data', (chunk) => {
    held.push(chunk);
    heldBytes += chunk.length;
    while (heldBytes >= wanted) {
      const all = held.length === 1 ? held[0] : Buffer.concat(held);
      const length = all.readUInt32BE(0);
      wanted = 4 + length;
      held = [all];
      if (heldBytes < wanted) return;
      const text = all.toString('utf8', 4, wanted);
      held = [all.subarray(wanted)];
      heldBytes -= wanted;
      wanted = 4;
      each(text);
    }
  });
};
readFrames(socket, take);

// Functions that templates call: weir waits for each, so they have a socket of their own, descriptor 1.
const asks = new net.Socket({ fd: 1, readable: true, writable: true });
readFrames(asks, (text) => {
  const { name, arguments: args } = decode(text);
  let answer;
  try {
    const value = encode(functions[name](...args));
    answer = value === undefined ? '{}' : `{"value":${value}}`;
  } catch (error) {
    say(`Error in ${name}() of the processor:`, (error && error.stack) || error);
    answer = '{"failed":true}';
  }
  const bytes = Buffer.from(answer);
  const head = Buffer.allocUnsafe(4);
  head.writeUInt32BE(bytes.length);
  asks.write(Buffer.concat([head, bytes]));
});
asks.on('error', () => {});
socket.on('end', () => process.exit(0));
socket.on('error', () => process.exit(0));
process.on('SIGINT', () => {});
process.on('uncaughtException', (error) => say('Error in the processor:', (error && error.stack) || error));
process.on('unhandledRejection', (error) => say('Error in the processor:', (error && error.stack) || error));
