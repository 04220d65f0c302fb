// A client of `weir lsp` made of the packages that VS Code's own client is made of.

import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const rpc = require('vscode-languageserver-protocol/node');

export { rpc };

// What VS Code's client says of itself, as far as weir reads it.
const CAPABILITIES = {
  general: { positionEncodings: ['utf-16'] },
  workspace: { workspaceEdit: { documentChanges: true }, configuration: false },
  textDocument: {
    codeAction: {
      codeActionLiteralSupport: { codeActionKind: { valueSet: ['quickfix', 'source', 'source.fixAll'] } },
      dataSupport: true, disabledSupport: true, resolveSupport: { properties: ['edit'] },
    },
    completion: { completionItem: { snippetSupport: true } },
    documentSymbol: { hierarchicalDocumentSymbolSupport: true },
    hover: { contentFormat: ['markdown', 'plaintext'] },
    publishDiagnostics: { relatedInformation: true, tagSupport: { valueSet: [1, 2] }, versionSupport: true },
    rename: { prepareSupport: true },
  },
};

export class Client {
  static async start(weir, folder, settings = {}, flags = []) {
    const client = new Client();
    client.process = spawn(weir, ['lsp', ...flags], { stdio: ['pipe', 'pipe', 'inherit'], env: { ...process.env, WEIR_LANG: 'en' } });
    client.link = rpc.createMessageConnection(
      new rpc.StreamMessageReader(client.process.stdout), new rpc.StreamMessageWriter(client.process.stdin));
    client.told = new Map();
    client.waiting = [];
    client.versions = new Map();
    client.link.onNotification('textDocument/publishDiagnostics', (params) => {
      client.told.set(params.uri, params);
      client.waiting = client.waiting.filter((one) => !one(params));
    });
    client.link.onRequest('client/registerCapability', () => null);
    client.link.listen();
    const uri = pathToFileURL(folder).href;
    client.abilities = await client.link.sendRequest(rpc.InitializeRequest.type, {
      processId: process.pid, rootUri: uri, capabilities: CAPABILITIES, initializationOptions: settings,
      workspaceFolders: [{ uri, name: 'workspace' }],
    });
    await client.link.sendNotification(rpc.InitializedNotification.type, {});
    return client;
  }

  uri(path) { return pathToFileURL(path).href; }

  async open(path, text = readFileSync(path, 'utf8')) {
    const uri = this.uri(path);
    this.versions.set(uri, 1);
    const told = this.diagnosed(uri, 1);
    await this.link.sendNotification(rpc.DidOpenTextDocumentNotification.type,
      { textDocument: { uri, languageId: 'nginx', version: 1, text } });
    return told;
  }

  // Changes the text; the promise has the diagnostics of this version.
  async change(path, contentChanges) {
    const uri = this.uri(path);
    const version = this.versions.get(uri) + 1;
    this.versions.set(uri, version);
    const told = this.diagnosed(uri, version);
    await this.link.sendNotification(rpc.DidChangeTextDocumentNotification.type, { textDocument: { uri, version }, contentChanges });
    return { told };
  }

  async close(path) {
    const uri = this.uri(path);
    await this.link.sendNotification(rpc.DidCloseTextDocumentNotification.type, { textDocument: { uri } });
  }

  diagnosed(uri, version) {
    return new Promise((done) => {
      this.waiting.push((params) => {
        const is = params.uri === uri && params.version >= version;
        if (is) done(params.diagnostics);
        return is;
      });
    });
  }

  // The answer of a request; with a token, the request can be cancelled.
  ask(type, params, ...token) { return this.link.sendRequest(type, params, ...token); }

  async stop() {
    await this.link.sendRequest(rpc.ShutdownRequest.type);
    await this.link.sendNotification(rpc.ExitNotification.type);
    return new Promise((done) => this.process.once('exit', done));
  }
}
