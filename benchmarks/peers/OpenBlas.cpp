// SPDX-License-Identifier: Apache-2.0
//
// OpenBLAS has no packed weights that outlive a call. It gets the weight unchanged and transposed, and the faster one
// counts.
#include "benchmarks/peers/Peers.h"

#include <cblas.h>

namespace kiln::bench {

namespace {

class OpenBlas : public Peer {
public:
  std::string name() const override { return "openblas"; }
  void setThreads(int count) override { openblas_set_num_threads(count); }

  std::vector<Contender> contraction(const Contraction &p) override {
    auto y = std::make_shared<std::vector<float>>(static_cast<std::size_t>(p.rows) * p.columns);
    auto transposed = std::make_shared<std::vector<float>>(transpose(p.weight, p.columns, p.depth));

    std::vector<Contender> ways;
    ways.push_back({name(),
                    [p, y] {
                      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, p.rows, p.columns, p.depth, 1, p.x.data(),
                                  p.depth, p.weight.data(), p.depth, 0, y->data(), p.columns);
                    },
                    *y});
    ways.push_back({name(),
                    [p, y, transposed] {
                      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, p.rows, p.columns, p.depth, 1, p.x.data(),
                                  p.depth, transposed->data(), p.columns, 0, y->data(), p.columns);
                    },
                    *y});
    if (p.rows == 1)
      ways.push_back({name(),
                      [p, y] {
                        cblas_sgemv(CblasRowMajor, CblasNoTrans, p.columns, p.depth, 1, p.weight.data(), p.depth,
                                    p.x.data(), 1, 0, y->data(), 1);
                      },
                      *y});
    return ways;
  }
};

} // namespace

std::unique_ptr<Peer> makeOpenBlas() { return std::make_unique<OpenBlas>(); }

} // namespace kiln::bench
