// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/peers/Peers.h"

namespace kiln::bench {

#ifndef KILN_BENCH_OPENBLAS
std::unique_ptr<Peer> makeOpenBlas() { return nullptr; }
#endif
#ifndef KILN_BENCH_ONEDNN
std::unique_ptr<Peer> makeOneDnn() { return nullptr; }
#endif
#ifndef KILN_BENCH_XSMM
std::unique_ptr<Peer> makeXsmm() { return nullptr; }
#endif

std::vector<float> transpose(std::span<const float> weight, int columns, int depth) {
  std::vector<float> result(weight.size());
  for (int n = 0; n < columns; ++n)
    for (int k = 0; k < depth; ++k)
      result[static_cast<std::size_t>(k) * columns + n] = weight[static_cast<std::size_t>(n) * depth + k];
  return result;
}

std::size_t WholeModel::Output::count() const {
  std::size_t result = 1;
  for (std::int64_t extent : shape)
    result *= static_cast<std::size_t>(extent);
  return result;
}

/// The peers have the order of the table's columns.
static const std::pair<const char *, std::unique_ptr<Peer> (*)()> peers[] = {{"onnxruntime", makeOnnxRuntime},
                                                                             {"onednn", makeOneDnn},
                                                                             {"libxsmm", makeXsmm},
                                                                             {"openblas", makeOpenBlas},
                                                                             {"pytorch", makePyTorch}};

std::vector<std::unique_ptr<Peer>> installedPeers() {
  std::vector<std::unique_ptr<Peer>> installed;
  for (const auto &[name, make] : peers)
    if (std::unique_ptr<Peer> peer = make())
      installed.push_back(std::move(peer));
  return installed;
}

std::vector<std::pair<std::string, bool>> peerNames() {
  static const auto names = [] {
    std::vector<std::pair<std::string, bool>> all;
    for (const auto &[name, make] : peers)
      all.emplace_back(name, make() != nullptr);
    return all;
  }();
  return names;
}

} // namespace kiln::bench
