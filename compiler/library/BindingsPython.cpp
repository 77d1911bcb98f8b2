// SPDX-License-Identifier: Apache-2.0
//
// Writes NAME.py. Entries are tables that one generic function reads: the function deduces the extents, checks each
// shape and calls the library.
#include "compiler/library/Bindings.h"
#include "compiler/library/Headers.h"

#include "kiln/runtime.h"

#include "llvm/ADT/STLExtras.h"
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln {

/// The keywords, followed by `more`.
static std::vector<llvm::StringRef> keywordsAnd(std::initializer_list<llvm::StringRef> more) {
  std::vector<llvm::StringRef> words{"False",  "None",   "True",    "and",      "as",       "assert", "async",
                                     "await",  "break",  "class",   "continue", "def",      "del",    "elif",
                                     "else",   "except", "finally", "for",      "from",     "global", "if",
                                     "import", "in",     "is",      "lambda",   "nonlocal", "not",    "or",
                                     "pass",   "raise",  "return",  "try",      "while",    "with",   "yield"};
  words.insert(words.end(), more);
  return words;
}

/// Names that no parameter of a method may have.
static const std::vector<llvm::StringRef> &parameterWords() {
  static const auto words = keywordsAnd({"self", "sequences"});
  return words;
}

/// Names that no entry's method may have: the other methods and attributes of Session.
static const std::vector<llvm::StringRef> &methodWords() {
  static const auto words = keywordsAnd({"close", "model"});
  return words;
}

static constexpr const char *head = R"PY(# SPDX-License-Identifier: {license}
"""{name}.py: written by Kiln; do not edit. Loads the model "{name}" from the shared object {library} next to this file.

    {import}
    session = Model().bind("{name}.safetensors").session()
    {example}

Inputs are objects with the buffer protocol (numpy arrays, array.array, memoryview) that are C-contiguous and have the
model's element type; a tensor of rank 0 can be a number. Outputs are memoryviews of the tensor's shape; numpy.asarray()
of an output does not copy. Elements of f16 and bf16 are unsigned 16-bit integers: numpy.asarray(y).view(numpy.float16).

A session is the memory of a call, including the model's states, which are kept between calls. Each thread needs a
separate session.
"""

import ctypes as _c
import os as _os

LIBRARY = "{library}"
ABI_VERSION = {abi}
)PY";

static constexpr const char *body = R"PY(

