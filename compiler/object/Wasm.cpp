// SPDX-License-Identifier: Apache-2.0
//
// A module is a header and sections. A section is a byte for its kind, its length and its payload. The symbol table is
// a part of the custom section "linking". An undefined symbol may have no name there; then it has the name of its
// import.
#include "compiler/object/Wasm.h"

#include "llvm/BinaryFormat/Wasm.h"
#include "llvm/Support/LEB128.h"
#include "llvm/Support/raw_ostream.h"
#include <optional>

using namespace llvm;

namespace kiln {

namespace {

/// Reads from the front. Past the end it reads zeros, and sets `isGood` to false.
struct Reader {
  explicit Reader(StringRef bytes) : bytes(bytes) {}

  uint8_t byte() { return static_cast<uint8_t>(take(1)[0]); }
  uint64_t number() {
    unsigned length = 0;
    const char *error = nullptr;
    const uint64_t value = decodeULEB128(bytes.bytes_begin(), &length, bytes.bytes_end(), &error);
    isGood &= error == nullptr;
    bytes = bytes.drop_front(error ? bytes.size() : length);
    return error ? 0 : value;
  }
  StringRef take(uint64_t count) {
    isGood &= count <= bytes.size();
    if (!isGood)
      return StringRef("\0", 1);
    const StringRef taken = bytes.take_front(count);
    bytes = bytes.drop_front(count);
    return taken;
  }
  StringRef text() {
    const uint64_t length = number();
    return length ? take(length) : StringRef();
  }
  bool isAtEnd() const { return !isGood || bytes.empty(); }

  StringRef bytes;
  bool isGood = true;
};

void put(raw_ostream &out, uint64_t number) { encodeULEB128(number, out); }
void put(raw_ostream &out, StringRef text) {
  put(out, text.size());
  out << text;
}

/// Rewrites a module with new names for symbols, and with other exported symbols if `isExported` is given.
class Renamer {
public:
  using IsExported = function_ref<bool(StringRef)>;
  explicit Renamer(const StringMap<std::string> &names, std::optional<IsExported> isExported = std::nullopt)
      : names(names), isExported(isExported) {}

  std::string module(StringRef object) {
    std::string result = object.take_front(headerBytes).str();
    raw_string_ostream out(result);
    Reader reader(object.drop_front(headerBytes));
    while (!reader.isAtEnd()) {
      const uint8_t kind = reader.byte();
      const StringRef payload = reader.text();
      out << char(kind);
      Reader custom(payload);
      if (kind == wasm::WASM_SEC_IMPORT)
        put(out, imports(payload));
      else if (kind == wasm::WASM_SEC_CUSTOM && custom.text() == "linking")
        put(out, linking(custom));
      else
        put(out, payload);
    }
    isGood &= reader.isGood;
    return result;
  }

  static constexpr size_t headerBytes = 8;
  bool isGood = true;

private:
  /// Rewrites the imports. Each has the names of a module and of an item in it, a kind, and data that depends on the
  /// kind.
  std::string imports(StringRef payload) {
    std::string result;
    raw_string_ostream out(result);
    Reader reader(payload);
    uint64_t count = reader.number();
    for (put(out, count); count > 0 && reader.isGood; --count) {
      put(out, reader.text());
      put(out, renamed(reader.text()));
      const StringRef rest = reader.bytes;
      skipImport(reader);
      out << rest.drop_back(reader.bytes.size());
    }
    isGood &= reader.isGood;
    return result;
  }

  static void skipImport(Reader &reader) {
    const uint8_t kind = reader.byte();
    if (kind == wasm::WASM_EXTERNAL_FUNCTION) {
      reader.number();
      return;
    }
    if (kind == wasm::WASM_EXTERNAL_GLOBAL) {
      reader.take(2);
      return;
    }
    if (kind == wasm::WASM_EXTERNAL_TABLE || kind == wasm::WASM_EXTERNAL_TAG)
      reader.byte();
    const uint64_t limits = reader.number(); // or the type of a tag
    if (kind == wasm::WASM_EXTERNAL_TAG)
      return;
    reader.number();
    if (limits & wasm::WASM_LIMITS_FLAG_HAS_MAX)
      reader.number();
  }

