// The servers that Artillery's own scripts name, started in a network namespace where every port is free.
//
//   node corpus-targets.cjs CHECKOUT [APP]
//
// The repository's targets on the ports its scripts name, a stand-in for every host out in the world (all names lead
// to loopback, see corpus.py), and on the ports left an example's own APP. Prints "ready".
const fs = require('node:fs');
const http = require('node:http');
const https = require('node:https');
const net = require('node:net');
const path = require('node:path');
const { createRequire } = require('node:module');

const checkout = path.resolve(process.argv[2]);
const app = process.argv[3];
const test = path.join(checkout, 'packages/artillery/test');
const targets = path.join(test, 'core/targets');
const own = createRequire(path.join(targets, 'simple.js'));

// Some targets listen on whatever is free: here the port their script names is.
const listen = net.Server.prototype.listen;
let wanted = 0;
net.Server.prototype.listen = function (first, ...rest) {
    return listen.call(this, first === 0 && wanted ? wanted : first, ...rest);
};
const at = async (port, start) => {
    wanted = port;
    await start();
    wanted = 0;
};

// A socket may be taken by an example's app; then the stand-in leaves it alone.
const stand = (server, port) => new Promise((done) => {
    server.once('error', done);
    server.listen(port, done);
});

const pets = () => {
    const yaml = own('js-yaml').load(
        fs.readFileSync(path.join(checkout, 'packages/artillery-plugin-expect/test/mock-pets-server.yaml'), 'utf8'));
    return http.createServer((request, answer) => {
        const found = yaml.find(({ request: { uri, method } }) => uri === request.url && (method ?? 'GET') === request.method);
        const { code = 404, headers = {}, body = '' } = found?.response ?? {};
        answer.writeHead(code, headers);
        request.resume().on('end', () => answer.end(body));
    });
};

const users = Array.from({ length: 1000 }, (_, n) => ({ username: `user${n}`, password: `secret${n}` }));
// Upstash's Redis speaks JSON over HTTP; the values it holds are texts, here in base64 as its client asks.
const redis = (request, answer) => {
    let text = '';
    request.on('data', (part) => (text += part)).on('end', () => {
        const [command, key, count] = JSON.parse(text);
        const found = command === 'lpop' && key === 'users' ? users.splice(0, count) : [];
        const result = found.map((user) => Buffer.from(JSON.stringify(user)).toString('base64'));
        answer.setHeader('content-type', 'application/json');
        answer.end(JSON.stringify({ result }));
    });
};

const anything = (request, answer) => {
    if (request.headers.host === 'redis.example') return redis(request, answer);
    request.resume().on('end', () => {
        if (request.url === '/v1/dino') return answer.end('<a dino of a stand-in>\n');
        if (request.headers.accept?.includes('json') || request.headers['content-type']?.includes('json')) {
            answer.setHeader('content-type', 'application/json');
            return answer.end('{"data":{"createUser":{"id":"1"},"user":{"username":"a","email":"b"}},"id":1}');
        }
        const status = request.url.startsWith('/no') ? 404 : 200;
        answer.writeHead(status, { 'content-type': 'text/plain', 'x-cache': 'HIT', 'cf-cache-status': 'HIT' });
        return answer.end('a stand-in\n');
    });
};

const main = async () => {
    if (app) {
        // As its README has it started.
        const here = process.cwd();
        const file = path.resolve(app);
        process.chdir(path.dirname(file));
        own(file);
        process.chdir(here);
    }
    await own('./simple.js')(3003);
    await at(9090, own('./simple_ws.js'));
    await at(9091, own('./simple_socketio.js'));
    await own('./express_socketio.js')(9092);
    await own('./socketio_args.js')(9096);
    await at(9443, own('./ws_tls.js'));
    await at(3002, own('./simple_tls.js'));
    own('./ws_proxy.js')(9093, 9095);
    own('../../targets/gh_215_target.js');
    if (process.env.UPLOADS) await own('../../targets/http-file-upload-server.js').createTestServer(3010);
    if (process.env.CALC) await own('../../targets/targetServer.js').createCalcServer('127.0.0.1', 3011).start();
    await stand(pets(), 9099);
    const key = fs.readFileSync(path.join(targets, 'certs/private-key.pem'));
    const cert = fs.readFileSync(path.join(targets, 'certs/public-cert.pem'));
    await stand(https.createServer({ key, cert }, anything), 443);
    const { Server } = own('socket.io');
    for (const port of [80, 1234, 3000, 4000, 8000, 8080, 31337, 44321]) {
        const server = http.createServer(anything);
        const io = new Server(server);
        io.on('connection', (socket) => socket.on('echo', (text) => socket.emit('echoResponse', text)));
        await stand(server, port);
    }
    console.log('ready');
};

process.on('uncaughtException', (error) => console.error(error));
main();
