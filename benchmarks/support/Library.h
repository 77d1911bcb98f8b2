// SPDX-License-Identifier: Apache-2.0
//
// A generated library in a benchmark: its model with bound weights, and calls with an arena.
#pragma once

#include "benchmarks/support/Compare.h"
#include "tests/models/weights.h"

#include <cstdio>
#include <cstring>

namespace kiln::bench {

/// Creates the model of a generated NAME.hpp with these weights; a failure is reported and ends the program.
template <class Model> std::shared_ptr<Model> makeModel(const testing::WeightImage &image) {
  auto model = std::make_shared<Model>();
  kiln_error_t error;
  if (model->bind({static_cast<const std::byte *>(image.data()), image.size()}, &error) != KILN_OK) {
    std::fprintf(stderr, "error: %s\n", error.message);
    std::exit(1);
  }
  return model;
}

/// Creates the model with the generator's weights.
template <class Model> std::shared_ptr<Model> makeModel(const std::vector<testing::WeightShape> &weights) {
  return makeModel<Model>(testing::WeightImage(weights));
}

/// For NAME_WEIGHTS(X): the elements of a vector of WeightShape.
#define KILN_BENCH_WEIGHT(name, type, copies, ...) {name, copies, {__VA_ARGS__}},

/// Our contender: `call` runs an entry with the given arena and threads, and writes `output`. A call that fails ends
/// the program: a benchmark must not time one that did nothing.
template <class Call>
Contender ours(const Threads &threads, std::size_t arenaBytes, std::span<const float> output, Call call) {
  auto arena = std::make_shared<Memory>(arenaBytes);
  std::memset(arena->data(), 0, arena->size()); // zeros initialise states and trainings
  auto run = [&threads, arena, call] {
    kiln_error_t error;
    kiln_call_t with{arena->data(), arena->size(), threads.executor(), &error};
    if (call(with) != KILN_OK) {
      std::fprintf(stderr, "error: %s\n", error.message);
      std::exit(1);
    }
  };
  return {"ours", run, output};
}

} // namespace kiln::bench
