// SPDX-License-Identifier: Apache-2.0
//
// Which weights of a random model are stored in fewer bits, by the build or by the spec: what `kiln_fuzz --weights`
// says otherwise.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kiln/graph.h"

namespace kiln::fuzz {

/// The names ("h0.{}.w3") of weights that can be: matrices of f32 that nothing reads but linear, matmul, conv2d and
/// embedding as their weight. Fewer than the compiler finds, where it can tell more.
std::vector<std::string> storableWeights(const Graph &graph);

/// How the weights of a model are stored, as a build says it: "bf16", "int8 except h0.{}.w3=f16". Empty for three of
/// five models that have such weights and for all others, so that one model in ten has a choice. The graph of a seed
/// does not depend on it.
std::string drawWeights(const Graph &graph, std::uint64_t seed);

/// Whether weights of int8 are multiplied by rows of int8: in two of three models that have such weights.
bool drawInt8Rows(std::uint64_t seed);

/// States storages, drawn one by one, of three in four of the weights that can have one.
void drawStorages(Graph &graph, std::uint64_t seed);

} // namespace kiln::fuzz
