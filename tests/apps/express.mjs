// The Express application behind the edge: prints its port, serves until it is killed.
import express from 'express';

const app = express();
app.disable('x-powered-by');
app.get('/hello', (request, response) => response.json({ hello: request.query.name, from: request.get('x-forwarded-for') }));
app.post('/sum', express.json({ limit: '5mb' }), (request, response) => {
    response.json({ count: request.body.numbers.length, sum: request.body.numbers.reduce((a, b) => a + b, 0) });
});
app.post('/raw', express.raw({ type: '*/*', limit: '10mb' }), (request, response) => {
    response.type('application/octet-stream').send(request.body);
});
app.get('/stream', async (request, response) => {
    response.type('text/plain');
    for (let line = 0; line < 5; line++) {
        response.write(`line ${line}\n`);
        await new Promise((resolve) => setTimeout(resolve, 10));
    }
    response.end();
});
app.get('/big', (request, response) => {
    response.json(Array.from({ length: 20_000 }, (_, id) => ({ id, name: `user ${id}`, mail: `user${id}@example.com` })));
});
app.get('/boom', () => {
    throw new Error('boom');
});

const server = app.listen(0, '127.0.0.1', () => console.log(server.address().port));
