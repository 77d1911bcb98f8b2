// SPDX-License-Identifier: Apache-2.0
#include "cuda_support.h"

namespace kiln_test {

kiln_cuda_image_t CudaImages[2] = {{"hopper", 90, 1}, {"ampere", 80, 0}};
kiln_cuda_function_t CudaFunctions[2] = {{"gather", 32, 0, 0, 0}, {"count", 1, 0, 0, 0}};
const kiln_cuda_module_t GatherModule = {CudaImages, &CudaFunctions[0], 2, 1, nullptr};
const kiln_cuda_module_t CountModule = {CudaImages, &CudaFunctions[1], 2, 1, nullptr};

namespace {

const kiln_cuda_module_t *const Modules[] = {&GatherModule, &CountModule};
const float Constants[CudaWidth] = {0.25, 0.5, 0.75, 1};

// Host launchers as the CUDA target emits them: grid and parameters of a launch.
int gather(kiln_worker_t *worker, int32_t tokens, const void *ids, const void *table, const void *constants,
           const void *state, void *rows) {
  void *parameters[] = {&ids, &table, &constants, &state, &rows, &tokens};
  return kiln_cuda_launch(worker, &GatherModule, 0, static_cast<uint32_t>(tokens), 1, 1, parameters);
}

int count(kiln_worker_t *worker, void *state) {
  void *scratch = worker->top;
  if (worker->end - worker->top < static_cast<std::ptrdiff_t>(CudaScratchBytes))
    return 2;
  void *parameters[] = {&state, &scratch};
  return kiln_cuda_launch(worker, &CountModule, 0, 1, 1, 1, parameters);
}

int runForward(const kiln_frame_t *frame) {
  const auto tokens = static_cast<int32_t>(frame->extents[0]);
  char *rows = frame->arena + CudaStateBytes;
  if (int result =
          gather(frame->worker, tokens, frame->arguments[0], frame->weights, frame->constants, frame->arena, rows))
    return result;
  constexpr uint64_t rowBytes = CudaWidth * sizeof(float);
  kiln_cuda_copy_rows(frame->worker, frame->arguments[1], rows, static_cast<uint64_t>(tokens), rowBytes, 2 * rowBytes);
  return count(frame->worker, frame->arena);
}

int runBroken(const kiln_frame_t *) { return 7; }

constexpr kiln_extent_t fixedExtent(int64_t extent) { return {extent, 0, 0, {-1, -1, -1, -1}}; }
constexpr kiln_extent_t TokenExtent = {0, 1, 0, {0, -1, -1, -1}};
const kiln_symbol_t Symbols[] = {{"tokens", 1, CudaMaxTokens, 0, 0}};
const kiln_argument_t Arguments[] = {
    {"ids", KILN_I32, 1, {TokenExtent}, 0, 1, 0, fixedExtent(CudaRows)},
    {"rows", KILN_F32, 2, {TokenExtent, fixedExtent(CudaWidth)}, 1, 0, 0, fixedExtent(0)},
};
const kiln_entry_t Entries[] = {entryOf("forward", Symbols, Arguments, 1, 2),
                                entryOf("broken", Symbols, Arguments, 1, 2)};
const kiln_weight_t Weights[] = {{"table", KILN_F32, 2, {CudaRows, CudaWidth}, 1, KILN_WEIGHT_VARIABLE}};
const kiln_placement_t Placements[] = {makePlacement(0, 0, 0, 0, 0)};

} // namespace

CudaDescriptor::CudaDescriptor()
    : bodies{{runForward, CudaPlanBytes, CudaScratchBytes, 0, CudaStagingBytes},
             {runBroken, CudaStateBytes, 0, 0, 192}},
      descriptor{KILN_ABI_VERSION, 1, 2, 2, "gathering", Weights, Entries, variants, nullptr, 0} {
  variants[0] = hostVariant("cuda", 0, Placements, CudaRows * CudaWidth * sizeof(float), bodies);
  variants[0].memory_space = KILN_MEMORY_DEVICE;
  variants[0].backend = &kiln_cuda_backend;
  variants[0].constants = reinterpret_cast<const char *>(Constants);
  variants[0].constant_bytes = sizeof Constants;
  variants[0].modules = Modules;
  variants[0].module_count = 2;
  variants[1] = hostVariant("x86-64-v2", HostFeatures, Placements, variants[0].packed_bytes, bodies);
}

std::vector<float> cudaTable(float first) {
  std::vector<float> table;
  for (int i = 0; i < CudaRows * CudaWidth; ++i)
    table.push_back(static_cast<float>(10 * (i / CudaWidth) + i % CudaWidth) + first);
  return table;
}

std::string cudaImage(float first) {
  return makeImage({{"table", "F32", {CudaRows, CudaWidth}, bytesOf(cudaTable(first))}});
}

std::vector<float> cudaRows(const std::vector<int32_t> &ids, int call, float first) {
  std::vector<float> rows;
  for (int32_t id : ids)
    for (int j = 0; j < CudaWidth; ++j)
      rows.push_back(static_cast<float>(10 * id + j) + first + Constants[j] + static_cast<float>(call));
  return rows;
}

CudaModel::CudaModel(const CudaDescriptor &data, const kiln_options_t &options, bool isBound) {
  const kiln_cpu_t cpu = kiln_cpu_detect();
  status = kiln_model_create(&data.descriptor, &cpu, &options, &model, &error);
  if (status || !isBound)
    return;
  const std::string image = cudaImage();
  EXPECT_EQ(kiln_bind_weights_from_memory(model, image.data(), image.size(), &error), KILN_OK) << error.message;
  call.arena = allocate(CudaArenaBytes);
  call.arena_bytes = CudaArenaBytes;
  call.error = &error;
  EXPECT_EQ(kiln_zero_memory(model, call.arena, CudaStateBytes, &error), KILN_OK) << error.message;
}

CudaModel::~CudaModel() {
  for (void *allocated : memory)
    kiln_release_memory(model, allocated);
  kiln_destroy(model);
}

void *CudaModel::allocate(size_t bytes) {
  void *allocated = nullptr;
  EXPECT_EQ(kiln_allocate_memory(model, bytes, &allocated, &error), KILN_OK) << error.message;
  memory.push_back(allocated);
  return allocated;
}

kiln_status_t CudaModel::run(const std::vector<int32_t> &ids, std::vector<float> &rows) {
  rows.assign(ids.size() * CudaWidth, -1);
  return run(call, static_cast<int64_t>(ids.size()), ids.data(), rows.data());
}

kiln_status_t CudaModel::run(const kiln_call_t &options, int64_t tokens, const void *ids, void *rows, uint32_t entry) {
  void *const arguments[] = {const_cast<void *>(ids), rows};
  return kiln_run(model, &options, entry, &tokens, arguments);
}

} // namespace kiln_test
