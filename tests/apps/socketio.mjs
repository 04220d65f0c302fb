// The Socket.IO application behind the edge: prints its port, serves until it is killed.
import http from 'node:http';
import { Server } from 'socket.io';

const server = http.createServer();
const io = new Server(server);
io.on('connection', (socket) => {
    socket.on('echo', (value, answer) => answer(value));
    socket.on('shout', (text) => io.emit('shouted', text));
    socket.on('leave', () => socket.disconnect(true));
});
io.of('/room').on('connection', (socket) => socket.emit('welcome', socket.nsp.name));
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
