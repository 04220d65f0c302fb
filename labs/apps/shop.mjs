// A page that takes MS of CPU, and an answer of DB (HOST:PORT). HOST and PORT say where.
import http from 'node:http';

const ms = Number(process.env.MS);
const [host, port] = process.env.DB.split(':');
const agent = new http.Agent({ keepAlive: true, maxSockets: 10 });
http.createServer((request, response) => {
    const before = process.cpuUsage();
    for (let used = { user: 0, system: 0 }; used.user + used.system < ms * 1000;) used = process.cpuUsage(before);
    http.get({ host, port, path: '/', agent }, (answer) => answer.resume().on('end', () => response.end('done\n')))
        .on('error', () => response.writeHead(500).end());
}).listen(Number(process.env.PORT), process.env.HOST);
