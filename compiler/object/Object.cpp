// SPDX-License-Identifier: Apache-2.0
#include "compiler/object/Object.h"

#include "compiler/object/Optimized.h"

#include "compiler/object/CodeGenerators.h"
#include "compiler/object/MaskedStores.h"
#include "compiler/object/RunPasses.h"
#include "compiler/object/Wasm.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/BinaryFormat/MachO.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/ObjCopy/ConfigManager.h"
#include "llvm/ObjCopy/ObjCopy.h"
#include "llvm/Object/ArchiveWriter.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Object/MachO.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/Transforms/IPO/GlobalDCE.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"

using namespace llvm;

namespace kiln {

/// Returns the passes for entry-point glue, which runs once per call and is long: they shorten it at a negligible cost
/// in compile time (M-1337).
static ModulePassManager fewPasses() {
  FunctionPassManager simplify;
  simplify.addPass(SROAPass(SROAOptions::ModifyCFG));
  simplify.addPass(EarlyCSEPass());
  simplify.addPass(InstCombinePass());
  simplify.addPass(SimplifyCFGPass());
  ModulePassManager passes;
  passes.addPass(createModuleToFunctionPassAdaptor(std::move(simplify)));
  passes.addPass(GlobalDCEPass());
  return passes;
}

static void optimize(Module &module, TargetMachine &machine) {
  PassBuilder builder(&machine);
  const bool isSent = machine.getTargetTriple().isWasm(); // sent over networks, so its size matters
  runPasses(isSent ? builder.buildPerModuleDefaultPipeline(OptimizationLevel::Os) : fewPasses(), builder, module);
}

static Expected<std::unique_ptr<TargetMachine>> createMachine(const CpuName &name) {
  registerCodeGenerators();
  std::string error;
  Triple triple(name.triple);
  const llvm::Target *target = TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return createStringError(error);
  TargetOptions options;
  options.FunctionSections = true;
  options.DataSections = true;
  std::string features = name.features;
  if (triple.isRISCV64()) { // RV64GC, which every Linux has, and its ABI for floats
    features = "+m,+a,+f,+d,+c" + (features.empty() ? "" : "," + features);
    options.MCOptions.ABIName = "lp64d";
  }
  return std::unique_ptr<TargetMachine>(target->createTargetMachine(triple, name.cpu, features, options, Reloc::PIC_,
                                                                    std::nullopt, CodeGenOptLevel::Default));
}

static void setMachine(Module &module, const TargetMachine &machine) {
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
}

static Expected<std::string> emit(Module &module, TargetMachine &machine, CodeGenFileType type) {
  SmallString<0> bytes;
  raw_svector_ostream out(bytes);
  legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, out, nullptr, type))
    return createStringError("the target cannot emit object files");
  passes.run(module);
  return std::string(bytes);
}

Expected<std::string> compileToObject(Module &module, const CpuName &name) {
  Expected<std::unique_ptr<TargetMachine>> machine = createMachine(name);
  if (!machine)
    return machine.takeError();
  setMachine(module, **machine);
  // Hide symbols as in the run time: a shared library that contains a model exports none of its symbols by default. A
  // hidden intrinsic would become a symbol that nothing defines.
  for (GlobalValue &global : module.global_values()) {
    auto *function = dyn_cast<Function>(&global);
    if (global.hasExternalLinkage() && !(function && function->isIntrinsic()))
      global.setVisibility(GlobalValue::HiddenVisibility);
  }
  optimize(module, **machine);
  return emit(module, **machine, CodeGenFileType::ObjectFile);
}

Expected<std::string> compileOptimized(Module &module, const CpuName &name, bool isAssembly) {
  Expected<std::unique_ptr<TargetMachine>> machine = createMachine(name);
  if (!machine)
    return machine.takeError();
  setMachine(module, **machine);
  for (Function &function : module)
    if (!function.isDeclaration() && function.hasExternalLinkage())
      function.setVisibility(GlobalValue::HiddenVisibility);
  for (Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", (*machine)->getTargetCPU());
    function.addFnAttr("target-features", (*machine)->getTargetFeatureString());
  }
  PipelineTuningOptions tuning;
  tuning.LoopVectorization = true;
  PassBuilder builder(machine->get(), tuning);
  runPasses(builder.buildPerModuleDefaultPipeline(OptimizationLevel::O3), builder, module);
  return emit(module, **machine, isAssembly ? CodeGenFileType::AssemblyFile : CodeGenFileType::ObjectFile);
}

