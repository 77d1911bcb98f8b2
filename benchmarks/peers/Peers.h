// SPDX-License-Identifier: Apache-2.0
//
// What a user would link instead. A peer that the machine lacks is not built, and its column says so. Each is given its
// best: weights packed or transposed beforehand, and the layout that it likes.
#pragma once

#include "benchmarks/support/Compare.h"

#include <memory>

namespace kiln::bench {

/// y [rows, columns] = x [rows, depth] weight^T, weight [columns, depth].
struct Contraction {
  int rows, columns, depth;
  std::span<const float> x, weight;
};

/// Softmax(q k^T / sqrt(width)) v for each head; q, k, v are [tokens, heads * width]. Causal: a row sees those up to
/// it.
struct SelfAttention {
  int tokens, heads, width;
  bool isCausal;
  std::span<const float> q, k, v;
};

/// [rows, columns], row by row or element by element.
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
  Output output; // the first one
};

class Peer {
public:
  virtual ~Peer() = default;
  virtual std::string name() const = 0;
  virtual void setThreads(int count) = 0;

  /// Ways to do it, under the peer's name; none if it has no such operation. What the problem points at must outlive
  /// them.
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
  /// With weights and rows of int8.
  virtual std::vector<Contender> quantisedModel(const WholeModel &) { return {}; }
  /// Each makes the model anew and returns its run.
  virtual std::vector<std::function<std::function<void()>()>> loads(const WholeModel &) { return {}; }
};

/// The weight [columns, depth] as [depth, columns].
std::vector<float> transpose(std::span<const float> weight, int columns, int depth);

/// Null when the library is not there.
std::unique_ptr<Peer> makeOnnxRuntime();
std::unique_ptr<Peer> makeOneDnn();
std::unique_ptr<Peer> makeOpenBlas();
std::unique_ptr<Peer> makePyTorch();
std::unique_ptr<Peer> makeXsmm();

/// Those that are there.
std::vector<std::unique_ptr<Peer>> installedPeers();

/// The names of all, in the order of the table's columns, and whether each is there.
std::vector<std::pair<std::string, bool>> peerNames();

} // namespace kiln::bench
