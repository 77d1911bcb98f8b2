// SPDX-License-Identifier: Apache-2.0
// Functions in bitcode that are inlined into the code of another compiler, also where it passes vectors in memory.
#include "compiler/object/InlineFunctions.h"

#include "compiler/object/Object.h"
#include "llvm-c/Disassembler.h"
#include "llvm-c/Target.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/SourceMgr.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string bitcodeOf(llvm::StringRef text) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic wrong;
  auto module = llvm::parseAssemblyString(text, wrong, context);
  EXPECT_TRUE(module) << wrong.getMessage().str();
  std::string bitcode;
  llvm::raw_string_ostream out(bitcode);
  llvm::WriteBitcodeToFile(*module, out);
  return bitcode;
}

/// Compiles the kernel for the CPU that it names, with functions inlined. Returns assembly or an object, or the error.
std::string compiled(llvm::StringRef kernel, const std::vector<std::string> &functions, std::string features = "",
                     bool isAssembly = true) {
  InlinedFunctions inlined;
  inlined.features = std::move(features);
  for (const std::string &bitcode : functions)
    inlined.bitcode.push_back(bitcode);
  llvm::Expected<std::string> code = compileBitcode(
      bitcodeOf("target triple = \"x86_64-unknown-linux-gnu\"\n" + kernel.str()), {}, isAssembly, &inlined);
  return code ? *code : llvm::toString(code.takeError());
}

constexpr char multiplyAdd[] = R"(
  define weak_odr <8 x float> @fmax8(<8 x float> %a, <8 x float> %b, <8 x float> %c) alwaysinline {
    %sum = call <8 x float> @llvm.fma.v8f32(<8 x float> %a, <8 x float> %b, <8 x float> %c)
    ret <8 x float> %sum
  }
  declare <8 x float> @llvm.fma.v8f32(<8 x float>, <8 x float>, <8 x float>))";

/// As Halide makes it: the place of the result, then the operands, in an array since they have one type.
constexpr char multiplyAddInMemory[] = R"(
  declare ptr @fmax8_in_memory(ptr)
  define void @kernel(ptr noalias %out, ptr noalias %in) "target-cpu"="haswell" "target-features"="+avx2,+fma" {
    %memory = alloca [4 x <8 x float>]
    %a = load <8 x float>, ptr %in, align 4
    %c = load <8 x float>, ptr %out, align 4
    store <8 x float> zeroinitializer, ptr %memory
    %first = getelementptr [4 x <8 x float>], ptr %memory, i32 0, i32 1
    store <8 x float> %a, ptr %first
    %second = getelementptr [4 x <8 x float>], ptr %memory, i32 0, i32 2
    store <8 x float> %a, ptr %second
    %third = getelementptr [4 x <8 x float>], ptr %memory, i32 0, i32 3
    store <8 x float> %c, ptr %third
    %called = call ptr @fmax8_in_memory(ptr %memory)
    %sum = load <8 x float>, ptr %called, align 4
    store <8 x float> %sum, ptr %out, align 4
    ret void
  })";

TEST(InlineFunctions, ACallInMemoryBecomesAnInstruction) {
  std::string code = compiled(multiplyAddInMemory, {bitcodeOf(multiplyAdd)});
  EXPECT_THAT(code, HasSubstr("vfmadd"));
  for (const char *left : {"call", "fmax8", "%rsp"}) // neither a function nor the memory is left
    EXPECT_THAT(code, Not(HasSubstr(left)));
}

TEST(InlineFunctions, AFunctionThatIsNotDefinedIsAnError) {
  EXPECT_EQ(compiled(multiplyAddInMemory, {}), "functions: no definition of \"fmax8\"");
}