class Error(RuntimeError):
    """The error of a function; status is a kiln_status_t."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class _Message(_c.Structure):
    _fields_ = [("status", _c.c_int), ("message", _c.c_char * 252)]


class _Call(_c.Structure):
    _fields_ = [
        ("arena", _c.c_void_p), ("arena_bytes", _c.c_size_t), ("executor", _c.c_void_p),
        ("error", _c.POINTER(_Message)), ("stream", _c.c_void_p), ("memory", _c.c_size_t), ("trace", _c.c_void_p),
        ("communicator", _c.c_void_p), ("replicas", _c.c_void_p), ("stages", _c.c_void_p),
        ("reserved", _c.c_void_p * 1),
    ]


class _Rename(_c.Structure):
    _fields_ = [
        ("of_file", _c.c_char_p), ("of_model", _c.c_char_p), ("rotary_heads", _c.c_uint32), ("flags", _c.c_uint32),
    ]


class _Sequence(_c.Structure):
    _fields_ = [("states", _c.c_void_p), ("extents", _c.POINTER(_c.c_int64))]


# For each element type: the buffer format of outputs, the formats that inputs may have, and the size in bytes.
_ELEMENTS = {
    "f32": ("f", "f", 4), "f16": ("H", "He", 2), "bf16": ("H", "H", 2), "i32": ("i", "il", 4), "i8": ("b", "b", 1),
    "boolean": ("?", "?B", 1),
}


def _view(label, element, value):
    """Returns the elements of an input."""
    try:
        return memoryview(value)
    except (BufferError, TypeError, ValueError):
        more = "; its numpy() is one" if hasattr(value, "numpy") else ""
        raise TypeError(f"{label}: wrong kind; expected a numpy array, array.array or memoryview of {element}, "
                        f"got {type(value).__name__}{more}") from None


def _number(label, element, value):
    """Returns a tensor of rank 0."""
    form, _, size = _ELEMENTS[element]
    number = memoryview(bytearray(size)).cast(form)
    try:
        number[0] = value
    except (TypeError, ValueError):
        raise TypeError(f"{label}: wrong number; expected one of {element}, got {value!r}") from None
    return number


def _integer(label, value, least=-(2**63), most=2**63 - 1):
    """Checks an argument that ctypes would wrap around."""
    if not hasattr(value, "__index__") or not least <= int(value) <= most:
        raise ValueError(f"{label}: wrong number; expected an integer from {least} to {most}, got {value!r}")
    return int(value)


def _extent(dim, extents):
    """Returns the value of (offset, term ...), where a term is (factor, symbol ...)."""
    value = dim[0]
    for factor, *symbols in dim[1:]:
        for symbol in symbols:
            factor *= extents[symbol]
        value += factor
    return value


def _open(path):
    if path is None:
        path = _os.path.join(_os.path.dirname(_os.path.abspath(__file__)), LIBRARY)
    library = _c.CDLL(path)
    version = getattr(library, NAME + "_abi_version")
    version.restype = _c.c_uint32
    if version() != ABI_VERSION:
        raise ImportError(f"{path}: wrong version of the binary interface; expected {ABI_VERSION}, got {version()}")
    for entry in _ENTRIES:
        getattr(library, f"{NAME}_{entry}_arena_bytes").restype = _c.c_size_t
    getattr(library, NAME + "_pool_executor").restype = _c.c_void_p
    return library


class Model:
    """A model without weights, which bind() and similar methods bind. Threads may share it, with a session each."""

    def __init__(self, library=None, threads=1):
        """library: the path of the shared object; threads: the size of the thread pool that calls share."""
        self._handle, self._pool = _c.c_void_p(), _c.c_void_p()
        threads = _integer("threads", threads, 1, 2**32 - 1)
        self.library = _open(library)
        self.call("create", None, _c.byref(self._handle))
        if threads > 1:
            self.call("pool_create", _c.c_uint32(threads), _c.byref(self._pool))
        self.threads = threads

    def function(self, name):
        """Returns a function of the library; the name has no prefix."""
        return getattr(self.library, f"{NAME}_{name}")

    def call(self, name, *arguments):
        """Calls a function of the library whose last parameter is an error, and raises the error."""
        message = _Message()
        status = self.function(name)(*arguments, _c.byref(message))
        if status != 0:
            raise Error(status, message.message.decode())

    def bind(self, path, renames=None):
        """Binds the weights of a safetensors file, or of the index of several.

        renames: the names of the file that differ, with the model's; None instead of a name drops the tensor. One *
        matches any characters: {"module.*": "*", "extra": None}. The first that matches a tensor applies.
        """
        if not renames:
            self.call("bind_weights", self._handle, _os.fsencode(path))
            return self
        table = (_Rename * len(renames))()
        for row, (name, own) in zip(table, renames.items()):
            row.of_file, row.of_model = name.encode(), None if own is None else own.encode()
        self.call("bind_weights_renamed", self._handle, _os.fsencode(path), table, _c.c_size_t(len(renames)))
        return self

    def bind_packed(self, path):
        """Maps the weights of a file that `kiln pack` or save_packed wrote."""
        self.call("bind_packed", self._handle, _os.fsencode(path))
        return self
{bind_embedded}
    def session(self):
        """Returns memory for calls, one at a time. The model's states begin as zeros."""
        return Session(self)

    def close(self):
        """Frees all memory. Close the sessions first."""
        if self._handle:
            self.function("destroy")(self._handle)
            self._handle = _c.c_void_p()
        if self._pool:
            self.function("pool_destroy")(self._pool)
            self._pool = _c.c_void_p()

    def __del__(self):
        if hasattr(self, "library"):
            self.close()


