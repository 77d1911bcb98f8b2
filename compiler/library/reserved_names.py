#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Collects the names that a generated header must not use: keywords, macros that compilers predefine, and the macros
and declarations of standard headers. It queries the compilers and headers of this machine, in the strict and gnu modes
of each standard.

  reserved_names.py --write    adds the names of this machine to ReservedNames.inc, which Names.cpp includes
  reserved_names.py --list F   writes all names of this machine to the file F, one per line, for a test
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

TABLE = pathlib.Path(__file__).with_name("ReservedNames.inc")
C_MODES = ["c11", "gnu11", "c17", "gnu17", "c2x", "gnu2x"]
CXX_MODES = ["c++11", "gnu++11", "c++14", "gnu++14", "c++17", "gnu++17", "c++20", "gnu++20", "c++23", "gnu++23"]

# Keywords of C23 and C++26, with the alternative spellings of operators. No header lists them.
KEYWORDS = """alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t
class co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue contract_assert
decltype default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline
int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register
reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast struct switch template
this thread_local throw true try typedef typeid typename typeof typeof_unqual union unsigned using virtual void volatile
wchar_t while xor xor_eq""".split()

# Headers of C, C++ and POSIX that programs may include together with a model's header.
C_HEADERS = """assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg
stdatomic stdbit stdbool stdckdint stddef stdint stdio stdlib stdnoreturn string tgmath threads time uchar wchar
wctype""".split()
POSIX_HEADERS = """aio alloca dirent dlfcn endian fcntl fnmatch ftw getopt glob grp iconv ifaddrs langinfo libgen malloc
memory mqueue netdb poll pthread pwd regex sched search semaphore spawn strings syslog tar termios ucontext unistd utime
utmpx values wait wordexp sys/ioctl sys/ipc sys/mman sys/param sys/resource sys/select sys/socket sys/stat sys/time
sys/times sys/types sys/uio sys/un sys/utsname sys/wait arpa/inet net/if netinet/in netinet/tcp""".split()
CXX_HEADERS = """algorithm any array atomic bit bitset charconv chrono cmath compare complex concepts
condition_variable coroutine cstdio cstdlib cstring deque exception execution expected filesystem forward_list
fstream functional future initializer_list iomanip ios iostream iterator latch limits list locale map memory
memory_resource mutex new numbers numeric optional ostream queue random ranges ratio regex scoped_allocator
semaphore set shared_mutex source_location span sstream stack stdexcept stop_token streambuf string string_view
system_error thread tuple type_traits typeindex typeinfo unordered_map unordered_set utility valarray variant vector
version""".split()
# Macros that compilers predefine for other machines, headers of Windows and macOS, and macros of <windows.h>.
OTHER_MACROS = "i386 mips ppc sparc sun".split()
OTHER_HEADERS = ["conio", "direct", "io", "process", "windows", "winsock2", "xlocale"]
WINDOWS_MACROS = """BOOL CALLBACK CONST DELETE ERROR FAR IN INTERFACE NEAR OPTIONAL OUT PASCAL VOID WINAPI far hyper
interface max min near pascal small""".split()


def found_compilers():
    for c, cxx in [("gcc", "g++"), ("clang-22", "clang++-22"), ("clang", "clang++")]:
        if shutil.which(c) and shutil.which(cxx):
            yield c, cxx


def run(command, text=""):
    return subprocess.run(command, input=text, capture_output=True, text=True)


def includes(is_cxx, is_strict):
    names = [h + ".h" for h in C_HEADERS] + ([] if is_strict else [h + ".h" for h in POSIX_HEADERS])
    if is_cxx:
        names = [n for n in names if n not in ("stdatomic.h", "stdnoreturn.h", "tgmath.h", "threads.h")] + CXX_HEADERS
    needed = {"coroutine": " && defined __cpp_impl_coroutine"}  # otherwise GCC's header is an error
    lines = "".join(f"#if __has_include(<{n}>){needed.get(n, '')}\n#include <{n}>\n#endif\n" for n in names)
    return ("" if is_strict else "#ifndef _GNU_SOURCE\n#define _GNU_SOURCE\n#endif\n") + lines


