// SPDX-License-Identifier: Apache-2.0
#include "targets/halide/CacheHints.h"

#include "llvm-c/Disassembler.h"
#include "llvm-c/Target.h"
#include "llvm/Object/ObjectFile.h"
#include <memory>

namespace kiln::halide {

using namespace llvm;

static constexpr StringLiteral given = "prefetchnta", wanted = "prefetcht0";

/// `code` is of a whole instruction after another.
static Error rewrite(MutableArrayRef<uint8_t> code, LLVMDisasmContextRef disassembler) {
  for (size_t at = 0, length; at < code.size(); at += length) {
    char text[128];
    length = LLVMDisasmInstruction(disassembler, code.data() + at, code.size() - at, at, text, sizeof text);
    if (length == 0)
      return createStringError("cannot decode the instruction at byte %zu of the kernel's code", at);
    if (!StringRef(text).trim().starts_with(given))
      continue;
    // Prefixes, 0f 18, and a byte whose middle bits say which caches: 0 none but the first, 1 all.
    size_t opcode = at;
    while (code[opcode] != 0x0f)
      ++opcode;
    code[opcode + 2] |= 1 << 3;
  }
  return Error::success();
}

Error requestIntoAllCaches(std::string &object) {
  auto file = object::ObjectFile::createObjectFile(MemoryBufferRef(object, "kernel"));
  if (!file)
    return file.takeError();
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86Disassembler();
  std::unique_ptr<void, void (*)(LLVMDisasmContextRef)> disassembler(
      LLVMCreateDisasm("x86_64", nullptr, 0, nullptr, nullptr), LLVMDisasmDispose);
  for (const object::SectionRef &section : (*file)->sections()) {
    if (!section.isText())
      continue;
    Expected<StringRef> code = section.getContents();
    if (!code)
      return code.takeError();
    auto *bytes = reinterpret_cast<uint8_t *>(object.data() + (code->data() - object.data()));
    if (Error error = rewrite({bytes, code->size()}, disassembler.get()))
      return error;
  }
  return Error::success();
}

std::string requestIntoAllCachesInText(std::string assembly) {
  for (size_t at = 0; (at = assembly.find(given, at)) != std::string::npos;)
    assembly.replace(at, given.size(), wanted);
  return assembly;
}

} // namespace kiln::halide
