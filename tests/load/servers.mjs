// What `weir load` is tested against: plain HTTP, ws and Socket.IO, from tests/apps' node_modules.
//
//   node servers.mjs [HTTP_PORT WS_PORT SOCKETIO_PORT]     0 or nothing: a free port
//
// Prints {"http": PORT, "ws": PORT, "socketio": PORT, …} on one line, and serves until it is killed: web2 is HTTP/2 in the
// clear, secure1 and secure2 are https, the latter with HTTP/2 where a client offers it (where CERT and KEY name PEM files).
// GET /counts tells what the HTTP server saw: requests by "METHOD /path", and the largest number at once.
import fs from 'node:fs';
import http from 'node:http';
import http2 from 'node:http2';
import https from 'node:https';
import { once } from 'node:events';
import { createRequire } from 'node:module';

const require = createRequire(new URL('../apps/', import.meta.url));
const { WebSocketServer } = require('ws');
const { Server } = require('socket.io');

const [httpPort, wsPort, socketioPort] = [2, 3, 4].map((at) => Number(process.argv[at] ?? 0));
const ONE_KIB = 'x'.repeat(1024);
const LOGIN = { token: 't0k3n-abcdef0123456789', user: { name: 'alice', roles: ['a', 'b'] } };
const counts = {};

const json = (answer, value, status = 200) => {
    answer.writeHead(status, { 'content-type': 'application/json' });
    answer.end(JSON.stringify(value));
};

const text = (answer, body, headers = {}) => {
    answer.writeHead(200, { 'content-type': 'text/plain', ...headers });
    answer.end(body);
};

const cookies = (request) =>
    Object.fromEntries((request.headers.cookie ?? '').split('; ').filter(Boolean).map((pair) => pair.split('=')));

/** One part's name, type and size for each part of a multipart body. */
const parts = (request, body) => {
    const boundary = /boundary=(.+)$/.exec(request.headers['content-type'] ?? '')?.[1] ?? 'none';
    return body.split(`--${boundary}`).slice(1, -1).map((part) => {
        const at = part.indexOf('\r\n\r\n');
        const field = (pattern) => pattern.exec(part.slice(0, at))?.[1] ?? '';
        return { name: field(/ name="([^"]*)"/), file: field(/filename="([^"]*)"/), size: part.length - at - 6 };
    });
};

const routes = {
    '/1k': (_, answer) => text(answer, ONE_KIB),
    '/login': (_, answer) => json(answer, LOGIN),
    '/item': (request, answer) => json(answer, { token: request.url.split('token=')[1] ?? '' }),
    '/cart': (_, answer) => json(answer, { items: [1, 2, 3] }),
    '/page': (_, answer) => {
        answer.writeHead(200, { 'content-type': 'text/html', 'x-id': 'id-7' });
        answer.end('<ul><li class="one" data-id="41">a</li><li class="one" data-id="42">b</li></ul> order=93');
    },
    '/echo': (request, answer, body) =>
        json(answer, { method: request.method, url: request.url, headers: request.headers, body }),
    '/parts': (request, answer, body) => json(answer, parts(request, body)),
    '/set': (_, answer) => text(answer, 'set', { 'set-cookie': 'session=s1; Path=/; HttpOnly' }),
    '/needs': (request, answer) => json(answer, cookies(request), cookies(request).session === 's1' ? 200 : 403),
    '/hop': (_, answer) => answer.writeHead(302, { location: '/hop2' }).end(),
    '/hop2': (_, answer) => answer.writeHead(301, { location: '/1k' }).end(),
    '/round': (_, answer) => answer.writeHead(302, { location: '/round' }).end(),
    '/private': (request, answer) =>
        request.headers.authorization === `Basic ${btoa('leo:secret')}`
            ? text(answer, 'welcome')
            : answer.writeHead(401, { 'www-authenticate': 'Basic' }).end(),
    '/gone': (request) => request.socket.destroy(),
    '/reset': (request) => request.socket.resetAndDestroy(),
    '/version': (request, answer) => text(answer, request.httpVersion),
    '/counts': (_, answer) => json(answer, counts),
};

const serve = (request, answer) => {
    const path = request.url.split('?')[0];
    const seen = `${request.method} ${path}`;
    counts[seen] = (counts[seen] ?? 0) + 1;
    let body = '';
    request.setEncoding('latin1');
    request.on('data', (piece) => { body += piece; });
    request.on('end', () => (routes[path] ?? ((_, to) => to.writeHead(404).end('nothing here')))(request, answer, body));
};
const web = http.createServer(serve);
const web2 = http2.createServer(serve);
const secured = (tls) => ({
    secure2: http2.createSecureServer({ ...tls, allowHTTP1: true }, serve),
    secure1: https.createServer(tls, serve),
});
const { CERT, KEY } = process.env;
const others = { web2, ...(CERT ? secured({ cert: fs.readFileSync(CERT), key: fs.readFileSync(KEY) }) : {}) };

const sockets = new WebSocketServer({ port: wsPort, host: '127.0.0.1', handleProtocols: (names) => [...names].at(-1) });
sockets.on('connection', (socket, request) => {
    socket.on('message', (data, isBinary) => {
        const message = String(data);
        if (message === 'where') return socket.send(JSON.stringify({ path: request.url, protocol: socket.protocol }));
        if (message === 'silence') return undefined;
        return socket.send(data, { binary: isBinary });
    });
});

const io = new Server(http.createServer().listen(socketioPort, '127.0.0.1'));
const behave = (socket) => {
    const answered = (name, act) => socket.on(name, (...given) => {
        const answer = given.pop();
        if (typeof answer === 'function') act(answer, ...given);
    });
    answered('echo', (answer, ...given) => answer(...given));
    answered('userDetails', (answer) => answer({ id: 7, name: 'alice' }));
    socket.on('ping2', (msg) => socket.emit('pong2', { msg }));
    socket.on('say', (...given) => socket.emit('said', ...given));
};
io.on('connection', behave);
io.of('/chat').on('connection', behave);

web.listen(httpPort, '127.0.0.1');
Object.values(others).forEach((server) => server.listen(0, '127.0.0.1'));
await Promise.all([web, ...Object.values(others)].map((server) => once(server, 'listening')));
const ports = { http: web.address().port, ws: sockets.address().port, socketio: io.httpServer.address().port };
Object.entries(others).forEach(([name, server]) => { ports[name] = server.address().port; });
console.log(JSON.stringify(ports));
