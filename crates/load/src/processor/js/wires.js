// `context.sockets` of a Socket.IO scenario and `context.ws` of a WebSocket one: what socket.io-client and ws give
// a processor of their connections. Read by both engines; `wiring` has what weir does for them:
// kind(number), places(number), isOpen(number, place), listen(number), emit(number, place, text, wantsAnswer),
// close(number, place), and failed(error) for what a listener throws.

const SOCKETIO = 0, WS = 1;
const EVENT = 0, ACK = 1, CONNECTED = 2, LOST = 3, TEXT = 4, BYTES = 5;

/** Listeners as Node's EventEmitter has them. */
class Listening {
  #all = new Map();
  #begin;
  constructor(begin) {
    this.#begin = begin;
  }
  on(name, fn) {
    if (typeof fn !== 'function') throw new TypeError('a listener is a function');
    this.#begin();
    const known = this.#all.get(name);
    if (known === undefined) this.#all.set(name, [{ fn, isOnce: false }]);
    else known.push({ fn, isOnce: false });
    return this;
  }
  once(name, fn) {
    this.on(name, fn);
    this.#all.get(name).at(-1).isOnce = true;
    return this;
  }
  off(name, fn) {
    if (name === undefined) this.#all.clear();
    else if (fn === undefined) this.#all.delete(name);
    else this.#all.set(name, (this.#all.get(name) ?? []).filter((one) => one.fn !== fn));
    return this;
  }
  addListener(name, fn) {
    return this.on(name, fn);
  }
  removeListener(name, fn) {
    return this.off(name, fn);
  }
  removeAllListeners(name) {
    return this.off(name);
  }
  listeners(name) {
    return (this.#all.get(name) ?? []).map(({ fn }) => fn);
  }
  hasListeners(name) {
    return this.listeners(name).length > 0;
  }
  /** Calls who listens; what one throws keeps nothing from the others. */
  tell(name, args, failed) {
    for (const one of [...(this.#all.get(name) ?? [])]) {
      if (one.isOnce) this.off(name, one.fn);
      try {
        const outcome = one.fn.apply(this, args);
        if (typeof outcome?.then === 'function') outcome.then(undefined, failed);
      } catch (error) {
        failed(error);
      }
    }
  }
}

/** A namespace: what socket.io-client calls a socket. */
class NamespaceSocket extends Listening {
  #wire;
  #any = [];
  constructor(wire, nsp) {
    super(() => wire.listen());
    this.#wire = wire;
    this.nsp = nsp === '' ? '/' : nsp;
    Object.defineProperty(this, 'place', { value: nsp });
  }
  get connected() {
    return wiring.isOpen(this.#wire.number, this.place);
  }
  get disconnected() {
    return !this.connected;
  }
  emit(name, ...args) {
    const answer = typeof args.at(-1) === 'function' ? args.pop() : undefined;
    if (answer !== undefined) this.#wire.listen();
    const number = wiring.emit(this.#wire.number, this.place, JSON.stringify([String(name), ...args]), answer !== undefined);
    if (number !== undefined && answer !== undefined) this.#wire.answers.set(`${number} ${this.place}`, answer);
    return this;
  }
  emitWithAck(name, ...args) {
    return new Promise((resolve) => this.emit(name, ...args, resolve));
  }
  send(...args) {
    return this.emit('message', ...args);
  }
  onAny(fn) {
    this.#wire.listen();
    this.#any.push(fn);
    return this;
  }
  offAny(fn) {
    this.#any = fn === undefined ? [] : this.#any.filter((one) => one !== fn);
    return this;
  }
  disconnect() {
    wiring.close(this.#wire.number, this.place);
    return this;
  }
  close() {
    return this.disconnect();
  }
  take(data, failed) {
    for (const fn of this.#any) {
      try {
        fn.apply(this, data);
      } catch (error) {
        failed(error);
      }
    }
    this.tell(data[0], data.slice(1), failed);
    // What Artillery's socketio-wildcard adds.
    this.tell('*', [{ type: 2, nsp: this.nsp, data }], failed);
  }
}

/** A WebSocket as ws has it. */
class Messages extends Listening {
  #wire;
  constructor(wire) {
    super(() => wire.listen());
    this.#wire = wire;
    this.onmessage = null;
    this.onclose = null;
    // Set later, they must be heard of: the connection listens as soon as somebody holds it.
    wire.listen();
  }
  get readyState() {
    return wiring.isOpen(this.#wire.number, '') ? 1 : 3;
  }
  send(data, options, done) {
    wiring.emit(this.#wire.number, '', typeof data === 'string' ? data : String(data), false);
    const called = typeof options === 'function' ? options : done;
    if (typeof called === 'function') Promise.resolve().then(() => called());
  }
  close() {
    wiring.close(this.#wire.number, '');
  }
  terminate() {
    this.close();
  }
  addEventListener(name, fn) {
    this.on(name, name === 'message' ? (data, isBinary) => fn({ type: name, data: isBinary ? data : String(data), target: this }) : fn);
  }
  take(data, isBinary, failed) {
    this.tell('message', [data, isBinary], failed);
    if (typeof this.onmessage !== 'function') return;
    try {
      this.onmessage({ type: 'message', data: isBinary ? data : String(data), target: this });
    } catch (error) {
      failed(error);
    }
  }
  end(failed) {
    this.tell('close', [1005, Buffer.from('')], failed);
    if (typeof this.onclose !== 'function') return;
    try {
      this.onclose({ type: 'close', code: 1005, reason: '', target: this });
    } catch (error) {
      failed(error);
    }
  }
}
Object.assign(Messages.prototype, { CONNECTING: 0, OPEN: 1, CLOSING: 2, CLOSED: 3 });

/** A virtual user's connections, and the contexts that reach its variables. */
class Wire {
  constructor(number) {
    this.number = number;
    this.answers = new Map();
    this.contexts = new Set();
    this.named = new Map();
    this.ws = undefined;
    this.isHeard = false;
  }
  listen() {
    if (this.isHeard) return;
    this.isHeard = true;
    wiring.listen(this.number);
  }
  socket(place) {
    let socket = this.named.get(place);
    if (socket === undefined) this.named.set(place, (socket = new NamespaceSocket(this, place)));
    return socket;
  }
  /** `context.sockets`: by the names that steps have for namespaces. */
  get sockets() {
    return Object.fromEntries(wiring.places(this.number).map((place) => [place, this.socket(place)]));
  }
}

const wires = new Map();
const wireOf = (number) => {
  let wire = wires.get(number);
  if (wire === undefined) wires.set(number, (wire = new Wire(number)));
  return wire;
};
const wireGone = (number) => void wires.delete(number);

/** `context.sockets` and `context.ws`; undefined where the scenario's engine has no such thing. */
const socketsOf = (number) => (number !== undefined && wiring.kind(number) === SOCKETIO ? wireOf(number).sockets : undefined);
const webSocketOf = (number) => {
  if (number === undefined || wiring.kind(number) !== WS) return undefined;
  const wire = wireOf(number);
  return (wire.ws ??= new Messages(wire));
};

/** Something came: who listens is called. */
const wireHeard = (number, kind, place, text, answer) => {
  const wire = wires.get(number);
  if (wire === undefined) return;
  const { failed } = wiring;
  switch (kind) {
    case EVENT:
      return wire.socket(place).take(JSON.parse(text), failed);
    case ACK: {
      const key = `${answer} ${place}`;
      const fn = wire.answers.get(key);
      wire.answers.delete(key);
      if (fn === undefined) return;
      try {
        fn(...JSON.parse(text));
      } catch (error) {
        failed(error);
      }
      return;
    }
    case CONNECTED:
      return wire.socket(place).tell('connect', [], failed);
    case LOST:
      return wire.ws === undefined ? wire.socket(place).tell('disconnect', [text], failed) : wire.ws.end(failed);
    case TEXT:
      return wire.ws?.take(Buffer.from(text), false, failed);
    case BYTES:
      return wire.ws?.take(Buffer.from(JSON.parse(text)), true, failed);
  }
};
