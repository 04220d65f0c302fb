#!/usr/bin/env node
// How long `weir lsp` takes for a request while a user types in a file of 2,000 lines.
//
//     bench/lsp.mjs --weir target/release/weir [--lines 2000] [--edits 300]
//
// Needs the packages of tests/lsp (`npm ci --prefix tests/lsp`). After each change of one character come the requests that an editor sends: completion,
// hover, symbols, folding, definition, references, highlights, formatting, code actions. The table has the median, the 95th percentile and the
// maximum of each, in milliseconds, and the time from a change to its diagnostics, the pause of the server included.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Client, rpc } from '../tests/lsp/client.mjs';

const { values } = parseArgs({ options: {
  weir: { type: 'string', default: 'target/release/weir' }, lines: { type: 'string', default: '2000' }, edits: { type: 'string', default: '300' },
} });
const lines = Number(values.lines);
const edits = Number(values.edits);

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
const client = await Client.start(values.weir, folder, { target: 'nginx 1.22.1' });
await client.open(path);

const times = new Map();
async function timed(name, work) {
  const began = performance.now();
  const result = await work();
  times.set(name, [...(times.get(name) ?? []), performance.now() - began]);
  return result;
}

const textDocument = { uri: client.uri(path) };
const all = text().split('\n');
let random = 0x5eed;
const draw = (bound) => { random = (Math.imul(random, 1103515245) + 12345) & 0x7fffffff; return random % bound; };
for (let edit = 0; edit < edits; edit += 1) {
  const line = draw(all.length);
  const character = draw(all[line].length + 1);
  const place = { line, character };
  const ending = edit % 2 === 0 ? { range: { start: place, end: place }, text: 'p' } : undefined;
  const changes = [ending ?? { range: { start: place, end: place }, text: ' ' }];
  const { told } = await client.change(path, changes);
  const params = { textDocument, position: place };
  const range = { start: place, end: place };
  await timed('completion', () => client.ask(rpc.CompletionRequest.type, params));
  await timed('hover', () => client.ask(rpc.HoverRequest.type, params));
  await timed('symbols', () => client.ask(rpc.DocumentSymbolRequest.type, { textDocument }));
  await timed('folding', () => client.ask(rpc.FoldingRangeRequest.type, { textDocument }));
  await timed('definition', () => client.ask(rpc.DefinitionRequest.type, params));
  await timed('references', () => client.ask(rpc.ReferencesRequest.type, { ...params, context: { includeDeclaration: true } }));
  await timed('highlights', () => client.ask(rpc.DocumentHighlightRequest.type, params));
  await timed('formatting', () => client.ask(rpc.DocumentFormattingRequest.type, { textDocument, options: { tabSize: 4, insertSpaces: true } }));
  if (edit % 10 === 0) await timed('diagnostics', () => told);
  await timed('code actions', () => client.ask(rpc.CodeActionRequest.type, { textDocument, range, context: { diagnostics: [] } }));
  // The line is as before, so that the file stays the one that is measured.
  await client.change(path, [{ range: { start: place, end: { line, character: character + 1 } }, text: '' }]);
}
await client.stop();
rmSync(folder, { recursive: true });

const of = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
const row = (name, list) => {
  const sorted = [...list].sort((a, b) => a - b);
  console.log([name.padEnd(14), String(sorted.length).padStart(6), ...[0.5, 0.95, 1].map((share) => of(sorted, share).toFixed(2).padStart(9))].join(' '));
};
console.log(`${'request'.padEnd(14)}      n       p50       p95       max   (ms; ${all.length} lines)`);
for (const [name, list] of times) row(name, list);
row('all requests', [...times].filter(([name]) => name !== 'diagnostics').flatMap(([, list]) => list));
