// SPDX-License-Identifier: Apache-2.0
//
// Compares compiled gradient entries with the interpreter of modules.
#pragma once

#include "compiler/interpreter/Compare.h"
#include "differentiated.h"
#include "kiln/model.h"
#include "tests/fuzz/CompiledModel.h"
#include "tests/targets/RunnableTargets.h"

namespace kiln::testing {

/// Returns a model's library, which is compiled once for all cases of the process.
template <class Model> fuzz::CompiledModel &libraryOf() {
  static fuzz::CompiledModel compiled = [] {
    llvm::Expected<fuzz::CompiledModel> made = fuzz::CompiledModel::compile(trace<Model>(), runnableTargets().front());
    if (!made)
      throw std::runtime_error(llvm::toString(made.takeError()));
    return std::move(*made);
  }();
  return compiled;
}

using DrawInputs = llvm::function_ref<std::vector<Tensor>(Differentiated &, const Entry &, std::int64_t)>;

/// Expects results of the graph's library within the interpreter's bounds, and bit-identical for any number of workers.
/// Entries that change parameters are skipped.
inline void expectCompiled(const Graph &graph, fuzz::CompiledModel &compiled, const std::string &target,
                           DrawInputs draw) {
  Differentiated model(graph, 5);
  ASSERT_TRUE(model.module);
  llvm::Error unbound = compiled.bind(model.weights);
  ASSERT_FALSE(unbound) << llvm::toString(std::move(unbound));
  model.weights = compiled.asStored(std::move(model.weights));
  for (std::int64_t rows : {1, 2, 9})
    for (std::size_t number = 0; number < graph.entries.size(); ++number) {
      const Entry &entry = graph.entries[number];
      if (entry.training.changes_parameters())
        continue;
      SCOPED_TRACE(target + " " + entry.name + " " + std::to_string(rows));
      const interpreter::Extents extents{{"rows", rows}};
      const std::vector<Tensor> inputs = draw(model, entry, rows);
      const std::vector<verify::SharedTensor> expected = model.run(entry, extents, inputs);
      fuzz::CompiledModel::Buffers bytes;
      for (const Tensor &input : inputs)
        bytes.push_back(fuzz::toBytes(input));
      std::optional<fuzz::CompiledModel::Buffers> first;
      for (unsigned workers : {1u, 3u}) {
        fuzz::CompiledModel::Session session(
            compiled, {.order = workers > 1 ? fuzz::TaskOrder::Threads : fuzz::TaskOrder::Serial, .workers = workers});
        llvm::Expected<fuzz::CompiledModel::Buffers> results = session.call(number, extents, bytes);
        ASSERT_TRUE(static_cast<bool>(results)) << llvm::toString(results.takeError());
        if (first)
          EXPECT_EQ(*results, *first) << "with another number of workers";
        first = std::move(*results);
      }
      ASSERT_EQ(first->size(), expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i) {
        std::vector<float> got((*first)[i].size() / sizeof(float));
        std::memcpy(got.data(), (*first)[i].data(), (*first)[i].size());
        const interpreter::Comparison comparison = interpreter::compare(*expected[i], std::span(std::as_const(got)));
        EXPECT_TRUE(comparison.isRight) << model.resultName(entry, static_cast<unsigned>(i)) << ": "
                                        << describe(comparison);
      }
    }
}

inline void expectCompiled(const Graph &graph, const std::string &target, DrawInputs draw) {
  llvm::Expected<fuzz::CompiledModel> compiled = fuzz::CompiledModel::compile(graph, target);
  ASSERT_TRUE(static_cast<bool>(compiled)) << llvm::toString(compiled.takeError());
  expectCompiled(graph, *compiled, target, draw);
}

} // namespace kiln::testing
