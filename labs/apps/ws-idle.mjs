// A WebSocket server that says nothing: neither messages nor pings. HOST and PORT say where.
import { createRequire } from 'node:module';

const { WebSocketServer } = createRequire(process.env.MODULES ?? new URL('../../tests/apps/', import.meta.url))('ws');
new WebSocketServer({ host: process.env.HOST, port: Number(process.env.PORT) });
