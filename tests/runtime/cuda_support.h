// SPDX-License-Identifier: Apache-2.0
// A small model with a CUDA variant, hand-written in the form that the compiler emits: rows of a table, selected by
// ids, plus a constant, plus the count of a state. The tests on the stub driver and those on real PTX share its
// entry-point glue.
#ifndef KILN_TESTS_RUNTIME_CUDA_SUPPORT_H
#define KILN_TESTS_RUNTIME_CUDA_SUPPORT_H

#include "support.h"

#include <gtest/gtest.h>

namespace kiln_test {

constexpr int CudaRows = 5, CudaWidth = 4, CudaMaxTokens = 8;
/// The arena: a state with one number, then rows twice as wide as the table's, then scratch, then staging.
constexpr uint64_t CudaStateBytes = 64, CudaPlanBytes = CudaStateBytes + CudaMaxTokens * 2 * CudaWidth * 4,
                   CudaScratchBytes = 100, CudaStagingBytes = 64 + 128;
constexpr size_t CudaArenaBytes = CudaPlanBytes + CudaStagingBytes + 128 + 64;

/// The kernels: gather(ids, table, constants, state, rows, tokens) writes rows of a table to every second row of
/// `rows`, one row per block; count(state, scratch) adds 1 to the state, via the scratch memory.
extern kiln_cuda_image_t CudaImages[2];
extern kiln_cuda_function_t CudaFunctions[2];
extern const kiln_cuda_module_t GatherModule, CountModule;

/// The model's data; tests may change it before the model is created.
struct CudaDescriptor {
  kiln_body_t bodies[2];
  kiln_variant_t variants[2];
  kiln_descriptor_t descriptor;

  CudaDescriptor();
};

/// The weights: table[i][j] = 10 * i + j + `first`.
std::vector<float> cudaTable(float first = 0);
std::string cudaImage(float first = 0);
/// Returns the expected results of the entry in call number `call` of a session, from 0.
std::vector<float> cudaRows(const std::vector<int32_t> &ids, int call, float first = 0);

/// A model on a GPU with an arena in which a session begins.
class CudaModel {
public:
  explicit CudaModel(const CudaDescriptor &descriptor, const kiln_options_t &options = {}, bool isBound = true);
  CudaModel(const CudaModel &) = delete;
  CudaModel &operator=(const CudaModel &) = delete;
  ~CudaModel();

  /// Runs with ids and rows on the host.
  kiln_status_t run(const std::vector<int32_t> &ids, std::vector<float> &rows);
  /// The same with options, which say where the pointers are.
  kiln_status_t run(const kiln_call_t &options, int64_t tokens, const void *ids, void *rows, uint32_t entry = 0);
  /// Allocates device memory, which is released with the model.
  void *allocate(size_t bytes);

  kiln_model_t *model = nullptr;
  kiln_error_t error = {};
  kiln_status_t status; // the result of create
  kiln_call_t call = {};

private:
  std::vector<void *> memory;
};

} // namespace kiln_test

#endif // KILN_TESTS_RUNTIME_CUDA_SUPPORT_H
