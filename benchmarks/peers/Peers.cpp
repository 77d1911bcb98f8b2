// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/peers/Peers.h"

namespace kiln::bench {

#ifndef KILN_BENCH_OPENBLAS
std::unique_ptr<Peer> makeOpenBlas() { return nullptr; }
#endif
#ifndef KILN_BENCH_ONEDNN
std::unique_ptr<Peer> makeOneDnn() { return nullptr; }
#endif

std::vector<std::unique_ptr<Peer>> installedPeers() {
  std::vector<std::unique_ptr<Peer>> peers;
  for (auto make : {makeOpenBlas, makeOneDnn})
    if (std::unique_ptr<Peer> peer = make())
      peers.push_back(std::move(peer));
  return peers;
}

std::vector<std::pair<std::string, bool>> peerNames() {
  return {{"openblas", makeOpenBlas() != nullptr}, {"onednn", makeOneDnn() != nullptr}};
}

} // namespace kiln::bench
