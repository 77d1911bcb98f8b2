// SPDX-License-Identifier: Apache-2.0
// Ranks that save one file together compared with one process that saves by itself: 288 MiB of f32, of layers that are
// split by rows and by columns, alternating in one run. The ranks are threads that communicate by copies, so that the
// runtime's own cost is measured.
//
//   bench_ranks_files RANKS FILE [ROUNDS]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "runtime/src/core/instance.h"
#include "runtime/src/weights/bind.h"
#include "tests/ranks/thread_ranks.h"
#include "tests/runtime/slices.h"

namespace {

using kiln_test::Sections;

void check(kiln_status_t status, const kiln_error_t &error) {
  if (status) {
    std::fprintf(stderr, "bench_ranks_files: %s\n", error.message);
    std::exit(1);
  }
}

/// The bound weights of two layers.
class Model {
public:
  Model(uint32_t rank, uint32_t ranks) {
    constexpr int64_t width = 2048, hidden = 8192;
    add("h.{}.fc1", {hidden, width}, 0, ranks);
    add("h.{}.fc2", {width, hidden}, 1, ranks);
    add("h.{}.output", {width, width}, 1, ranks);
    uint64_t bytes = 0;
    for (const kiln_weight_t &weight : weights) {
      kiln_placement_t place = {};
      place.offset = bytes;
      place.stride = KILN_ARENA_ROUND(kiln_weight_bytes(&weight));
      bytes += place.stride * weight.copies;
      places.push_back(place);
    }
    for (const Sections &each : sections)
      shards.push_back(each.described());
    variant.target = "any";
    variant.placements = places.data();
    variant.packed_bytes = bytes;
    descriptor.abi_version = KILN_ABI_VERSION;
    descriptor.weight_count = static_cast<uint32_t>(weights.size());
    descriptor.variant_count = 1;
    descriptor.name = "files";
    descriptor.weights = weights.data();
    descriptor.variants = &variant;
    descriptor.ranks = ranks;
    descriptor.shards = shards.data();
    descriptor.sharding = ranks > 1 ? &kiln_sharding : nullptr;
    const kiln_cpu_t cpu = kiln_cpu_detect();
    kiln_options_t options{};
    options.rank = rank;
    options.ranks = ranks;
    check(kiln_model_create(&descriptor, &cpu, &options, &model, &error), error);
    char *packed = nullptr;
    kiln_packed_t kind{};
    check(kiln_packed_allocate(model, &packed, &kind, &error), error);
    std::memset(packed, 1, bytes);
    check(kiln_packed_replace(model, packed, kind, &error), error);
  }
  ~Model() { kiln_destroy(model); }
  Model(const Model &) = delete;
  Model &operator=(const Model &) = delete;

  void save(const std::string &path) { check(kiln_save_weights(model, path.c_str(), &error), error); }
  void saveTogether(const kiln_communicator_t &ranks, const std::string &path) {
    kiln_call_t call{};
    call.error = &error;
    call.communicator = &ranks;
    check(kiln_save_weights_together(model, &call, path.c_str()), error);
  }

private:
  void add(const char *name, std::vector<int64_t> shape, uint32_t dim, uint32_t ranks) {
    sections.push_back(ranks > 1 ? kiln_test::sharesOf(dim, {static_cast<uint64_t>(shape[dim])}, ranks) : Sections());
    shape[dim] /= ranks;
    weights.push_back(kiln_test::weightOf(name, KILN_F32, shape));
    weights.back().copies = 2;
  }

  std::vector<kiln_weight_t> weights;
  std::vector<kiln_placement_t> places;
  std::vector<Sections> sections;
  std::vector<kiln_shard_t> shards;
  kiln_variant_t variant{};
  kiln_descriptor_t descriptor{};
  kiln_model_t *model = nullptr;
  kiln_error_t error{};
};

template <class Work> double secondsOf(Work work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

} // namespace

int main(int argc, char **argv) {
  const uint32_t count = argc > 2 ? static_cast<uint32_t>(std::atoi(argv[1])) : 0;
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 9;
  if (count < 2 || 2048 % count != 0 || rounds < 1) {
    std::fprintf(stderr, "bench_ranks_files RANKS FILE [ROUNDS]: wrong number of ranks; expected 2, 4, 8 .. 2048\n");
    return 2;
  }
  const std::string path = argv[2];
  Model one(0, 1);
  std::vector<std::unique_ptr<Model>> many;
  for (uint32_t rank = 0; rank < count; ++rank)
    many.push_back(std::make_unique<Model>(rank, count));
  std::vector<double> alone, together, ratios;
  for (int round = 0; round < rounds; ++round) {
    alone.push_back(secondsOf([&] { one.save(path); }));
    together.push_back(secondsOf([&] {
      kiln::test::ThreadRanks ranks(count);
      ranks.run([&](uint32_t rank) { many[rank]->saveTogether(ranks.communicator(rank), path); });
    }));
    ratios.push_back(together.back() / alone.back());
  }
  std::printf("%u ranks, %.0f MiB: alone %.3f s, together %.3f s, %.2f times as long\n", count,
              static_cast<double>(std::filesystem::file_size(path)) / (1 << 20), median(alone), median(together),
              median(ratios));
  std::filesystem::remove(path);
  return 0;
}
