// Starts `weir lsp` for files of the language nginx. Everything else is the server's.

const { workspace } = require('vscode');
const { LanguageClient } = require('vscode-languageclient/node');

let client;

/** The settings that the server knows. */
function settings() {
  const { target, language, severity, prefix, root } = workspace.getConfiguration('weir');
  return { target, language, severity, prefix, root };
}

function activate() {
  const command = workspace.getConfiguration('weir').get('path') || 'weir';
  const server = { command, args: ['lsp', '--stdio'] };
  client = new LanguageClient('weir', 'weir', { run: server, debug: server }, {
    documentSelector: [{ language: 'nginx' }],
    initializationOptions: settings(),
    synchronize: { configurationSection: 'weir' },
  });
  return client.start();
}

function deactivate() {
  return client?.stop();
}

module.exports = { activate, deactivate, settings };
