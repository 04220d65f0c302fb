// A page that takes MS of CPU. HOST and PORT say where.
import http from 'node:http';

const ms = Number(process.env.MS);
http.createServer((request, response) => {
    const until = performance.now() + ms;
    while (performance.now() < until);
    response.end('done\n');
}).listen(Number(process.env.PORT), process.env.HOST);
