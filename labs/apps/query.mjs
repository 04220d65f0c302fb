// A database's part: each query takes MS, all at once, or with LOCK one after the other. PORT says where.
import http from 'node:http';

const ms = Number(process.env.MS);
let last = 0;
http.createServer((request, response) => {
    const now = performance.now();
    const begin = process.env.LOCK ? Math.max(now, last) : now;
    last = begin + ms;
    setTimeout(() => response.end('row\n'), last - now);
}).listen(Number(process.env.PORT));
