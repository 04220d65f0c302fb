// argv: rounds. Publishes posts and purges the news at the edge TARGET, by tag, key and prefix in turn, and times until three
// edges that share a purge log give the new one; then once more with edge-c cut off. Prints a line of JSON.
import { execFileSync } from 'node:child_process';
import http from 'node:http';

const [place, port] = process.env.TARGET.split(':');
const edges = [place, 'edge-b', 'edge-c'].map((host) => ({ host, port, agent: new http.Agent({ keepAlive: true }) }));
const app = { host: 'app', port: 3000, agent: new http.Agent({ keepAlive: true }) };
const front = '/news/front';
const orders = { tag: { tag: 'news-front' }, key: { key: front }, prefix: { prefix: '/news/' } };

function ask(at, method, path, body) {
    const headers = body && { 'Content-Type': 'application/json' };
    return new Promise((resolve, reject) => {
        const request = http.request({ ...at, method, path, headers, timeout: 5000 }, (response) => {
            let text = '';
            response.on('data', (part) => { text += part; }).on('end', () => resolve({ status: response.statusCode, text }));
        });
        request.on('error', reject).on('timeout', () => request.destroy(new Error(`${at.host} did not answer`)));
        request.end(body);
    });
}

const newest = async (at, path = front) => Number((await ask(at, 'GET', path)).text.split(' ')[1]);
const publish = async () => Number((await ask(app, 'POST', '/')).text.split(' ')[1]);
// 200: every edge has purged; 202: one of them is behind.
async function purge(order) {
    const answer = await ask(edges[0], 'POST', '/purge', JSON.stringify(order));
    if (answer.status !== 200 && answer.status !== 202) throw new Error(`the purge was refused: ${answer.status} ${answer.text}`);
    return answer;
}
const since = (begun) => Number(process.hrtime.bigint() - begun) / 1e6;

// Asks one edge until it gives what is wanted; ms since the beginning.
async function fresh(at, wanted, begun) {
    while (await newest(at) < wanted) if (since(begun) > 20_000) throw new Error(`${at.host} stays stale`);
    return since(begun);
}

const rounds = Number(process.argv[2]);
const said = { kept: 0, early: 0 };
for (const [kind, order] of Object.entries(orders)) {
    const took = [];
    for (let round = 0; round < rounds; round += 1) {
        const about = await Promise.all(edges.map(async (at) => { await newest(at); return newest(at, '/about'); }));
        const wanted = await publish();
        const begun = process.hrtime.bigint();
        const told = purge(order).then(async (answer) => {
            // 200 says that no edge gives the old page any more.
            const now = await Promise.all(edges.map((at) => newest(at)));
            if (answer.status !== 200 || now.some((one) => one < wanted)) said.early += 1;
        });
        took.push(Math.max(...await Promise.all(edges.map((at) => fresh(at, wanted, begun)))));
        await told;
        const stays = await Promise.all(edges.map((at) => newest(at, '/about')));
        if (stays.every((one, at) => one === about[at])) said.kept += 1;
    }
    took.sort((one, other) => one - other);
    said[kind] = { median: took[rounds >> 1], worst: took[rounds - 1] };
}

// Cut off: one order of each kind, for a page each.
const paths = { tag: '/posts/1', key: '/posts/2', prefix: '/posts/3' };
const missed = [{ tag: 'posts-1' }, { key: '/posts/2' }, { prefix: '/posts/3' }, orders.tag];
for (const at of edges) for (const path of [front, ...Object.values(paths)]) await newest(at, path);
const before = await newest(edges[2]);
execFileSync('ip', ['link', 'set', 'toedge-c', 'down']);
const wanted = await publish();
const answers = [];
for (const order of missed) answers.push(await purge(order));
const others = await Promise.all(edges.slice(0, 2).map((at) => newest(at)));
const own = execFileSync('ip', ['netns', 'exec', 'edge-c', 'curl', '-s', `http://127.0.0.1:${port}${front}`], { encoding: 'utf8' });
execFileSync('ip', ['link', 'set', 'toedge-c', 'up']);
const healed = process.hrtime.bigint();
edges[2].agent.destroy();
edges[2].agent = new http.Agent({ keepAlive: true });
const rejoined = await fresh(edges[2], wanted, healed);
const lost = await Promise.all(Object.values(paths).map((path) => newest(edges[2], path)));
said.cut = {
    named: Number(answers.every((answer) => answer.status === 202 && answer.text.includes('"behind":["c"]'))),
    fresh: others.filter((one) => one === wanted).length,
    serves: Number(own === `newest ${before}`),
    lost: lost.filter((one) => one < wanted).length,
    rejoined_ms: rejoined,
};
console.log(JSON.stringify(said));
process.exit(0);
