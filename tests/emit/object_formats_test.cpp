// SPDX-License-Identifier: Apache-2.0
// Objects for Windows (COFF) and macOS (Mach-O): symbols get the model's name as a prefix, including those that code
// generators reference implicitly, and data of other objects is accessed without a table whose entries would have its
// name.
#include "objects.h"

#include "llvm/Object/Archive.h"

namespace kiln {
namespace {

constexpr char source[] = R"(
  @kiln_table = constant [3 x float] [float 1.0, float 2.0, float 3.0]
  @kiln_elsewhere = external constant i32
  declare i32 @hook_call(ptr)
  declare i32 @other(ptr)
  define i32 @kiln_run(i32 %i) {
    %large = alloca [10000 x i8]
    %a = call i32 @hook_call(ptr @kiln_table)
    %b = call i32 @other(ptr %large)
    %c = load i32, ptr @kiln_elsewhere
    %ab = add i32 %a, %b
    %sum = add i32 %ab, %c
    ret i32 %sum
  }
  define float @kiln_any_kernel(float %x) {
    %y = fadd float %x, 1.5
    ret float %y
  })";

std::string compiledFor(const char *triple, const char *cpu = "x86-64") { return objectOf(source, {triple, cpu}); }

/// Ignores constants that are named by their value.
SymbolNames namesIn(const std::string &object) { return symbolsOf(object, "__real@"); }

std::string renamed(const std::string &object) {
  llvm::Expected<std::string> kernel = renameKernel(object, "kiln_any_kernel", "net_dense");
  EXPECT_TRUE(static_cast<bool>(kernel)) << llvm::toString(kernel.takeError());
  llvm::Expected<std::string> result = renameForModel(*kernel, "net", {"hook_"});
  EXPECT_TRUE(static_cast<bool>(result)) << llvm::toString(result.takeError());
  return *result;
}

TEST(Coff, SymbolsGetTheModelsPrefix) {
  const std::string object = compiledFor("x86_64-w64-windows-gnu");
  EXPECT_EQ(namesIn(object), (SymbolNames{"+kiln_any_kernel", "+kiln_run", "+kiln_table", "___chkstk_ms", "hook_call",
                                          "kiln_elsewhere", "other"}));
  const std::string ours = renamed(object);
  EXPECT_EQ(namesIn(ours), (SymbolNames{"+net_dense", "+net_run", "+net_table", "net_call", "net_elsewhere",
                                        "net_stack_probe", "other"}));
  llvm::Expected<uint64_t> before = textBytes(object), after = textBytes(ours);
  ASSERT_TRUE(before && after);
  EXPECT_GT(*before, 0u);
  EXPECT_EQ(*before, *after);
}

// As in Halide's objects.
TEST(Coff, TheOtherEnvironmentsNamesAreTheRunTimesToo) {
  EXPECT_EQ(namesIn(renamed(compiledFor("x86_64-pc-windows-msvc"))),
            (SymbolNames{"+net_dense", "+net_run", "+net_table", "net_call", "net_elsewhere", "net_floats_used",
                         "net_stack_probe", "other"}));
}

TEST(MachO, SymbolsGetTheModelsPrefix) {
  for (auto [triple, cpu] :
       {std::pair("arm64-apple-macosx11.0.0", "apple-m1"), {"x86_64-apple-macosx11.0.0", "x86-64"}}) {
    const std::string object = compiledFor(triple, cpu), ours = renamed(object);
    EXPECT_EQ(namesIn(object),
              (SymbolNames{"+kiln_any_kernel", "+kiln_run", "+kiln_table", "hook_call", "kiln_elsewhere", "other"}))
        << triple;
    EXPECT_EQ(namesIn(ours),
              (SymbolNames{"+net_dense", "+net_run", "+net_table", "net_call", "net_elsewhere", "other"}))
        << triple;
    EXPECT_NE(ours.find(std::string("\0_net_run\0", 10)), std::string::npos) << triple; // in the linker's string table
    EXPECT_EQ(ours.find("kiln_"), std::string::npos) << triple;
    llvm::Expected<uint64_t> before = textBytes(object), after = textBytes(ours);
    ASSERT_TRUE(before && after);
    EXPECT_GT(*before, 0u);
    EXPECT_EQ(*before, *after);
  }
}

/// Checks the archive's kind, a symbol of its table, and that the member is unchanged.
void checkArchive(const std::string &object, llvm::object::Archive::Kind kind, const char *symbol) {
  llvm::Expected<std::string> archive = makeArchive({{"net_host.o", object}});
  ASSERT_TRUE(static_cast<bool>(archive)) << llvm::toString(archive.takeError());
  auto read = llvm::object::Archive::create(llvm::MemoryBufferRef(*archive, "archive"));
  ASSERT_TRUE(static_cast<bool>(read)) << llvm::toString(read.takeError());
  EXPECT_EQ((*read)->kind(), kind);
  bool isListed = false;
  for (const llvm::object::Archive::Symbol &named : (*read)->symbols())
    isListed |= named.getName() == symbol;
  EXPECT_TRUE(isListed);
  llvm::Expected<std::vector<ObjectFile>> members = readArchive(*archive);
  ASSERT_TRUE(static_cast<bool>(members)) << llvm::toString(members.takeError());
  ASSERT_EQ(members->size(), 1u);
  EXPECT_EQ(llvm::StringRef(members->front().bytes).take_front(object.size()), object); // Darwin archives pad members
}

TEST(Archives, AreOfTheSystemsKind) {
  checkArchive(renamed(compiledFor("x86_64-w64-windows-gnu")), llvm::object::Archive::K_COFF, "net_run");
  checkArchive(renamed(compiledFor("arm64-apple-macosx11.0.0", "apple-m1")),
               llvm::object::Archive::K_BSD, // the kind as which Darwin archives are read
               "_net_run");
}

} // namespace
} // namespace kiln
