// Speaks to the Socket.IO application through the edge at argv[2]; the first thing that does not hold ends it.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { io } from 'socket.io-client';

const edge = process.argv[2];
const open = async (path, options) => {
    const socket = io(edge + path, { reconnection: false, forceNew: true, ...options });
    const failed = once(socket, 'connect_error').then(([error]) => { throw error; });
    failed.catch(() => {});
    await Promise.race([once(socket, 'connect'), failed]);
    return socket;
};

// WebSocket alone: emit and acknowledgement, also of a message larger than any buffer.
const direct = await open('/', { transports: ['websocket'] });
assert.equal(direct.io.engine.transport.name, 'websocket');
assert.deepEqual(await direct.emitWithAck('echo', { a: [1, 'ü', null] }), { a: [1, 'ü', null] });
const large = 'x'.repeat(500_000);
assert.equal(await direct.emitWithAck('echo', large), large);

// As browsers do it: long polling, then the upgrade, then a message over what came of it.
const upgrading = io(edge, { reconnection: false, forceNew: true });
const upgraded = once(upgrading.io.engine, 'upgrade');
assert.equal(upgrading.io.engine.transport.name, 'polling');
await upgraded;
assert.equal(upgrading.io.engine.transport.name, 'websocket');
assert.equal(await upgrading.emitWithAck('echo', 'upgraded'), 'upgraded');

// Long polling alone.
const polling = await open('/', { transports: ['polling'] });
assert.equal(await polling.emitWithAck('echo', 'polled'), 'polled');

// A namespace.
const room = io(`${edge}/room`, { transports: ['websocket'], forceNew: true });
assert.deepEqual(await once(room, 'welcome'), ['/room']);

// Fifty clients, each with twenty acknowledged messages, and one word heard by all.
const clients = await Promise.all(Array.from({ length: 50 }, () => open('/', { transports: ['websocket'] })));
await Promise.all(clients.map(async (client, i) => {
    for (let n = 0; n < 20; n++) assert.equal(await client.emitWithAck('echo', i * 100 + n), i * 100 + n);
}));
const heard = Promise.all(clients.map((client) => once(client, 'shouted')));
clients[0].emit('shout', 'all');
for (const [text] of await heard) assert.equal(text, 'all');

// The server's goodbye is told from a broken line.
const goodbye = once(direct, 'disconnect');
direct.emit('leave');
assert.equal((await goodbye)[0], 'io server disconnect');

for (const socket of [upgrading, polling, room, ...clients]) socket.disconnect();
