// SPDX-License-Identifier: Apache-2.0
// The Transformer blocks, pre-norm and post-norm, compared with PyTorch's in f64.
#include "golden.h"
#include "session.h"
#include "support.h"
#include "transformer_blocks.h"

namespace kiln::testing {
namespace {

/// The tolerance relative to the f64 oracle: at most three times the measured error, 6.1e-7.
constexpr double modelTolerance = 1.8e-6;

constexpr std::int64_t width = 72;

Session<transformer_blocks_t> &session() {
  static Session<transformer_blocks_t> only(KILN_TEST_LIBRARY(transformer_blocks, TRANSFORMER_BLOCKS_WEIGHTS));
  return only;
}

std::vector<float> rows(const char *name, std::int64_t count) { return counterValues(name, count * width, 2); }

TEST(TransformerBlocks, AgreeWithPyTorch) {
  const Golden golden("transformer_blocks.safetensors");
  struct Size {
    std::int64_t b, t, s;
  };
  for (auto [b, t, s] :
       {Size{1, 1, 1}, Size{3, 7, 5},
        Size{2, TRANSFORMER_BLOCKS_DECODE_PRE_TOKENS_MAX, TRANSFORMER_BLOCKS_DECODE_PRE_SOURCE_TOKENS_MAX}}) {
    const std::string name = "B" + std::to_string(b) + "T" + std::to_string(t);
    SCOPED_TRACE(name);
    const Input x(rows("x", b * t)), memory(rows("memory", b * s));
    const Input lengths(golden.integers(name + ".lengths"));
    Output<float> post(b * t * width), pre(b * t * width), postDecoded(b * t * width), preDecoded(b * t * width);
    session().run(transformer_blocks_encode_post, b, t, x, lengths, post);
    session().run(transformer_blocks_encode_pre, b, t, x, lengths, pre);
    session().run(transformer_blocks_decode_post, b, t, s, x, memory, postDecoded);
    session().run(transformer_blocks_decode_pre, b, t, s, x, memory, preDecoded);
    EXPECT_LE(golden.error("encode_post." + name + ".y", post.values()), modelTolerance);
    EXPECT_LE(golden.error("encode_pre." + name + ".y", pre.values()), modelTolerance);
    EXPECT_LE(golden.error("decode_post." + name + ".y", postDecoded.values()), modelTolerance);
    EXPECT_LE(golden.error("decode_pre." + name + ".y", preDecoded.values()), modelTolerance);
  }
}

// Without positions, an encoder is equivariant under permutations of its inputs.
TEST(TransformerBlocks, EncodersAreEquivariantUnderPermutations) {
  constexpr std::int64_t n = 33;
  std::vector<float> x = rows("permutation", n), reversed(x.size()), expected(x.size());
  for (std::int64_t i = 0; i < n; ++i)
    std::copy_n(&x[i * width], width, &reversed[(n - 1 - i) * width]);
  const Input<std::int32_t> lengths({n});
  Output<float> y(n * width), z(n * width);
  session().run(transformer_blocks_encode_pre, 1, n, Input(x), lengths, y);
  session().run(transformer_blocks_encode_pre, 1, n, Input(reversed), lengths, z);
  for (std::int64_t i = 0; i < n; ++i)
    std::copy_n(&y.values()[i * width], width, &expected[(n - 1 - i) * width]);
  EXPECT_LE(relativeError(z.values(), expected), 2e-6);
}

} // namespace
} // namespace kiln::testing
