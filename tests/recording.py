#!/usr/bin/env python3
"""The recording at the top of the READMEs: commands that really run in a terminal, as an SVG that moves.

    target/python/bin/python tests/recording.py --weir BIN        docs/terminal.svg and docs/terminal.ko.svg, in some minutes

The program starts a dummy application, an edge in front of it and a load, types the commands of SCENES into a pseudo-terminal, and
draws each screen that pyte makes of the output (pip install -r tests/recording.txt). Waits are shorter in the picture than they were:
the title says how much faster a scene runs. All happens in namespaces of its own (root). Use a release build, on a machine with
nothing else to do: if the lab has no verdict, nothing is written. With --noisy, the lab keeps its figures and says that others worked."""

import argparse, fcntl, html, os, pty, re, select, struct, subprocess, sys, termios, time
from dataclasses import dataclass, replace
from pathlib import Path

import pyte

ROOT = Path(__file__).resolve().parent.parent
ROOM = Path('/srv')
COLUMNS, ROWS = 112, 24
BYTES_MAX = 150_000

CONF = '''events { worker_connections 256; }
http {
    upstream app { server 127.0.0.1:3000; }
    server {
        listen 8080;
        location / { proxy_pass http://app; }
    }
}
'''
FIXED = CONF.replace('3000; }', '3000; keepalive 32; }').replace(
    'http://app; }', 'http://app; proxy_http_version 1.1; proxy_set_header Connection ""; }')


@dataclass
class Scene:
    command: str
    # Seconds of the output in the picture, and for reading its end.
    shown: float
    read: float
    # Ends a command that runs until then, in seconds.
    until: float = 0
    # What the output must have.
    says: str = ''


SCENES = [
    Scene('weir doctor nginx.conf --only upstream_without_keepalive', 0.1, 3.4, says='keepalive 32;'),
    Scene('weir load http://127.0.0.1:8080/ -R 200 -d 5s', 2.2, 2.2, says=r'0 failed|실패 0'),
    Scene('weir top', 2.8, 0.2, until=8, says='127.0.0.1:3000'),
    Scene('weir lab ab nginx.conf fixed.conf / --edge /usr/sbin/nginx --duet -R 300 --block 5s --pairs 8 \\\n'
          '    --together keepalive,proxy_http_version,proxy_set_header', 2.0, 4.4,
          says=r'(?m)^(Verdict|판정): (?!no verdict|not comparable|inconclusive)'),
]
TYPING_S = 0.8
# Letters that appear together.
TYPED = 4

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument('--weir', default=str(ROOT / 'target/release/weir'), help='weir binary, of a release build')
parser.add_argument('--lang', choices=['en', 'ko'], action='append', help='one language alone')
parser.add_argument('--out', type=Path, default=ROOT / 'docs', help='folder of the pictures')
parser.add_argument('--noisy', action='store_true', help='with --noisy for the lab, on a machine that has other work')
chosen = parser.parse_args()


def scenes():
    return [replace(scene, command=scene.command + ' --noisy' * (chosen.noisy and 'lab' in scene.command)) for scene in SCENES]


def environment(language):
    return {**os.environ, 'WEIR_LANG': language, 'LC_ALL': 'C.UTF-8', 'TERM': 'xterm-256color', 'XDG_STATE_HOME': f'{ROOM}/.state',
            'PATH': f'{ROOM}/.bin:/usr/sbin:{os.environ["PATH"]}'}


class Screen(pyte.Screen):
    """pyte's, which knows no faint letters: here they are the blinking ones, which weir does not use."""

    def select_graphic_rendition(self, *codes, **others):
        for code in codes:
            if code in (2, 22):
                self.cursor.attrs = self.cursor.attrs._replace(blink=code == 2)
        super().select_graphic_rendition(*codes, **others)
        if codes in ((), (0,)):
            self.cursor.attrs = self.cursor.attrs._replace(blink=False)


def played(scene, language):
    """The screens of a command, each with its second, and its output."""
    screen = Screen(COLUMNS, ROWS)
    stream = pyte.ByteStream(screen)
    lines = wrapped(f'$ {scene.command}')
    stream.feed(('\r\n'.join(lines) + '\r\n').encode())
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(ROOM)
        # The size is there before the command asks for it.
        time.sleep(0.2)
        os.execvpe('bash', ['bash', '-c', f'exec {scene.command}'], environment(language))
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack('HHHH', ROWS, COLUMNS, 0, 0))
    began, screens, said, is_over = time.monotonic(), [], b'', False
    while True:
        now = time.monotonic() - began
        if scene.until and now > scene.until and not is_over:
            os.write(terminal, b'q')
            is_over = True
        if not select.select([terminal], [], [], 0.1)[0]:
            continue
        try:
            piece = os.read(terminal, 65536)
        except OSError:
            break
        if not piece:
            break
        said += piece
        if not is_over:
            stream.feed(piece)
            screens.append((now, rows(screen)))
    os.waitpid(child, 0)
    os.close(terminal)
    return screens, said.decode(errors='replace')


