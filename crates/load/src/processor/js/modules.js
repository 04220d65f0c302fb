// `require`, and the decision whether QuickJS can run a processor at all.

/** Globals of Node that are not given here: a file that uses one goes to Node. */
const NODE_ONLY = ['fetch', 'WebSocket', 'XMLHttpRequest', 'FormData', 'Blob', 'File', 'Headers', 'Request', 'Response',
  'AbortController', 'AbortSignal', 'Intl', 'WebAssembly', 'Worker', 'MessageChannel', 'BroadcastChannel', 'ReadableStream',
  'WritableStream', 'TransformStream', 'EventTarget', 'Event', 'CompressionStream', 'navigator', 'localStorage'];
/** Members that are missing of globals that are given. */
const NODE_ONLY_MEMBERS = [/\bcrypto\.subtle\b/, /\btoLocale(Date|Time)String\(\s*['"]/, /\bprocess\.(exit|kill|abort|binding|send|report|chdir|stdin)\b/,
  /\bartillery\.(metrics\.(?!event\()|plugins\.\w)/, /\brequire\.(resolve|cache|extensions|main)\b/, /\bAsyncLocalStorage\b/];

const needsNode = (why) => {
  native.needsNode(why);
  throw new Error(`needs Node.js: ${why}`);
};

/** Looks through a file for what only Node gives. */
const check = (source, file) => {
  if (facts.isForced) return;
  const text = source.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|[\s;{}(,])\/\/.*$/gm, '$1');
  for (const name of NODE_ONLY) {
    if (!text.includes(name)) continue;
    const isUsed = new RegExp(`(?<![\\w$.'"-])${name}\\s*[.(]|\\bnew\\s+${name}\\b|\\bglobalThis\\.${name}\\b`).test(text);
    const isOwn = new RegExp(`\\b(function|const|let|var|class|import)\\s+(\\{[^}]*\\b)?${name}\\b`).test(text);
    if (isUsed && !isOwn) needsNode(`${file} uses ${name}`);
  }
  for (const member of NODE_ONLY_MEMBERS) {
    const found = member.exec(text);
    if (found) needsNode(`${file} uses ${found[0]}`);
  }
  for (const [binding, name] of boundModules(text)) {
    const given = BUILTINS[name];
    const uses = new RegExp(`(?<![\\w$.])${binding.replaceAll('$', '\\$')}\\.([A-Za-z_$][\\w$]*)`, 'g');
    for (const [, member] of text.matchAll(uses)) {
      if (given[member] === undefined && !(member in Object.prototype)) needsNode(`${file} uses ${name}.${member}`);
    }
  }
};

/** `x = require('fs')` and `import x from 'fs'`, for modules that are given. */
const boundModules = (text) => {
  const forms = [/([A-Za-z_$][\w$]*)\s*=\s*require\(\s*['"](?:node:)?([\w/]+)['"]\s*\)(?!\s*[.[(])/g,
    /\bimport\s+(?:\*\s*as\s+)?([A-Za-z_$][\w$]*)\s+from\s+['"](?:node:)?([\w/]+)['"]/g];
  return forms.flatMap((form) => [...text.matchAll(form)].map(([, binding, name]) => [binding, name]))
    .filter(([, name]) => Object.hasOwn(BUILTINS, name));
};

const cache = new Map();

/** A module given here; while files are loaded, a member it lacks sends the processor to Node. */
const builtin = (name) => {
  if (!Object.hasOwn(BUILTINS, name)) needsNode(`it imports ${name}`);
  const given = BUILTINS[name];
  if (facts.isForced || typeof given === 'function') return given;
  return new Proxy(given, {
    get: (all, member) => {
      if (isLoading && typeof member === 'string' && !(member in all) && member !== '__esModule' && member !== 'then' && member !== 'default') {
        needsNode(`it uses ${name}.${member}`);
      }
      return all[member];
    },
  });
};
let isLoading = true;

const makeRequire = (from) => (name) => {
  const plain = String(name).replace(/^node:/, '');
  if (!/^(\.{0,2}\/|\.{1,2}$)/.test(plain)) return builtin(plain);
  const file = native.resolve(from, plain);
  if (file === undefined) {
    throw Object.assign(new Error(`Cannot find module '${name}' required by ${from}`), { code: 'MODULE_NOT_FOUND' });
  }
  return requireFile(file);
};

const requireFile = (file) => {
  const known = cache.get(file);
  if (known !== undefined) return known.exports;
  const module = { exports: {}, id: file, filename: file, loaded: false, children: [], paths: [] };
  cache.set(file, module);
  const source = native.readText(file);
  if (file.endsWith('.json')) module.exports = JSON.parse(source);
  else {
    if (native.isModule(file)) needsNode(`it requires ${file}, an ES module`);
    check(source, file);
    const run = native.compile(file, source);
    const require = makeRequire(file);
    module.require = require;
    run.call(module.exports, module.exports, require, module, file, path.dirname(file));
  }
  module.loaded = true;
  return module.exports;
};

const RESERVED = new Set(('await break case catch class const continue debugger default delete do else enum export extends false finally for '
  + 'function if import in instanceof new null return super switch this throw true try typeof var void while with yield let static').split(' '));

/** The text of an ES module that exports what a CommonJS file or a module given here exports. */
const wrapped = (name) => {
  const isGiven = name.startsWith('weir:');
  const exported = isGiven ? builtin(name.slice(5)) : requireFile(name);
  const names = Object.keys(Object(isGiven ? BUILTINS[name.slice(5)] : exported))
    .filter((key) => /^[A-Za-z_$][\w$]*$/.test(key) && !RESERVED.has(key));
  const key = JSON.stringify(name);
  return `const m = globalThis[Symbol.for('weir')](${key});\nexport default m;\n`
    + names.map((own) => `export const ${own} = m.${own};\n`).join('');
};
const imported = (name) => (name.startsWith('weir:') ? builtin(name.slice(5)) : requireFile(name));
Object.defineProperty(globalThis, Symbol.for('weir'), { value: Object.assign(imported, { wrapped, check }) });

/** `config`, `scenarios` and the rest of a script written in JavaScript. */
const scriptOf = (exported) => {
  const own = exported && exported.default;
  return own && typeof own === 'object' && (own.config || own.scenarios) ? { ...exported, ...own, default: undefined } : { ...exported };
};

const loaded = () => {
  isLoading = false;
};

return { invoke, seatFor, prepare, befores, setEntries, callTemplate, forget, hear, runTimer, requireFile, loaded,
  scriptOf };
