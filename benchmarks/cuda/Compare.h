// SPDX-License-Identifier: Apache-2.0
//
// A row of the table for GPUs: ours, PyTorch and the measured copy take turns in every round; what is printed are the
// medians of the times, and of the quotients within a round.
#pragma once

#include "benchmarks/cuda/Gpu.h"
#include "benchmarks/cuda/PyTorch.h"

#include <regex>
#include <vector>

namespace kiln::bench {

enum class GpuUnit { Teraflops, GigabytesPerSecond, Milliseconds };

/// What is measured.
struct GpuCase {
  std::string name; // "product/bert 128x3072x768 f32"
  GpuUnit unit = GpuUnit::Milliseconds;
  double operations = 0;
  double bytes = 0;        // read and written at the least: the limit, by the rate of copying as many
  std::string peer;        // what serve.py makes of it; empty: nothing
  double tolerance = 1e-4; // of the largest value, to the peer's output
};

/// Ours: enqueues a call in the GPU's stream, with all tensors on the device; and its first output.
struct GpuRun {
  Gpu::Work call;
  std::function<std::vector<float>()> output;
};

struct GpuBenchmark {
  GpuCase of;
  std::function<GpuRun(Gpu &)> make;
};

struct GpuOptions {
  std::regex filter{"."};
  int rounds = 15;
  double turnSeconds = 0.006; // that a turn measures at the least
  std::FILE *json = nullptr;
};

/// Prints the table: what the GPU and the peer are, then a row a benchmark. False if an output is not the peer's.
bool runGpuBenchmarks(Gpu &gpu, const std::vector<GpuBenchmark> &benchmarks, const GpuOptions &options);

/// The benchmarks of each family.
std::vector<GpuBenchmark> gpuProducts();
std::vector<GpuBenchmark> gpuRows();
std::vector<GpuBenchmark> gpuAttention();
std::vector<GpuBenchmark> gpuModels();

} // namespace kiln::bench
