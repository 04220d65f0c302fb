// Socket.IO twice, as by two processes behind one port: neither knows the other's sessions. Within a session, requests by the
// method that the header `lost` names meet the other one. Prints its port.
import http from 'node:http';
import { Server } from 'socket.io';

function process() {
    const server = http.createServer();
    new Server(server).on('connection', (socket) => socket.on('echo', (text, acknowledge) => acknowledge(text)));
    return server;
}

const [first, second] = [process(), process()];
const front = http.createServer((request, response) => {
    const isLost = request.url.includes('sid=') && request.method === request.headers.lost;
    (isLost ? second : first).emit('request', request, response);
});
front.listen(0, '127.0.0.1', () => console.log(front.address().port));
