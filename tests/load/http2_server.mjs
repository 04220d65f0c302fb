// An HTTP/2 server (Node's, which is nghttp2) that counts what it did, for tests/load_http2.rs.
//
//   node http2_server.mjs '{"settings": {…}, "refuse": N, "reset": N, "goaway": N, "cut": N}'
//
// Every Nth stream is refused (REFUSED_STREAM), reset (INTERNAL_ERROR), has its session end with GOAWAY, or its
// connection cut. With CERT and KEY it speaks TLS; "alpn": ["http/1.1"] and "alpn": [] are servers without HTTP/2.
// Prints its port on one line, and on SIGTERM what it saw, as JSON.
import fs from 'node:fs';
import http2 from 'node:http2';
import https from 'node:https';

const { CERT, KEY } = process.env;
const options = JSON.parse(process.argv[2] ?? '{}');
const tls = CERT ? { cert: fs.readFileSync(CERT), key: fs.readFileSync(KEY) } : {};
const seen = { streams: 0, answered: 0, sessions: 0, at_once: 0, body_bytes: 0, refused: 0, paths: {}, authorization: '' };
const is = (every) => every && seen.streams % every === 0;

const serve = (stream, headers) => {
    const { session } = stream;
    seen.streams += 1;
    session.open = (session.open ?? 0) + 1;
    seen.at_once = Math.max(seen.at_once, session.open);
    stream.on('close', () => { session.open -= 1; });
    stream.on('error', () => {});
    if (is(options.refuse)) {
        seen.refused += 1;
        return stream.close(http2.constants.NGHTTP2_REFUSED_STREAM);
    }
    if (is(options.reset)) return stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR);
    if (is(options.cut)) return session.destroy();
    if (is(options.goaway)) session.close();
    seen.authorization = headers.authorization ?? '';
    stream.on('data', (piece) => { seen.body_bytes += piece.length; });
    stream.on('end', () => {
        seen.answered += 1;
        stream.additionalHeaders({ ':status': 103, link: '</style.css>' });
        const body = 'x'.repeat(Number(new URLSearchParams(headers[':path'].split('?')[1]).get('size') ?? 5));
        stream.respond({ ':status': 200, 'content-type': 'text/plain' }, { waitForTrailers: true });
        stream.on('wantTrailers', () => stream.sendTrailers({ 'x-checked': 'yes' }));
        stream.end(body);
    });
    return undefined;
};

const server = options.alpn
    ? https.createServer({ ...tls, ...(options.alpn.length ? { ALPNProtocols: options.alpn } : {}) })
    : (CERT ? http2.createSecureServer : http2.createServer)({ ...tls, settings: options.settings ?? {} });
server.on('stream', serve);
server.on('session', () => { seen.sessions += 1; });
server.on('sessionError', () => {});
process.on('SIGTERM', () => {
    console.log(JSON.stringify(seen));
    process.exit(0);
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
