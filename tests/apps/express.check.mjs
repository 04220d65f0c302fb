// Speaks to the Express application through the edge at argv[2]; the first thing that does not hold ends it.
import assert from 'node:assert/strict';
import http from 'node:http';
import { randomBytes } from 'node:crypto';

const edge = process.argv[2];
const agent = new http.Agent({ keepAlive: true, maxSockets: 20 });

function ask(path, { method = 'GET', headers = {}, body } = {}) {
    return new Promise((resolve, reject) => {
        const request = http.request(edge + path, { method, headers, agent }, (response) => {
            const parts = [];
            const port = response.socket.localPort;
            response.on('data', (part) => parts.push(part));
            response.on('end', () => resolve({ status: response.statusCode, headers: response.headers, body: Buffer.concat(parts), port }));
            response.on('error', reject);
        });
        request.on('error', reject);
        request.end(body);
    });
}

const json = (value) => ({ method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(value) });

// 500 requests over kept connections.
const answers = await Promise.all(Array.from({ length: 500 }, (_, i) => ask(`/hello?name=${i}`)));
answers.forEach((answer, i) => {
    assert.equal(answer.status, 200);
    assert.deepEqual(JSON.parse(answer.body), { hello: String(i), from: '127.0.0.1' });
});
assert.equal(new Set(answers.map((answer) => answer.port)).size, 20, 'the edge keeps every connection');

// Bodies up, small, many and large.
const sums = await Promise.all(Array.from({ length: 100 }, (_, i) => ask('/sum', json({ numbers: [i, 1] }))));
sums.forEach((answer, i) => assert.deepEqual(JSON.parse(answer.body), { count: 2, sum: i + 1 }));
const numbers = Array.from({ length: 200_000 }, (_, i) => i % 10);
assert.deepEqual(JSON.parse((await ask('/sum', json({ numbers }))).body), { count: 200_000, sum: 900_000 });
const bytes = randomBytes(3_000_000);
const echoed = await ask('/raw', { method: 'POST', headers: { 'content-type': 'application/x-bytes' }, body: bytes });
assert.ok(echoed.body.equals(bytes), 'three megabytes come back as they went');

// Answers down: streamed, large, not modified, and wrong.
const stream = await ask('/stream');
assert.equal(stream.headers['transfer-encoding'], 'chunked');
assert.equal(stream.body.toString(), 'line 0\nline 1\nline 2\nline 3\nline 4\n');
const big = await ask('/big');
assert.equal(JSON.parse(big.body).length, 20_000);
const unchanged = await ask('/big', { headers: { 'if-none-match': big.headers.etag } });
assert.equal(unchanged.status, 304);
assert.equal(unchanged.body.length, 0);
assert.equal((await ask('/none')).status, 404);
assert.equal((await ask('/boom')).status, 500);
assert.equal((await ask('/hello', { method: 'HEAD' })).body.length, 0);

agent.destroy();
