// argv: clients, seconds. Clients connect to TARGET (every other one by long polling first, as browsers do), then each emits
// and awaits the acknowledgement, again and again. Prints one line of JSON.
import { createRequire } from 'node:module';

const { io } = createRequire(process.env.MODULES ?? new URL('../../tests/apps/', import.meta.url))('socket.io-client');
const [url, clients, seconds] = [`http://${process.env.TARGET}`, Number(process.argv[2]), Number(process.argv[3])];
const until = Date.now() + seconds * 1000;
const seen = { connected: 0, websocket: 0, emitted: 0, acknowledged: 0 };
const errors = {};
const failed = (kind) => { errors[kind] = (errors[kind] ?? 0) + 1; };

async function client(index) {
    const transports = index % 2 ? ['polling', 'websocket'] : ['websocket'];
    const socket = io(url, { forceNew: true, reconnection: false, transports });
    const connected = await new Promise((resolve) => {
        socket.once('connect', () => resolve(true));
        socket.once('connect_error', (error) => { failed(`connect: ${error.message}`); resolve(false); });
    });
    if (!connected) return;
    seen.connected++;
    let leaving = false;
    socket.on('disconnect', (reason) => { if (!leaving) failed(`disconnect: ${reason}`); });
    while (Date.now() < until && socket.connected) {
        seen.emitted++;
        try {
            const text = `message ${seen.emitted}`;
            if (await socket.timeout(5000).emitWithAck('message', text) !== text) failed('wrong acknowledgement');
            seen.acknowledged++;
        } catch (error) {
            failed(`emit: ${error.message}`);
        }
        await new Promise((resolve) => setTimeout(resolve, 5));
    }
    if (socket.io.engine.transport?.name === 'websocket') seen.websocket++;
    leaving = true;
    socket.disconnect();
}

await Promise.all(Array.from({ length: clients }, (_, index) => client(index)));
console.log(JSON.stringify({ ...seen, errors }));
process.exit(0);
