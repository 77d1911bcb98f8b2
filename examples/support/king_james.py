# SPDX-License-Identifier: Apache-2.0
"""The King James Bible as training text, from Debian's bible-kjv. Standard library only."""
import re
import subprocess

HELD_OUT_SHARE = 0.05


def read_text():
    """Returns the whole book: one verse per line, an empty line between chapters, single spaces."""
    printed = subprocess.run(["bible", "-f", "gen1:1-rev22:21"], check=True, capture_output=True, text=True).stdout
    lines, chapter = [], None
    for line in printed.splitlines():
        match = re.match(r"([1-3]?[A-Za-z]+\d+):\d+ (.*)", line)
        if chapter not in (None, match[1]):
            lines.append("")
        chapter = match[1]
        lines.append(" ".join(match[2].split()))
    return "\n".join(lines) + "\n"


def split(text):
    """Returns (training, held out): the cut is the first chapter that starts in the last 5 %."""
    cut = text.index("\n\n", int(len(text) * (1 - HELD_OUT_SHARE))) + 2
    return text[:cut], text[cut:]