class Session:
    """An arena, and the entries of the model."""

    def __init__(self, model):
        self.model, self._arena = model, _c.c_void_p()
        sizes = [model.function(entry + "_arena_bytes")(_c.c_uint32(model.threads)) for entry in _ENTRIES]
        self._bytes = max(sizes + [64])
        model.call("allocate_memory", model._handle, _c.c_size_t(self._bytes), _c.byref(self._arena))
        model.call("zero_memory", model._handle, self._arena, _c.c_size_t(self._bytes))
        self._message = _Message()
        executor = model.function("pool_executor")(model._pool) if model._pool else None
        self._call = _Call(arena=self._arena, arena_bytes=self._bytes, executor=executor)
        self._call.error = _c.pointer(self._message)

    def close(self):
        """Frees the arena."""
        if self._arena:
            self.model.function("release_memory")(self.model._handle, self._arena)
            self._arena = _c.c_void_p()

    def __del__(self):
        if hasattr(self, "_arena"):
            self.close()

    def _input(self, name, element, dims, value, extents):
        _, formats, size = _ELEMENTS[element]
        view = _view(name, element, value)
        shape = tuple(_extent(dim, extents) for dim in dims)
        if view.format.lstrip("<@=") not in formats or view.itemsize != size:
            raise TypeError(f"{name}: wrong type; expected {element}, got format {view.format!r}")
        if view.shape != shape and not (not shape and view.nbytes == size):
            raise ValueError(f"{name}: wrong shape; expected {shape}, got {view.shape}")
        if not view.c_contiguous:
            raise ValueError(f"{name}: not contiguous; expected C-contiguous elements")
        if view.nbytes == 0:
            return (_c.c_char * 1)()
        kind = _c.c_char * view.nbytes
        return kind.from_buffer_copy(value) if view.readonly else kind.from_buffer(value)

    def _output(self, element, dims, extents):
        form, _, size = _ELEMENTS[element]
        shape = [_extent(dim, extents) for dim in dims]
        count = 1
        for length in shape:
            count *= length
        memory = bytearray(max(count, 1) * size)
        view = memoryview(memory).cast(form)[:count]
        if count > 0:
            view = view.cast("B").cast(form, shape)
        return (_c.c_char * len(memory)).from_buffer(memory), view

    def _run(self, name, values, extents, sequences=None):
        symbols, own_rows, own_count, inputs, outputs = _ENTRIES[name]
        if not self._arena:
            raise ValueError("session: is closed")
        passed, kept = [self.model._handle, _c.byref(self._call)], []
        if sequences is None:
            extents = {symbol: _integer(symbol, value) for symbol, value in extents.items()}
            for (label, element, dims), value in zip(inputs, values):
                if not dims:
                    continue
                shape = _view(label, element, value).shape
                if len(shape) != len(dims):
                    raise ValueError(f"{label}: wrong shape; expected {len(dims)} dimensions, got {shape}")
                for dim, length in zip(dims, shape):  # a dimension that is exactly a symbol gives its value
                    if dim[0] == 0 and len(dim) == 2 and dim[1][0] == 1 and len(dim[1]) == 2:
                        extents.setdefault(dim[1][1], length)
            passed += [_c.c_int64(extents[symbol]) for symbol in symbols]
        else:
            table = (_Sequence * max(len(sequences), 1))()
            sequences = [(session, [_integer("sequences", value) for value in own]) for session, own in sequences]
            for session, own in sequences:
                if not isinstance(session, Session) or len(own) != own_count:
                    raise TypeError(f"sequences: wrong pair; expected a Session and {own_count} extents, "
                                    f"got {type(session).__name__} and {len(own)}")
            extents = {symbols[0]: len(sequences)}
            if own_rows >= 0:
                extents[symbols[-1]] = sum(own[own_rows] for _, own in sequences)
            for row, (session, own) in zip(table, sequences):
                if session is self:
                    raise ValueError("sequences: the session of the call is one of them; expected others")
                kept.append((_c.c_int64 * max(len(own), 1))(*own))
                row.states = session._arena.value
                row.extents = _c.cast(kept[-1], _c.POINTER(_c.c_int64)) if own else None
            passed += [_c.c_size_t(len(sequences)), table]
        for (label, element, dims), value in zip(inputs, values):
            if not dims and isinstance(value, (bool, int, float)):
                value = _number(label, element, value)
            passed.append(self._input(label, element, dims, value, extents))
        results = []
        for _, element, dims in outputs:
            memory, view = self._output(element, dims, extents)
            passed.append(memory)
            results.append(view)
        status = self.model.function(name)(*passed)
        if status != 0:
            raise Error(status, self._message.message.decode())
        return results[0] if len(results) == 1 else tuple(results)
)PY";

static std::string tuple(const std::vector<std::string> &items) {
  return fmt::format("({}{})", fmt::join(items, ", "), items.size() == 1 ? "," : "");
}

/// Returns a tuple (offset, (factor, symbol ...) ...) for each dimension.
static std::string dimsTuple(const std::vector<Dim> &shape) {
  std::vector<std::string> dims;
  for (const Dim &dim : shape) {
    std::vector<std::string> items{std::to_string(dim.offset)};
    for (int i = 0; i < dim.terms(); ++i) {
      std::vector<std::string> term{std::to_string(i == 0 ? dim.factor : dim.second)};
      for (int k = 2 * i; k < 2 * i + 2; ++k)
        if (dim.symbols[k].present())
          term.push_back(fmt::format("\"{}\"", dim.symbols[k].name));
      items.push_back(tuple(term));
    }
    dims.push_back(tuple(items));
  }
  return tuple(dims);
}

static std::string entryTable(const EntryInterface &entry) {
  std::vector<std::string> symbols, sides[2];
  for (const Symbol &symbol : entry.symbols)
    symbols.push_back(fmt::format("\"{}\"", symbol.name));
  for (const ArgumentInterface &argument : entry.arguments)
    sides[argument.isOutput].push_back(fmt::format("\n            (\"{}\", \"{}\", {})", argument.name,
                                                   name_of(argument.element), dimsTuple(argument.shape)));
  return fmt::format("    \"{}\": (\n        {}, {}, {},\n        {},\n        {}),\n", entry.name, tuple(symbols),
                     ownRowsIndex(entry), entry.ownSymbols.size(), tuple(sides[0]), tuple(sides[1]));
}

