// SPDX-License-Identifier: Apache-2.0
//
// Measured training runs from the literature, which are compared with the cost model (tools/scale).
#pragma once

#include "tools/scale/Gpt.h"

#include <vector>

namespace kiln::published {

struct Run {
  const char *name;
  GptShape shape;
  Grid grid;
  double value; // published value
};

/// Narayanan et al. 2021, table 1: GPT on Selene, sequences of 2048; TFLOP/s per GPU, counted as stepFlops does.
inline const std::vector<Run> selene{
    {"1.7 billion", {24, 2304, 24, 2048}, {1, 1, 32, 512}, 137},
    {"3.6 billion", {30, 3072, 32, 2048}, {2, 1, 32, 512}, 138},
    {"7.5 billion", {36, 4096, 32, 2048}, {4, 1, 32, 512}, 142},
    {"18.4 billion", {40, 6144, 48, 2048}, {8, 1, 32, 1024}, 135},
    {"39.1 billion", {48, 8192, 64, 2048}, {8, 2, 32, 1536}, 138},
    {"76.1 billion", {60, 10240, 80, 2048}, {8, 4, 32, 1792}, 140},
    {"145.6 billion", {80, 12288, 96, 2048}, {8, 8, 24, 2304}, 148},
    {"310.1 billion", {96, 16384, 128, 2048}, {8, 16, 15, 2160}, 155},
    {"529.6 billion", {105, 20480, 128, 2048}, {8, 35, 9, 2520}, 163},
    {"1008.0 billion", {128, 25600, 160, 2048}, {8, 64, 6, 3072}, 163},
};

/// Shoeybi et al. 2019, figure 5: weak scaling on DGX-2H, sequences of 1024, 8 at a time; the throughput relative to
/// that of a single GPU. The first is the single GPU: 39 TFLOP/s.
inline const std::vector<Run> megatron{
    {"1.2 billion", {40, 1536, 16, 1024}, {1, 1, 1, 8, 8}, 1.00},
    {"2.5 billion", {54, 1920, 20, 1024}, {2, 1, 1, 8, 8}, 0.95},
    {"4.2 billion", {64, 2304, 24, 1024}, {4, 1, 1, 8, 8}, 0.82},
    {"8.3 billion", {72, 3072, 32, 1024}, {8, 1, 1, 8, 8}, 0.77},
    {"1.2 billion", {40, 1536, 16, 1024}, {1, 1, 64, 512, 8}, 0.96},
    {"2.5 billion", {54, 1920, 20, 1024}, {2, 1, 64, 512, 8}, 0.83},
    {"4.2 billion", {64, 2304, 24, 1024}, {4, 1, 64, 512, 8}, 0.79},
    {"8.3 billion", {72, 3072, 32, 1024}, {8, 1, 64, 512, 8}, 0.74},
};
inline constexpr double megatronBaseline = 39e12;
/// The abstract's number for the last run: 15.1 PFLOP/s on 512 GPUs, of which one reaches 39 TFLOP/s by itself.
inline constexpr double megatronAt512 = 0.76;

} // namespace kiln::published
