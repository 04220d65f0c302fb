// The application of the example: one page, the address of the client as the proxy tells it, and a WebSocket that returns what it gets.
import { createServer } from 'node:http';
import express from 'express';
import { Server } from 'socket.io';

const app = express();
app.set('trust proxy', true);
app.get('/', (request, response) => response.send(`hello, ${request.ip}\n`));
const server = createServer(app);
new Server(server).on('connection', (socket) => socket.on('say', (words, done) => done(words)));
// Longer than the proxy keeps a connection: otherwise the application may close one while a request is on its way.
server.keepAliveTimeout = 75_000;
server.listen(3000, () => console.log('listening on 3000'));
