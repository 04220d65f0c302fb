// A page that takes MS of CPU. HOST and PORT say where.
import http from 'node:http';

const ms = Number(process.env.MS);
http.createServer((request, response) => {
    // By the CPU's clock: held back by a quota it has as much to do as without.
    const before = process.cpuUsage();
    for (let used = {user: 0, system: 0}; (used.user + used.system) < ms * 1000;) used = process.cpuUsage(before);
    response.end('done\n');
}).listen(Number(process.env.PORT), process.env.HOST);
