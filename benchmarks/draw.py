# SPDX-License-Identifier: Apache-2.0
"""draw.py TABLE PICTURE.svg: draws the table of ./dev bench as bars, ours compared with the best peer.

TABLE is the output of benchmarks/run, or a page that contains it (between <!-- table --> and <!-- end of table -->, if
the page has these marks). Every number in the picture is one of the table. A table without any of ROWS, or with one of
them but no ratio, is an error.
"""

import html
import math
import re
import sys

# The rows to draw, from the top: a pattern for the row's name in the table, and its label in the picture.
ROWS = [
    (r"model/bert base, (\d+)", r"BERT-base, \1 tokens"),
    (r"model/vit b/(\d+)", r"ViT-B/\1, an image"),
    (r"model/transformer base, (\d+) \+ (\d+)", r"Transformer-base, \1 + \2 tokens"),
    (r"model/gpt2 small prefill, (512)", r"GPT-2 small, prefill of \1 tokens"),
    (r"model/gpt2 small decode, (\d+)", r"GPT-2 small, a token, context of \1"),
    (r"model/swin block, (.*)", r"Swin, a block of \1"),
    (r"model/vgg-(\d+) features", r"VGG-\1, its convolutions"),
    (r"recurrent/lstm (\d+), (\d+) steps, batch (\d+)", r"LSTM of \1, \2 steps, batch \3"),
    (r"geometric mean of (\d+)", r"contraction, mean of \1 shapes"),
    (r"attention/full (\d+)x(\d+), (512)", r"attention, \1 heads, \3 tokens"),
    (r"attention/causal (\d+)x(\d+), (512)", r"the same, causal"),
]

WIDTH = 900
LEFT, RIGHT = 286, 830  # of the bars; names are to the left, values to the right
TOP = 112
BAR, BAR_GAP, ROW_GAP = 12, 1, 9

STYLE = """
    .page { fill: #ffffff; stroke: #d0d7de; }
    .title { fill: #1f2328; font-size: 18px; font-weight: 600; }
    .name { fill: #1f2328; }
    .note { fill: #57606a; font-size: 13px; }
    .value { fill: #1f2328; font-size: 12px; stroke: #ffffff; stroke-width: 3; paint-order: stroke; }
    .grid { stroke: #d0d7de; }
    .peer { stroke: #bc4c00; stroke-width: 2; }
    .bar0 { fill: #54aeff; }
    .bar1 { fill: #0550ae; }
    @media (prefers-color-scheme: dark) {
      .page { fill: #0d1117; stroke: #30363d; }
      .title, .name, .value { fill: #f0f6fc; }
      .value { stroke: #0d1117; }
      .note { fill: #9ea7b3; }
      .grid { stroke: #30363d; }
      .peer { stroke: #f0883e; }
      .bar0 { fill: #79c0ff; }
      .bar1 { fill: #1f6feb; }
    }
  """


class BadTable(Exception):
    """The table is malformed."""


class Table:
    """The table of a page: `machine` is the line above it; `rows` has a dict per row, from header names to cells."""

    def __init__(self, text):
        marked = re.search(r"^<!-- table -->\n(.*?)^<!-- end of table -->$", text, re.DOTALL | re.MULTILINE)
        lines = (marked.group(1) if marked else text).splitlines()
        begin = next((i for i, line in enumerate(lines) if line.startswith("| benchmark ")), None)
        if begin is None:
            raise BadTable("there is no table of benchmarks")
        self.header = cells_of(lines[begin])
        for name in ("T", "ours", "ratio"):
            if name not in self.header:
                raise BadTable(f'the table has no column "{name}"')
        self.machine = next((line for line in reversed(lines[:begin]) if line.strip()), None)
        if self.machine is None:
            raise BadTable("no line above the table says which machine it is of")
        self.rows = []
        for line in lines[begin + 2 :]:
            if not line.startswith("|"):
                break
            cells = cells_of(line)
            if len(cells) != len(self.header):
                raise BadTable(f"{len(cells)} cells under {len(self.header)} headings: {line}")
            self.rows.append(dict(zip(self.header, cells)))

    def peers(self):
        """The names of the columns between ours and the ratio that contain a number."""
        names = self.header[self.header.index("ours") + 1 : self.header.index("ratio")]
        return [name for name in names if any(row[name][:1].isdigit() for row in self.rows)]


