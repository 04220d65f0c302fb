// `Buffer`, `TextEncoder`, `TextDecoder`, `atob`, `btoa`: bytes and texts.

const utf8Bytes = (text) => native.utf8(String(text));

const utf8Text = (bytes) => {
  let text = '';
  for (let at = 0; at < bytes.length; ) {
    const first = bytes[at];
    let length = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
    let code = length === 1 ? first : first & (0x7f >> length);
    for (let next = 1; next < length; next += 1) {
      const byte = bytes[at + next];
      if ((byte & 0xc0) !== 0x80) length = 0;
      code = (code << 6) | (byte & 0x3f);
    }
    const isWrong = length === 0 || (length === 3 && (code < 0x800 || (code >= 0xd800 && code < 0xe000))) ||
      (length === 4 && (code < 0x10000 || code > 0x10ffff));
    text += isWrong ? '\ufffd' : String.fromCodePoint(code);
    at += isWrong ? 1 : length;
  }
  return text;
};

const BASE64 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const BASE64_VALUES = new Map([...BASE64].map((letter, value) => [letter, value]).concat([['-', 62], ['_', 63]]));

const base64Text = (bytes) => {
  let text = '';
  for (let at = 0; at < bytes.length; at += 3) {
    const three = (bytes[at] << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
    text += BASE64[three >> 18] + BASE64[(three >> 12) & 63];
    text += at + 1 < bytes.length ? BASE64[(three >> 6) & 63] : '=';
    text += at + 2 < bytes.length ? BASE64[three & 63] : '=';
  }
  return text;
};

const base64Bytes = (text) => {
  const bytes = [];
  let bits = 0, held = 0;
  for (const letter of text) {
    const value = BASE64_VALUES.get(letter);
    if (letter === '=') break;
    if (value === undefined) continue;
    held = ((held << 6) | value) & 0xffffff;
    bits += 6;
    if (bits >= 8) bytes.push((held >> (bits -= 8)) & 255);
  }
  return bytes;
};

const latin1Bytes = (text) => Array.from(text, (letter) => letter.charCodeAt(0) & 255);
const latin1Text = (bytes) => Array.from(bytes, (byte) => String.fromCharCode(byte)).join('');
const hexText = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
const hexBytes = (text) => (text.match(/[0-9a-fA-F]{2}/g) ?? []).map((pair) => parseInt(pair, 16));
const urlSafe = (text) => text.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
const utf16Bytes = (text) => Array.from({ length: text.length * 2 }, (_, at) => (text.charCodeAt(at >> 1) >> (8 * (at & 1))) & 255);

const ENCODINGS = {
  utf8: [utf8Bytes, utf8Text],
  hex: [hexBytes, hexText],
  base64: [base64Bytes, base64Text],
  base64url: [base64Bytes, (bytes) => urlSafe(base64Text(bytes))],
  latin1: [latin1Bytes, latin1Text],
  ascii: [latin1Bytes, (bytes) => latin1Text(bytes.map((byte) => byte & 127))],
  utf16le: [utf16Bytes, (bytes) => Array.from({ length: bytes.length >> 1 }, (_, at) => String.fromCharCode(bytes[2 * at] | (bytes[2 * at + 1] << 8))).join('')],
};
const encodingOf = (name = 'utf8') => {
  const plain = String(name).toLowerCase();
  const found = ENCODINGS[{ 'utf-8': 'utf8', binary: 'latin1', ucs2: 'utf16le', 'utf-16le': 'utf16le' }[plain] ?? plain];
  if (found === undefined) throw new TypeError(`Unknown encoding: ${name}`);
  return found;
};

class Buffer extends Uint8Array {
  static from(value, encoding, length) {
    if (typeof value === 'string') return Buffer.#of(encodingOf(encoding)[0](value));
    if (value instanceof ArrayBuffer) return new Buffer(value, encoding, length);
    if (value?.type === 'Buffer' && Array.isArray(value.data)) return Buffer.#of(value.data);
    return Buffer.#of(value);
  }
  static #of(items) {
    const made = new Buffer(items.length);
    made.set(items);
    return made;
  }
  static alloc(length, fill = 0, encoding = 'utf8') {
    return new Buffer(length).fill(fill, 0, length, encoding);
  }
  static allocUnsafe(length) {
    return new Buffer(length);
  }
  static isBuffer(value) {
    return value instanceof Buffer;
  }
  static isEncoding(name) {
    try {
      return Boolean(encodingOf(name));
    } catch {
      return false;
    }
  }
  static byteLength(value, encoding) {
    return typeof value === 'string' ? encodingOf(encoding)[0](value).length : value.byteLength;
  }
  static concat(list, length = list.reduce((sum, item) => sum + item.length, 0)) {
    const made = new Buffer(length);
    let at = 0;
    for (const item of list) {
      made.set(item.subarray(0, Math.max(0, length - at)), Math.min(at, length));
      at += item.length;
    }
    return made;
  }
  static compare(one, two) {
    for (let at = 0; at < one.length && at < two.length; at += 1) if (one[at] !== two[at]) return one[at] < two[at] ? -1 : 1;
    return Math.sign(one.length - two.length);
  }
  toString(encoding, start = 0, end = this.length) {
    return encodingOf(encoding)[1](new Uint8Array(this.buffer, this.byteOffset, this.length).subarray(start, end));
  }
  toJSON() {
    return { type: 'Buffer', data: Array.from(this) };
  }
  slice(start, end) {
    return this.subarray(start, end);
  }
  equals(other) {
    return Buffer.compare(this, other) === 0;
  }
  fill(value, start, end, encoding) {
    if (typeof value !== 'string') return super.fill(value, start, end);
    const bytes = encodingOf(encoding)[0](value);
    for (let at = start ?? 0; at < (end ?? this.length); at += 1) this[at] = bytes.length ? bytes[at % bytes.length] : 0;
    return this;
  }
  write(text, at = 0) {
    const bytes = utf8Bytes(text).subarray(0, this.length - at);
    this.set(bytes, at);
    return bytes.length;
  }
}
for (const [name, setter, bytes] of [['UInt8', 'Uint8', 1], ['UInt16', 'Uint16', 2], ['UInt32', 'Uint32', 4], ['Int8', 'Int8', 1],
  ['Int16', 'Int16', 2], ['Int32', 'Int32', 4], ['Float', 'Float32', 4], ['Double', 'Float64', 8]]) {
  const view = (buffer) => new DataView(buffer.buffer, buffer.byteOffset, buffer.length);
  for (const [ending, isLittle] of bytes === 1 ? [['', true]] : [['LE', true], ['BE', false]]) {
    Buffer.prototype[`read${name}${ending}`] = function (at = 0) {
      return view(this)[`get${setter}`](at, isLittle);
    };
    Buffer.prototype[`write${name}${ending}`] = function (value, at = 0) {
      view(this)[`set${setter}`](at, value, isLittle);
      return at + bytes;
    };
  }
}

class TextEncoder {
  encoding = 'utf-8';
  encode(text = '') {
    return utf8Bytes(text);
  }
}
class TextDecoder {
  encoding = 'utf-8';
  constructor(label = 'utf-8') {
    if (!/^utf-?8$/i.test(label)) throw new RangeError(`The "${label}" encoding is not supported`);
  }
  decode(bytes = []) {
    const view = bytes instanceof ArrayBuffer ? new Uint8Array(bytes) : bytes;
    return utf8Text(view).replace(/^\ufeff/, '');
  }
}
const atob = (text) => latin1Text(base64Bytes(String(text)));
const btoa = (text) => base64Text(latin1Bytes(String(text)));
