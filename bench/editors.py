#!/usr/bin/env python3
"""Ten tasks of an editor for nginx.conf: what `weir lsp`, nginx-language-server and the grammar tree-sitter-nginx can do of them.

    python3 -m venv /tmp/others && /tmp/others/bin/pip install nginx-language-server==0.9.0 tree-sitter==0.26.1
    /tmp/others/bin/python bench/editors.py --weir target/release/weir --server /tmp/others/bin/nginx-language-server --grammar DIR

DIR is a checkout of tree-sitter-nginx (https://github.com/opa-oz/tree-sitter-nginx), whose parser a C compiler builds into a temporary file. A tool
without its flag is left out. Each task asks every tool the same and judges the answer by the rule in its docstring: "yes", "partly" with the reason, or
"no". Both language servers are asked over the Language Server Protocol. A grammar has no requests: it parses, and marks text that it cannot parse;
an editor makes colours and folds of its tree, which no task here asks for."""

import argparse
import ctypes
import json
import queue
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

ANSWER_SECONDS = 20
# How long a server may take for diagnostics that never come.
QUIET_SECONDS = 3

# The protocol's number of an error. Warnings and hints are no marks: the files of the tasks have other things to say about.
ERROR = 1


class Answer:
    """The judgement of one tool in one task."""

    def __init__(self, word, reason=''):
        self.word, self.reason = word, reason

    def __str__(self):
        return f'{self.word}: {self.reason}' if self.reason else self.word


YES, NO = Answer('yes'), Answer('no')


def partly(reason):
    return Answer('partly', reason)


class Server:
    """A language server with a folder of files, as an editor drives it."""

    def __init__(self, command, folder, settings):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.inbox, self.told, self.number, self.folder = queue.Queue(), {}, 0, folder
        threading.Thread(target=self.read, daemon=True).start()
        link = {'dynamicRegistration': False}
        document = {name: link for name in ('synchronization', 'hover', 'definition', 'references', 'formatting', 'rename')}
        document['hover'] = {'contentFormat': ['markdown', 'plaintext']}
        document['completion'] = {'completionItem': {'snippetSupport': True, 'documentationFormat': ['markdown', 'plaintext']}, 'contextSupport': True}
        document['publishDiagnostics'] = {'versionSupport': True}
        document['diagnostic'] = link
        uri = folder.as_uri()
        self.can = self.ask('initialize', {
            'processId': None, 'rootUri': uri, 'workspaceFolders': [{'uri': uri, 'name': 'w'}], 'initializationOptions': settings,
            'capabilities': {'textDocument': document, 'workspace': {'workspaceEdit': {'documentChanges': True}}},
        })['capabilities']
        self.tell('initialized', {})

    def read(self):
        stream = self.process.stdout
        while True:
            length = 0
            while (line := stream.readline()) not in (b'\r\n', b''):
                name, _, value = line.partition(b':')
                length = int(value) if name.lower() == b'content-length' else length
            if not length:
                self.inbox.put(None)
                return
            self.inbox.put(json.loads(stream.read(length)))

    def send(self, message):
        body = json.dumps({'jsonrpc': '2.0', **message}).encode()
        try:
            self.process.stdin.write(b'Content-Length: %d\r\n\r\n' % len(body) + body)
            self.process.stdin.flush()
        except BrokenPipeError:
            pass

    def tell(self, method, params):
        self.send({'method': method, 'params': params})

    def take(self, seconds):
        """The next message, after the server's own requests have their answers; None at the end of the time or of the server."""
        try:
            message = self.inbox.get(timeout=seconds)
        except queue.Empty:
            return None
        if message and message.get('method') == 'textDocument/publishDiagnostics':
            self.told[message['params']['uri']] = message['params']['diagnostics']
        elif message and 'method' in message and 'id' in message:
            wishes = message.get('params', {}).get('items', [])
            self.send({'id': message['id'], 'result': [None] * len(wishes) if wishes else None})
        return message

    def ask(self, method, params):
        """The result of a request; None if it is an error, or if no answer comes."""
        self.number += 1
        own = self.number
        self.send({'id': own, 'method': method, 'params': params})
        while (message := self.take(ANSWER_SECONDS)) is not None:
            if message.get('id') == own and 'method' not in message:
                return message.get('result')
        return None

    def uri(self, name):
        return (self.folder / name).as_uri()

    def open(self, name):
        text = (self.folder / name).read_text()
        self.tell('textDocument/didOpen', {'textDocument': {'uri': self.uri(name), 'languageId': 'nginx', 'version': 1, 'text': text}})

    def diagnostics(self, name):
        """The diagnostics of an open file: those that the server sends by itself, and those that it gives when asked."""
        if self.can.get('diagnosticProvider'):
            found = self.ask('textDocument/diagnostic', {'textDocument': {'uri': self.uri(name)}}) or {}
            self.told.setdefault(self.uri(name), found.get('items', []))
        while self.uri(name) not in self.told and self.take(QUIET_SECONDS) is not None:
            pass
        return self.told.get(self.uri(name), [])

    def at(self, name, method, words, more=None):
        """The answer of a request behind these words of a file."""
        text = (self.folder / name).read_text()
        before = text[:text.index(words) + len(words)]
        position = {'line': before.count('\n'), 'character': len(before.rsplit('\n', 1)[-1])}
        return self.ask(method, {'textDocument': {'uri': self.uri(name)}, 'position': position, **(more or {})})

    def stop(self):
        self.ask('shutdown', None)
        self.tell('exit', None)
        self.process.stdin.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()


