// A shop of Express: pages with a token in each form, a session in a cookie, redirects, downloads. Prints its port.
import crypto from 'node:crypto';
import { createRequire } from 'node:module';

const express = createRequire(process.env.MODULES ?? new URL('../apps/', import.meta.url))('express');
const goods = Array.from({ length: 40 }, (_, at) => ({ slug: `thing-${at + 1}`, price: 3 + at }));
const sessions = new Map();
const app = express();

app.use((request, response, next) => {
    const id = /(?:^|;\s*)shop=([0-9a-f]+)/.exec(request.get('cookie') ?? '')?.[1];
    request.session = sessions.get(id);
    if (!request.session) {
        const fresh = crypto.randomBytes(12).toString('hex');
        request.session = { id: fresh, basket: [], visits: 0 };
        sessions.set(fresh, request.session);
        response.cookie('shop', fresh, { path: '/app', httpOnly: true });
    }
    request.session.visits++;
    next();
});

const page = (request, title, inside) => `<!doctype html>
<html><head><title>${title}</title><link rel="stylesheet" href="/assets/shop.css"><meta name="generated" content="${new Date().toISOString()}"></head>
<body><nav><a href="/app/">home</a> <a href="/app/basket">basket (${request.session.basket.length})</a> <a href="http://shop.internal/help">help</a></nav>
<h1>${title}</h1>
${inside}
<form method="post" action="/app/order"><input type="hidden" name="csrf" value="${crypto.randomBytes(18).toString('base64url')}"><button>Order</button></form>
<footer>visit ${request.session.visits}, served in ${(Math.random() * 9).toFixed(3)} ms</footer></body></html>
`;

app.get('/app/', (request, response) => {
    response.send(page(request, 'Shop', `<ul>\n${goods.map(({ slug, price }) => `<li><a href="/app/goods/${slug}">${slug}</a> for ${price}</li>`).join('\n')}\n</ul>`));
});
app.get('/app/goods/:slug', (request, response) => {
    const thing = goods.find(({ slug }) => slug === request.params.slug);
    if (!thing) return response.status(404).send(page(request, 'Not found', '<p>We have no such thing.</p>'));
    response.set('X-Stock', 'yes');
    return response.send(page(request, thing.slug, `<p>It is ${thing.price}.</p><a href="/app/add/${thing.slug}">buy</a>`));
});
app.get('/app/add/:slug', (request, response) => {
    request.session.basket.push(request.params.slug);
    response.cookie('last', request.params.slug, { path: '/app', maxAge: 3_600_000 });
    response.redirect('/app/basket');
});
app.get('/app/basket', (request, response) => response.send(page(request, 'Basket', request.session.basket.map((slug) => `<p>${slug}</p>`).join('\n'))));
app.get('/app/login', (request, response) => response.redirect(303, `${request.protocol}://${request.get('host')}/app/?login=${crypto.randomUUID()}`));
app.get('/app/manual.txt', (request, response) => response.set('Last-Modified', 'Sun, 09 Sep 2001 01:46:40 GMT').type('text/plain').send('Read this first.\n'.repeat(900)));
app.get('/app/prices.json', (request, response) => response.set('Cache-Control', 'public, max-age=30').json(goods));
app.get('/app/boom', () => {
    throw new Error('boom');
});
// The stack of an error names files of this machine, and so does the page of Express.
app.use((error, request, response, next) => response.headersSent ? next(error) : response.status(500).send(page(request, 'Sorry', '<p>Something broke.</p>')));

const server = app.listen(Number(process.env.PORT ?? 0), '127.0.0.1', () => console.log(server.address().port));
server.keepAliveTimeout = 60_000;