def modes():
    for c, cxx in found_compilers():
        for compiler, language, standards in ((c, "c", C_MODES), (cxx, "c++", CXX_MODES)):
            for standard in standards:
                command = [compiler, f"-std={standard}", "-x", language, "-w"]
                if run(command + ["-fsyntax-only", "-"], "").returncode == 0:
                    yield command, language == "c++", not standard.startswith("gnu")


def is_name(name):
    return re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) is not None


def collect():
    """Returns macros without parameters, macros with parameters, and declared names."""
    objects, functions, declared = set(), set(), set()
    for command, is_cxx, is_strict in modes():
        text = includes(is_cxx, is_strict)
        for source in ("", text):
            for line in run(command + ["-E", "-dM", "-"], source).stdout.splitlines():
                name, parenthesis = re.match(r"#define (\w+)(\(?)", line).groups()
                if is_name(name):
                    (functions if parenthesis else objects).add(name)
        declared |= find_declared(command, is_cxx, text, objects | functions | set(KEYWORDS))
    return objects, functions - objects, declared - objects - functions


def find_declared(command, is_cxx, text, macros):
    """Returns the names in the headers that cannot be declared again, according to the compiler."""
    words = set(re.findall(r"\b[A-Za-z]\w*", run(command + ["-E", "-P", "-"], text).stdout))
    candidates = sorted(w for w in words if w not in macros and is_name(w))
    forms = ["extern struct kiln_probe_t *{0};"] + (["namespace {0} {{}}"] if is_cxx else [])
    found = set()
    with tempfile.TemporaryDirectory() as folder:
        for form in forms:
            probe = pathlib.Path(folder, "probe.h")
            probe.write_text("".join(form.format(c) + "\n" for c in candidates))
            limit = ["-fmax-errors=0"] if "clang" not in command[0] else ["-ferror-limit=0"]
            errors = run(command + limit + ["-fsyntax-only", "-"], text + f'#include "{probe}"\n').stderr
            lines = re.findall(rf"{re.escape(str(probe))}:(\d+):\d+: error", errors)
            found |= {candidates[int(line) - 1] for line in lines}
    return found


def read_table():
    table = {}
    if TABLE.exists():
        for name, body in re.findall(r"(\w+)\[\] = \{(.*?)\};", TABLE.read_text(), re.S):
            table[name] = set(re.findall(r'"([^"]*)"', body))
    return table


def array(name, words, what):
    lines, line = [], " "
    for word in sorted(words):
        if len(line) + len(word) + 4 > 120:
            lines.append(line)
            line = " "
        line += f' "{word}",'
    lines.append(line)
    return f"// {what}\nstatic constexpr const char *const {name}[] = {{\n" + "\n".join(lines) + "};\n"


def write(objects, functions, declared):
    old = read_table()
    objects |= old.get("objectMacros", set()) | set(OTHER_MACROS)
    functions |= old.get("functionMacros", set())
    declared |= old.get("declarations", set())
    keywords = set(KEYWORDS)
    objects -= keywords
    functions -= objects | keywords
    declared -= objects | functions | keywords
    headers = {h for h in C_HEADERS + POSIX_HEADERS + OTHER_HEADERS if "/" not in h}
    TABLE.write_text("// SPDX-License-Identifier: Apache-2.0\n// Written by reserved_names.py. Each list is sorted.\n"
                     "// clang-format off\n" +
                     array("keywords", keywords, "Keywords of C23 and C++26.") +
                     array("objectMacros", objects, "Macros without parameters that compilers predefine or headers define.") +
                     array("functionMacros", functions, "Macros with parameters that headers define.") +
                     array("declarations", declared, "Names that headers declare at global scope.") +
                     array("windowsMacros", WINDOWS_MACROS, "Macros of <windows.h>, which parameter names avoid.") +
                     array("headers", headers, "System headers, which a model's NAME.h would hide."))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--list")
    options = parser.parse_args()
    objects, functions, declared = collect()
    if options.list:
        names = sorted(objects | functions | declared | set(KEYWORDS))
        pathlib.Path(options.list).write_text("\n".join(names) + "\n")
    if options.write:
        write(objects, functions, declared)
    return 0


if __name__ == "__main__":
    sys.exit(main())
