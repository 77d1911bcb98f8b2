// SPDX-License-Identifier: Apache-2.0
//
// libxsmm: its batch-reduce GEMM kernels over pre-packed weights, [N / 64][K][64]. libxsmm leaves threading to its
// callers: here the threads divide the blocks of the result.
#include "benchmarks/peers/Peers.h"
#include "benchmarks/support/Threads.h"

#include <algorithm>
#include <libxsmm.h>
#include <map>

namespace kiln::bench {

namespace {

using Kernel = libxsmm_smmfunction_reducebatch_strd;

constexpr int blockColumns = 64, blockRows = 64;

/// Packs the columns of each block together; the last block is zero-padded.
std::vector<float> pack(std::span<const float> weight, int columns, int depth) {
  int blocks = (columns + blockColumns - 1) / blockColumns;
  std::vector<float> packed(static_cast<std::size_t>(blocks) * blockColumns * depth);
  for (int n = 0; n < columns; ++n)
    for (int k = 0; k < depth; ++k) {
      std::size_t row = static_cast<std::size_t>(n / blockColumns) * depth + k;
      packed[row * blockColumns + n % blockColumns] = weight[static_cast<std::size_t>(n) * depth + k];
    }
  return packed;
}

/// One blocked GEMM. libxsmm's matrices are column-major, so it computes the transpose.
class Product {
public:
  Product(const Contraction &p, std::shared_ptr<const Threads> threads)
      : problem(p), threads(std::move(threads)), weight(pack(p.weight, p.columns, p.depth)),
        y(static_cast<std::size_t>(p.rows) * p.columns) {
    // Equal blocks of rows, and a block size that divides K.
    int rowBlocks = (p.rows + blockRows - 1) / blockRows;
    rows = (p.rows + rowBlocks - 1) / rowBlocks;
    for (depth = std::min(p.depth, 128); p.depth % depth != 0;)
      --depth;
    for (int n : {blockColumns, p.columns % blockColumns})
      for (int m : {rows, p.rows % rows})
        if (n > 0 && m > 0)
          kernels[{n, m}] = makeKernel(n, m);
  }

  /// Whether the CPU supports the instructions of its kernels.
  bool isSupported() const {
    return std::all_of(kernels.begin(), kernels.end(), [](const auto &kernel) { return kernel.second != nullptr; });
  }
  std::span<const float> output() const { return y; }

  void run() {
    int rowBlocks = (problem.rows + rows - 1) / rows;
    int columnBlocks = (problem.columns + blockColumns - 1) / blockColumns;
    int blocks = rowBlocks * columnBlocks, parts = threads->count();
    threads->onAll([&](int part) {
      for (int block = blocks * part / parts; block < blocks * (part + 1) / parts; ++block)
        runBlock(block / rowBlocks, block % rowBlocks);
    });
  }

private:
  Kernel makeKernel(int n, int m) const {
    constexpr float one = 1, zero = 0;
    constexpr int floatBytes = sizeof(float);
    const int flags = LIBXSMM_GEMM_FLAGS('N', 'N'), weightStride = blockColumns;
    return libxsmm_smmdispatch_reducebatch_strd(n, m, depth, depth * blockColumns * floatBytes, depth * floatBytes,
                                                &weightStride, &problem.depth, &problem.columns, &one, &zero, &flags,
                                                nullptr);
  }

  void runBlock(int column, int row) {
    int n = column * blockColumns, m = row * rows;
    Kernel kernel = kernels.at({std::min(blockColumns, problem.columns - n), std::min(rows, problem.rows - m)});
    unsigned long long steps = static_cast<unsigned long long>(problem.depth / depth);
    kernel(weight.data() + static_cast<std::size_t>(n) * problem.depth,
           problem.x.data() + static_cast<std::size_t>(m) * problem.depth,
           y.data() + static_cast<std::size_t>(m) * problem.columns + n, &steps);
  }

  Contraction problem;
  std::shared_ptr<const Threads> threads;
  std::vector<float> weight, y;
  std::map<std::pair<int, int>, Kernel> kernels;
  int rows, depth;
};

class Xsmm : public Peer {
public:
  Xsmm() { libxsmm_init(); }
  std::string name() const override { return "libxsmm"; }
  void setThreads(int count) override { threads = std::make_shared<Threads>(count); }

  std::vector<Contender> contraction(const Contraction &p) override {
    auto product = std::make_shared<Product>(p, threads);
    if (!product->isSupported())
      return {};
    return {{name(), [product] { product->run(); }, product->output()}};
  }

private:
  std::shared_ptr<const Threads> threads;
};

} // namespace

std::unique_ptr<Peer> makeXsmm() { return std::make_unique<Xsmm>(); }

} // namespace kiln::bench
