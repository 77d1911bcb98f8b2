// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/peers/Peers.h"

namespace kiln::bench {

#ifndef KILN_BENCH_OPENBLAS
std::unique_ptr<Peer> makeOpenBlas() { return nullptr; }
#endif
#ifndef KILN_BENCH_ONEDNN
std::unique_ptr<Peer> makeOneDnn() { return nullptr; }
#endif

std::vector<float> transpose(std::span<const float> weight, int columns, int depth) {
  std::vector<float> result(weight.size());
  for (int n = 0; n < columns; ++n)
    for (int k = 0; k < depth; ++k)
      result[static_cast<std::size_t>(k) * columns + n] = weight[static_cast<std::size_t>(n) * depth + k];
  return result;
}

std::vector<std::unique_ptr<Peer>> installedPeers() {
  std::vector<std::unique_ptr<Peer>> peers;
  for (auto make : {makeOnnxRuntime, makeOneDnn, makeOpenBlas})
    if (std::unique_ptr<Peer> peer = make())
      peers.push_back(std::move(peer));
  return peers;
}

std::vector<std::pair<std::string, bool>> peerNames() {
  static const std::vector<std::pair<std::string, bool>> names{{"onnxruntime", makeOnnxRuntime() != nullptr},
                                                               {"onednn", makeOneDnn() != nullptr},
                                                               {"openblas", makeOpenBlas() != nullptr}};
  return names;
}

} // namespace kiln::bench