def cells_of(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def ratio_of(row):
    """The best peer's time over ours."""
    try:
        ratio = float(row["ratio"])
    except ValueError:
        ratio = math.nan
    if not (math.isfinite(ratio) and ratio > 0):
        raise BadTable(f'the row "{row["benchmark"]}" of {row["T"]} threads has no ratio: "{row["ratio"]}"')
    return ratio


def threads_of(row):
    if not row["T"].isdigit():
        raise BadTable(f'the row "{row["benchmark"]}" has no number of threads: "{row["T"]}"')
    return int(row["T"])


def chosen(table):
    """{label: {threads: ratio}} for the rows to draw, in their order."""
    groups = {}
    for pattern, called in ROWS:
        for row in table.rows:
            match = re.fullmatch(pattern, row["benchmark"])
            if match:
                groups.setdefault(match.expand(called), {})[threads_of(row)] = ratio_of(row)
    if not groups:
        raise BadTable("the table has no row to draw")
    return groups


def text(kind, x, y, words, anchor="start"):
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(words)}</text>'


def legend(threads):
    """A square and a label for each number of threads, above the bars on the right."""
    shapes = []
    for i, count in enumerate(threads):
        x = WIDTH - 20 - 110 * (len(threads) - i)
        shapes.append(f'<rect class="bar{i % 2}" x="{x + 14}" y="21" width="{BAR}" height="{BAR}"/>')
        shapes.append(text("note", x + 32, 32, f"{count} thread{'s' if count > 1 else ''}"))
    return shapes


def axis(largest, bottom):
    """Grid lines and labels from 0 to the largest ratio, the best peer's line at 1 last; also returns the scale."""
    step = max(1, math.ceil(largest / 6))
    scale = (RIGHT - LEFT) / largest
    lines, numbers = [], []
    for tick in [*(tick for tick in range(0, math.floor(largest) + 1, step) if tick != 1), 1]:
        x = LEFT + scale * tick
        kind = "peer" if tick == 1 else "grid"
        lines.append(f'<line class="{kind}" x1="{x:.1f}" y1="{TOP - 10}" x2="{x:.1f}" y2="{bottom}"/>')
        numbers.append(text("note", x, TOP - 16, "1, best peer" if tick == 1 else str(tick), "middle"))
    return numbers + lines, scale


def picture(table):
    groups = chosen(table)
    threads = sorted({count for ratios in groups.values() for count in ratios})
    height_of_row = len(threads) * (BAR + BAR_GAP) + ROW_GAP
    bottom = TOP + len(groups) * height_of_row
    largest = max(1.0, *(ratio for ratios in groups.values() for ratio in ratios.values()))
    (*behind, before), scale = axis(largest, bottom)
    bars, words = [], []
    for i, (name, ratios) in enumerate(groups.items()):
        y = TOP + i * height_of_row
        words.append(text("name", LEFT - 10, y + (height_of_row - ROW_GAP) / 2 + 5, name, "end"))
        for count, ratio in ratios.items():
            at = y + threads.index(count) * (BAR + BAR_GAP)
            kind = threads.index(count) % 2
            bars.append(f'<rect class="bar{kind}" x="{LEFT}" y="{at}" width="{scale * ratio:.1f}" height="{BAR}"/>')
            words.append(text("value", LEFT + scale * ratio + 5, at + BAR - 2, f"{ratio:.2f}"))
    beside = f"how many times as fast as the best of {', '.join(table.peers())}"
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 12}" width="{WIDTH}"',
        f'     height="{bottom + 12}" role="img" aria-labelledby="title" font-size="14"',
        "     font-family=\"system-ui, 'Segoe UI', Helvetica, Arial, sans-serif\">",
        '  <title id="title">Speed of generated libraries beside the best peer</title>',
        f"  <style>{STYLE}</style>",
        f'  <rect class="page" x="0.5" y="0.5" width="{WIDTH - 1}" height="{bottom + 11}" rx="6"/>',
        "  " + text("title", 20, 32, "Kiln beside the best peer"),
        "  " + text("note", 20, 53, table.machine),
        "  " + text("note", 20, 72, beside),
        *("  " + shape for shape in legend(threads) + behind + bars + [before] + words),
        "</svg>\n",
    ])


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: draw.py TABLE PICTURE.svg")
    source, target = sys.argv[1:]
    try:
        with open(source, encoding="utf-8") as file:
            drawing = picture(Table(file.read()))
        with open(target, "w", encoding="utf-8") as file:
            file.write(drawing)
    except (BadTable, OSError, UnicodeDecodeError) as error:
        sys.exit(f"draw.py: {source}: {error}")


if __name__ == "__main__":
    main()
