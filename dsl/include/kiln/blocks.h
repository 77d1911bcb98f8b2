// SPDX-License-Identifier: Apache-2.0
//
// Composite layers: attention with its projections, the two-layer perceptron, the encoder and decoder blocks of the
// Transformer. Inner calls pass the caller's site on, so that messages name the caller's line.
#pragma once

#include "kiln/layers.h"

namespace kiln {

enum class Activation { relu, gelu, gelu_tanh, silu, sigmoid, tanh };

/// Where a block normalises: before a sublayer, x + part(norm(x)), or after the residual addition, norm(x + part(x)).
enum class NormOrder { pre, post };

/// The function that A names, of x.
template <Activation A> constexpr auto activate(const tensor auto &x, Site site = Site::here()) {
  if constexpr (A == Activation::relu)
    return relu(x, site);
  else if constexpr (A == Activation::gelu)
    return gelu(x, site);
  else if constexpr (A == Activation::gelu_tanh)
    return gelu_tanh(x, site);
  else if constexpr (A == Activation::silu)
    return silu(x, site);
  else if constexpr (A == Activation::sigmoid)
    return sigmoid(x, site);
  else
    return tanh(x, site);
}

/// Cross-attention over the `Rows` rows of a memory whose keys and values an earlier call stored (states `memory_keys`
/// and `memory_values`). That earlier call passes `remember` instead of attending.
template <Dim Rows> struct Remembered {};
template <Dim Rows> inline constexpr Remembered<Rows> remembered{};
struct Remember {};
inline constexpr Remember remember{};

/// Multi-head attention with `Heads` heads; parameters q_proj, k_proj, v_proj, out_proj.
template <std::int64_t Width, int Heads, bool Bias = true, WeightType Weight = f32>
class MultiHeadAttention : public Named {
public:
  using Named::Named;

  /// Self-attention.
  template <class Mask = None, class Lengths = None, class Sinks = None>
  constexpr auto operator()(const tensor auto &x, const AttentionOptions<Mask, Lengths, Sinks> &options = {},
                            Site site = Site::here()) const {
    return (*this)(x, x, options, site);
  }
  /// Cross-attention: queries from `x`, keys and values from `memory`.
  template <class Mask = None, class Lengths = None, class Sinks = None>
  constexpr auto operator()(const tensor auto &x, const tensor auto &memory,
                            const AttentionOptions<Mask, Lengths, Sinks> &options = {},
                            Site site = Site::here()) const {
    return (*this)(x, memory, memory, options, site);
  }
  /// Attention with separate tensors for queries, keys and values.
  template <class Mask = None, class Lengths = None, class Sinks = None>
  constexpr auto operator()(const tensor auto &queries, const tensor auto &keys, const tensor auto &values,
                            const AttentionOptions<Mask, Lengths, Sinks> &options = {},
                            Site site = Site::here()) const {
    ScopeGuard guard(*queries.tracer, scope_in(queries.tracer->at(site)));
    auto q = q_proj(queries, site);
    auto k = k_proj(keys, site);
    auto v = v_proj(values, site);
    return out_proj(attention<Heads>(q, k, v, options, site), site);
  }

  /// Self-attention with a KV cache: continues the sequence of the previous call.
  template <Dim Context, CacheType Type, std::int64_t Window, class Options>
  constexpr auto operator()(const tensor auto &x, const Cached<Context, Type, Window, Options> &cached,
                            Site site = Site::here()) const {
    ScopeGuard guard(*x.tracer, scope_in(x.tracer->at(site)));
    return out_proj(attention<Heads>(q_proj(x, site), k_proj(x, site), v_proj(x, site), cached, site), site);
  }
  /// Cross-attention to the remembered memory; the options may mask some of its rows.
  template <Dim Rows, class Options = AttentionOptions<>>
  constexpr auto operator()(const tensor auto &x, const Remembered<Rows> &, const Options &options = {},
                            Site site = Site::here()) const {
    ScopeGuard guard(*x.tracer, scope_in(x.tracer->at(site)));
    auto q = q_proj(x, site);
    auto k = State<Weight.element, Rows.max(), Width>("memory_keys").template read<Rows>(x, site);
    auto v = State<Weight.element, Rows.max(), Width>("memory_values").template read<Rows>(x, site);
    return out_proj(attention<Heads>(q, k, v, options, site), site);
  }
  /// Stores the keys and values of the rows of `memory`.
  template <tensor Memory> constexpr void remember(const Memory &memory, Site site = Site::here()) const {
    ScopeGuard guard(*memory.tracer, scope_in(memory.tracer->at(site)));
    constexpr Dim rows = detail::first(Memory::shape);
    State<Weight.element, rows.max(), Width>("memory_keys").template append<rows>(k_proj(memory, site), site);
    State<Weight.element, rows.max(), Width>("memory_values").template append<rows>(v_proj(memory, site), site);
  }

