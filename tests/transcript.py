"""The transcripts of the guides: commands in a block, each with the output below it."""

import os
import re

# The guides are in English unless a command asks for another language, whatever the language of the tester.
os.environ['WEIR_LANG'] = 'en'


def commands(block):
    """The commands of a block, each with the output below it."""
    found = []
    for line in block.splitlines():
        if line.startswith('$ '):
            found.append([line[2:], []])
        elif found:
            found[-1][1].append(line)
    return [(command, '\n'.join(lines).strip('\n')) for command, lines in found]


def alike(text):
    """Without numbers, which differ from one machine and one moment to another."""
    return re.sub(r'\d[\d,.]*', '0', text)
