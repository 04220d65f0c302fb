// Socket.IO, as its guide has it: every message is acknowledged. PORT and HOST say where.
import http from 'node:http';
import { createRequire } from 'node:module';

const { Server } = createRequire(new URL('../../tests/apps/', import.meta.url))('socket.io');
const server = http.createServer();
new Server(server).on('connection', (socket) => socket.on('message', (text, acknowledge) => acknowledge(text)));
server.listen(Number(process.env.PORT), process.env.HOST);
