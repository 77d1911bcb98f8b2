// SPDX-License-Identifier: Apache-2.0
//
// The objects of an archive hide all their symbols. For a shared object, the functions that the header declares become
// visible again, and a version script, a list of exported symbols or a .def file tells the linker the same. Calls from
// one exported function to another stay in the object, so that two objects with the same model name do not call each
// other.
#include "compiler/package/SharedObject.h"

#include "compiler/object/ReplaceFile.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/StringSaver.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"
#include <cstdlib>
#include <fmt/format.h>
#include <set>

using namespace llvm;

namespace kiln {

/// Returns the header without comments and preprocessor lines, including their continuation lines.
static std::string withoutComments(StringRef header) {
  std::string text;
  for (size_t at = 0; at < header.size();) {
    if (header.substr(at).starts_with("/*")) {
      const size_t end = header.find("*/", at + 2);
      at = end == StringRef::npos ? header.size() : end + 2;
      continue;
    }
    text += header[at++];
  }
  std::string code;
  bool isDirective = false;
  SmallVector<StringRef> lines;
  StringRef(text).split(lines, '\n');
  for (StringRef line : lines) {
    isDirective |= line.ltrim().starts_with("#");
    if (!isDirective)
      code += line.str() + "\n";
    isDirective &= line.ends_with("\\");
  }
  return code;
}

std::vector<std::string> declaredFunctions(StringRef header, StringRef model) {
  const std::string code = withoutComments(header), prefix = (model + "_").str();
  const auto isWord = [](char c) { return isAlnum(c) || c == '_'; };
  std::set<std::string> names;
  for (StringRef rest = code; !rest.empty();) {
    rest = rest.drop_until(isWord);
    const StringRef word = rest.take_while(isWord);
    rest = rest.drop_front(word.size());
    if (word.starts_with(prefix) && rest.ltrim().starts_with("("))
      names.insert(word.str());
  }
  return {names.begin(), names.end()};
}

std::string sharedObjectName(StringRef model, StringRef name) {
  const Triple triple(Triple::normalize(name));
  if (triple.isOSWindows())
    return (model + ".dll").str();
  return ("lib" + model + (triple.isOSDarwin() ? ".dylib" : ".so")).str();
}

std::string defaultLinker(StringRef name) {
  const Triple triple(Triple::normalize(name)), here(sys::getProcessTriple());
  if (triple.isOSWindows())
    return (triple.getArchName() + "-w64-mingw32-gcc").str();
  if (triple.isAndroid()) // the NDK's name
    return (triple.getArchName() + "-linux-" + triple.getEnvironmentName() + "-clang").str();
  if (!triple.isOSLinux())
    return "";
  if (triple.getArch() != here.getArch())
    return (triple.getArchName() + "-linux-gnu-gcc").str();
  const char *given = std::getenv("CC");
  return given && *given ? given : "cc";
}

namespace {

/// A temporary folder that is removed with its contents.
class TemporaryFolder {
public:
  TemporaryFolder() : code(sys::fs::createUniqueDirectory("kiln-shared", path)) {}
  ~TemporaryFolder() {
    if (!code)
      sys::fs::remove_directories(path);
  }
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;

  std::string file(StringRef name) const { return (path + "/" + name).str(); }

