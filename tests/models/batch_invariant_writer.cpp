// SPDX-License-Identifier: Apache-2.0
// A decoder with every operation that a token's row may pass through: embeddings, norms, rotary positions,
// grouped-query attention, attention with explicit weights, gated and plain MLPs. It reads a text at once, or continues
// with its KV cache.
#include <kiln/generator.h>

inline constexpr kiln::Dim T{"tokens", 1, 100}, C{"context", T, 200};
inline constexpr std::int64_t width = 56, vocabulary = 67;

template <std::int64_t In, std::int64_t Out> using Projection = kiln::Linear<In, Out, false>;

/// Returns the keys or values of the rows or, with a cache, of the context including the rows.
constexpr auto kept(const char *, const kiln::tensor auto &x) { return x; }
template <kiln::Dim Context, kiln::tensor X> constexpr auto kept(const char *name, const X &x, kiln::Cached<Context>) {
  return kiln::State<kiln::f32, Context.max(), X::shape[1].max()>(name).template append<Context>(x);
}

struct Shared : kiln::Layer<Shared> {
  using kiln::Layer<Shared>::Layer;
  Projection<width, width> query{"query"}, out{"out"};
  Projection<width, width / 2> key{"key"}, value{"value"};

  constexpr auto forward(const kiln::tensor auto &x, const kiln::tensor auto &angles, auto... cached) const {
    auto k = kept("keys", kiln::rotary<2>(key(x), angles), cached...), v = kept("values", value(x), cached...);
    return out(kiln::attention<4, 2>(kiln::rotary<4>(query(x), angles), k, v, kiln::causal));
  }
};

/// Attention that multiplies the values by the squares of the attention weights.
struct Seen : kiln::Layer<Seen> {
  using kiln::Layer<Seen>::Layer;
  Projection<width, width> query{"query"}, key{"key"}, value{"value"};

  template <kiln::Dim Rows> constexpr auto forward(const kiln::Tensor<kiln::f32, Rows, width> &x) const {
    return attend<Rows, Rows>(x);
  }
  template <kiln::Dim Rows, kiln::Dim Context>
  constexpr auto forward(const kiln::Tensor<kiln::f32, Rows, width> &x, kiln::Cached<Context> cached) const {
    return attend<Rows, Context>(x, cached);
  }

private:
  template <kiln::Dim Rows, kiln::Dim Keys> constexpr auto attend(const kiln::tensor auto &x, auto... cached) const {
    auto k = kept("keys", key(x), cached...), v = kept("values", value(x), cached...);
    auto weights = kiln::attention_weights<2>(query(x), k, kiln::causal);
    auto seen = kiln::matmul(weights * weights, kiln::transpose<1, 0, 2>(kiln::reshape<Keys, 2, width / 2>(v)));
    return kiln::reshape<Rows, width>(kiln::transpose<1, 0, 2>(seen));
  }
};

struct BatchInvariantWriter : kiln::Model {
  kiln::Embedding<vocabulary, width> table{"table"};
  kiln::RmsNorm<width> first{"first"}, third{"third"};
  Shared shared{"shared"};
  Seen seen{"seen"};
  kiln::LayerNorm<width> second{"second"}, last{"last"};
  Projection<width, 160> gate{"gate"}, up{"up"};
  Projection<160, width> down{"down"};
  kiln::Stack<2, kiln::EncoderBlock<width, 4, 150, kiln::BlockOptions{.causal = true}>> blocks{"blocks"};
  kiln::Linear<width, 3> few{"few"};

  constexpr auto rows(const kiln::tensor auto &tokens, const kiln::tensor auto &places, auto... cached) const {
    auto angles = kiln::sinusoidal<width / 4>(places);
    auto embedded = table(tokens);
    auto x = embedded + shared(first(embedded), angles, cached...), y = x + seen(second(x), cached...);
    auto z = third(y);
    auto w = blocks(y + down(kiln::silu(gate(z)) * up(z)), cached...);
    return kiln::outputs(kiln::logits(last(w), table), kiln::softmax(few(w)));
  }
  constexpr auto forward(kiln::Tensor<kiln::i32, T> tokens) const { return rows(tokens, kiln::positions(tokens)); }
  constexpr auto extend(const kiln::tensor auto &tokens) const {
    return rows(tokens, kiln::positions_in<C>(tokens), kiln::cached<C>);
  }
  constexpr auto prefill(kiln::Tensor<kiln::i32, T> tokens) const { return extend(tokens); }
  constexpr auto decode(kiln::Tensor<kiln::i32, 1> token) const { return extend(token); }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("forward", &BatchInvariantWriter::forward, {"tokens"}, {"logits", "few"}),
                      kiln::entry("prefill", &BatchInvariantWriter::prefill, {"tokens"}, {"logits", "few"}),
                      kiln::entry("decode", &BatchInvariantWriter::decode, {"token"}, {"logits", "few"})};
  }
};

KILN_MODEL(batch_invariant_writer, BatchInvariantWriter)
