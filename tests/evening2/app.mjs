// A service of the evening: Express and Socket.IO on the port of its first argument, with a health page, an order and a welcome.
import { createServer } from 'node:http';
import express from 'express';
import { Server } from 'socket.io';

const port = Number(process.argv[2]);
const app = express();
app.get('/health', (_, answer) => answer.send('well\n'));
app.get('/', (_, answer) => answer.send('<p>shop\n'));
app.post('/api/orders', (_, answer) => answer.status(201).json({ port }));
app.get('/api/orders/:id', (request, answer) => answer.json({ id: request.params.id, port }));
const server = createServer(app);
new Server(server).on('connection', (socket) => {
    socket.emit('welcome', socket.id);
    socket.on('say', (words, done) => done(words));
});
// Node closes a connection after 5 s without a request, so an edge that keeps it longer meets a closed one.
server.listen(port, '127.0.0.1');
