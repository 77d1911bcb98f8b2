// SPDX-License-Identifier: Apache-2.0
#include "compiler/object/Object.h"

#include "compiler/object/Wasm.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/BinaryFormat/MachO.h"
#include "llvm/ObjCopy/ConfigManager.h"
#include "llvm/ObjCopy/ObjCopy.h"
#include "llvm/Object/ArchiveWriter.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Object/MachO.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/TargetParser/Triple.h"

using namespace llvm;

namespace kiln {

static bool isElf(StringRef object) { return object.starts_with(ELF::ElfMagic); }
static bool isMachO(StringRef object) { return object.starts_with("\xcf\xfa\xed\xfe"); }

/// Returns the prefix of symbols in the object before their names in C.
static StringRef globalPrefix(StringRef object) { return isMachO(object) ? "_" : ""; }

static Expected<std::unique_ptr<object::ObjectFile>> parse(StringRef object) {
  return object::ObjectFile::createObjectFile(MemoryBufferRef(object, "object"));
}

Expected<std::vector<ObjectSymbol>> globalSymbols(StringRef object) {
  auto file = parse(object);
  if (!file)
    return file.takeError();
  std::vector<ObjectSymbol> result;
  for (const object::SymbolRef &symbol : (*file)->symbols()) {
    Expected<uint32_t> flags = symbol.getFlags();
    if (!flags)
      return flags.takeError();
    if (!(*flags & object::SymbolRef::SF_Global))
      continue;
    Expected<StringRef> name = symbol.getName();
    if (!name)
      return name.takeError();
    name->consume_front(globalPrefix(object));
    result.push_back({name->str(), !(*flags & object::SymbolRef::SF_Undefined)});
  }
  return result;
}

Expected<uint64_t> textBytes(StringRef object) {
  auto file = parse(object);
  if (!file)
    return file.takeError();
  uint64_t bytes = 0;
  for (const object::SectionRef &section : (*file)->sections())
    if (section.isText())
      bytes += section.getSize();
  return bytes;
}

using Renames = std::vector<std::pair<std::string, std::string>>;

static Expected<std::string> copy(StringRef object, objcopy::ConfigManager config) {
  auto file = parse(object);
  if (!file)
    return file.takeError();
  config.Common.InputFilename = "object";
  config.Common.OutputFilename = "object";
  SmallString<0> bytes;
  raw_svector_ostream out(bytes);
  if (Error error = objcopy::executeObjcopyOnBinary(config, **file, out))
    return error;
  return std::string(bytes);
}

/// Renames symbols and sections. The configuration of objcopy only refers to the new names, so the caller keeps them
/// until the end. Names of sections matter only in ELF.
static Expected<std::string> rename(StringRef object, const Renames &symbols, const Renames &sections) {
  if (isWasm(object)) { // sections have no names in WebAssembly
    StringMap<std::string> names;
    for (const auto &[from, to] : symbols)
      names[from] = to;
    return renameWasmSymbols(object, names);
  }
  objcopy::ConfigManager config;
  for (const auto &[from, to] : symbols)
    config.Common.SymbolsToRename[from] = to;
  if (isElf(object))
    for (const auto &[from, to] : sections)
      config.Common.SectionsToRename[from] = {from, to, std::nullopt};
  return copy(object, std::move(config));
}

/// Returns the name in the run time of a symbol that code for Windows refers to implicitly
/// (runtime/src/os/stack_windows.c).
static StringRef nameInRuntime(StringRef symbol) {
  return StringSwitch<StringRef>(symbol)
      .Cases("__chkstk", "___chkstk_ms", "kiln_stack_probe")
      .Case("_fltused", "kiln_floats_used")
      .Default(symbol);
}

Expected<std::string> renameForModel(StringRef object, StringRef model, ArrayRef<StringRef> hookPrefixes) {
  auto symbols = globalSymbols(object);
  if (!symbols)
    return symbols.takeError();
  Renames renames;
  for (const ObjectSymbol &symbol : *symbols)
    for (StringRef prefix : llvm::concat<const StringRef>(ArrayRef<StringRef>(runtimePrefix), hookPrefixes))
      if (StringRef name = nameInRuntime(symbol.name); name.consume_front(prefix))
        renames.emplace_back((globalPrefix(object) + symbol.name).str(),
                             (globalPrefix(object) + model + "_" + name).str());
  return rename(object, renames, {});
}

Expected<std::string> renameKernel(StringRef object, StringRef from, StringRef to) {
  auto file = parse(object);
  if (!file)
    return file.takeError();
  Renames symbols, sections;
  const auto add = [&](Expected<StringRef> name, Renames &renames) -> Error {
    if (!name)
      return name.takeError();
    if (!name->contains(from))
      return Error::success();
    SmallVector<StringRef> parts;
    name->split(parts, from);
    renames.emplace_back(name->str(), join(parts, to));
    return Error::success();
  };
  for (const object::SymbolRef &symbol : (*file)->symbols())
    if (Error error = add(symbol.getName(), symbols))
      return error;
  for (const object::SectionRef &section : (*file)->sections())
    if (Error error = add(section.getName(), sections))
      return error;
  return rename(object, symbols, sections);
}

//===- Visibility --------------------------------------------------------===//

using IsExported = function_ref<bool(StringRef)>;

/// All ELF targets are 64-bit and little endian.
static Expected<std::string> setElfVisibility(StringRef object, IsExported isExported) {
  auto file = object::ELF64LEFile::create(object);
  if (!file)
    return file.takeError();
  auto sections = file->sections();
  if (!sections)
    return sections.takeError();
  std::string bytes = object.str();
  for (const auto &section : *sections) {
    if (section.sh_type != ELF::SHT_SYMTAB)
      continue;
    auto symbols = file->symbols(&section);
    auto names = file->getStringTableForSymtab(section);
    if (!symbols || !names)
      return joinErrors(symbols.takeError(), names.takeError());
    for (const auto &symbol : *symbols) {
      if (symbol.getBinding() == ELF::STB_LOCAL || symbol.isUndefined())
        continue;
      Expected<StringRef> name = symbol.getName(*names);
      if (!name)
        return name.takeError();
      const size_t at = reinterpret_cast<const char *>(&symbol.st_other) - object.data();
      const uint8_t visibility = isExported(*name) ? ELF::STV_DEFAULT : ELF::STV_HIDDEN;
      bytes[at] = static_cast<char>((symbol.st_other & ~3) | visibility); // the other bits are specific to the
                                                                          // architecture
    }
  }
  return bytes;
}

static Expected<std::string> setMachOVisibility(StringRef object, IsExported isExported) {
  auto file = object::ObjectFile::createMachOObjectFile(MemoryBufferRef(object, "object"));
  if (!file)
    return file.takeError();
  std::string bytes = object.str();
  for (const object::SymbolRef &symbol : (*file)->symbols()) {
    const MachO::nlist_64 entry = (*file)->getSymbol64TableEntry(symbol.getRawDataRefImpl());
    if ((entry.n_type & MachO::N_STAB) || !(entry.n_type & MachO::N_EXT) ||
        (entry.n_type & MachO::N_TYPE) == MachO::N_UNDF)
      continue;
    Expected<StringRef> name = symbol.getName();
    if (!name)
      return name.takeError();
    name->consume_front(globalPrefix(object));
    const auto *raw = reinterpret_cast<const char *>(symbol.getRawDataRefImpl().p);
    const uint8_t type = isExported(*name) ? entry.n_type & ~MachO::N_PEXT : entry.n_type | MachO::N_PEXT;
    bytes[raw - object.data() + offsetof(MachO::nlist_64, n_type)] = static_cast<char>(type);
  }
  return bytes;
}

static constexpr StringLiteral directives = ".drectve";
static constexpr StringLiteral excludeSymbol = " -exclude-symbols:";

static Expected<std::string> setCoffVisibility(StringRef object, IsExported isExported) {
  auto symbols = globalSymbols(object);
  if (!symbols)
    return symbols.takeError();
  std::string text; // replaces the compiler's directives, which have the former names of symbols
  for (const ObjectSymbol &symbol : *symbols)
    if (symbol.defined && !isExported(symbol.name))
      text += (excludeSymbol + symbol.name).str();
  objcopy::ConfigManager config;
  auto name = objcopy::NameOrPattern::create(directives, objcopy::MatchStyle::Literal, nullptr);
  if (!name)
    return name.takeError();
  if (Error error = config.Common.ToRemove.addMatcher(std::move(name)))
    return error;
  if (!text.empty())
    config.Common.AddSection.emplace_back(directives, MemoryBuffer::getMemBufferCopy(text));
  return copy(object, std::move(config));
}

Expected<std::string> setVisibility(StringRef object, IsExported isExported) {
  if (isWasm(object))
    return setWasmVisibility(object, isExported);
  if (isElf(object))
    return setElfVisibility(object, isExported);
  return isMachO(object) ? setMachOVisibility(object, isExported) : setCoffVisibility(object, isExported);
}

static Expected<StringSet<>> excludedCoffSymbols(const object::ObjectFile &file) {
  StringSet<> excluded;
  for (const object::SectionRef &section : file.sections()) {
    Expected<StringRef> name = section.getName();
    if (!name)
      return name.takeError();
    if (*name != directives)
      continue;
    Expected<StringRef> text = section.getContents();
    if (!text)
      return text.takeError();
    SmallVector<StringRef> words;
    text->split(words, ' ');
    for (StringRef word : words)
      if (word.consume_front(excludeSymbol.ltrim()))
        excluded.insert(word);
  }
  return excluded;
}

Expected<std::vector<ExportedSymbol>> definedSymbols(StringRef object) {
  auto file = parse(object);
  if (!file)
    return file.takeError();
  StringSet<> excluded;
  if ((*file)->isCOFF()) {
    Expected<StringSet<>> found = excludedCoffSymbols(**file);
    if (!found)
      return found.takeError();
    excluded = std::move(*found);
  }
  std::vector<ExportedSymbol> result;
  for (const object::SymbolRef &symbol : (*file)->symbols()) {
    Expected<uint32_t> flags = symbol.getFlags();
    if (!flags)
      return flags.takeError();
    if (!(*flags & object::SymbolRef::SF_Global) || (*flags & object::SymbolRef::SF_Undefined))
      continue;
    Expected<StringRef> name = symbol.getName();
    if (!name)
      return name.takeError();
    name->consume_front(globalPrefix(object));
    const bool isHidden = (*file)->isCOFF()   ? excluded.contains(*name)
                          : (*file)->isWasm() ? (*flags & object::SymbolRef::SF_Hidden) != 0
                                              : !(*flags & object::SymbolRef::SF_Exported);
    result.push_back({name->str(), !isHidden});
  }
  return result;
}

Expected<std::string> removeFunctions(StringRef object, StringRef prefix) {
  if (!isElf(object)) // the functions are weak: the linker keeps at most one of each, and drops it if it can
    return object.str();
  auto symbols = globalSymbols(object);
  if (!symbols)
    return symbols.takeError();
  objcopy::ConfigManager config;
  std::vector<std::string> sections;
  for (const ObjectSymbol &symbol : *symbols)
    if (symbol.defined && StringRef(symbol.name).starts_with(prefix))
      sections.push_back(".text." + symbol.name);
  for (const std::string &section : sections) {
    auto name = objcopy::NameOrPattern::create(section, objcopy::MatchStyle::Literal, nullptr);
    if (!name)
      return name.takeError();
    if (Error error = config.Common.ToRemove.addMatcher(std::move(name)))
      return error;
  }
  return copy(object, std::move(config));
}

Expected<std::vector<ObjectFile>> readArchive(StringRef image) {
  auto archive = object::Archive::create(MemoryBufferRef(image, "archive"));
  if (!archive)
    return archive.takeError();
  std::vector<ObjectFile> members;
  Error error = Error::success();
  for (const object::Archive::Child &child : (*archive)->children(error)) {
    Expected<StringRef> name = child.getName();
    if (!name)
      return name.takeError();
    Expected<StringRef> bytes = child.getBuffer();
    if (!bytes)
      return bytes.takeError();
    members.push_back({name->str(), bytes->str()});
  }
  if (error)
    return error;
  return members;
}

/// Returns the form of archives that the system's own linker reads.
static object::Archive::Kind archiveKind(StringRef object) {
  if (isMachO(object))
    return object::Archive::K_DARWIN;
  return isElf(object) || isWasm(object) ? object::Archive::K_GNU : object::Archive::K_COFF;
}

Expected<std::string> makeArchive(const std::vector<ObjectFile> &members) {
  std::vector<NewArchiveMember> list;
  for (const ObjectFile &member : members)
    list.emplace_back(MemoryBufferRef(member.bytes, member.name));
  const object::Archive::Kind kind = members.empty() ? object::Archive::K_GNU : archiveKind(members.front().bytes);
  Expected<std::unique_ptr<MemoryBuffer>> archive =
      writeArchiveToBuffer(list, SymtabWritingMode::NormalSymtab, kind, /*Deterministic=*/true, /*Thin=*/false);
  if (!archive)
    return archive.takeError();
  return (*archive)->getBuffer().str();
}

} // namespace kiln
