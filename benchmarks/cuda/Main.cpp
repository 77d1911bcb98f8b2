// SPDX-License-Identifier: Apache-2.0
//
// bench_cuda [--filter REGEX] [--json FILE] [--rounds N] [--turn MILLISECONDS]: prints the table for GPUs. Without a
// GPU it says why, and measures nothing.
#include "benchmarks/cuda/Compare.h"

#include <cstdlib>
#include <cstring>

int main(int argc, char **argv) {
  using namespace kiln::bench;
  GpuOptions options;
  for (int i = 1; i < argc; i += 2) {
    const char *value = i + 1 < argc ? argv[i + 1] : "";
    if (std::strcmp(argv[i], "--filter") == 0 && *value) {
      options.filter = value;
    } else if (std::strcmp(argv[i], "--rounds") == 0 && std::atoi(value) > 0) {
      options.rounds = std::atoi(value);
    } else if (std::strcmp(argv[i], "--turn") == 0 && *value) {
      options.turnSeconds = std::atof(value) * 1e-3;
    } else if (std::strcmp(argv[i], "--json") == 0 && *value) {
      if (options.json = std::fopen(value, "w"); !options.json)
        return std::fprintf(stderr, "error: cannot write \"%s\"\n", value), 1;
    } else {
      return std::fprintf(
                 stderr,
                 "error: %s: unknown option, or no value; expected --filter, --rounds, --turn or --json, got \"%s\"\n",
                 argv[0], argv[i]),
             2;
    }
  }
  std::string why;
  const std::unique_ptr<Gpu> gpu = Gpu::open(why);
  if (!gpu)
    return std::printf("benchmarks on a GPU skipped: %s\n", why.c_str()), 0;
  std::vector<GpuBenchmark> all;
  for (const auto &family : {gpuProducts(), gpuAttention(), gpuRows(), gpuModels()})
    all.insert(all.end(), family.begin(), family.end());
  const bool isRight = runGpuBenchmarks(*gpu, all, options);
  if (options.json)
    std::fclose(options.json);
  return isRight ? 0 : 1;
}
