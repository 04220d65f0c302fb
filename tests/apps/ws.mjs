// A plain WebSocket server behind the edge: echoes, and closes with the code it is asked for.
import { WebSocketServer } from 'ws';

const server = new WebSocketServer({ host: '127.0.0.1', port: 0 }, () => console.log(server.address().port));
server.on('connection', (socket, request) => {
    socket.on('message', (data, isBinary) => {
        const text = isBinary ? '' : data.toString();
        if (text.startsWith('close ')) socket.close(Number(text.slice(6)), 'as asked');
        else if (text === 'vanish') socket.terminate();
        else socket.send(data, { binary: isBinary });
    });
    if (request.url === '/greet') socket.send('hello');
    // What the client says when it leaves is kept, for the next one who asks.
    if (request.url === '/last') socket.send(String(last));
    else socket.on('close', (code) => { last = code; });
});
let last = 0;
