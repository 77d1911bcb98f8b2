// SPDX-License-Identifier: Apache-2.0
// The model that the runtime's tests are linked with, instead of the compiler's output: a table, and two layers that
// share a body, packed in tiles of 16 as GEMM weights are. Its kernels use the runtime's hooks as generated code does.
#include "support.h"

namespace kiln_test {
namespace {

constexpr int Tile = 16;
constexpr uint64_t LayerBytes = Width * Tile * sizeof(float);
constexpr uint64_t TableBytes = Vocabulary * Width * sizeof(float);
constexpr uint64_t LayersOffset = (TableBytes + 63) / 64 * 64;

struct Rows {
  const kiln_frame_t *Frame;
  float *Activations;
};

// Computes one row: gathers it and multiplies it by each layer, with the intermediate in the worker's scratch memory.
int runRow(void *context, int index, uint8_t *closure) {
  const Rows &rows = *reinterpret_cast<const Rows *>(closure);
  const auto *ids = static_cast<const int32_t *>(rows.Frame->arguments[0]);
  const auto *table = reinterpret_cast<const float *>(rows.Frame->weights);
  auto *next = static_cast<float *>(kiln_malloc(context, Width * sizeof(float)));
  if (!next)
    return 1;
  float *row = rows.Activations + index * Width;
  std::memcpy(row, table + ids[index] * Width, Width * sizeof(float));
  for (int layer = 0; layer < Layers; ++layer) {
    const auto *weight = reinterpret_cast<const float *>(rows.Frame->weights + LayersOffset + layer * LayerBytes);
    for (int n = 0; n < Width; ++n) {
      next[n] = 0;
      for (int k = 0; k < Width; ++k)
        next[n] += row[k] * weight[k * Tile + n];
    }
    std::memcpy(row, next, Width * sizeof(float));
  }
  kiln_free(context, next);
  return 0;
}

int runForward(const kiln_frame_t *frame) {
  int tokens = static_cast<int>(frame->extents[0]);
  Rows rows = {frame, reinterpret_cast<float *>(frame->arena)};
  int result = kiln_do_par_for(frame->worker, runRow, 0, tokens, reinterpret_cast<uint8_t *>(&rows));
  std::memcpy(frame->arguments[1], rows.Activations, tokens * Width * sizeof(float));
  return result;
}

int failForward(const kiln_frame_t *) { return 7; }

constexpr kiln_extent_t fixedExtent(int64_t extent) { return {extent, 0, 0, {-1, -1, -1, -1}}; }
constexpr kiln_extent_t TokenExtent = {0, 1, 0, {0, -1, -1, -1}};

const kiln_symbol_t Symbols[] = {{"tokens", 1, MaxTokens, 0, 0}};
const kiln_argument_t Arguments[] = {
    {"ids", KILN_I32, 1, {TokenExtent}, 0, 1, 0, fixedExtent(Vocabulary)},
    {"rows", KILN_F32, 2, {TokenExtent, fixedExtent(Width)}, 1, 0, 0, fixedExtent(0)},
};
const kiln_entry_t Entries[] = {entryOf("forward", Symbols, Arguments, 1, 2),
                                entryOf("broken", Symbols, Arguments, 1, 2)};
const kiln_weight_t Weights[] = {
    {"table", KILN_F32, 2, {Vocabulary, Width}, 1, 0},
    {"layers.{}.weight", KILN_F32, 2, {Width, Width}, Layers, KILN_WEIGHT_VARIABLE},
};
const kiln_placement_t Placements[] = {makePlacement(0, 0, 0, 0, 0),
                                       makePlacement(LayersOffset, LayerBytes, Tile, 0, 0)};
const kiln_body_t Bodies[] = {
    {runForward, MaxTokens * Width * sizeof(float), KILN_SCRATCH_BLOCK_BYTES(Width * sizeof(float)),
     KILN_SCRATCH_BLOCK_BYTES(Width * sizeof(float)), 0},
    {failForward, 0, 0, 0, 0},
};
const kiln_variant_t Variants[] = {
    hostVariant("x86-64-v2", HostFeatures, Placements, LayersOffset + Layers * LayerBytes, Bodies)};

float tableValue(int row, int column) { return static_cast<float>(row * Width + column - 4); }
float layerValue(int layer, int n, int k) { return static_cast<float>((layer + 1) * (n - k) + 2 * k + 1); }

} // namespace

std::vector<Tensor> testWeights() {
  std::vector<float> table, layers[Layers];
  for (int i = 0; i < Vocabulary * Width; ++i)
    table.push_back(tableValue(i / Width, i % Width));
  for (int layer = 0; layer < Layers; ++layer)
    for (int i = 0; i < Width * Width; ++i)
      layers[layer].push_back(layerValue(layer, i / Width, i % Width));
  return {{"layers.0.weight", "F32", {Width, Width}, bytesOf(layers[0])},
          {"layers.1.weight", "F32", {Width, Width}, bytesOf(layers[1])},
          {"table", "F32", {Vocabulary, Width}, bytesOf(table)}};
}

std::vector<float> expectedRows(const std::vector<int32_t> &ids) {
  std::vector<float> result;
  for (int32_t id : ids) {
    float row[Width], next[Width];
    for (int k = 0; k < Width; ++k)
      row[k] = tableValue(id, k);
    for (int layer = 0; layer < Layers; ++layer) {
      for (int n = 0; n < Width; ++n) {
        next[n] = 0;
        for (int k = 0; k < Width; ++k)
          next[n] += layerValue(layer, n, k) * row[k];
      }
      std::memcpy(row, next, sizeof row);
    }
    result.insert(result.end(), row, row + Width);
  }
  return result;
}

} // namespace kiln_test

extern "C" const kiln_descriptor_t kiln_descriptor = {
    KILN_ABI_VERSION, 2, 2, 1, "tiny", kiln_test::Weights, kiln_test::Entries, kiln_test::Variants, nullptr, 0};
