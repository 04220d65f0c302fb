// argv: clients, seconds. Opens WebSockets to TARGET and says nothing on them; prints how many were cut, and after how long (ms).
import { createRequire } from 'node:module';

const { WebSocket } = createRequire(process.env.MODULES ?? new URL('../../tests/apps/', import.meta.url))('ws');
const [clients, seconds] = [Number(process.argv[2]), Number(process.argv[3])];
const cut = [];
let opened = 0;
for (let index = 0; index < clients; index++) {
    const socket = new WebSocket(`ws://${process.env.TARGET}/`);
    let since;
    socket.on('open', () => { since = performance.now(); opened++; });
    socket.on('close', () => { if (since) cut.push(performance.now() - since); });
    socket.on('error', () => {});
}
setTimeout(() => {
    cut.sort((a, b) => a - b);
    console.log(JSON.stringify({ opened, cut: cut.length, first: cut[0] ?? 0, last: cut.at(-1) ?? 0 }));
    process.exit(0);
}, seconds * 1000);
