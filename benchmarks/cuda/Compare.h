// SPDX-License-Identifier: Apache-2.0
//
// A row of the GPU table: ours, PyTorch and a measured copy take turns in every round; the table shows medians of the
// times, and of the quotients within a round.
#pragma once

#include "benchmarks/cuda/Gpu.h"
#include "benchmarks/cuda/PyTorch.h"

#include <regex>
#include <vector>

namespace kiln::bench {

enum class GpuUnit { Teraflops, GigabytesPerSecond, Milliseconds };

/// The measured case.
struct GpuCase {
  std::string name; // "product/bert 128x3072x768 f32"
  GpuUnit unit = GpuUnit::Milliseconds;
  double operations = 0;
  double bytes = 0;        // minimum bytes read and written: the limit is the rate of a copy of as many bytes
  std::string peer;        // the description for serve.py; empty: no peer
  double tolerance = 1e-4; // maximum difference from the peer's output, relative to the largest value
};

/// Our contender: `call` enqueues a call in the GPU's stream, with all tensors on the device; `output` reads its first
/// output.
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
  double turnSeconds = 0.006; // minimum duration of a turn
  std::FILE *json = nullptr;
};

/// Prints the table: GPU and peer, then one row per benchmark. Returns false if an output differs from the peer's.
bool runGpuBenchmarks(Gpu &gpu, const std::vector<GpuBenchmark> &benchmarks, const GpuOptions &options);

/// The benchmarks of each family.
std::vector<GpuBenchmark> gpuProducts();
std::vector<GpuBenchmark> gpuRows();
std::vector<GpuBenchmark> gpuAttention();
std::vector<GpuBenchmark> gpuModels();

} // namespace kiln::bench