class LanguageServer:
    """A tool that speaks the Language Server Protocol."""

    is_grammar = False

    def __init__(self, name, command, settings=None):
        self.name, self.command, self.settings = name, command, settings or {}

    def with_files(self, files, work):
        """The result of this work on a server that has these files open."""
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder).resolve()
            for name, text in files.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_text(text)
            server = Server(self.command, folder, self.settings)
            try:
                for name in files:
                    server.open(name)
                return work(server)
            finally:
                server.stop()

    def marks(self, text):
        """The parts of a file that are marked as errors: (line, first column, line, column behind the last), from 0."""
        found = self.with_files({'nginx.conf': text}, lambda server: server.diagnostics('nginx.conf'))
        grave = [one['range'] for one in found if one.get('severity', ERROR) == ERROR]
        return [(one['start']['line'], one['start']['character'], one['end']['line'], one['end']['character']) for one in grave]


class Grammar:
    """A grammar of tree-sitter: it marks the nodes that it cannot parse, and those that it misses."""

    is_grammar = True

    def __init__(self, name, folder, room):
        import tree_sitter  # noqa: PLC0415 (the package is only there if somebody asks for the grammar)
        self.name = name
        library = Path(room) / 'nginx.so'
        sources = [str(path) for path in sorted((Path(folder) / 'src').glob('*.c'))]
        subprocess.run(['cc', '-shared', '-fPIC', '-O1', '-I', str(Path(folder) / 'src'), *sources, '-o', str(library)], check=True)
        make = ctypes.CDLL(str(library)).tree_sitter_nginx
        make.restype = ctypes.c_void_p
        capsule = ctypes.pythonapi.PyCapsule_New
        capsule.restype, capsule.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        self.parser = tree_sitter.Parser(tree_sitter.Language(capsule(make(), b'tree_sitter.Language', None)))

    def marks(self, text):
        found, waiting = [], [self.parser.parse(text.encode()).root_node]
        while waiting:
            node = waiting.pop()
            if node.is_error or node.is_missing:
                found.append((*node.start_point, *node.end_point))
            waiting.extend(node.children)
        return found


def marked(tool, good, bad, fault):
    """Whether a tool marks a fault: the text `fault` of the file `bad`. A tool that marks the same place of the file without the fault has not
    understood it."""
    line = bad[:bad.index(fault)].count('\n')
    column = len(bad[:bad.index(fault)].rsplit('\n', 1)[-1])
    if tool.marks(good):
        return partly('it also marks the file without the fault')
    marks = tool.marks(bad)
    place = ((line, column), (line, column + len(fault)))
    if any((first, start) <= place[1] and place[0] <= (last, end) for first, start, last, end in marks):
        return YES
    return partly('it marks another place') if marks else NO


GOOD = '''events { }
http {
    limit_req_zone $binary_remote_addr zone=one:10m rate=10r/s;
    upstream app {
        server 10.0.0.1:8080;
    }
    server {
        listen 80;
        location / {
            limit_req zone=one;
            add_header X-Host $host;
            proxy_pass http://app;
        }
    }
}
'''


