// SPDX-License-Identifier: Apache-2.0
#include "compiler/library/Bindings.h"

#include "compiler/library/Names.h"

#include "llvm/ADT/STLExtras.h"
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>

namespace kiln {

std::vector<std::string> bindingLanguages() { return {"python", "rust"}; }

Binding writeBinding(const std::string &language, const ModelInterface &model, const std::string &library) {
  if (language == "python")
    return {model.name + ".py", writePython(model, library)};
  return {model.name + ".rs", writeRust(model)};
}

int64_t ownRowsIndex(const EntryInterface &entry) {
  for (size_t i = 0; i < entry.ownSymbols.size(); ++i)
    if (!entry.ownRows.empty() && entry.ownSymbols[i].name == entry.ownRows)
      return static_cast<int64_t>(i);
  return -1;
}

std::string describeArgument(const ArgumentInterface &argument) {
  std::vector<std::string> shape;
  for (const Dim &dim : argument.shape)
    shape.push_back(toString(dim));
  return fmt::format("{}: {} [{}]", argument.name, name_of(argument.element), fmt::join(shape, ", "));
}

/// Returns the name with as many underscores as make it none of `words` and new in `used`.
static std::string choose(std::string name, llvm::ArrayRef<llvm::StringRef> words, std::set<std::string> &used) {
  while (llvm::is_contained(words, name) || !used.insert(name).second)
    name += '_';
  return name;
}

BindingNames::BindingNames(const EntryInterface &entry, llvm::ArrayRef<llvm::StringRef> words) {
  std::set<std::string> used, original;
  for (const ArgumentInterface &argument : entry.arguments) {
    original.insert(argument.name);
    arguments.push_back(choose(asIdentifier(argument.name), words, used));
  }
  for (const std::vector<Symbol> *symbols : {&entry.symbols, &entry.ownSymbols})
    for (const Symbol &symbol : *symbols)
      if (!extents.count(symbol.name)) {
        const std::string name = symbol.name;
        extents[name] = choose(original.count(name) ? name + "_extent" : name, words, used);
      }
}

std::vector<std::string> methodNames(const ModelInterface &model, llvm::ArrayRef<llvm::StringRef> words) {
  std::set<std::string> used;
  std::vector<std::string> names;
  for (const EntryInterface &entry : model.entries)
    names.push_back(choose(entry.name, words, used));
  return names;
}

/// Modules of Python's standard library that a file next to a program would hide (sys.stdlib_module_names of 3.11).
static constexpr llvm::StringRef pythonModules[] = {
    "abc",          "aifc",         "argparse",     "array",       "ast",
    "asynchat",     "asyncio",      "asyncore",     "atexit",      "audioop",
    "base64",       "bdb",          "binascii",     "bisect",      "builtins",
    "bz2",          "cProfile",     "calendar",     "cgi",         "cgitb",
    "chunk",        "cmath",        "cmd",          "code",        "codecs",
    "codeop",       "collections",  "colorsys",     "compileall",  "concurrent",
    "configparser", "contextlib",   "contextvars",  "copy",        "copyreg",
    "crypt",        "csv",          "ctypes",       "curses",      "dataclasses",
    "datetime",     "dbm",          "decimal",      "difflib",     "dis",
    "distutils",    "doctest",      "email",        "encodings",   "ensurepip",
    "enum",         "errno",        "faulthandler", "fcntl",       "filecmp",
    "fileinput",    "fnmatch",      "fractions",    "ftplib",      "functools",
    "gc",           "genericpath",  "getopt",       "getpass",     "gettext",
    "glob",         "graphlib",     "grp",          "gzip",        "hashlib",
    "heapq",        "hmac",         "html",         "http",        "idlelib",
    "imaplib",      "imghdr",       "imp",          "importlib",   "inspect",
    "io",           "ipaddress",    "itertools",    "json",        "keyword",
    "lib2to3",      "linecache",    "locale",       "logging",     "lzma",
    "mailbox",      "mailcap",      "marshal",      "math",        "mimetypes",
    "mmap",         "modulefinder", "msilib",       "msvcrt",      "multiprocessing",
    "netrc",        "nis",          "nntplib",      "nt",          "ntpath",
    "nturl2path",   "numbers",      "opcode",       "operator",    "optparse",
    "os",           "ossaudiodev",  "pathlib",      "pdb",         "pickle",
    "pickletools",  "pipes",        "pkgutil",      "platform",    "plistlib",
    "poplib",       "posix",        "posixpath",    "pprint",      "profile",
    "pstats",       "pty",          "pwd",          "py_compile",  "pyclbr",
    "pydoc",        "pydoc_data",   "pyexpat",      "queue",       "quopri",
    "random",       "re",           "readline",     "reprlib",     "resource",
    "rlcompleter",  "runpy",        "sched",        "secrets",     "select",
    "selectors",    "shelve",       "shlex",        "shutil",      "signal",
    "site",         "smtpd",        "smtplib",      "sndhdr",      "socket",
    "socketserver", "spwd",         "sqlite3",      "sre_compile", "sre_constants",
    "sre_parse",    "ssl",          "stat",         "statistics",  "string",
    "stringprep",   "struct",       "subprocess",   "sunau",       "symtable",
    "sys",          "sysconfig",    "syslog",       "tabnanny",    "tarfile",
    "telnetlib",    "tempfile",     "termios",      "textwrap",    "threading",
    "time",         "timeit",       "tkinter",      "token",       "tokenize",
    "tomllib",      "trace",        "traceback",    "tracemalloc", "tty",
    "turtle",       "turtledemo",   "types",        "typing",      "unicodedata",
    "unittest",     "urllib",       "uu",           "uuid",        "venv",
    "warnings",     "wave",         "weakref",      "webbrowser",  "winreg",
    "winsound",     "wsgiref",      "xdrlib",       "xml",         "xmlrpc",
    "zipapp",       "zipfile",      "zipimport",    "zlib",        "zoneinfo"};

std::string checkBindingName(const std::string &name, const std::vector<std::string> &languages) {
  if (llvm::is_contained(languages, "python") && llvm::is_contained(pythonModules, name))
    return fmt::format("bindings: {0}.py would hide a module of Python's library; expected another name of the model, "
                       "got \"{0}\"",
                       name);
  return "";
}

} // namespace kiln
