// Says whether Socket.IO works over this transport: `node chat.mjs URL websocket|polling` prints the word that came back.
import { io } from 'socket.io-client';

const [url, transport] = process.argv.slice(2);
const socket = io(url, { transports: [transport], reconnection: false, rejectUnauthorized: false, timeout: 5000 });
const end = (words) => { console.log(words); socket.close(); process.exit(0); };
socket.on('welcome', () => socket.emit('say', 'hello', end));
socket.on('connect_error', (error) => end(`connect_error ${error.message}`));
setTimeout(() => end('nothing came back'), 10000);
