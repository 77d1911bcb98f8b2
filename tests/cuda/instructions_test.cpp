// SPDX-License-Identifier: Apache-2.0
//
// Compares the kernels of a layer of GPT-2 and of BERT, and of equally wide blocks in bf16 and with tf32, with the
// table instructions.txt: each kernel's strategy, and how many instructions of some kinds each of its functions has. A
// kernel that falls back to a slower strategy, or loses its cp.async copies or its 16-byte accesses, differs from its
// row. KILN_WRITE_COUNTS=1 rewrites the table: review the changes, and give the reason in the last column.
#include "models/bert/bert.h"
#include "models/gpt2/gpt2.h"

#include "compiler/tuner/LoweredModel.h"
#include "targets/cuda/Compile.h"

#include <fmt/format.h>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <sstream>

namespace kiln {
namespace {

constexpr const char *unexplained = "?";

struct Count {
  const char *name;
  const char *begin; // prefix of the instruction
  const char *part;  // substring after the prefix
};

/// The columns of the table.
constexpr Count counts[] = {{"fma", "fma.", ""},
                            {"mma", "mma.sync", ""},
                            {"wgmma", "wgmma.mma_async", ""},
                            {"ld", "ld.global", ""},
                            {"ld16", "ld.global", ".v4"},
                            {"st", "st.global", ""},
                            {"st16", "st.global", ".v4"},
                            {"cp.async", "cp.async.c", ".shared"},
                            {"cp16", "cp.async.cg", ""},
                            {"bar", "bar.sync", ""},
                            {"shfl", "shfl.sync", ""}};

bool isOf(llvm::StringRef instruction, const Count &count) {
  return instruction.consume_front(count.begin) && instruction.contains(count.part);
}

/// Returns the values of `counts` for each function.
std::map<std::string, std::vector<int>> countInstructions(llvm::StringRef ptx) {
  std::map<std::string, std::vector<int>> result;
  std::vector<int> *numbers = nullptr;
  llvm::SmallVector<llvm::StringRef> lines;
  ptx.split(lines, '\n');
  for (llvm::StringRef line : lines) {
    if (line.consume_front(".visible .entry "))
      numbers =
          &result.try_emplace(line.take_until([](char c) { return c == '('; }).str(), std::size(counts)).first->second;
    line = line.trim();
    if (line.starts_with("@")) // a predicate
      line = line.drop_until([](char c) { return c == ' '; }).trim();
    line = line.split(' ').first;
    for (auto [number, count] : llvm::enumerate(counts))
      if (numbers)
        (*numbers)[number] += isOf(line, count);
  }
  return result;
}

struct Row {
  std::string strategy;
  std::vector<int> numbers;
  std::string why;
};
/// Rows by model, kernel and function.
using Table = std::map<std::string, Row>;

void addRows(const Graph &graph, const std::string &name, Table &table, const LoweringOptions &options = {}) {
  auto model = lowerModel(graph, name, "cuda", options);
  ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
  for (mlir::func::FuncOp kernel : (*model)->kernels()) {
    auto plan = cuda::planKernel(kernel);
    ASSERT_TRUE(mlir::succeeded(plan)) << kernel.getName().str();
    auto add = [&](const std::string &text, const char *suffix) {
      for (auto &[function, numbers] : countInstructions(text))
        table[fmt::format("{} {} {}{}", name, kernel.getName().str(), function, suffix)] = {plan->strategy, numbers,
                                                                                            unexplained};
    };
    add(plan->images.back().text, "");
    if (plan->tmaImage)
      add(plan->tmaImage->text, "@9.0");
  }
}

/// An encoder block as wide as GPT-2 small and BERT base.
template <ElementType E> struct Block : Model {
  static constexpr Dim tokens{"tokens", 1, 1024};
  EncoderBlock<768, 12, 3072, BlockOptions{.weight = E}> block{"block"};
  constexpr auto forward(Tensor<E, tokens, 768> x) const { return block(x, causal); }
};

std::string textOf(const std::string &key, const Row &row) {
  std::string text = fmt::format("{:<57} {:<12}", key, row.strategy);
  for (auto [count, number] : llvm::zip(counts, row.numbers))
    text += fmt::format(" {:>{}}", number, std::max<size_t>(4, llvm::StringRef(count.name).size()));
  return text;
}

Table readTable(const std::string &path) {
  Table table;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#')
      continue;
    const size_t bar = std::min(line.find(" | "), line.size());
    std::istringstream words(line.substr(0, bar));
    std::string model, kernel, function;
    Row row;
    words >> model >> kernel >> function >> row.strategy;
    for (int number; words >> number;)
      row.numbers.push_back(number);
    row.why = bar < line.size() ? line.substr(bar + 3) : unexplained;
    table[fmt::format("{} {} {}", model, kernel, function)] = row;
  }
  return table;
}

void writeTable(const std::string &path, const Table &table) {
  std::ofstream file(path);
  file << "# Instructions in the PTX of each function of the kernels of a layer of GPT-2 small, which writes on, of "
          "BERT "
          "base,\n"
          "# and of a causal block as wide of bf16 and, with --tf32, of f32. ld16, st16, cp16: those of 16 bytes among "
          "ld, st and\n"
          "# cp.async. @9.0: the form for that capability. instructions_test.cpp compares and writes.\n"
       << fmt::format("{:<57} {:<12}", "# model kernel function", "strategy");
  for (const Count &count : counts)
    file << fmt::format(" {:>{}}", count.name, 4);
  file << " | why\n";
  for (const auto &[key, row] : table)
    file << textOf(key, row) << " | " << row.why << "\n";
}

TEST(Instructions, AreThoseOfTheTable) {
  constexpr auto layer = [] {
    specs::BertShape shape = specs::bert_base;
    shape.layers = 1;
    return shape;
  }();
  Table found;
  addRows(trace<specs::Gpt2Writer<1, 768, 12>>(), "gpt2", found);
  addRows(trace<specs::Bert<layer>>(), "bert", found);
  addRows(trace<Block<bf16>>(), "bf16", found);
  LoweringOptions rounded;
  rounded.tf32 = true;
  addRows(trace<Block<f32>>(), "tf32", found, rounded);
  const std::string path = KILN_CUDA_TESTS "/instructions.txt";
  const Table expected = readTable(path);
  if (std::getenv("KILN_WRITE_COUNTS")) {
    for (auto &[key, row] : found)
      if (auto known = expected.find(key); known != expected.end())
        row.why = known->second.why;
    writeTable(path, found);
  }
  for (const auto &[key, row] : found) {
    auto known = expected.find(key);
    EXPECT_TRUE(known != expected.end()) << "no row for\n" << textOf(key, row);
    if (known == expected.end())
      continue;
    EXPECT_NE(known->second.why, unexplained) << "no reason for\n" << textOf(key, row);
    EXPECT_EQ(textOf(key, row), textOf(key, known->second));
  }
  for (const auto &[key, row] : expected)
    EXPECT_TRUE(found.count(key)) << "no function\n" << textOf(key, row);
}

// Checks the counting on a known text.
TEST(Instructions, AreCounted) {
  const auto found = countInstructions(".visible .entry step_0(\n\tfma.rn.f32 %f1, %f2, %f3, %f4;\n"
                                       "\t@%p1 ld.global.v4.f32 {%f1}, [%rd1];\n\tld.global.f32 %f1, [%rd1];\n"
                                       "\tcp.async.cg.shared.global [%r1], [%rd1], 16;\n\tcp.async.commit_group;\n"
                                       ".visible .entry rows_1(\n\t@!%p2 bra $L__BB0_1;\n\tbar.sync 0;\n");
  const auto of = [&](const char *function, const char *name) {
    return found.at(
        function)[llvm::find_if(counts, [&](const Count &count) { return count.name == llvm::StringRef(name); }) -
                  std::begin(counts)];
  };
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(of("step_0", "fma"), 1);
  EXPECT_EQ(of("step_0", "ld"), 2);
  EXPECT_EQ(of("step_0", "ld16"), 1);
  EXPECT_EQ(of("step_0", "cp.async"), 1);
  EXPECT_EQ(of("step_0", "cp16"), 1);
  EXPECT_EQ(of("step_0", "bar"), 0);
  EXPECT_EQ(of("rows_1", "bar"), 1);
}

} // namespace
} // namespace kiln