/// With relaxed SIMD, LLVM turns a select by a comparison into a minimum or maximum that may return either operand if
/// one is NaN. A select that may choose NaN therefore chooses between the bits.
static void chooseBits(Function &function) {
  for (Instruction &instruction : make_early_inc_range(instructions(function))) {
    auto *choice = dyn_cast<SelectInst>(&instruction);
    if (!choice || !choice->getType()->isFPOrFPVectorTy() || choice->hasNoNaNs())
      continue;
    IRBuilder<> builder(choice);
    Type *bits = choice->getType()->getWithNewType(builder.getIntNTy(choice->getType()->getScalarSizeInBits()));
    Value *yes = builder.CreateBitCast(choice->getTrueValue(), bits);
    Value *no = builder.CreateBitCast(choice->getFalseValue(), bits);
    Value *chosen = builder.CreateSelect(choice->getCondition(), yes, no);
    choice->replaceAllUsesWith(builder.CreateBitCast(chosen, choice->getType()));
    choice->eraseFromParent();
  }
}

/// While it exists, code for x86-64 is assembled without branches that cross or end at a boundary of 32 bytes, which
/// slow down loops (M-0906). LLVM has no other interface to this than an option of its command line.
class AlignedBranches {
public:
  AlignedBranches() { set(true); }
  ~AlignedBranches() { set(false); }
  AlignedBranches(const AlignedBranches &) = delete;
  AlignedBranches &operator=(const AlignedBranches &) = delete;

private:
  static void set(bool isAligned) {
    auto option = cl::getRegisteredOptions().find("x86-branches-within-32B-boundaries");
    assert(option != cl::getRegisteredOptions().end() && "LLVM has this option");
    static_cast<cl::opt<bool> *>(option->second)->setValue(isAligned);
  }
};

/// Removes the CPU that the bitcode was generated for.
static void removeMachine(Function &function) {
  for (StringRef attribute : {"target-cpu", "target-features", "tune-cpu"})
    function.removeFnAttr(attribute);
}

Expected<std::string> compileBitcode(StringRef bitcode, const CpuName &given, bool isAssembly,
                                     const InlinedFunctions *functions) {
  LLVMContext context;
  Expected<std::unique_ptr<Module>> module = parseBitcodeFile(MemoryBufferRef(bitcode, "bitcode"), context);
  if (!module)
    return module.takeError();
  const bool isForNamed = given.triple.empty();
  const CpuName name = isForNamed ? CpuName{(*module)->getTargetTriple().str(), ""} : given;
  Expected<std::unique_ptr<TargetMachine>> machine = createMachine(name);
  if (!machine)
    return machine.takeError();
  setMachine(**module, **machine);
  std::optional<AlignedBranches> alignedBranches;
  if (isForNamed) { // as Halide generates code for that CPU
    (*machine)->setOptLevel(CodeGenOptLevel::Aggressive);
    if ((*machine)->getTargetTriple().isX86())
      alignedBranches.emplace();
  } else {
    for (Function &function : **module)
      removeMachine(function);
  }
  if (functions)
    if (Error error = inlineFunctions(**module, *functions, **machine))
      return error;
  for (Function &function : make_early_inc_range(**module)) {
    if (function.hasWeakODRLinkage() && function.use_empty()) { // all calls are inlined
      function.eraseFromParent();
      continue;
    }
    if (StringRef(name.features).contains("+relaxed-simd"))
      chooseBits(function);
    if ((*machine)->getTargetTriple().isX86())
      storeSingleLanes(function);
  }
  return emit(**module, **machine, isAssembly ? CodeGenFileType::AssemblyFile : CodeGenFileType::ObjectFile);
}

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