  std::string linking(Reader &reader) {
    std::string result;
    raw_string_ostream out(result);
    put(out, StringRef("linking"));
    put(out, reader.number()); // version
    while (!reader.isAtEnd()) {
      const uint8_t kind = reader.byte();
      const StringRef payload = reader.text();
      out << char(kind);
      if (kind == wasm::WASM_SYMBOL_TABLE)
        put(out, symbols(payload));
      else
        put(out, payload);
    }
    isGood &= reader.isGood;
    return result;
  }

  std::string symbols(StringRef payload) {
    std::string result;
    raw_string_ostream out(result);
    Reader reader(payload);
    uint64_t count = reader.number();
    for (put(out, count); count > 0 && reader.isGood; --count)
      symbol(reader, out);
    isGood &= reader.isGood;
    return result;
  }

  void symbol(Reader &reader, raw_ostream &out) {
    const uint8_t kind = reader.byte();
    const uint64_t flags = reader.number();
    const bool isDefined = !(flags & wasm::WASM_SYMBOL_UNDEFINED);
    out << char(kind);
    if (kind == wasm::WASM_SYMBOL_TYPE_SECTION) {
      put(out, flags);
      put(out, reader.number());
      return;
    }
    if (kind == wasm::WASM_SYMBOL_TYPE_DATA) {
      const StringRef name = reader.text();
      put(out, withVisibility(flags, name));
      put(out, renamed(name));
      for (int i = 0; isDefined && i < 3; ++i) // segment, offset, size
        put(out, reader.number());
      return;
    }
    const uint64_t index = reader.number(); // among the items of its kind
    const bool hasName = isDefined || (flags & wasm::WASM_SYMBOL_EXPLICIT_NAME);
    const StringRef name = hasName ? reader.text() : StringRef();
    put(out, withVisibility(flags, name));
    put(out, index);
    if (hasName)
      put(out, renamed(name));
  }

  uint64_t withVisibility(uint64_t flags, StringRef name) const {
    if (!isExported || (flags & (wasm::WASM_SYMBOL_UNDEFINED | wasm::WASM_SYMBOL_BINDING_LOCAL)))
      return flags;
    flags &= ~uint64_t(wasm::WASM_SYMBOL_VISIBILITY_HIDDEN);
    return (*isExported)(name) ? flags : flags | wasm::WASM_SYMBOL_VISIBILITY_HIDDEN;
  }

  StringRef renamed(StringRef name) const {
    auto found = names.find(name);
    return found == names.end() ? name : StringRef(found->second);
  }

  const StringMap<std::string> &names;
  std::optional<IsExported> isExported;
};

/// Returns the object as `renamer` rewrites it.
Expected<std::string> rewrite(StringRef object, Renamer renamer) {
  if (!isWasm(object) || object.size() < Renamer::headerBytes)
    return createStringError("object of WebAssembly: malformed; expected its header, got something else");
  std::string result = renamer.module(object);
  if (!renamer.isGood)
    return createStringError("object of WebAssembly: malformed; expected whole sections, got one that ends early");
  return result;
}

} // namespace

bool isWasm(StringRef object) { return object.starts_with(StringRef("\0asm", 4)); }

Expected<std::string> renameWasmSymbols(StringRef object, const StringMap<std::string> &names) {
  return rewrite(object, Renamer(names));
}

Expected<std::string> setWasmVisibility(StringRef object, function_ref<bool(StringRef)> isExported) {
  const StringMap<std::string> names;
  return rewrite(object, Renamer(names, isExported));
}

} // namespace kiln
