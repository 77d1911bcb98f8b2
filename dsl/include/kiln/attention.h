// SPDX-License-Identifier: Apache-2.0
//
// Attention: its options, its result, its scores and weights as separate operations.
#pragma once

#include "kiln/contraction.h"
#include "kiln/rows.h"

namespace kiln {

/// Options that restrict or scale attention: `kiln::causal | kiln::lengths(n)`. Absent tensors have the type None.
struct None {};
template <class Mask = None, class Lengths = None, class Sinks = None> struct AttentionOptions {
  static constexpr bool has_mask = !std::is_same_v<Mask, None>;
  static constexpr bool has_sinks = !std::is_same_v<Sinks, None>;
  static constexpr bool has_lengths = !std::is_same_v<Lengths, None>;
  bool causal = false;
  double scale = 0; // 0: 1 / sqrt(query width / heads)
  bool scaled = false;
  std::int64_t window_keys = 0; // a sliding window of so many keys; 0: all
  bool windowed = false;
  double softcap = 0; // 0: scores are not limited
  bool capped = false;
  Mask mask{};
  Lengths lengths{};
  Sinks sinks{};
};

/// Causal mask: query i attends to keys 0 .. i + (keys - queries).
inline constexpr AttentionOptions<> causal{true};
/// Multiplies the scores before the mask is added.
constexpr AttentionOptions<> scale(double factor) { return {.scale = factor, .scaled = true}; }
/// Sliding window: of the keys that causal attention leaves, a query attends to the last `keys` only.
constexpr AttentionOptions<> window(std::int64_t keys) { return {.window_keys = keys, .windowed = true}; }
/// Soft-capping: limits the scaled scores to (-c, c), by c tanh(scores / c), before the mask is added.
constexpr AttentionOptions<> softcap(double c) { return {.softcap = c, .capped = true}; }
/// A mask that is added to the scaled scores. It broadcasts to [..., queries, keys]. A mask with one axis more than the
/// queries differs by head and broadcasts to [..., heads, queries, keys].
template <tensor M> constexpr AttentionOptions<M> mask(const M &mask) { return {.mask = mask}; }
/// Lengths of type i32 [...]: keys at or beyond the length are masked out.
template <tensor L> constexpr AttentionOptions<None, L> lengths(const L &lengths) { return {.lengths = lengths}; }

/// Attention sinks (Xiao et al. 2023; learned, as in gpt-oss): a number for each head, [heads], that takes part in the
/// softmax as the score of a key whose value is 0, so that the weights of the keys may add up to less than 1.
template <tensor S> constexpr AttentionOptions<None, None, S> sinks(const S &sinks) { return {.sinks = sinks}; }

template <class M1, class L1, class S1, class M2, class L2, class S2>
constexpr auto operator|(const AttentionOptions<M1, L1, S1> &a, const AttentionOptions<M2, L2, S2> &b) {
  using A = AttentionOptions<M1, L1, S1>;
  using B = AttentionOptions<M2, L2, S2>;
  static_assert(!(A::has_mask && B::has_mask), "kiln: attention: several masks; expected at most one [attention_c13]");
  static_assert(!(A::has_lengths && B::has_lengths),
                "kiln: attention: several tensors of lengths; expected at most one [attention_c14]");
  static_assert(!(A::has_sinks && B::has_sinks),
                "kiln: attention: several tensors of sinks; expected at most one [attention_c20]");
  auto either = [](auto x, auto y) {
    if constexpr (std::is_same_v<decltype(x), None>)
      return y;
    else
      return x;
  };
  auto mask = either(a.mask, b.mask);
  auto lengths = either(a.lengths, b.lengths);
  auto sinks = either(a.sinks, b.sinks);
  return AttentionOptions<decltype(mask), decltype(lengths), decltype(sinks)>{
      .causal = a.causal || b.causal,
      .scale = b.scaled ? b.scale : a.scale,
      .scaled = a.scaled || b.scaled,
      .window_keys = b.windowed ? b.window_keys : a.window_keys,
      .windowed = a.windowed || b.windowed,
      .softcap = b.capped ? b.softcap : a.softcap,
      .capped = a.capped || b.capped,
      .mask = mask,
      .lengths = lengths,
      .sinks = sinks};
}

namespace detail {

/// Returns the shape that a mask must broadcast to.
template <bool ByHead, std::size_t R>
constexpr auto masked_shape(const Shape<R> &batch, std::int64_t heads, const Dim &queries, const Dim &keys) {
  if constexpr (ByHead)
    return appended(appended(appended(batch, heads), queries), keys);
  else
    return appended(appended(batch, queries), keys);
}

/// Checks the rules of queries [..., Tq, H*D], keys [..., Tk, G*D] (H a multiple of G) and options, and returns the
/// attributes.
template <int Heads, int KeyHeads> struct AttentionRules {
  static_assert(Heads >= 1 && KeyHeads >= 1, "kiln: attention: no heads; expected at least one [attention_c15]");

  template <tensor Q, tensor K, class Mask, class Lengths, class Sinks>
  static constexpr Attributes check(const Q &q, const K &, const AttentionOptions<Mask, Lengths, Sinks> &options,
                                    std::vector<int> &operands) {
    Tracer *tracer = q.tracer;
    constexpr Dim width = last(Q::shape), queries = last(Q::shape, 2), keys = last(K::shape, 2);
    constexpr auto batch = leading<2>(Q::shape);
    if (Heads % KeyHeads != 0)
      tracer->fail(rules::attention_c16, Heads, multiple(KeyHeads).data());
    else if (!width.fixed() || width.offset % Heads != 0)
      tracer->fail(rules::attention_c1, width, multiple(Heads).data());
    else if (constexpr Dim wanted = width.offset / Heads * KeyHeads; last(K::shape) != wanted)
      tracer->fail(rules::attention_c2, last(K::shape), wanted);
    if (options.causal && !at_least(keys, queries))
      tracer->fail(rules::attention_c10, keys, queries);
    if (options.scaled && !(options.scale > 0))
      tracer->fail(rules::attention_c11, options.scale);
    if (options.windowed && (!options.causal || options.window_keys < 1))
      tracer->fail(rules::attention_c17, options.window_keys);
    if (options.capped && !(options.softcap > 0))
      tracer->fail(rules::attention_c18, options.softcap);

    Attributes attributes;
    attributes.heads = Heads;
    attributes.key_value_heads = KeyHeads;
    attributes.causal = options.causal;
    attributes.window_keys = options.window_keys;
    attributes.softcap = options.softcap;
    constexpr double depth = width.min() < 1 ? 1 : static_cast<double>(width.min()) / static_cast<double>(Heads);
    attributes.scale = options.scaled ? options.scale : 1 / square_root(depth);
    if constexpr (!std::is_same_v<Mask, None>) {
      constexpr auto scores = masked_shape<Mask::rank == Q::rank + 1>(batch, Heads, queries, keys);
      if constexpr (!broadcasts_to(Mask::shape, scores))
        tracer->fail(rules::attention_c7, Mask::shape, scores);
      if constexpr (Mask::element != Q::element)
        tracer->fail(rules::attention_c8, Mask::element, Q::element);
      operands.push_back(options.mask.node);
      attributes.has_mask = true;
    }
    if constexpr (!std::is_same_v<Sinks, None>) {
      constexpr Shape<1> wanted{{Dim(Heads)}};
      if constexpr (Sinks::element != Q::element || !same_shape(Sinks::shape, wanted))
        tracer->fail(rules::attention_c19, typed(options.sinks).data(), Text().put(Q::element).put(wanted).data());
      operands.push_back(options.sinks.node);
      attributes.has_sinks = true;
    }
    if constexpr (!std::is_same_v<Lengths, None>) {
      if constexpr (Lengths::element != i32 || !same_shape(Lengths::shape, batch))
        tracer->fail(rules::attention_c9, typed(options.lengths).data(), Text().put(i32).put(batch).data());
      operands.push_back(options.lengths.node);
      attributes.has_lengths = true;
    }
    return attributes;
  }

  static constexpr Text multiple(int of) { return Text().put("a multiple of ").put(of); }

  /// Checks that all operands have the same rank, batch dimensions and element type.
  template <tensor Q, tensor... Others> static constexpr void check_types(const Q &q, const Others &...others) {
    constexpr auto batch = leading<2>(Q::shape);
    if constexpr (Q::rank < 2 || ((Others::rank < 2) || ...))
      q.tracer->fail(rules::attention_c6, typed(q, others...).data());
    if constexpr ((!same_shape(leading<2>(Others::shape), batch) || ...))
      q.tracer->fail(rules::attention_c5, typed(q, others...).data());
    if constexpr (!floating(Q::element) || ((Others::element != Q::element) || ...))
      q.tracer->fail(rules::attention_c12, typed(q, others...).data());
  }
};

} // namespace detail

/// softmax(scale q k^T + mask) v for each of the `Heads` heads: q [..., Tq, H*D], k [..., Tk, G*D], v [..., Tk, G*E] ->
/// [..., Tq, H*E]. With G < H key/value heads, each serves H / G query heads (grouped-query attention, Ainslie et al.
/// 2023).
template <int Heads, int KeyHeads = Heads, tensor Q, tensor K, tensor V, class Mask = None, class Lengths = None,
          class Sinks = None>
constexpr auto attention(const Q &q, const K &k, const V &v, const AttentionOptions<Mask, Lengths, Sinks> &options = {},
                         Site site = Site::here()) {
  using Rules = detail::AttentionRules<Heads, KeyHeads>;
  Tracer *tracer = q.tracer;
  tracer->at(site);
  Rules::check_types(q, k, v);
  std::vector<int> operands{q.node, k.node, v.node};
  Attributes attributes = Rules::check(q, k, options, operands);
  constexpr Dim values = detail::last(V::shape);
  if (!values.fixed() || values.offset % KeyHeads != 0)
    tracer->fail(rules::attention_c3, values, Rules::multiple(KeyHeads).data());
  if constexpr (detail::last(V::shape, 2) != detail::last(K::shape, 2))
    tracer->fail(rules::attention_c4, detail::last(V::shape, 2), detail::last(K::shape, 2));
  constexpr Dim width = values.fixed() ? Dim(values.offset / KeyHeads * Heads) : values;
  using Result = TensorOf<Q::element, detail::with_last(Q::shape, width)>;
  return detail::emit<Result>(tracer, Op::attention, std::move(operands), std::move(attributes));
}

/// scale q k^T + mask for each head: q [..., Tq, H*D], k [..., Tk, G*D] -> [..., H, Tq, Tk].
template <int Heads, int KeyHeads = Heads, tensor Q, tensor K, class Mask = None, class Lengths = None>
constexpr auto attention_scores(const Q &q, const K &k, const AttentionOptions<Mask, Lengths> &options = {},
                                Site site = Site::here()) {
  using detail::appended, detail::last, detail::leading;
  using Rules = detail::AttentionRules<Heads, KeyHeads>;
  q.tracer->at(site);
  Rules::check_types(q, k);
  std::vector<int> operands{q.node, k.node};
  Attributes attributes = Rules::check(q, k, options, operands);
  constexpr auto shape =
      appended(appended(appended(leading<2>(Q::shape), Dim(Heads)), last(Q::shape, 2)), last(K::shape, 2));
  return detail::emit<TensorOf<Q::element, shape>>(q.tracer, Op::attention_scores, std::move(operands),
                                                   std::move(attributes));
}

namespace detail {

/// Returns the options with their tensors of numbers in f32.
template <class Mask, class Lengths, class Sinks>
constexpr auto in_f32(const AttentionOptions<Mask, Lengths, Sinks> &options, Site site) {
  auto wide = [&](const auto &x) {
    if constexpr (std::is_same_v<decltype(x), const None &>)
      return None();
    else
      return cast<f32>(x, site);
  };
  auto mask = wide(options.mask);
  auto sinks = wide(options.sinks);
  return AttentionOptions<decltype(mask), Lengths, decltype(sinks)>{.causal = options.causal,
                                                                    .scale = options.scale,
                                                                    .scaled = options.scaled,
                                                                    .window_keys = options.window_keys,
                                                                    .windowed = options.windowed,
                                                                    .softcap = options.softcap,
                                                                    .capped = options.capped,
                                                                    .mask = mask,
                                                                    .lengths = options.lengths,
                                                                    .sinks = sinks};
}

/// The softmax of scores, with the weight 0 for keys that are masked out also where these are all keys.
template <class Options, tensor X> constexpr auto weights_of(const X &scores, Site site) {
  auto weights = softmax(scores, site);
  if constexpr (Options::has_mask || Options::has_lengths)
    return where(less_equal(scores, -0.99e38, site), 0, weights, site);
  else
    return weights;
}

} // namespace detail

/// Attention weights, the softmax of the scores; each row sums to 1, or is 0 if all keys are masked out:
/// [..., H, Tq, Tk].
template <int Heads, int KeyHeads = Heads, tensor Q, tensor K, class Mask = None, class Lengths = None>
constexpr auto attention_weights(const Q &q, const K &k, const AttentionOptions<Mask, Lengths> &options = {},
                                 Site site = Site::here()) {
  if constexpr (half_float(Q::element)) {
    // Scores may exceed the largest f16, and bf16 has too few digits for them, so the scores are f32 up to the softmax.
    using Rules = detail::AttentionRules<Heads, KeyHeads>;
    q.tracer->at(site);
    Rules::check_types(q, k);
    std::vector<int> operands;
    (void)Rules::check(q, k, options, operands);
    auto scores =
        attention_scores<Heads, KeyHeads>(cast<f32>(q, site), cast<f32>(k, site), detail::in_f32(options, site), site);
    return cast<Q::element>(detail::weights_of<AttentionOptions<Mask, Lengths>>(scores, site), site);
  } else {
    auto scores = attention_scores<Heads, KeyHeads>(q, k, options, site);
    return detail::weights_of<AttentionOptions<Mask, Lengths>>(scores, site);
  }
}

} // namespace kiln
