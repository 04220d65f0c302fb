// Inside of a tree's namespaces: the diagnostics of `weir lsp` beside `weir edge -t` and `weir doctor`, and each fix beside `nginx -t`.
//
//     node judge.mjs WEIR NGINX        (tests/lsp.py makes the namespaces)
//
// Prints one JSON object: what was compared, and what differs.

import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Client, rpc } from './client.mjs';

const [weir, nginx] = process.argv.slice(2);
const FOLDER = '/etc/nginx';
const MAIN = `${FOLDER}/nginx.conf`;
const VERSION = '1.22.1';
const counts = { diagnostics: 0, fixes: 0, dropped: 0, files: 0 };
const broken = [];

// The machine's answers, which the language server does not ask for: certificates, hosts, users, limits, other files.
const OF_MACHINE = [' failed (', 'host not found', 'cannot load ', 'No such file', 'open file resource limit', 'getpwnam(', 'getgrnam(',
  // These follow from the content of a certificate or of a file of parameters.
  '"ssl_stapling" ignored', 'the "ssl_dhparam" directive has no effect'];
const isOfMachine = (what) => OF_MACHINE.some((words) => what.includes(words));

const run = (program, ...words) => spawnSync(program, words, { encoding: 'utf8', maxBuffer: 1 << 28, env: { ...process.env, WEIR_LANG: 'en', LC_ALL: 'C.UTF-8' } });

// `weir edge -t` as it prints: the line of nginx, the excerpt with its line and its caret, the remedies.
function edge() {
  const problems = [];
  const text = run(weir, 'edge', '-t', '-c', MAIN).stderr;
  for (const line of text.split('\n')) {
    const first = line.match(/^nginx: \[(emerg|warn)\] (.*)$/s);
    const last = problems.at(-1);
    if (first) {
      const place = first[2].match(/^(.*) in (\/\S+):(\d+)$/s);
      problems.push({ code: first[1], what: place ? place[1] : first[2], file: place?.[2] ?? MAIN, remedies: [] });
    } else if (last && /^ *\d+ \|/.test(line) && last.line === undefined) {
      last.line = Number(line.match(/^ *(\d+)/)[1]);
    } else if (last && /^ {5} \| /.test(line) && last.column === undefined) {
      const [, indent, , beside] = line.match(/^ {6}\| (\s*)(\^+) ?(.*)$/);
      last.column = indent.length;
      if (beside) last.remedies.push(beside);
    } else if (last && line.startsWith('      = ')) {
      last.remedies.push(line.slice(8));
    }
  }
  return problems.map((one) => [one.file, one.line ?? 1, one.code, [one.what, ...one.remedies].join('\n')].join('\t'));
}

function doctor(...words) {
  const found = JSON.parse(run(weir, 'doctor', MAIN, '--no-host', '--json', ...words).stdout).findings;
  return found.map((one) => [one.file ?? MAIN, one.line ?? 1, one.rule,
    [one.what, one.remedy, ...(one.write ? [`write: ${one.write}`] : [])].join('\n')].join('\t'));
}

const isRefusal = (row) => ['refused_value', 'unknown_zone'].includes(row.split('\t')[2]) || row.includes('\tinvalid_regex\tpcre2_compile() failed');

function shown(client, source) {
  const rows = [];
  for (const [uri, { diagnostics }] of client.told) {
    for (const one of diagnostics.filter((one) => one.source === source)) {
      rows.push([fileURLToPath(uri), one.range.start.line + 1, one.code, one.message].join('\t'));
    }
  }
  return rows;
}

function compare(name, got, expected) {
  counts.diagnostics += expected.length;
  const [a, b] = [[...got].sort(), [...expected].sort()];
  const left = (from, other) => { const rest = [...other]; return from.filter((one) => { const at = rest.indexOf(one); if (at >= 0) rest.splice(at, 1); return at < 0; }); };
  for (const one of left(a, b)) broken.push(`${name}: only weir lsp says: ${one}`);
  for (const one of left(b, a)) broken.push(`${name}: weir lsp does not say: ${one}`);
}

const accepts = () => { const done = run(nginx, '-t', '-q', '-c', MAIN); return done.status === 0 ? '' : done.stderr.split('\n').find((line) => line.includes('emerg')) ?? done.stderr; };

// Makes the edits of an action on the files, and gives back what they were.
function write(edit) {
  const before = new Map();
  for (const { textDocument, edits } of edit.documentChanges) {
    const path = fileURLToPath(textDocument.uri);
    const text = readFileSync(path, 'utf8');
    before.set(path, text);
    const starts = [0];
    for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
    const offset = ({ line, character }) => (line >= starts.length ? text.length : starts[line] + character);
    const sorted = edits.map((one) => [offset(one.range.start), offset(one.range.end), one.newText]).sort((a, b) => b[0] - a[0]);
    writeFileSync(path, sorted.reduce((out, [from, to, text]) => out.slice(0, from) + text + out.slice(to), text));
  }
  return before;
}

async function fixes(client) {
  const refused = accepts();
  if (refused) return;
  for (const uri of [...client.told.keys()]) {
    const range = { start: { line: 0, character: 0 }, end: { line: 1e6, character: 0 } };
    const path = fileURLToPath(uri);
    if (!existsSync(path) || !client.versions.has(uri)) continue;
    const actions = await client.ask(rpc.CodeActionRequest.type, { textDocument: { uri }, range, context: { diagnostics: [] } });
    for (const action of actions) {
      let made = action;
      if (!action.edit) {
        try {
          made = await client.ask(rpc.CodeActionResolveRequest.type, action);
        } catch (error) {
          counts.dropped += 1;
          if (!/^weir does not make this fix|^no fix is left/.test(error.message)) broken.push(`${action.title}: ${error.message}`);
          continue;
        }
      }
      counts.fixes += 1;
      const before = write(made.edit);
      const why = accepts();
      if (why) broken.push(`${action.title}: nginx refuses the file: ${why}`);
      for (const [path, text] of before) writeFileSync(path, text);
    }
  }
}

for (const [target, settings] of [['weir', { target: 'weir' }], ['nginx', { target: `nginx ${VERSION}` }]]) {
  const client = await Client.start(weir, FOLDER, { language: 'en', ...settings });
  await client.open(MAIN);
  // The other files of the configuration are open, too: so their actions can be asked for.
  for (const uri of [...client.told.keys()].filter((uri) => uri !== client.uri(MAIN))) {
    if (existsSync(fileURLToPath(uri))) await client.open(fileURLToPath(uri));
  }
  counts.files += client.told.size;
  const findings = shown(client, 'weir doctor');
  if (target === 'weir') {
    // A file without one of nginx's outermost blocks is a part: weir lsp reads it in its place, and -t refuses it.
    const isPart = !/^\s*(events|http|stream|mail)\s*\{/m.test(readFileSync(MAIN, 'utf8'));
    const own = shown(client, 'weir edge -t');
    // A file that an include names is the configuration's own: weir lsp tells that it is missing.
    if (!isPart) compare('edge -t', own, edge().filter((row) => !isOfMachine(row.split('\t')[3]) || own.includes(row)));
    compare('doctor for weir', findings, doctor('--for', 'weir').filter((row) => !isRefusal(row)));
  } else {
    compare('doctor for nginx', findings, doctor('--for', 'nginx', '--nginx-version', VERSION));
    await fixes(client);
  }
  const code = await client.stop();
  if (code !== 0) broken.push(`${target}: weir lsp ended with ${code}`);
}
console.log(JSON.stringify({ counts, broken }));
