// SPDX-License-Identifier: Apache-2.0
//
// Chooses the weights of a random model that are quantised, by build options or by the spec; `kiln_fuzz --weights`
// overrides the choice.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kiln/graph.h"

namespace kiln::fuzz {

/// Returns the names ("h0.{}.w3") of weights that can be quantised: f32 matrices that are used only as the weight of
/// linear, matmul, conv2d and embedding. The compiler may find more, since it analyses more precisely.
std::vector<std::string> storableWeights(const Graph &graph);

/// Returns storage formats in the syntax of the build option: "bf16", "int8 except h0.{}.w3=f16". Empty for 54 %
/// of the models with such weights and for all models without, so that one model in ten has a choice. The graph of a
/// seed does not depend on it.
std::string drawWeights(const Graph &graph, std::uint64_t seed);

/// Whether int8 weights are multiplied by int8 activations: true for two of three models that have such weights.
bool drawInt8Rows(std::uint64_t seed);

/// States random storage formats in the graph, for three in four of the weights that can have one.
void drawStorages(Graph &graph, std::uint64_t seed);

} // namespace kiln::fuzz