TEST(InlineFunctions, OperandsMayHaveOtherTypesThanTheResult) {
  std::string widen = R"(
    define weak_odr <8 x i32> @widenx8(<8 x i32> %a, <8 x i16> %b) alwaysinline {
      %wide = zext <8 x i16> %b to <8 x i32>
      %sum = add <8 x i32> %a, %wide
      ret <8 x i32> %sum
    })";
  std::string code = compiled(R"(
    declare ptr @widenx8_in_memory(ptr)
    define void @kernel(ptr noalias %out, ptr noalias %in) "target-cpu"="haswell" {
      %memory = alloca { <8 x i32>, <8 x i32>, <8 x i16> }
      %a = load <8 x i32>, ptr %out, align 4
      %b = load <8 x i16>, ptr %in, align 2
      %first = getelementptr { <8 x i32>, <8 x i32>, <8 x i16> }, ptr %memory, i32 0, i32 1
      store <8 x i32> %a, ptr %first
      %second = getelementptr { <8 x i32>, <8 x i32>, <8 x i16> }, ptr %memory, i32 0, i32 2
      store <8 x i16> %b, ptr %second
      %called = call ptr @widenx8_in_memory(ptr %memory)
      %sum = load <8 x i32>, ptr %called, align 4
      store <8 x i32> %sum, ptr %out, align 4
      ret void
    })",
                              {bitcodeOf(widen)});
  EXPECT_THAT(code, HasSubstr("vpmovzxwd"));
  EXPECT_THAT(code, HasSubstr("vpaddd"));
  EXPECT_THAT(code, Not(HasSubstr("call")));
}

TEST(InlineFunctions, TheFirstOfTwoDefinitionsIsUsed) {
  auto constant = [](int number) {
    return bitcodeOf("define weak_odr i32 @chosen(i32 %i) alwaysinline { ret i32 " + std::to_string(number) + " }");
  };
  std::string code = compiled(R"(
    declare i32 @chosen(i32)
    define i32 @kernel(i32 %i) {
      %result = call i32 @chosen(i32 %i)
      ret i32 %result
    })",
                              {constant(17), constant(29)});
  EXPECT_THAT(code, HasSubstr("$17"));
  EXPECT_THAT(code, Not(HasSubstr("chosen")));
}

TEST(InlineFunctions, AddsTheFeaturesThatTheyNeed) {
  std::string products = R"(
    define weak_odr <16 x i32> @bytesx16(<16 x i32> %sum, <16 x i32> %a, <16 x i32> %b) alwaysinline {
      %result = call <16 x i32> @llvm.x86.avx512.vpdpbusd.512(<16 x i32> %sum, <16 x i32> %a, <16 x i32> %b)
      ret <16 x i32> %result
    }
    declare <16 x i32> @llvm.x86.avx512.vpdpbusd.512(<16 x i32>, <16 x i32>, <16 x i32>))";
  std::string code = compiled(R"(
    declare <16 x i32> @bytesx16(<16 x i32>, <16 x i32>, <16 x i32>)
    define <16 x i32> @kernel(<16 x i32> %sum, <16 x i32> %a) "target-cpu"="skylake-avx512" {
      %result = call <16 x i32> @bytesx16(<16 x i32> %sum, <16 x i32> %a, <16 x i32> %a)
      ret <16 x i32> %result
    })",
                              {bitcodeOf(products)}, "+avx512vnni");
  EXPECT_THAT(code, HasSubstr("vpdpbusd"));
}

/// The branches of an object for x86-64.
struct Branches {
  int all = 0, onBoundaries = 0; // these cross or end at a boundary of 32 bytes
};

Branches branchesOf(const std::string &object) {
  LLVMInitializeX86Disassembler();
  LLVMDisasmContextRef disassembler = LLVMCreateDisasm("x86_64-unknown-linux-gnu", nullptr, 0, nullptr, nullptr);
  EXPECT_TRUE(disassembler);
  auto file = llvm::cantFail(llvm::object::ObjectFile::createObjectFile({object, "object"}));
  Branches branches;
  for (const llvm::object::SectionRef &section : file->sections()) {
    if (!section.isText())
      continue;
    llvm::StringRef code = llvm::cantFail(section.getContents());
    for (size_t at = 0, size = 0; at < code.size(); at += size) {
      std::vector<uint8_t> bytes(code.begin() + at, code.end());
      char text[128];
      size = LLVMDisasmInstruction(disassembler, bytes.data(), bytes.size(), at, text, sizeof text);
      EXPECT_NE(size, 0u) << "no instruction at byte " << at;
      if (size == 0)
        break;
      const bool isBranch = llvm::StringRef(text).trim().starts_with("j");
      branches.all += isBranch;
      branches.onBoundaries += isBranch && at / 32 != (at + size) / 32;
    }
  }
  LLVMDisasmDispose(disassembler);
  return branches;
}