  SmallString<128> path;
  std::error_code code;
};

} // namespace

/// Returns the list of exports in the format of the system's linker.
static std::string exportList(const SharedObject &object, const Triple &triple, ArrayRef<std::string> functions) {
  std::string text;
  if (triple.isOSWindows()) {
    text = fmt::format("LIBRARY \"{}.dll\"\nEXPORTS\n", object.model);
    for (const std::string &function : functions)
      text += "  " + function + "\n";
  } else if (triple.isOSDarwin()) {
    for (const std::string &function : functions)
      text += "_" + function + "\n";
  } else { // programs that link the object require this version of the binary interface
    text = fmt::format("{}_{} {{\n  global:\n", object.model, object.abiVersion);
    for (const std::string &function : functions)
      text += "    " + function + ";\n";
    text += "  local:\n    *;\n};\n";
  }
  return text;
}

/// Returns the path of libNAME.dll.a, which programs for Windows link.
static std::string importLibrary(const SharedObject &object) {
  return (sys::path::parent_path(object.path) + "/lib" + object.model + ".dll.a").str();
}

static std::vector<std::string> linkerOptions(const SharedObject &object, const Triple &triple, const std::string &list,
                                              const std::string &archive, const std::string &output) {
  const std::string name = sharedObjectName(object.model, object.triple);
  if (triple.isOSWindows())
    return {"-shared",
            "-static-libgcc",
            "-o",
            output,
            list,
            "-Wl,--whole-archive",
            archive,
            "-Wl,--no-whole-archive",
            "-Wl,--gc-sections",
            "-Wl,--no-insert-timestamp",
            "-Wl,--out-implib," + importLibrary(object)};
  if (triple.isOSDarwin())
    return {"-dynamiclib",
            "-o",
            output,
            "-Wl,-install_name,@rpath/" + name,
            "-Wl,-exported_symbols_list," + list,
            "-Wl,-all_load",
            archive,
            "-Wl,-dead_strip"};
  std::vector<std::string> options{"-shared",
                                   "-o",
                                   output,
                                   "-Wl,-soname," + name,
                                   "-Wl,--version-script," + list,
                                   "-Wl,-Bsymbolic",
                                   "-Wl,--gc-sections",
                                   "-Wl,--no-undefined",
                                   "-Wl,--as-needed",
                                   "-Wl,-z,relro",
                                   "-Wl,--whole-archive",
                                   archive,
                                   "-Wl,--no-whole-archive",
                                   "-lm",
                                   "-pthread"};
  if (triple.isAndroid()) // systems with pages of 16 KiB load no others
    options.push_back("-Wl,-z,max-page-size=16384");
  return options;
}

static Error runLinker(const SharedObject &object, const std::string &linker, ArrayRef<std::string> options) {
  BumpPtrAllocator allocator;
  StringSaver saver(allocator);
  SmallVector<const char *> words;
  cl::TokenizeGNUCommandLine(linker, saver, words);
  if (words.empty())
    return createStringError("shared object: no linker is known for " + object.triple +
                             "; expected a C compiler that links for it, by --linker");
  auto program = sys::findProgramByName(words.front());
  if (!program)
    return createStringError("shared object: there is no \"%s\"; expected a C compiler that links for %s, by --linker",
                             words.front(), object.triple.c_str());
  SmallVector<StringRef> arguments(words.begin(), words.end());
  arguments.append(options.begin(), options.end());
  std::string wrong;
  const int status = sys::ExecuteAndWait(*program, arguments, std::nullopt, {}, 0, 0, &wrong);
  return status == 0 ? Error::success()
                     : createStringError("shared object: \"%s\" does not link it; exit status %d%s%s", words.front(),
                                         status, wrong.empty() ? "" : ": ", wrong.c_str());
}

Error linkSharedObject(const SharedObject &object, std::vector<ObjectFile> members, StringRef header) {
  const Triple triple(Triple::normalize(object.triple));
  if (triple.isWasm())
    return createStringError("shared object: WebAssembly has none; expected a target of another system");
  StringSet<> declared, defined;
  for (const std::string &function : declaredFunctions(header, object.model))
    declared.insert(function);
  for (ObjectFile &member : members) {
    auto symbols = definedSymbols(member.bytes);
    if (!symbols)
      return symbols.takeError();
    for (const ExportedSymbol &symbol : *symbols)
      defined.insert(symbol.name);
    auto visible = setVisibility(member.bytes, [&](StringRef name) { return declared.contains(name); });
    if (!visible)
      return visible.takeError();
    member.bytes = std::move(*visible);
  }
  std::vector<std::string> functions; // a header may also have inline functions
  for (const std::string &function : declaredFunctions(header, object.model))
    if (defined.contains(function))
      functions.push_back(function);

  Expected<std::string> archive = makeArchive(members);
  if (!archive)
    return archive.takeError();
  const TemporaryFolder folder;
  if (folder.code)
    return createStringError(folder.code, "shared object: cannot make a temporary folder; set TMPDIR");
  const std::string list = folder.file(triple.isOSWindows() ? "exports.def" : "exports"), input = folder.file("all.a"),
                    output = folder.file(sharedObjectName(object.model, object.triple));
  if (Error error = writeFile(list, exportList(object, triple, functions)))
    return error;
  if (Error error = writeFile(input, *archive))
    return error;
  sys::fs::create_directories(sys::path::parent_path(object.path));
  const std::string linker = object.linker.empty() ? defaultLinker(object.triple) : object.linker;
  if (Error error = runLinker(object, linker, linkerOptions(object, triple, list, input, output)))
    return error;
  auto linked = MemoryBuffer::getFile(output);
  if (!linked)
    return createStringError(linked.getError(), "shared object: the linker made none");
  if (Error error = writeFile(object.path, (*linked)->getBuffer()))
    return error;
  sys::fs::setPermissions(object.path, sys::fs::all_read | sys::fs::owner_write | sys::fs::all_exe);
  return Error::success();
}

} // namespace kiln