  /// The attention weights of each head, [..., Heads, Tq, Tk], for the same arguments as a call.
  template <class Mask = None, class Lengths = None>
  constexpr auto weights(const tensor auto &x, const AttentionOptions<Mask, Lengths> &options = {},
                         Site site = Site::here()) const {
    return weights(x, x, options, site);
  }
  template <class Mask = None, class Lengths = None>
  constexpr auto weights(const tensor auto &x, const tensor auto &memory,
                         const AttentionOptions<Mask, Lengths> &options = {}, Site site = Site::here()) const {
    ScopeGuard guard(*x.tracer, scope_in(x.tracer->at(site)));
    return attention_weights<Heads>(q_proj(x, site), k_proj(memory, site), options, site);
  }
  template <Dim Rows, class Options = AttentionOptions<>>
  constexpr auto weights(const tensor auto &x, const Remembered<Rows> &, const Options &options = {},
                         Site site = Site::here()) const {
    ScopeGuard guard(*x.tracer, scope_in(x.tracer->at(site)));
    auto k = State<Weight.element, Rows.max(), Width>("memory_keys").template read<Rows>(x, site);
    return attention_weights<Heads>(q_proj(x, site), k, options, site);
  }
  template <class... Given> constexpr auto operator()(const Given &...given) const {
    return detail::refuse_call(given...);
  }

private:
  using Projection = Linear<Width, Width, Bias, WeightOrder::out_in, Weight>;
  Projection q_proj{"q_proj"}, k_proj{"k_proj"}, v_proj{"v_proj"}, out_proj{"out_proj"};
};

/// Additive attention: the score of key k for query q is v . tanh(W q + U k + b) (Bahdanau et al. 2015, A.1.2).
/// Parameters: q_proj, k_proj, score. `Memory` is the width of the memory that is attended to.
template <std::int64_t Query, std::int64_t Memory, std::int64_t Hidden, WeightType Weight = f32>
class AdditiveAttention : public Named {
public:
  using Named::Named;