# The file of the tasks about marks. tree-sitter-nginx 1.0.1 cannot parse the servers of an `upstream`: it would mark the file without a fault, too.
PLAIN = GOOD.replace('    upstream app {\n        server 10.0.0.1:8080;\n    }\n', '').replace('http://app', 'http://127.0.0.1:8080')


def brace(tool):
    """A lost `}` is marked, wherever the tool notices it. Yes if the whole file has no mark."""
    if tool.marks(PLAIN):
        return partly('it also marks the file without the fault')
    return YES if tool.marks(PLAIN.replace('        }\n    }', '        }')) else NO


def unknown(tool):
    """`lsiten` is marked at its place."""
    return marked(tool, PLAIN, PLAIN.replace('listen 80', 'lsiten 80'), 'lsiten')


def context(tool):
    """`listen` in `location` is marked at its place."""
    return marked(tool, PLAIN, PLAIN.replace('limit_req zone', 'listen 81;\n            limit_req zone'), 'listen 81')


def count(tool):
    """`listen` without an argument is marked at its place."""
    return marked(tool, PLAIN, PLAIN.replace('listen 80', 'listen'), 'listen')


def names(tool):
    """A variable and a zone that nothing defines are marked, each at its place. Partly if one is."""
    wrong = {'a variable': ('$host;', '$hots;', '$hots'), 'a zone': ('zone=one;', 'zone=two;', 'zone=two')}
    done = {what: marked(tool, PLAIN, PLAIN.replace(right, bad), fault) for what, (right, bad, fault) in wrong.items()}
    if all(one is YES for one in done.values()):
        return YES
    only = [what for what, one in done.items() if one is YES]
    return partly(f'only {only[0]}') if only else next((one for one in done.values() if one is not NO), NO)


def text_of(contents):
    """The text of a hover, in any of the protocol's forms."""
    if isinstance(contents, list):
        return '\n'.join(text_of(one) for one in contents)
    return contents.get('value', '') if isinstance(contents, dict) else contents or ''


def hover(tool):
    """The answer about `proxy_read_timeout` has its default (60s) and the three blocks that allow it. Partly if it has an answer without these."""
    if tool.is_grammar:
        return NO
    conf = GOOD.replace('proxy_pass', 'proxy_read_timeout 5s;\n            proxy_pass')
    found = tool.with_files({'nginx.conf': conf}, lambda server: server.at('nginx.conf', 'textDocument/hover', 'proxy_read'))
    text = text_of((found or {}).get('contents'))
    if not text:
        return NO
    lacks = [word for word in ('60s', 'http', 'server', 'location') if word not in text]
    return partly(f'it does not say {", ".join(lacks)}') if lacks else YES


def labels(answer):
    items = answer.get('items', []) if isinstance(answer, dict) else answer or []
    return {item['label'].strip() for item in items}


def completion(tool):
    """In `upstream`, `server` and `keepalive` are offered and `listen` is not; behind `gzip`, `on` and `off` are. Partly if one of both holds."""
    if tool.is_grammar:
        return NO
    in_upstream = GOOD.replace('server 10.0.0.1:8080;', 'server 10.0.0.1:8080;\n        ke')
    behind = GOOD.replace('listen 80;', 'listen 80;\n        gzip ;')
    ask = lambda conf, words: labels(tool.with_files({'nginx.conf': conf}, lambda server: server.at('nginx.conf', 'textDocument/completion', words)))  # noqa: E731
    offered = ask(in_upstream, '\n        ke')
    # A server that leaves the filter to the editor offers more than fits `ke`.
    more = ask(in_upstream.replace('\n        ke', '\n        se'), '\n        se')
    by_block = 'keepalive' in offered and 'server' in more and 'listen' not in offered | more
    by_argument = {'on', 'off'} <= ask(behind, 'gzip ')
    if by_block and by_argument:
        return YES
    if by_block or by_argument:
        return partly('directives of the block, but not the words of an argument' if by_block else 'words of an argument, but not the directives of the block')
    return partly('it also offers directives of other blocks') if 'keepalive' in offered else NO


TWO = {
    'nginx.conf': 'events { }\nhttp {\n    include conf.d/*.conf;\n    server {\n        listen 80;\n        location / {\n            proxy_pass http://app;\n        }\n    }\n}\n',
    'conf.d/app.conf': '# the application\nupstream app {\n    server 10.0.0.1:8080;\n}\n',
}


