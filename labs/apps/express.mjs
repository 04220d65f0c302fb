// Express, as most answer with it: one JSON route. PORT and HOST say where, DELAY how many milliseconds an answer takes.
import { createRequire } from 'node:module';

const express = createRequire(process.env.MODULES ?? new URL('../../tests/apps/', import.meta.url))('express');
const app = express();
const delay = Number(process.env.DELAY ?? 0);
let connections = 0;
app.get('/connections', (request, response) => response.json(connections));
app.get('/', (request, response) => {
    const answer = () => response.json({ hello: 'world', from: process.env.HOST });
    delay ? setTimeout(answer, delay) : answer();
});
const server = app.listen(Number(process.env.PORT), process.env.HOST);
server.on('connection', () => connections++);
