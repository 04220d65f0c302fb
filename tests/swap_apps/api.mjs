// A JSON API of Node alone: items, a session, a counter, a file in parts. Prints its port. Its noise is on purpose: times, random
// ids, a counter, and objects whose names come in another order each time.
import crypto from 'node:crypto';
import http from 'node:http';

const MADE = 'Sun, 09 Sep 2001 01:46:40 GMT';
const FILE = Buffer.from(Array.from({ length: 48 * 1024 }, (_, at) => 33 + ((at * 7) % 90)));
const items = Array.from({ length: 120 }, (_, at) => ({
    id: at + 1, name: `item ${at + 1}`, price: ((at * 37) % 500) + 0.5, tags: ['a', 'b', 'c'].slice(0, (at % 3) + 1), note: 'a thing that one may buy; '.repeat(4),
}));
const sessions = new Map();
let served = 0;

/** The object with its names in a random order. */
const shuffled = (object) => Object.fromEntries(Object.entries(object).map((pair) => [Math.random(), pair]).sort((a, b) => a[0] - b[0]).map(([, pair]) => pair));

const cookie = (request, name) => request.headers.cookie?.split(/;\s*/).map((pair) => pair.split('=')).find(([key]) => key === name)?.[1];

function send(response, status, object, fields = {}) {
    const body = JSON.stringify(object);
    response.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body), 'X-Request-Id': crypto.randomUUID(), ...fields });
    response.end(body);
}

const routes = [
    [/^\/health$/, (request, response) => send(response, 200, { ok: true, uptime: process.uptime(), at: new Date().toISOString() })],
    [/^\/api\/items$/, (request, response, found, query) => {
        const page = Math.max(1, Number(query.get('page') ?? 1));
        const shown = items.slice((page - 1) * 20, page * 20).map(shuffled);
        send(response, 200, { page, pages: 6, items: shown }, { 'Cache-Control': 'max-age=60', Link: `</api/items?page=${page + 1}>; rel="next"` });
    }],
    [/^\/api\/items\/(\d+)$/, (request, response, [, id]) => {
        const item = items[id - 1];
        if (!item) return send(response, 404, { error: 'no such item', id: Number(id), at: Date.now() });
        const tag = `"item-${id}"`;
        if (request.headers['if-none-match'] === tag) return response.writeHead(304, { ETag: tag }).end();
        return send(response, 200, item, { ETag: tag, 'Last-Modified': MADE });
    }],
    [/^\/api\/login$/, (request, response, found, query) => {
        const id = crypto.randomBytes(16).toString('hex');
        sessions.set(id, { user: query.get('user'), seen: 0 });
        response.setHeader('Set-Cookie', [`sid=${id}; Path=/; HttpOnly`, `theme=light; Path=/; Max-Age=${86400}`]);
        send(response, 200, { user: query.get('user'), token: crypto.randomBytes(12).toString('base64url') });
    }],
    [/^\/api\/me$/, (request, response) => {
        const session = sessions.get(cookie(request, 'sid'));
        if (!session) return send(response, 401, { error: 'log in first' }, { 'WWW-Authenticate': 'Session realm="api"' });
        return send(response, 200, shuffled({ user: session.user, seen: ++session.seen, now: Date.now() }));
    }],
    [/^\/api\/stats$/, (request, response) => send(response, 200, { served, sessions: sessions.size, load: Math.random() }, { 'X-RateLimit-Remaining': String(1000 - (served % 1000)) })],
    [/^\/api\/export\.bin$/, (request, response) => {
        const part = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '');
        const fields = { 'Content-Type': 'application/octet-stream', 'Accept-Ranges': 'bytes', 'Last-Modified': MADE, 'Content-Disposition': 'attachment; filename="export.bin"' };
        if (!part) return response.writeHead(200, { ...fields, 'Content-Length': FILE.length }).end(FILE);
        const [from, to] = [Number(part[1]), Math.min(Number(part[2] || FILE.length - 1), FILE.length - 1)];
        return response.writeHead(206, { ...fields, 'Content-Length': to - from + 1, 'Content-Range': `bytes ${from}-${to}/${FILE.length}` }).end(FILE.subarray(from, to + 1));
    }],
    [/^\/api\/catalogue$/, (request, response) => send(response, 200, items, { 'Cache-Control': 'no-cache' })],
    [/^\/api\/old\/(\w+)$/, (request, response, [, name]) => response.writeHead(302, { Location: `http://${request.headers.host}/api/${name}`, 'Content-Length': 0 }).end()],
];

const server = http.createServer((request, response) => {
    const url = new URL(request.url, 'http://api');
    served++;
    for (const [pattern, answer] of routes) {
        const found = pattern.exec(url.pathname);
        if (found) return answer(request, response, found, url.searchParams);
    }
    return send(response, 404, { error: 'not found', path: url.pathname, at: new Date().toISOString() });
});
server.keepAliveTimeout = 60_000;
server.listen(Number(process.env.PORT ?? 0), '127.0.0.1', () => console.log(server.address().port));
