// The application of the example: one page, and the address of the client as the proxy tells it.
import express from 'express';

const app = express();
app.set('trust proxy', true);
app.get('/', (request, response) => response.send(`hello, ${request.ip}\n`));
const server = app.listen(3000, () => console.log('listening on 3000'));
// Longer than the proxy keeps a connection: otherwise the application may close one while a request is on its way.
server.keepAliveTimeout = 75_000;
