// An account's page: whose it is, by the cookie, which it sets again as applications do. HOST and PORT say where.
import http from 'node:http';

http.createServer((request, response) => {
    const user = /user=(\w+)/.exec(request.headers.cookie ?? '')?.[1] ?? 'nobody';
    response.setHeader('Set-Cookie', `user=${user}; HttpOnly`).setHeader('Cache-Control', 'private').end(`page of ${user}\n`);
}).listen(Number(process.env.PORT), process.env.HOST);