def wrapped(text):
    return [line[at:at + COLUMNS] for line in text.split('\n') for at in range(0, max(len(line), 1), COLUMNS)]


# --- From a screen to rows of runs ---

def rows(screen):
    """Each row as runs: column, cells, text, classes. A run has one style and letters of one width."""
    return tuple(tuple(runs(screen.buffer[number])) for number in range(ROWS))


def runs(row):
    found, column = [], 0
    while column < COLUMNS:
        cell = row[column]
        width = 2 if column + 1 < COLUMNS and row[column + 1].data == '' else 1
        # A space between Korean words belongs to them: fewer pieces.
        is_within = cell.data == ' ' and found and found[-1][4] == 'wide'
        kind = 'wide' if width == 2 or is_within else 'ascii' if cell.data.isascii() else 'other'
        style = found[-1][3] if is_within else styled(cell)
        if found and found[-1][3:] == [style, kind]:
            found[-1][1] += width
            found[-1][2] += cell.data
        else:
            found.append([column, width, cell.data, style, kind])
        column += width
    for start, cells, text, style, kind in found:
        kept = text.rstrip()
        indent = len(kept) - len(kept.lstrip())
        if kept.strip():
            yield (start + indent, cells - (len(text) - len(kept)) - indent, kept.lstrip(), style + ('wide',) * (kind == 'wide'))


# The sixteen colours, and the same as numbers of the larger palette, as pyte names them.
COLOURS = ['grey', 'red', 'green', 'brown', 'blue', 'magenta', 'cyan', 'default']
PALETTE = {pyte.graphics.FG_BG_256[number]: COLOURS[number % 8] for number in range(16)}


def styled(cell):
    colour = cell.fg.removeprefix('bright')
    colour = PALETTE.get(colour, 'grey' if colour == 'black' else colour)
    colour = 'grey' if colour == 'default' and cell.blink else colour
    return (*[colour] * (colour != 'default'), *['bold'] * cell.bold)


# --- From screens to a film ---

def film(language):
    """The film of all scenes: its seconds, and for each second at which it changes a title and the rows."""
    cuts, now = [], 0.0
    for scene in scenes():
        screens, said = played(scene, language)
        print(f'$ {scene.command}\n{said}', flush=True)
        if not re.search(scene.says, said):
            sys.exit(f'{scene.command}: the output has no {scene.says!r}: run this again on a quiet machine')
        typed = [f'$ {scene.command}'[:end] for end in range(2, len(scene.command) + 2 + TYPED, TYPED)]
        for at, text in enumerate(typed):
            cuts.append((now + TYPING_S * at / len(typed), 'weir', as_typed(text)))
        now += TYPING_S + 0.2
        took = screens[-1][0] - screens[0][0]
        speed = max(1.0, took / scene.shown)
        title = 'weir' if speed < 1.5 else f'weir · {speed:.0f} ×'
        shown_at = -1.0
        for number, (second, picture) in enumerate(screens):
            at = (second - screens[0][0]) / speed
            # More pictures than ten in a second are not seen.
            if at - shown_at >= 0.1 or number == len(screens) - 1:
                cuts.append((now + at, title, picture))
                shown_at = at
        now += took / speed + scene.read
    return now, cuts


def as_typed(text):
    lines = wrapped(text + '█')
    first = [((0, len(line), line, ()),) for line in lines]
    return tuple(first + [()] * (ROWS - len(first)))


# --- From a film to an SVG ---

CELL, LINE, PAD, BAR = 8.4, 18, 14, 30
LIGHT = {'back': '#ffffff', 'bar': '#eaeef2', 'edge': '#d0d7de', 'text': '#1f2328', 'red': '#b3202b', 'green': '#116329', 'brown': '#7a4d00',
         'blue': '#0550ae', 'magenta': '#6f42c1', 'cyan': '#1b6d78', 'grey': '#59636e'}
DARK = {'back': '#0d1117', 'bar': '#161b22', 'edge': '#30363d', 'text': '#e6edf3', 'red': '#ff8b82', 'green': '#7ee787', 'brown': '#e3b341',
        'blue': '#79c0ff', 'magenta': '#d2a8ff', 'cyan': '#76e3ea', 'grey': '#9198a1'}


