// SPDX-License-Identifier: Apache-2.0
// Names that entries must not have, and the exports of a shared object: the functions that a header declares.
#include "compiler/library/Names.h"

#include "compiler/package/SharedObject.h"
#include <algorithm>
#include <gtest/gtest.h>

namespace kiln {
namespace {

std::string wrongWith(std::initializer_list<const char *> entries) {
  ModelInterface model;
  model.name = "net";
  for (const char *name : entries)
    model.entries.emplace_back().name = name;
  return llvm::toString(checkNames(model, {}));
}

TEST(Names, OfFunctionsThatTheCompilerWritesAreTaken) {
  EXPECT_EQ(wrongWith({"forward", "step"}), "");
  for (const char *name : {"state_bytes", "training_bytes", "version", "abi_version"})
    EXPECT_EQ(wrongWith({"forward", name}), std::string("entry \"") + name +
                                                "\": its name is taken; expected another, since net_" + name +
                                                " is a function of every library");
  EXPECT_EQ(wrongWith({"forward", "forward_arena_bytes"}),
            "entry \"forward_arena_bytes\": its name is taken; expected another, since net_forward_arena_bytes "
            "returns the arena size of entry \"forward\"");
  EXPECT_EQ(wrongWith({"forward", "other_arena_bytes"}), "");
}

/// Returns the parameters of an entry "forward" of model "m" with these tensors and dimensions.
std::string parametersOf(std::initializer_list<const char *> arguments, std::initializer_list<const char *> extents) {
  ModelInterface model;
  model.name = "m";
  EntryInterface &entry = model.entries.emplace_back();
  entry.name = "forward";
  for (const char *name : extents) {
    Dim dim("n", 1, 8);
    std::fill(std::begin(dim.symbols[0].name), std::end(dim.symbols[0].name), '\0');
    std::string(name).copy(dim.symbols[0].name, Symbol::capacity - 1);
    entry.symbols.push_back(dim.symbols[0]);
  }
  for (const char *name : arguments)
    entry.arguments.push_back({name, ElementType::f32, {Dim(1)}, false, {}});
  const ParameterNames names(model, entry);
  std::string text;
  for (const Symbol &symbol : entry.symbols)
    text += names.extent(symbol) + " ";
  for (size_t i = 0; i < entry.arguments.size(); ++i)
    text += names.argument(i) + (i + 1 < entry.arguments.size() ? " " : "");
  return text;
}

// Names that only differ in their case, or that a batched form or a prefix makes equal.
TEST(Names, ThatClashAreBothNamed) {
  const std::string end =
      "; expected names that differ in more than upper and lower case, also with the model's prefix";
  EXPECT_EQ(wrongWith({"a", "A"}), "model \"net\": the arena size of entry \"a\" and the arena size of entry \"A\" are "
                                   "both NET_A_ARENA_BYTES" +
                                       end);
  ModelInterface model;
  model.name = "net";
  for (const char *name : {"a", "a_batch", "a_batch"})
    model.entries.emplace_back().name = name;
  model.entries[1].single = "a";
  model.entries[1].symbols = {Dim("sequences", 1, 4).symbols[0], Dim("rows", 1, 32).symbols[0]};
  EXPECT_EQ(
      llvm::toString(checkNames(model, {})),
      "model \"net\": the arena size of the batched form of entry \"a\" and the arena size of entry \"a_batch\" are "
      "both NET_A_BATCH_ARENA_BYTES" +
          end);
  model.entries.resize(1);
  model.entries[0].symbols = {Dim("N", 1, 8).symbols[0], Dim("n", 1, 4).symbols[0]};
  EXPECT_EQ(
      llvm::toString(checkNames(model, {})),
      "model \"net\": a bound of dimension \"N\" of entry \"a\" and a bound of dimension \"n\" of entry \"a\" are both "
      "NET_A_N_MIN" +
          end);
}

// Names that conflict only with others of the model or of the entry.
TEST(Names, OfParametersDiffer) {
  EXPECT_EQ(parametersOf({"x", "n_extent"}, {"n"}), "n x n_extent");
  EXPECT_EQ(parametersOf({"n", "y"}, {"n"}), "n_extent n y");
  EXPECT_EQ(parametersOf({"n", "n_extent"}, {"n"}), "n_extent_ n n_extent");
  EXPECT_EQ(parametersOf({"n", "n_extent", "n_extent_"}, {"n"}), "n_extent__ n n_extent n_extent_");
  EXPECT_EQ(parametersOf({"m_forward", "m_t", "M_WEIGHTS", "m"}, {"n"}), "n the_m_forward the_m_t the_M_WEIGHTS m");
  EXPECT_EQ(parametersOf({"m_forward", "the_m_forward"}, {"m_n"}), "the_m_n the_m_forward the_m_forward_");
}

TEST(SharedObject, ExportsWhatTheHeaderDeclares) {
  const char *header = R"(/* net_in_comment(model) */
#define NET_ARENA_BYTES(workers) net_in_macro(workers)
#define NET_WEIGHTS(X) \
  X("net_in_table(", f32) \
  net_in_table(1)
typedef struct net_t net_t;
int net_create(const void *allocator,
               net_t **model);
const char *net_status_text (int status);
int other_net_create(void);
int network_run(void);
int use(int net_value);
size_t net_forward_arena_bytes(uint32_t workers);
)";
  EXPECT_EQ(declaredFunctions(header, "net"),
            (std::vector<std::string>{"net_create", "net_forward_arena_bytes", "net_status_text"}));
}

TEST(SharedObject, IsCalledAsItsSystemHasIt) {
  EXPECT_EQ(sharedObjectName("net", "aarch64-linux-gnu"), "libnet.so");
  EXPECT_EQ(sharedObjectName("net", "x86_64-w64-windows-gnu"), "net.dll");
  EXPECT_EQ(sharedObjectName("net", "arm64-apple-macosx11.0.0"), "libnet.dylib");
  EXPECT_EQ(sharedObjectName("net", "arm64-apple-ios14.0-simulator"), "libnet.dylib");
  EXPECT_EQ(sharedObjectName("net", "aarch64-unknown-linux-android21"), "libnet.so");
}

TEST(SharedObject, IsLinkedByTheUsualCompilerOfItsSystem) {
  EXPECT_EQ(defaultLinker("aarch64-unknown-linux-android21"), "aarch64-linux-android21-clang");
  EXPECT_EQ(defaultLinker("x86_64-unknown-linux-android21"), "x86_64-linux-android21-clang");
  EXPECT_EQ(defaultLinker("x86_64-w64-windows-gnu"), "x86_64-w64-mingw32-gcc");
  EXPECT_EQ(defaultLinker("aarch64-w64-windows-gnu"), "aarch64-w64-mingw32-gcc");
  EXPECT_EQ(defaultLinker("riscv64-unknown-linux-gnu"), "riscv64-linux-gnu-gcc");
  EXPECT_EQ(defaultLinker("arm64-apple-ios14.0"), "") << "Xcode's clang needs an SDK";
}

TEST(SharedObject, SaysWhatItsLinkerMustBe) {
  SharedObject object{"libnet.so", "net", "wasm32-wasip1", "", 1};
  EXPECT_EQ(llvm::toString(linkSharedObject(object, {}, "")),
            "shared object: WebAssembly has none; expected a target of another system");
  object.triple = "arm64-apple-macosx11.0.0";
  EXPECT_EQ(
      llvm::toString(linkSharedObject(object, {}, "")),
      "shared object: no linker is known for arm64-apple-macosx11.0.0; expected a C compiler that links for it, by "
      "--linker");
  object.linker = "no-such-compiler --target=x";
  EXPECT_EQ(llvm::toString(linkSharedObject(object, {}, "")),
            "shared object: there is no \"no-such-compiler\"; expected a C compiler that links for "
            "arm64-apple-macosx11.0.0, by --linker");
}

} // namespace
} // namespace kiln