/// Whether some input has a dimension that is exactly this symbol, so that the caller need not pass the extent.
static bool isFound(const EntryInterface &entry, const Symbol &symbol) {
  return llvm::any_of(entry.arguments, [&](const ArgumentInterface &argument) {
    return !argument.isOutput &&
           llvm::any_of(argument.shape, [&](const Dim &dim) { return dim.named() && dim.symbols[0] == symbol; });
  });
}

static std::string method(const EntryInterface &entry, const std::string &methodName) {
  const BindingNames names(entry, parameterWords());
  std::vector<std::string> parameters{"self"}, values, extents;
  std::string words = fmt::format("        \"\"\"Runs entry \"{}\"", entry.isBatch() ? entry.single : entry.name);
  words +=
      entry.isBatch() ? " for several sequences, (session, extents) each, whose rows follow each other.\n\n" : ".\n\n";
  if (entry.isBatch()) {
    std::vector<std::string> own;
    for (const Symbol &symbol : entry.ownSymbols)
      own.push_back(symbol.name);
    parameters.emplace_back("sequences");
    words += fmt::format("        sequences: extents are ({})\n", fmt::join(own, ", "));
  }
  for (const auto &[i, argument] : llvm::enumerate(entry.arguments)) {
    words += fmt::format("        {}{}\n", argument.isOutput ? "returns " : "", describeArgument(argument));
    if (argument.isOutput)
      continue;
    parameters.push_back(names.argument(i));
    values.push_back(parameters.back());
  }
  for (const Symbol &symbol : entry.symbols) {
    if (entry.isBatch() || isFound(entry, symbol))
      continue;
    if (extents.empty())
      parameters.emplace_back("*");
    parameters.push_back(names.extent(symbol));
    extents.push_back(fmt::format("\"{}\": {}", symbol.name, parameters.back()));
  }
  for (const Symbol &symbol : entry.isBatch() ? entry.ownSymbols : entry.symbols)
    words += fmt::format("        {}: {} to {}\n", symbol.name, symbol.min, symbol.max);
  return fmt::format("\n    def {}({}):\n{}        \"\"\"\n        return self._run(\"{}\", {}, {{{}}}{})\n",
                     methodName, fmt::join(parameters, ", "), words, entry.name, tuple(values),
                     fmt::join(extents, ", "), entry.isBatch() ? ", sequences" : "");
}

static std::string replaced(std::string text, llvm::StringRef from, const std::string &to) {
  for (size_t at = 0; (at = text.find(from.str(), at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

std::string writePython(const ModelInterface &model, const std::string &library) {
  const std::vector<std::string> methods = methodNames(model, methodWords());
  std::string example = "...";
  if (!model.entries.empty()) {
    std::vector<std::string> inputs, outputs;
    const EntryInterface &entry = model.entries.front();
    const BindingNames names(entry, parameterWords());
    for (const auto &[i, argument] : llvm::enumerate(entry.arguments))
      (argument.isOutput ? outputs : inputs).push_back(names.argument(i));
    example = fmt::format("{} = session.{}({})", fmt::join(outputs, ", "), methods.front(), fmt::join(inputs, ", "));
  }
  std::string text = replaced(head, "{license}", licenseOfLibraries);
  const bool isKeyword = llvm::is_contained(keywordsAnd({}), model.name);
  text = replaced(text, "{import}",
                  isKeyword ? "Model = importlib.import_module(\"{name}\").Model" : "from {name} import Model");
  text = replaced(replaced(text, "{name}", model.name), "{library}", library);
  text = replaced(replaced(text, "{example}", example), "{abi}", std::to_string(KILN_ABI_VERSION));
  text +=
      fmt::format("NAME = \"{}\"\n\n# For each entry: symbols; for a batched one the index of the extent that counts a "
                  "sequence's rows, and the number of a\n# sequence's extents; inputs, outputs.\n"
                  "_ENTRIES = {{\n",
                  model.name);
  for (const EntryInterface &entry : model.entries)
    text += entryTable(entry);
  const char *embedded = model.embedsWeights ? R"PY(
    def bind_embedded(self):
        """Binds the weights that are embedded in the library."""
        self.call("bind_embedded", self._handle)
        return self
)PY"
                                             : "";
  text += "}\n" + replaced(body, "{bind_embedded}", embedded);
  for (const auto &[entry, name] : llvm::zip_equal(model.entries, methods))
    text += method(entry, name);
  return text;
}

} // namespace kiln