  /// U k + b for each row of memory [..., N, Memory]: [..., N, Hidden]. The result is the same for all queries.
  constexpr auto keys(const tensor auto &memory, Site site = Site::here()) const {
    ScopeGuard guard(*memory.tracer, scope_in(memory.tracer->at(site)));
    return k_proj(memory, site);
  }
  /// The attention weights of queries [..., M, Query] for keys [..., N, Hidden]: [..., M, N]; each row sums to 1. A
  /// mask that broadcasts to this shape is added to the scores.
  template <tensor Q, tensor K, class Mask = None>
  constexpr auto weights(const Q &query, const K &keys, const Mask &mask = {}, Site site = Site::here()) const {
    Tracer &tracer = *query.tracer;
    tracer.at(site);
    ScopeGuard guard(tracer, scope_in(tracer));
    if constexpr (Q::rank < 2 || K::rank < 2)
      tracer.fail(rules::additive_c1, detail::typed(query, keys).data());
    using detail::appended, detail::last, detail::leading, detail::weight, detail::with_last;
    using EachQuery = TensorOf<Q::element, appended(with_last(Q::shape, 1), Hidden)>;
    using EachKey = TensorOf<K::element, appended(appended(appended(leading<2>(K::shape), Dim(1)), last(K::shape, 2)),
                                                  last(K::shape))>;
    auto q = detail::emit<EachQuery>(&tracer, Op::reshape, {q_proj(query, site).node});
    auto k = detail::emit<EachKey>(&tracer, Op::reshape, {keys.node});
    auto score = weight<Weight.element, Hidden>(query, "score", Initial::fan_in(Hidden), site);
    auto scores = sum(mul(tanh(add(q, k, site), site), score, site), site);
    if constexpr (std::is_same_v<Mask, None>)
      return softmax(scores, site);
    else
      return softmax(add(scores, mask, site), site);
  }
  /// The weighted sum of the rows of memory for each query: [..., M, Memory].
  constexpr auto operator()(const tensor auto &query, const tensor auto &memory, Site site = Site::here()) const {
    return matmul(weights(query, keys(memory, site), None(), site), memory, site);
  }
  template <class... Given> constexpr auto operator()(const Given &...given) const {
    return detail::refuse_call(given...);
  }

private:
  Linear<Query, Hidden, false, WeightOrder::out_in, Weight> q_proj{"q_proj"};
  Linear<Memory, Hidden, true, WeightOrder::out_in, Weight> k_proj{"k_proj"};
};

/// Two-layer perceptron: fc1, activation, fc2.
template <std::int64_t Width, std::int64_t Hidden, Activation A = Activation::gelu, bool Bias = true,
          WeightType Weight = f32>
class Mlp : public Named {
public:
  using Named::Named;

  constexpr auto operator()(const tensor auto &x, Site site = Site::here()) const {
    ScopeGuard guard(*x.tracer, scope_in(x.tracer->at(site)));
    return fc2(activate<A>(fc1(x, site), site), site);
  }
  template <class... Given> constexpr auto operator()(const Given &...given) const {
    return detail::refuse_call(given...);
  }

private:
  Linear<Width, Hidden, Bias, WeightOrder::out_in, Weight> fc1{"fc1"};
  Linear<Hidden, Width, Bias, WeightOrder::out_in, Weight> fc2{"fc2"};
};

struct BlockOptions {
  NormOrder norm = NormOrder::pre;
  Activation activation = Activation::gelu;
  bool causal = false; // for self-attention in an encoder block; that of a decoder block is always causal
  // The type of all parameters and the storage format of the matrices. Not the last member, since clang 22 then reads
  // the double before it as 0.
  WeightType weight = f32;
  double epsilon = 1e-5;
};

namespace detail {

/// Residual connection: x + part(norm(x)), or norm(x + part(x)).
template <NormOrder Order, std::int64_t Width, WeightType Weight>
constexpr auto residual(const tensor auto &x, const LayerNorm<Width, Weight> &norm, Site site, auto part) {
  if constexpr (Order == NormOrder::pre)
    return add(x, part(norm(x, site)), site);
  else
    return norm(add(x, part(x), site), site);
}

template <class Options> constexpr Options with_causal(Options options, bool causal) {
  options.causal = options.causal || causal;
  return options;
}
template <Dim Context, CacheType Type, std::int64_t Window, class Options>
constexpr auto with_causal(const Cached<Context, Type, Window, Options> &options, bool) {
  return options;
}

} // namespace detail

/// Transformer encoder block; members self_attn, norm1, mlp, norm2.
template <std::int64_t Width, int Heads, std::int64_t Hidden, BlockOptions Options = BlockOptions{}>
class EncoderBlock : public Named {
public:
  using Named::Named;

