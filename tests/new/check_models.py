#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_models.py BUILD COMPILER WRITER TARGET CASE...: from checkpoints to answers.

Installs Kiln from its build tree, makes a checkpoint of each case, runs `kiln new` on it, builds all projects at
once, and compares the programs' output with golden.txt, which PyTorch computed. A case that is a path is a trained
checkpoint with its tokenizer, and with texts that PyTorch generated in expected.json.
"""
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile

MODELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../models")
TOLERANCE = 1e-5  # relative to the largest number of a result


def run(*command, folder=None):
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def check(program, checkpoint):
    """Returns the largest error of a case."""
    with open(os.path.join(checkpoint, "golden.txt")) as f:
        lines = f.read().splitlines()
    worst = 0.0 if lines else float("inf")
    for given, numbers in zip(lines[::2], lines[1::2]):
        is_file = given.endswith((".ppm", ".wav"))
        text = run(program, ".", "--numbers" if is_file else "--ids", given, folder=checkpoint)
        ours, wanted = ([float(word) for word in words.split()] for words in (text, numbers))
        if len(ours) != len(wanted):
            sys.exit(f"{program} on {given}: {len(ours)} numbers in place of {len(wanted)}")
        error = max(abs(a - b) for a, b in zip(ours, wanted)) / max(abs(b) for b in wanted)
        worst = max(worst, error if error == error else float("inf"))
    return worst


def check_speech(program, checkpoint):
    """Decodes tokens to text, with the names of a vocabulary of single bytes."""
    with open(os.path.join(checkpoint, "vocab.json")) as f:
        names = {token: name for name, token in json.load(f).items()}
    with open(os.path.join(checkpoint, "golden.txt")) as f:
        tokens = f.read().split("speech.wav\n")[1].split()
    wanted = "".join(names[int(token)] for token in tokens) + "\n"
    text = run(program, checkpoint, os.path.join(checkpoint, "speech.wav"))
    if text != wanted:
        sys.exit(f"{program} wrote {text!r} in place of {wanted!r}")


def check_texts(program, checkpoint):
    with open(os.path.join(checkpoint, "expected.json")) as f:
        cases = json.load(f)["cases"]
    for entry in cases:
        given = ["--template", entry["template"], "--prompt", entry["text"], "--tokens", str(len(entry["reply"]))]
        text = run(program, checkpoint, "--temperature", "0", "--numbers", *given)
        wanted = "".join(f"{part}: {' '.join(map(str, entry[part]))}\n" for part in ("prompt", "reply"))
        if text != wanted:
            sys.exit(f"{program} on {entry['text']!r}:\n{text}in place of\n{wanted}")
    return len(cases)


def main():
    build, compiler, writer, target, *cases = sys.argv[1:]
    work = tempfile.mkdtemp()
    try:
        prefix, projects = os.path.join(work, "kiln"), os.path.join(work, "projects")
        run("cmake", "--install", build, "--prefix", prefix)
        os.mkdir(projects)
        checkpoints = {}
        for case in cases:
            name = os.path.basename(case)
            checkpoints[name] = case if "/" in case else os.path.join(work, case)
            if "/" not in case:
                (folder,) = glob.glob(os.path.join(MODELS, "*/cases", case))
                shutil.copytree(folder, checkpoints[name])
                files = (os.path.join(checkpoints[name], file) for file in ("tensors.txt", "model.safetensors"))
                run(writer, *files)
            run(os.path.join(prefix, "bin/kiln"), "new", checkpoints[name], "-o", os.path.join(projects, name))
        with open(os.path.join(projects, "CMakeLists.txt"), "w") as f:
            f.write("cmake_minimum_required(VERSION 3.25)\nproject(cases LANGUAGES C CXX)\n")
            f.write("find_package(Kiln REQUIRED)\n")
            f.writelines(f"add_subdirectory({name})\n" for name in checkpoints)
        # A unity build of examples/support parses nlohmann/json once instead of for each file.
        run("cmake", "-G", "Ninja", "-S", projects, "-B", os.path.join(work, "build"), f"-DCMAKE_PREFIX_PATH={prefix}",
            f"-DCMAKE_CXX_COMPILER={compiler}", f"-DKILN_TARGETS={target}", "-DCMAKE_BUILD_TYPE=None",
            "-DKILN_UNITY_BUILD=ON")  # fmt: skip
        run("cmake", "--build", os.path.join(work, "build"))
        worst = 0.0
        for name, checkpoint in checkpoints.items():
            program = os.path.join(work, "build", name, name)
            if os.path.exists(os.path.join(checkpoint, "expected.json")):
                print(f"{name}: {check_texts(program, checkpoint)} texts as PyTorch wrote them")
                continue
            error = check(program, checkpoint)
            if os.path.exists(os.path.join(checkpoint, "speech.wav")):
                check_speech(program, checkpoint)
            print(f"{name}: {error:.1e} of the largest number")
            worst = max(worst, error)
        if not worst <= TOLERANCE:
            sys.exit(f"more than {TOLERANCE} away from PyTorch")
    finally:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
