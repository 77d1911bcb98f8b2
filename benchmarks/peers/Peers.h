// SPDX-License-Identifier: Apache-2.0
//
// The libraries that a user would link instead. A peer that is missing on the machine is not built, and its column says
// so. Each peer gets its best conditions: weights packed or transposed in advance, and its preferred layout.
#pragma once

#include "benchmarks/support/Compare.h"

#include <memory>

namespace kiln::bench {

/// y [rows, columns] = x [rows, depth] weight^T, weight [columns, depth].
struct Contraction {
  int rows, columns, depth;
  std::span<const float> x, weight;
};

/// softmax(q k^T / sqrt(width)) v for each head; q, k, v are [tokens, heads * width]. Causal: a query sees the keys up
/// to its own position.
struct SelfAttention {
  int tokens, heads, width;
  bool isCausal;
  std::span<const float> q, k, v;
};

/// Input [rows, columns] of a row-wise or elementwise operation.
struct Rows {
  int rows, columns;
  std::span<const float> x;
};

/// A model of peers/pytorch/models.py.
struct WholeModel {
  using Shape = std::vector<std::int64_t>;
  struct Input {
    std::string name;
    Shape shape;
    std::span<const std::int32_t> tokens; // or
    std::span<const float> values;
  };
  struct Output {
    std::string name;
    Shape shape;
    std::size_t count() const;
  };

  std::string name;
  std::vector<Input> inputs;
  Output output; // the first output
};

class Peer {
public:
  virtual ~Peer() = default;
  virtual std::string name() const = 0;
  virtual void setThreads(int count) = 0;

  /// Returns contenders under the peer's name; none if it lacks the operation. Data that the problem points at must
  /// outlive them.
  virtual std::vector<Contender> contraction(const Contraction &) { return {}; }
  virtual std::vector<Contender> attention(const SelfAttention &) { return {}; }
  virtual std::vector<Contender> layerNorm(const Rows &, std::span<const float> /*weight*/,
                                           std::span<const float> /*bias*/) {
    return {};
  }
  virtual std::vector<Contender> rmsNorm(const Rows &, std::span<const float> /*weight*/) { return {}; }
  virtual std::vector<Contender> softmax(const Rows &) { return {}; }
  virtual std::vector<Contender> gelu(const Rows &) { return {}; }
  virtual std::vector<Contender> model(const WholeModel &) { return {}; }
  /// With int8 weights and activations.
  virtual std::vector<Contender> quantisedModel(const WholeModel &) { return {}; }
  /// Each function loads the model again and returns a function that runs it.
  virtual std::vector<std::function<std::function<void()>()>> loads(const WholeModel &) { return {}; }
};

/// Transposes the weight [columns, depth] to [depth, columns].
std::vector<float> transpose(std::span<const float> weight, int columns, int depth);

/// Return null if the library is not installed.
std::unique_ptr<Peer> makeOnnxRuntime();
std::unique_ptr<Peer> makeOneDnn();
std::unique_ptr<Peer> makeOpenBlas();
std::unique_ptr<Peer> makePyTorch();
std::unique_ptr<Peer> makeXsmm();

/// Returns the installed peers.
std::vector<std::unique_ptr<Peer>> installedPeers();

/// The names of all peers, in the order of the table's columns, and whether each is installed.
std::vector<std::pair<std::string, bool>> peerNames();

} // namespace kiln::bench
