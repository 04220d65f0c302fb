// An application with a pool of POOL connections to DB (HOST:PORT): a request takes one, asks, and gives it back. PORT says where.
import http from 'node:http';

const [host, port] = process.env.DB.split(':');
const agent = new http.Agent({ keepAlive: true, maxSockets: Number(process.env.POOL) });
http.createServer((request, response) => {
    http.get({ host, port, path: '/', agent }, (answer) => answer.resume().on('end', () => response.end('done\n')))
        .on('error', () => response.writeHead(500).end());
}).listen(Number(process.env.PORT));