def definition(tool):
    """From `proxy_pass http://app` to the line `upstream app` of another file."""
    if tool.is_grammar:
        return NO

    def work(server):
        found = server.at('nginx.conf', 'textDocument/definition', 'http://ap')
        found = [found] if isinstance(found, dict) else found or []
        places = [(one.get('uri') or one.get('targetUri'), (one.get('range') or one.get('targetSelectionRange'))['start']['line']) for one in found]
        if (server.uri('conf.d/app.conf'), 1) in places:
            return YES
        return partly('another place') if places else NO

    return tool.with_files(TWO, work)


def edited(text, edits):
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    offset = lambda at: min(starts[min(at['line'], len(starts) - 1)] + at['character'], len(text))  # noqa: E731
    for edit in sorted(edits, key=lambda edit: offset(edit['range']['start']), reverse=True):
        text = text[:offset(edit['range']['start'])] + edit['newText'] + text[offset(edit['range']['end']):]
    return text


def rename(tool):
    """`app` becomes `other` at its definition and its use, in both files. Partly if one file is right."""
    if tool.is_grammar:
        return NO

    def work(server):
        edit = server.at('nginx.conf', 'textDocument/rename', 'http://ap', {'newName': 'other'}) or {}
        changes = {one['textDocument']['uri']: one['edits'] for one in edit.get('documentChanges', [])} or edit.get('changes', {})
        expected = {name: text.replace('http://app', 'http://other').replace('upstream app', 'upstream other') for name, text in TWO.items()}
        right = [name for name, text in TWO.items() if edited(text, changes.get(server.uri(name), [])) == expected[name]]
        return YES if len(right) == len(TWO) else partly(f'only {right[0]}') if right else NO

    return tool.with_files(TWO, work)


UGLY = 'events{}\nhttp {\n# a comment\n  server {\n listen   80;   # behind\n\n\n   location / { return 200 "a  b"; }\n  }\n}\n'


def layout(tool):
    """Each line has the indentation of its block, and no word or comment is lost. Partly if only one of both holds."""
    if tool.is_grammar:
        return NO
    options = {'options': {'tabSize': 4, 'insertSpaces': True}}
    work = lambda server: server.ask('textDocument/formatting', {'textDocument': {'uri': server.uri('nginx.conf')}, **options})  # noqa: E731
    edits = tool.with_files({'nginx.conf': UGLY}, work)
    if not edits:
        return NO
    text = edited(UGLY, edits)
    depth, straight = 0, True
    for line in text.splitlines():
        depth -= line.strip().startswith('}')
        straight &= not line.strip() or len(line) - len(line.lstrip()) == 4 * depth
        code = line.split('#')[0]
        depth += code.count('{') - code.count('}') + line.strip().startswith('}')
    kept = all(word in text for word in ('# a comment', '# behind', '"a  b"', 'listen', '80'))
    if straight and kept:
        return YES
    return partly('it loses comments or words' if straight else 'the indentation is not that of the blocks') if straight or kept else NO


TASKS = [
    ('a lost `}` is marked', brace),
    ('an unknown directive is marked at its place', unknown),
    ('a directive in a wrong block is marked', context),
    ('a wrong number of arguments is marked', count),
    ('an unknown variable and an unknown zone are marked', names),
    ('a directive is explained, with default and blocks', hover),
    ('completion by block and by argument', completion),
    ('from a use to the `upstream` in another file', definition),
    ('another name for an `upstream`, over files', rename),
    ('layout that keeps comments', layout),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--weir', help='the binary of weir')
    parser.add_argument('--server', help='the program nginx-language-server')
    parser.add_argument('--grammar', help='a checkout of tree-sitter-nginx')
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as room:
        tools = []
        if chosen.weir:
            tools.append(LanguageServer('`weir lsp`', [chosen.weir, 'lsp'], {'target': 'nginx', 'language': 'en'}))
        if chosen.server:
            tools.append(LanguageServer('nginx-language-server', [chosen.server]))
        if chosen.grammar:
            tools.append(Grammar('tree-sitter-nginx', chosen.grammar, room))
        if not tools:
            parser.error('name at least one tool')
        print('| task | ' + ' | '.join(tool.name for tool in tools) + ' |')
        print('|---|' + '---|' * len(tools))
        for task, judge in TASKS:
            print(f'| {task} | ' + ' | '.join(str(judge(tool)) for tool in tools) + ' |', flush=True)


if __name__ == '__main__':
    sys.exit(main())
