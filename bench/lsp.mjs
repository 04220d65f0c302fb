#!/usr/bin/env node
// How long `weir lsp` takes for a request while a user types in a file of 2,000 lines.
//
//     bench/lsp.mjs --weir target/release/weir [--lines 2000] [--edits 300] [--target 'nginx 1.22.1'] [--cancels 40]
//
// Needs the packages of tests/lsp (`npm ci --prefix tests/lsp`). After each change of one character come the requests that an editor sends, at a place
// drawn anew for each change. The server loads the changed text for the first of them, and examines it for the code actions: so the order turns from
// change to change, and each kind is the first one as often as the others. The times are those of the client: sending and reading are in them.
//
// The second table is about a request that takes long (all fixes of the file) and is cancelled at a random moment: the time until its answer, and the time
// until the server has answered the next request.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Client, rpc } from '../tests/lsp/client.mjs';

const { values } = parseArgs({ options: {
  weir: { type: 'string', default: 'target/release/weir' }, lines: { type: 'string', default: '2000' }, edits: { type: 'string', default: '300' },
  target: { type: 'string', default: 'nginx 1.22.1' }, cancels: { type: 'string', default: '40' },
} });
const lines = Number(values.lines);
const edits = Number(values.edits);

// The time that 95 % of all requests must keep, and the one for the answer of a cancelled request.
const REQUEST_MS = 30;
const CANCEL_MS = 50;

// Servers as people write them: 20 lines each.
function text() {
  const out = ['worker_processes auto;', 'events { worker_connections 1024; }', 'http {', '    include mime.types;',
    '    log_format main \'$remote_addr - $remote_user [$time_local] "$request" $status\';', '    limit_req_zone $binary_remote_addr zone=one:10m rate=10r/s;',
    '    map $http_upgrade $connection_upgrade { default upgrade; "" close; }'];
  for (let number = 0; out.length < lines - 20; number += 1) {
    out.push(`    upstream app${number} {`, `        server 10.0.${number % 250}.1:8080 weight=2;`, `        server 10.0.${number % 250}.2:8080 backup;`, '        keepalive 16;', '    }',
      '    server {', '        listen 80;', `        server_name site${number}.example www.site${number}.example;`, '        access_log /var/log/nginx/a.log main;',
      '        location / {', `            proxy_pass http://app${number};`, '            proxy_set_header Host $host;', '            proxy_set_header X-Real-IP $remote_addr;',
      '            limit_req zone=one burst=20 nodelay;', '        }', '        location ~* \\.(png|jpg|css|js)$ {', '            root /srv/www;', '            expires 30d;', '        }', '    }');
  }
  return [...out, '}', ''].join('\n');
}

const folder = mkdtempSync(join(tmpdir(), 'weir-lsp-bench-'));
const path = join(folder, 'nginx.conf');
writeFileSync(path, text());
writeFileSync(join(folder, 'mime.types'), 'types { text/html html; }\n');
const client = await Client.start(values.weir, folder, { target: values.target });
const whole = await client.open(path);

const times = new Map();
const first = new Map();
const add = (map, name, ms) => map.set(name, [...(map.get(name) ?? []), ms]);
async function timed(name, work) {
  const began = performance.now();
  const result = await work();
  const took = performance.now() - began;
  add(times, name, took);
  return [result, took];
}

const textDocument = { uri: client.uri(path) };
const all = text().split('\n');
let random = 0x5eed;
const draw = (bound) => { random = (Math.imul(random, 1103515245) + 12345) & 0x7fffffff; return Math.floor(random / 65536) % bound; };

// The requests at a place, by their names.
const kinds = [
  ['completion', (params) => client.ask(rpc.CompletionRequest.type, params)],
  ['hover', (params) => client.ask(rpc.HoverRequest.type, params)],
  ['definition', (params) => client.ask(rpc.DefinitionRequest.type, params)],
  ['references', (params) => client.ask(rpc.ReferencesRequest.type, { ...params, context: { includeDeclaration: true } })],
  ['highlights', (params) => client.ask(rpc.DocumentHighlightRequest.type, params)],
  // A place without a name is refused: that is an answer, too.
  ['rename', (params) => client.ask(rpc.RenameRequest.type, { ...params, newName: 'another' }).catch(() => null)],
  ['symbols', () => client.ask(rpc.DocumentSymbolRequest.type, { textDocument })],
  ['folding', () => client.ask(rpc.FoldingRangeRequest.type, { textDocument })],
  ['formatting', () => client.ask(rpc.DocumentFormattingRequest.type, { textDocument, options: { tabSize: 4, insertSpaces: true } })],
  ['code actions', ({ position }) => client.ask(rpc.CodeActionRequest.type, { textDocument, range: { start: position, end: position }, context: { diagnostics: [] } })],
];