def svg(seconds, cuts, about):
    """The picture. A row that several screens share is drawn once, and each piece says when it is seen."""
    ends = [cut[0] for cut in cuts[1:]] + [seconds]
    times = {}
    for (begin, title, picture), end in zip(cuts, ends):
        for number, row in [(-1, ((0, len(title), title, ()),)), *enumerate(picture)]:
            if row:
                spans = times.setdefault((number, row), [])
                if spans and spans[-1][1] == begin:
                    spans[-1][1] = end
                else:
                    spans.append([begin, end])
    groups = {}
    for (number, row), spans in times.items():
        groups.setdefault(tuple(tuple(span) for span in spans), []).append((number, row))
    width, height = COLUMNS * CELL + 2 * PAD, ROWS * LINE + BAR + 2 * PAD
    style, body = [], []
    for number, (spans, drawn) in enumerate(groups.items()):
        style.append(keyframes(f'k{number}', spans, seconds))
        is_last = ' still' if spans[-1][1] == seconds else ''
        body.append(f'<g class="k{number}{is_last}">' + ''.join(line(at, row, width) for at, row in drawn) + '</g>')
    colours = lambda theme: ''.join(f'--{name}:{value};' for name, value in theme.items())
    classes = ''.join(f'.{name}{{fill:var(--{name})}}' for name in LIGHT if name not in ('back', 'bar', 'edge', 'text'))
    return f'''<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" role="img" aria-label="{html.escape(about)}">
<style>
svg{{{colours(DARK)}}}
@media (prefers-color-scheme:light){{svg{{{colours(LIGHT)}}}}}
text{{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono","Noto Sans Mono CJK KR","D2Coding",monospace;white-space:pre;fill:var(--text)}}
{classes}.bold{{font-weight:700}}.wide{{font-size:16px}}
g{{visibility:hidden;animation:{seconds:.2f}s step-end infinite}}.still{{visibility:visible}}
{''.join(style)}
@media (prefers-reduced-motion:reduce){{g{{animation:none}}}}
</style>
<rect x=".5" y=".5" width="{width - 1:g}" height="{height - 1:g}" rx="8" fill="var(--back)" stroke="var(--edge)"/>
<path d="M1 {BAR}V9a8 8 0 0 1 8-8H{width - 9:g}a8 8 0 0 1 8 8V{BAR}z" fill="var(--bar)"/>
{''.join(body)}
</svg>
'''


def keyframes(name, spans, seconds):
    steps = {0.0: 'hidden'}
    for begin, end in spans:
        steps[begin] = 'visible'
        if end < seconds:
            steps[end] = 'hidden'
    said = ''.join(f'{100 * at / seconds:.2f}%{{visibility:{what}}}' for at, what in sorted(steps.items()))
    return f'.{name}{{animation-name:{name}}}@keyframes {name}{{{said}}}'


def line(number, row, width):
    if number < 0:
        return f'<text class="grey" x="{width / 2:g}" y="{BAR - 10}" text-anchor="middle">{html.escape(row[0][2])}</text>'
    y = BAR + PAD + LINE * number + 13
    return ''.join(piece(y, *run) for run in row)


def piece(y, column, cells, text, style):
    # A length, so that the fonts of the reader's machine change nothing about the columns.
    length = f' textLength="{cells * CELL:g}"' if len(text) > 1 else ''
    names = f' class="{" ".join(style)}"' if style else ''
    return f'<text x="{PAD + column * CELL:g}" y="{y}"{length}{names}>{html.escape(text, quote=False)}</text>'


# --- The stage ---

def stage():
    """Configurations, the application, the edge, a load that goes on; all of it ends with this process."""
    subprocess.run(['mount', '-t', 'tmpfs', 'tmpfs', str(ROOM)], check=True)
    subprocess.run(['ip', 'link', 'set', 'lo', 'up'], check=True)
    (ROOM / '.bin').mkdir()
    (ROOM / '.bin/weir').symlink_to(os.path.abspath(chosen.weir))
    (ROOM / 'logs').mkdir()
    (ROOM / 'nginx.conf').write_text(CONF)
    (ROOM / 'fixed.conf').write_text(FIXED)
    quiet = {'cwd': ROOM, 'env': environment('en'), 'stdin': subprocess.DEVNULL, 'stdout': subprocess.DEVNULL}
    subprocess.Popen(['weir', 'origin', '--listen', '127.0.0.1:3000'], **quiet)
    subprocess.Popen(['weir', 'edge', '-p', '.', '-c', 'nginx.conf', '-g', 'daemon off; user root;'], **quiet)
    time.sleep(2)
    subprocess.Popen(['weir', 'load', 'http://127.0.0.1:8080/?delay=1s', '-R', '110', '-c', '140', '-d', '30m', '-q'], **quiet)
    time.sleep(6)


ABOUT = {'en': 'A terminal: weir doctor finds the missing keepalive, weir load loads the edge, weir top shows it, weir lab ab proves the fix',
         'ko': '터미널: weir doctor가 빠진 keepalive를 찾고, weir load가 엣지에 부하를 보내고, weir top이 엣지를 보여 주고, weir lab ab이 수정의 효과를 증명합니다'}


def main():
    if os.getpid() != 1:
        own = ['unshare', '--net', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc']
        os.execvp('unshare', [*own, sys.executable, *sys.argv])
    stage()
    for language in chosen.lang or ['en', 'ko']:
        picture = svg(*film(language), ABOUT[language])
        to = chosen.out / ('terminal.svg' if language == 'en' else f'terminal.{language}.svg')
        size = len(picture.encode())
        if size > BYTES_MAX:
            sys.exit(f'{to}: {size} bytes, more than {BYTES_MAX}')
        to.write_text(picture)
        print(f'{to}: {size} bytes')


main()