TEST(InlineFunctions, BranchesAreInsideOf32Bytes) {
  std::string kernel = R"(
    declare void @call(i32)
    define void @kernel(i32 %i) "target-cpu"="skylake-avx512" {
      br label %first0)";
  constexpr int count = 40;
  for (int i = 0; i < count; ++i) { // conditional calls, each with another condition
    const std::string n = std::to_string(i), next = std::to_string(i + 1);
    kernel += "\n first" + n + ":\n %bits" + n + " = and i32 %i, " + std::to_string(1 + 2 * i) + "\n %is" + n +
              " = icmp eq i32 %bits" + n + ", 1\n br i1 %is" + n + ", label %then" + n + ", label %first" + next +
              "\n then" + n + ":\n notail call void @call(i32 " + n + ")\n br label %first" + next;
  }
  kernel += "\n first" + std::to_string(count) + ":\n ret void\n }";
  const Branches branches = branchesOf(compiled(kernel, {}, "", /*isAssembly=*/false));
  EXPECT_GE(branches.all, count);
  EXPECT_EQ(branches.onBoundaries, 0);
}

/// Returns a kernel that doubles eight integers, and stores those of their lowest 16 bits that the mask selects.
std::string maskedStore(llvm::StringRef mask) {
  return R"(
    declare void @llvm.masked.store.v8i16.p0(<8 x i16>, ptr, <8 x i1>)
    define void @kernel(ptr %wide, ptr %out) "target-cpu"="skylake-avx512" {
      %numbers = load <8 x i32>, ptr %wide, align 4
      %sums = add <8 x i32> %numbers, %numbers
      store <8 x i32> %sums, ptr %wide, align 4
      %lanes = trunc <8 x i32> %sums to <8 x i16>
      call void @llvm.masked.store.v8i16.p0(<8 x i16> %lanes, ptr align 2 %out, <8 x i1> <)" +
         mask.str() + R"(>)
      ret void
    })";
}

// LLVM 22 stores 32 bits here (compiler/object/MaskedStores.h).
TEST(InlineFunctions, AMaskedStoreOfOneLaneStoresThatLane) {
  const ::testing::Matcher<std::string> word = AnyOf(HasSubstr("movw"), HasSubstr("pextrw"));
  std::string code = compiled(maskedStore("i1 1, i1 0, i1 0, i1 0, i1 0, i1 0, i1 0, i1 0"), {});
  EXPECT_THAT(code, AllOf(word, HasSubstr("(%rsi)")));
  code = compiled(maskedStore("i1 0, i1 poison, i1 0, i1 0, i1 0, i1 1, i1 0, i1 0"), {});
  EXPECT_THAT(code, AllOf(word, HasSubstr("10(%rsi)")));
}

TEST(InlineFunctions, AMaskedStoreOfSeveralLanesIsOneInstruction) {
  const std::string code = compiled(maskedStore("i1 1, i1 0, i1 0, i1 1, i1 0, i1 0, i1 0, i1 0"), {});
  EXPECT_THAT(code, AllOf(HasSubstr("vpmovdw"), HasSubstr("(%rsi) {%k1}")));
}

TEST(InlineFunctions, NamesOfDefinitions) {
  llvm::Expected<std::vector<std::string>> names = functionNames(bitcodeOf(multiplyAdd));
  ASSERT_TRUE(static_cast<bool>(names)) << llvm::toString(names.takeError());
  EXPECT_THAT(*names, ::testing::ElementsAre("fmax8"));
}

} // namespace
} // namespace kiln