for (let edit = 0; edit < edits; edit += 1) {
  const line = draw(all.length);
  const character = draw(all[line].length + 1);
  const place = { line, character };
  const typed = edit % 2 === 0 ? 'p' : ' ';
  const began = performance.now();
  const { told } = await client.change(path, [{ range: { start: place, end: place }, text: typed }]);
  if (edit % 10 === 0) {
    // A user who pauses: the diagnostics come, and the requests find the file examined.
    await told;
    add(times, 'diagnostics', performance.now() - began);
  }
  const turned = kinds.map((_, index) => kinds[(index + edit) % kinds.length]);
  for (const [index, [name, ask]] of turned.entries()) {
    const [, took] = await timed(name, () => ask({ textDocument, position: place }));
    if (index === 0 && edit % 10 !== 0) add(first, name, took);
  }
  // The line is as before, so that the file stays the one that is measured.
  await client.change(path, [{ range: { start: place, end: { line, character: character + 1 } }, text: '' }]);
}

// All fixes of the file, cancelled while they are tried.
const cancelled = { answer: [], next: [], done: 0 };
const range = { start: { line: 0, character: 0 }, end: { line: all.length, character: 0 } };
const [fixAll] = await client.ask(rpc.CodeActionRequest.type, { textDocument, range, context: { diagnostics: [], only: ['source.fixAll'] } });
for (let number = 0; number < Number(values.cancels) && fixAll; number += 1) {
  const source = new rpc.CancellationTokenSource();
  let isDone = false;
  const answer = client.ask(rpc.CodeActionResolveRequest.type, fixAll, source.token).then(() => { isDone = true; }, () => {});
  await new Promise((done) => setTimeout(done, 1 + draw(60)));
  if (isDone) { cancelled.done += 1; continue; }
  const began = performance.now();
  source.cancel();
  await answer;
  cancelled.answer.push(performance.now() - began);
  await client.ask(rpc.FoldingRangeRequest.type, { textDocument });
  cancelled.next.push(performance.now() - began);
}
await client.stop();
rmSync(folder, { recursive: true });

const of = (list, share) => { const sorted = [...list].sort((a, b) => a - b); return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]; };
const shown = (number) => (number === undefined ? '-' : number.toFixed(2)).padStart(9);
const row = (name, list, more = []) =>
  console.log([name.padEnd(26), String(list.length).padStart(6), ...[0.5, 0.95, 0.99, 1].map((share) => shown(of(list, share))), ...more].join(' '));
console.log(`${all.length} lines, ${values.target}, ${whole.length} diagnostics; ms`);
console.log(`${'request'.padEnd(26)}      n       p50       p95       p99       max   p95 as the first after a change`);
for (const [name, list] of times) row(name, list, first.has(name) ? [shown(of(first.get(name), 0.95))] : []);
const requests = [...times].filter(([name]) => name !== 'diagnostics').flatMap(([, list]) => list);
row('all requests', requests, [shown(of([...first.values()].flat(), 0.95))]);
const below = requests.filter((ms) => ms < REQUEST_MS).length / requests.length;
console.log(`${(100 * below).toFixed(2)} % of the requests below ${REQUEST_MS} ms`);
row('answer of a cancelled one', cancelled.answer);
row('the next request after it', cancelled.next);
const late = cancelled.answer.filter((ms) => ms > CANCEL_MS).length;
console.log(`${late} of ${cancelled.answer.length} cancelled requests answered later than ${CANCEL_MS} ms; ${cancelled.done} had ended before`);
process.exit(below < 0.95 || late > 0 || cancelled.answer.length === 0 ? 1 : 0);
