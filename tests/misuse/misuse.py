#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Near misses: correct programs of the DSL with one thing changed. Each must be rejected with the text of a labelled
# rule, or be correct, which its trace, the compiler's checks and its passes then confirm.
#
#   misuse.py --programs 60 --lower PROGRAM [--kiln PROGRAM] [--jobs 2] [--seed N] [--keep FOLDER]
#
# KILN_SEED repeats a run. A program with another outcome is printed completely, so that it can be compiled.
import argparse
import collections
import concurrent.futures
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import draw
import judge
import layers
import markup
import operations

SECONDS, BYTES = 60, 2 << 30
COMPILERS = {"g++": [], "clang++-22": ["-fconstexpr-steps=100000000"]}
FLAGS = ["-std=c++20", "-fno-diagnostics-color", "-fPIC"]
TRACE = '#include <string>\nextern "C" void kiln_trace(kiln::Graph &graph) { graph = kiln::trace<M>(); }\n'
MAIN = "#include <kiln/generator.h>\nKILN_MODEL(m, M)\n"


def limit_memory():
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run(command, seconds=SECONDS, limited=True):
    """Returns the status and the output; the status is "late" after a timeout."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds, errors="replace",
                              preexec_fn=limit_memory if limited else None)
        return done.returncode, done.stdout
    except subprocess.TimeoutExpired:
        return "late", ""


def make(seed, unchanged):
    """Returns the near miss of a seed: its text, and the change. A share of the programs is unchanged."""
    source = random.Random(seed)
    d = draw.Draw(source)
    source.choice(operations.OPERATIONS + layers.LAYERS)(d)
    if source.random() < 0.2:
        source.choice(operations.OPERATIONS)(d)
    program = markup.parse(d.program())
    right = source.random() < unchanged
    changed = ("nothing", "", "") if right else markup.change(program, source)
    return program.text(), changed


class Runner:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.rules = judge.read_rules(options.include)
        self.compilers = [name for name in COMPILERS if subprocess.run(["which", name], capture_output=True).returncode == 0]
        if not self.compilers:
            sys.exit(77)
        if len(self.rules) < 100:
            sys.exit("found too few rules in " + options.include)

    def precompile(self):
        for name in self.compilers:
            header = self.folder / name / "language.h"
            header.parent.mkdir(parents=True)
            header.write_text('#include "kiln/dsl.h"\n#include "kiln/windows.h"\n#include <string>\n')
            subprocess.run([name, *FLAGS, *COMPILERS[name], "-I", self.options.include, "-x", "c++-header", header, "-o",
                            f"{header}.gch"], check=True)

    def compile(self, name, source, output):
        return run([name, *FLAGS, *COMPILERS[name], "-I", self.options.include, "-include", self.folder / name / "language.h",
                    "-shared", source, "-o", output])

    def one(self, seed):
        """Returns (seed, outcome, detail, text, change, output)."""
        text, changed = make(seed, self.options.unchanged)
        source, output = self.folder / f"p{seed}.cpp", self.folder / f"p{seed}.so"
        source.write_text(text + TRACE)
        chosen = random.Random(seed + 1)
        names = self.compilers if chosen.random() < 0.1 else [chosen.choice(self.compilers)]
        outcomes = []
        for name in names:
            status, said = self.compile(name, source, output)
            outcomes.append((*judge.judge(status, said, text, changed, self.rules), f"{name}:\n{said}"))
        outcome, detail, said = max(outcomes, key=lambda each: each[0].startswith("!"))
        if outcome[0] != "!" and len({each[0] == "compiled" for each in outcomes}) > 1:
            outcome, detail = "!compilers differ", " and ".join(each[0] for each in outcomes)
            said = "\n".join(each[2] for each in outcomes)
        if changed[0] == "nothing" and outcome != "compiled":
            outcome = "!right but refused"
        if outcome == "compiled":
            outcome, detail, said = self.confirm(seed, text, output)
            if changed[0] == "nothing" and outcome not in ("right", "generator"):
                outcome = "!right but refused"
        for path in (source, output):
            path.unlink(missing_ok=True)
        return seed, outcome, detail, text, changed, said

    def confirm(self, seed, text, library):
        """Runs the frontend and the passes on a program that compiled, and the whole compiler on a share of them."""
        status, said = run([self.options.lower, library], limited=False)
        outcome = self.judge_compiler(status, said)
        if outcome[0] == "right" and self.options.kiln and random.Random(seed + 2).random() < self.options.whole:
            folder = Path(tempfile.mkdtemp(dir=self.folder))
            spec = folder / "spec.cpp"
            spec.write_text(text + MAIN)
            status, said = run([self.options.kiln, "compile", spec, "--no-cache", "-j", "1", "--target", "x86-64-v3", "-o", folder],
                               seconds=600, limited=False)
            outcome = self.judge_compiler(status, said)
        return outcome

    def judge_compiler(self, status, said):
        if status == 0:
            return "right", "", said
        if status == "late" or status < 0 or status >= 128:
            return "!compiler crashes", f"ended with {status}", said
        labels = judge.labels_in(said, self.rules)
        if labels:
            return "!refused late", ", ".join(sorted(labels)), said
        for kind, words, _ in judge.ACCEPTED_LATE:
            if words in said:
                return "generator", kind, said
        return "!compiler refuses", said.strip().split("\n")[0], said


def show(result):
    seed, outcome, detail, text, (kind, before, after), said = result
    print(f"---- {outcome[1:]}: {detail}\n// seed {seed}: {kind} `{before}` became `{after}`\n{text}// ----")
    print("\n".join(said.split("\n")[:40]) + "\n", flush=True)


def main():
    here = Path(__file__).parent
    parser = argparse.ArgumentParser(description="Near misses of right programs.")
    parser.add_argument("--programs", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("KILN_SEED") or random.randrange(1 << 31)))
    parser.add_argument("--include", default=str(here.parent.parent / "dsl/include"))
    parser.add_argument("--lower", required=True, help="the program of lower_graph.cpp")
    parser.add_argument("--kiln", help="the command; without it no program is compiled whole")
    parser.add_argument("--whole", type=float, default=0.05, help="the share that is compiled whole, of what is right")
    parser.add_argument("--unchanged", type=float, default=0.05, help="the share of programs that are left right")
    parser.add_argument("--keep", help="a folder for findings, each with what was said")
    parser.add_argument("--print", action="store_true", help="print the program of the seed, and nothing else")
    options = parser.parse_args()
    if options.print:
        text, changed = make(options.seed, options.unchanged)
        print(f"// {changed}\n{text}")
        return
    print(f"KILN_SEED={options.seed}", flush=True)
    counts, details, findings, begin = collections.Counter(), collections.Counter(), [], time.time()
    with tempfile.TemporaryDirectory(prefix="kiln-misuse-") as folder:
        runner = Runner(options, Path(folder))
        runner.precompile()
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            jobs = [pool.submit(runner.one, options.seed + i) for i in range(options.programs)]
            for done, job in enumerate(concurrent.futures.as_completed(jobs), 1):
                result = job.result()
                counts[result[1]] += 1
                details[result[1], result[2]] += 1
                if result[1].startswith("!"):
                    findings.append(result)
                    show(result)
                    if options.keep:
                        Path(options.keep).mkdir(parents=True, exist_ok=True)
                        Path(options.keep, f"{result[0]}.cpp").write_text(f"{result[3]}{TRACE}/* {result[1]}: {result[2]}\n"
                                                                          f"{result[4]}\n{result[5]}\n*/\n")
                if done % 50 == 0:
                    print(f"[{done}/{options.programs}] {time.time() - begin:.0f} s {dict(counts)}", file=sys.stderr, flush=True)
    for (outcome, detail), count in sorted(details.items()):
        print(f"{count:6} {outcome}: {detail}")
    for outcome, count in counts.most_common():
        print(f"{count:6} {outcome}")
    sys.exit(1 if findings else 0)


main()
