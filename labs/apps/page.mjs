// A page that takes DELAY ms to make, and says how many were made at /count. HOST and PORT say where.
import http from 'node:http';

let made = 0;
const body = '<p>What a page has to say, in some length.</p>\n'.repeat(400);
http.createServer((request, response) => {
    if (request.url === '/count') return response.end(String(made));
    made++;
    setTimeout(() => response.setHeader('Content-Type', 'text/html').end(body), Number(process.env.DELAY ?? 0));
}).listen(Number(process.env.PORT), process.env.HOST);
