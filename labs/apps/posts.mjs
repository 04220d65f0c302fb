// Pages that say which post is the newest; POST publishes one. Each names its tag: /news/front is tagged news-front.
// PORT and HOST say where.
import http from 'node:http';

let newest = 1;
http.createServer((request, response) => {
    if (request.method === 'POST') newest += 1;
    const tag = request.url.slice(1).replaceAll('/', '-');
    response.setHeader('Content-Type', 'text/plain').setHeader('Cache-Tag', tag).end(`newest ${newest}`);
}).listen(Number(process.env.PORT), process.env.HOST);
