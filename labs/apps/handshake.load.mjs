// argv: clients. Each begins a Socket.IO session at TARGET by long polling, as engine.io's protocol has it: a GET that gives a
// session's id, then a POST in that session. Prints how many second requests were answered 200, and 400 "Session ID unknown".
import http from 'node:http';

const [host, port] = process.env.TARGET.split(':');
const seen = { sessions: 0, known: 0, unknown: 0, other: 0 };

function ask(method, path, body) {
    return new Promise((resolve) => {
        const headers = body ? { 'Content-Type': 'text/plain', 'Content-Length': body.length } : {};
        const request = http.request({ host, port, method, path, headers, agent: false, timeout: 5000 }, (response) => {
            let text = '';
            response.on('data', (part) => { text += part; }).on('end', () => resolve({ status: response.statusCode, text }));
        });
        request.on('error', (error) => resolve({ status: 0, text: error.message })).on('timeout', () => request.destroy());
        request.end(body);
    });
}

async function session() {
    const base = '/socket.io/?EIO=4&transport=polling';
    const opened = await ask('GET', base);
    const sid = /"sid":"([^"]+)"/.exec(opened.text)?.[1];
    if (!sid) { seen.other++; return; }
    seen.sessions++;
    const second = await ask('POST', `${base}&sid=${sid}`, '40');
    if (second.status === 200) seen.known++;
    else if (second.status === 400 && second.text.includes('"code":1')) seen.unknown++;
    else seen.other++;
}

// Ten at once, as clients do come.
let left = Number(process.argv[2]);
await Promise.all(Array.from({ length: 10 }, async () => { while (left-- > 0) await session(); }));
console.log(JSON.stringify(seen));
