// Socket.IO, as its guide has it: every message is acknowledged. PORT and HOST say where, BLOCK for how many milliseconds of its
// one thread each new connection keeps it.
import http from 'node:http';
import { createRequire } from 'node:module';

const { Server } = createRequire(process.env.MODULES ?? new URL('../../tests/apps/', import.meta.url))('socket.io');
const block = Number(process.env.BLOCK ?? 0);
const server = http.createServer();
new Server(server).on('connection', (socket) => {
    const until = performance.now() + block;
    while (performance.now() < until);
    socket.on('message', (text, acknowledge) => acknowledge?.(text));
});
server.listen(Number(process.env.PORT), process.env.HOST);
