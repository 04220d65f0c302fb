// Speaks to the WebSocket server through the edge at argv[2]; the first thing that does not hold ends it.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { randomBytes } from 'node:crypto';
import WebSocket from 'ws';

const edge = process.argv[2].replace('http', 'ws');
const open = async (path) => {
    const socket = new WebSocket(edge + path);
    await once(socket, 'open');
    return socket;
};
const closed = async (socket) => (await once(socket, 'close'))[0];

// The server speaks first.
const greeted = new WebSocket(`${edge}/greet`);
assert.equal((await once(greeted, 'message'))[0].toString(), 'hello');
greeted.close();

// Text and bytes of every size class, both ways.
const socket = await open('/');
for (const size of [0, 1, 125, 126, 65_535, 65_536, 1_000_000]) {
    const bytes = randomBytes(size);
    socket.send(bytes);
    const [data, isBinary] = await once(socket, 'message');
    assert.ok(isBinary && data.equals(bytes), `${size} bytes`);
}
socket.ping();
await once(socket, 'pong');

// The server's close code reaches the client, the client's the server.
const ends = closed(socket);
socket.send('close 4001');
assert.equal(await ends, 4001);
const leaver = await open('/');
leaver.close(4002, 'enough');
assert.equal(await closed(leaver), 4002);
const asking = new WebSocket(`${edge}/last`);
assert.equal((await once(asking, 'message'))[0].toString(), '4002');
asking.close();

// A server that vanishes is an abnormal end, at once and not after a timeout.
const left = await open('/');
const gone = closed(left);
left.send('vanish');
assert.equal(await gone, 1006);

// A hundred at once, each hearing its own echo.
await Promise.all(Array.from({ length: 100 }, async (_, i) => {
    const one = await open('/');
    one.send(`I am ${i}`);
    assert.equal((await once(one, 'message'))[0].toString(), `I am ${i}`);
    one.close();
    assert.equal(await closed(one), 1005);
}));
