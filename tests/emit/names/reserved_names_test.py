#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tries every keyword, predefined macro and macro of standard headers of this machine's compilers as each kind of
name: headers with the names that the generator accepts must compile after all standard headers, in the strict and
gnu modes of each standard. The bindings for Python and Rust must compile too, also with the words of those languages.
reserved_names_test.py WRITE_HEADERS"""
import builtins
import keyword
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "compiler" / "library"))
sys.dont_write_bytecode = True
import reserved_names  # noqa: E402

# No macros, but similar: identifiers of generated headers, types, functions, and prefixes of these.
MORE = """t Model Session View model call handle arguments check count options rows sequence sequences status std
kiln kiln_call_t KILN_OK int64_t uint64_t size_t int32_t n_extent x_extent
create destroy bind bind_weights target device get forward H h WEIGHTS ISAS size
pthread sem mtx cnd thrd tss timer int8 int16 int32 uint8 uint16 ptrdiff off time clock div pid key mode stack wchar
kiln_demo KILN_demo halide_x Halide Kiln index random signal math string Math net m a""".split()
RUST_WORDS = """abstract as async await become box break const continue crate do dyn else enum extern false final fn for gen
if impl in let loop macro match mod move mut override priv pub ref return self Self static struct super trait true try
type typeof union unsafe unsized use virtual where while yield Some None Ok Err Option Result Vec Box String Default drop
new clone into result check wrong empty product path_text name_text ABI_VERSION Error Message Call Rename Sequence raw ptr
fmt table model bytes arena message pool threads extents i64 u8 f32 usize""".split()
PYTHON_WORDS = keyword.kwlist + dir(builtins) + """self close session function bind NAME LIBRARY Session Model Error step
learning_rate values extents inputs outputs results passed kept""".split()


def all_names(modes):
    """Returns the names that this machine reserves, found with the preprocessor."""
    names = set(reserved_names.KEYWORDS) | set(MORE) | set(reserved_names.WINDOWS_MACROS)
    for command, is_cxx, is_strict in modes:
        for source in ("", reserved_names.includes(is_cxx, is_strict)):
            text = reserved_names.run(command + ["-E", "-dM", "-"], source).stdout
            names |= set(re.findall(r"^#define ([A-Za-z]\w*)", text, re.M))
    for words in reserved_names.read_table().values():
        names |= words
        # "size" may become size_t, "pthread" pthread_create.
        endings = ("_t", "_create", "_destroy", "_device", "_target")
        names |= {w.rpartition("_")[0] for w in words if w.endswith(endings)}
    names |= set(RUST_WORDS) | set(PYTHON_WORDS)
    return sorted(n for n in names if reserved_names.is_name(n))


def check(command, is_cxx, is_strict, folder, stems):
    """Returns the first errors of a program that includes all headers, or an empty text."""
    endings = [".h"] + ([".hpp"] if re.search(r"\+\+(17|2)", " ".join(command)) else [])
    found = ""
    for ending in endings:
        text = reserved_names.includes(is_cxx, is_strict)
        text += "".join(f'#include "{folder}/{stem}{ending}"\n' for stem in stems)
        result = reserved_names.run(command + ["-Wall", "-Wextra", "-fsyntax-only", "-"], text)
        if result.returncode:
            errors = [line for line in result.stderr.splitlines() if "error" in line]
            found += f"{' '.join(command)} {ending}:\n" + "\n".join(errors[:10]) + "\n"
    return found


def check_bindings(folder, stems):
    """Returns the first errors of the bindings of these models, or an empty text."""
    found = ""
    for stem in stems:
        path = pathlib.Path(folder, f"{stem}.py")
        try:
            compile(path.read_text(), str(path), "exec")
        except SyntaxError as error:
            found += f"{error}\n"
    if not shutil.which("rustc"):
        print("there is no rustc")
        return found
    crate = pathlib.Path(folder, "every_binding.rs")
    modules = "".join(f'#[path = "{stem}.rs"]\nmod model_{i};\n' for i, stem in enumerate(stems))
    crate.write_text(modules + "fn main() {}\n")
    command = ["rustc", "--edition", "2021", "-D", "warnings", "--emit=metadata", "-o", crate.with_suffix(".rmeta"), crate]
    result = subprocess.run(command, capture_output=True, text=True)
    return found + (result.stderr[:4000] if result.returncode else "")


def main():
    modes = list(reserved_names.modes())
    names = all_names(modes)
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "names")
        file.write_text("\n".join(names) + "\n")
        result = subprocess.run([sys.argv[1], str(file), folder], capture_output=True, text=True)
        # Models that differ only in case share an include guard, so that no program includes both.
        stems = list({stem.upper(): stem for stem in re.findall(r"^wrote (\w+)$", result.stdout, re.M)}.values())
        refused = re.findall(r"^refused (\w+) (\w*): (.*)$", result.stdout, re.M)
        print(f"{len(names)} names, {len(stems)} headers, {len(refused)} refused, {len(modes)} modes of compilers")
        if result.returncode:
            print(result.stdout[-2000:], result.stderr[-2000:])
            return 1
        wordless = [(kind, name) for kind, name, words in refused if name not in words]
        failures = [check(*mode, folder, stems) for mode in modes] + [check_bindings(folder, stems)]
        print("".join(failures), end="")
        if wordless:
            print("refused without the name:", wordless[:10])
        taken = {name for kind, name, _ in refused if kind == "model"}
        missed = [n for n in ("linux", "errno", "kiln_demo", "halide_x", "size", "pthread", "math") if n not in taken]
        if missed or len(stems) < 20:
            print("models that were not refused:", missed)
        return 1 if any(failures) or wordless or missed or not modes else 0


if __name__ == "__main__":
    sys.exit(main())