  /// `options` is AttentionOptions or Cached.
  template <class Attended = AttentionOptions<>>
  constexpr auto operator()(const tensor auto &x, const Attended &options = {}, Site site = Site::here()) const {
    ScopeGuard guard(*x.tracer, scope_in(x.tracer->at(site)));
    return forward(x, options, site);
  }
  template <class Attended = AttentionOptions<>>
  constexpr auto forward(const tensor auto &x, const Attended &options = {}, Site site = {}) const {
    auto seen = detail::with_causal(options, Options.causal);
    auto attended = detail::residual<Options.norm>(x, norm1, site, [&](auto y) { return self_attn(y, seen, site); });
    return detail::residual<Options.norm>(attended, norm2, site, [&](auto y) { return mlp(y, site); });
  }
  template <class... Given> constexpr auto operator()(const Given &...given) const {
    return detail::refuse_call(given...);
  }

private:
  MultiHeadAttention<Width, Heads, true, Options.weight> self_attn{"self_attn"};
  LayerNorm<Width, Options.weight.element> norm1{"norm1", Options.epsilon};
  Mlp<Width, Hidden, Options.activation, true, Options.weight> mlp{"mlp"};
  LayerNorm<Width, Options.weight.element> norm2{"norm2", Options.epsilon};
};

/// Transformer decoder block; members self_attn (causal), norm1, cross_attn over `memory`, norm2, mlp, norm3.
template <std::int64_t Width, int Heads, std::int64_t Hidden, BlockOptions Options = BlockOptions{}>
class DecoderBlock : public Named {
public:
  using Named::Named;

  /// `memory` is a tensor or Remembered; the block's self-attention may be Cached. With Remember, x is itself the
  /// memory: the block stores the keys and values that Remembered will read, and passes x on to the next block.
  template <class Memory, class Own = AttentionOptions<>, class Cross = AttentionOptions<>>
  constexpr auto operator()(const tensor auto &x, const Memory &memory, const Own &own = {}, const Cross &cross = {},
                            Site site = Site::here()) const {
    ScopeGuard guard(*x.tracer, scope_in(x.tracer->at(site)));
    return forward(x, memory, own, cross, site);
  }
  template <class Memory, class Own = AttentionOptions<>, class Cross = AttentionOptions<>>
  constexpr auto forward(const tensor auto &x, const Memory &memory, const Own &own = {}, const Cross &cross = {},
                         Site site = {}) const {
    if constexpr (std::is_same_v<Memory, Remember>) {
      cross_attn.remember(x, site);
      return x;
    } else {
      return inform(attend(x, own, site), memory, cross, site);
    }
  }
  /// A call that returns, in addition to its result, the weights of the cross-attention of each head: [..., Heads, T,
  /// rows].
  template <class Memory, class Own = AttentionOptions<>, class Cross = AttentionOptions<>>
  constexpr auto with_weights(const tensor auto &x, const Memory &memory, const Own &own = {}, const Cross &cross = {},
                              Site site = Site::here()) const {
    ScopeGuard guard(*x.tracer, scope_in(x.tracer->at(site)));
    auto attended = attend(x, own, site);
    auto queries = [&] {
      if constexpr (Options.norm == NormOrder::pre)
        return norm2(attended, site);
      else
        return attended;
    }();
    return std::pair{inform(attended, memory, cross, site), cross_attn.weights(queries, memory, cross, site)};
  }
  template <class... Given> constexpr auto operator()(const Given &...given) const {
    return detail::refuse_call(given...);
  }

private:
  constexpr auto attend(const tensor auto &x, const auto &own, Site site) const {
    auto seen = detail::with_causal(own, true);
    return detail::residual<Options.norm>(x, norm1, site, [&](auto y) { return self_attn(y, seen, site); });
  }
  constexpr auto inform(const tensor auto &x, const auto &memory, const auto &cross, Site site) const {
    auto informed =
        detail::residual<Options.norm>(x, norm2, site, [&](auto y) { return cross_attn(y, memory, cross, site); });
    return detail::residual<Options.norm>(informed, norm3, site, [&](auto y) { return mlp(y, site); });
  }

  MultiHeadAttention<Width, Heads, true, Options.weight> self_attn{"self_attn"};
  LayerNorm<Width, Options.weight.element> norm1{"norm1", Options.epsilon};
  MultiHeadAttention<Width, Heads, true, Options.weight> cross_attn{"cross_attn"};
  LayerNorm<Width, Options.weight.element> norm2{"norm2", Options.epsilon};
  Mlp<Width, Hidden, Options.activation, true, Options.weight> mlp{"mlp"};
  LayerNorm<Width, Options.weight.element> norm3{"norm3", Options.epsilon};
};

} // namespace kiln
