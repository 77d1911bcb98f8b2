// SPDX-License-Identifier: Apache-2.0
//
// Layers of streams, which continue from call to call: causal convolutions over time, and attention within chunks and
// the chunks before them. The results do not depend on how the stream is cut into calls.
#pragma once

#include "kiln/blocks.h"
#include "kiln/masks.h"

namespace kiln {

namespace detail {

/// The rows before those of a call that a causal convolution reads.
template <Conv1dOptions Options> constexpr std::int64_t rows_before(std::int64_t kernel) {
  return std::int64_t{Options.dilation} * (kernel - 1) + 1 - Options.stride;
}

/// Returns x after the rows of earlier calls that the convolution reads again, and keeps those for the next call.
template <Conv1dOptions Options, tensor X, tensor W>
constexpr auto after_heard(const X &x, const W &, const char *name, Site site) {
  constexpr std::int64_t before = rows_before<Options>(last(W::shape).offset);
  if constexpr (before < 1) {
    return x;
  } else {
    const State<X::element, before, last(X::shape)> heard(name);
    auto longer = concat<0>(heard.read(x, site), x);
    heard.store(kiln::last<0, before>(longer, site), site);
    return longer;
  }
}

template <Conv1dOptions Options, tensor X, tensor W>
inline constexpr bool is_stream = X::rank == 2 && W::rank == 3 && last(W::shape).fixed() && Options.stride >= 1 &&
                                  Options.dilation >= 1 && first(X::shape).divisible(Options.stride);

/// Reports the violated rules of a causal convolution.
template <Conv1dOptions Options, tensor X, tensor W> constexpr void check_stream(const X &x, const W &weight) {
  if constexpr (X::rank != 2 || W::rank != 3)
    x.tracer->fail(rules::causal_conv1d_c1, typed(x, weight).data());
  else if constexpr (Options.stride < 1 || Options.dilation < 1 || Options.padding != 0)
    x.tracer->fail(rules::causal_conv1d_c2, Text()
                                                .put("stride ")
                                                .put(Options.stride)
                                                .put(", dilation ")
                                                .put(Options.dilation)
                                                .put(", padding ")
                                                .put(Options.padding)
                                                .data());
  else if constexpr (!first(X::shape).divisible(Options.stride))
    x.tracer->fail(rules::causal_conv1d_c3, first(X::shape), Text().put("a multiple of ").put(Options.stride).data());
}

} // namespace detail

/// 1-d convolution of a stream: x [stride * T, C], weight [O, C / groups, k] -> [T, O]. Row t of the result reads rows
/// of the stream up to row stride * (t + 1) - 1. The state `name` of the layer that is being traced has the rows of
/// earlier calls that the next call reads again; before the first call they are zeros.
template <Conv1dOptions Options = Conv1dOptions{}, tensor X, tensor W>
constexpr auto causal_conv1d(const X &x, const W &weight, const char *name = "heard", Site site = Site::here()) {
  x.tracer->at(site);
  detail::check_stream<Options>(x, weight);
  if constexpr (detail::is_stream<Options, X, W>)
    return conv1d<Options>(detail::after_heard<Options>(x, weight, name, site), weight, site);
  else
    return x;
}
template <Conv1dOptions Options = Conv1dOptions{}, tensor X, tensor W, tensor B>
constexpr auto causal_conv1d(const X &x, const W &weight, const B &bias, const char *name = "heard",
                             Site site = Site::here()) {
  x.tracer->at(site);
  detail::check_stream<Options>(x, weight);
  if constexpr (detail::is_stream<Options, X, W>)
    return conv1d<Options>(detail::after_heard<Options>(x, weight, name, site), weight, bias, site);
  else
    return x;
}

/// causal_conv1d of a stream [stride * T, In]: parameters weight [Out, In / groups, Kernel] and bias, state heard.
template <std::int64_t In, std::int64_t Out, std::int64_t Kernel, Conv1dOptions Options = Conv1dOptions{},
          bool Bias = true, WeightType Weight = f32>
class CausalConv1d : public Named {
public:
  using Named::Named;

  constexpr auto operator()(const tensor auto &x, Site site = Site::here()) const {
    ScopeGuard guard(*x.tracer, scope_in(x.tracer->at(site)));
    constexpr std::int64_t groups = Options.groups < 1 ? 1 : Options.groups; // conv1d rejects other values
    constexpr Initial initial = Initial::fan_in(In / groups * Kernel);
    auto weight = detail::weight<Weight, Out, In / groups, Kernel>(x, "weight", initial, site);
    if constexpr (Bias)
      return causal_conv1d<Options>(x, weight, detail::weight<Weight.element, Out>(x, "bias", initial, site), "heard",
                                    site);
    else
      return causal_conv1d<Options>(x, weight, "heard", site);
  }
  template <class... Given> constexpr auto operator()(const Given &...given) const {
    return detail::refuse_call(given...);
  }
};

/// Self-attention of a stream [Chunk * n, Width]: the rows of a chunk attend to those of the chunk, and to the `Left`
/// rows before it. With the option `causal` each row attends to none after itself. Parameters q_proj, k_proj, v_proj
/// and out_proj, as those of MultiHeadAttention; states keys and values of the last Left rows, and `seen`, the number
/// of rows so far, at most Left. Each chunk has its keys at the same places, whatever calls it is in.
template <std::int64_t Width, int Heads, std::int64_t Chunk, std::int64_t Left, bool Bias = true,
          WeightType Weight = f32>
class StreamingAttention : public Named {
  static constexpr bool is_sound = Chunk >= 1 && Left >= 0 && Left % (Chunk < 1 ? 1 : Chunk) == 0;
  static_assert(is_sound,
                "kiln: streaming attention: unsuitable chunk or rows before it; expected a chunk of one row or more, "
                "and a multiple of it before it [streaming_attention_c1]");

public:
  using Named::Named;

  template <tensor X, class Options = AttentionOptions<>>
  constexpr auto operator()(const X &x, const Options &options = {}, Site site = Site::here()) const {
    ScopeGuard guard(*x.tracer, scope_in(x.tracer->at(site)));
    constexpr bool is_free = !Options::has_mask && !Options::has_lengths;
    static_assert(is_free, "kiln: streaming attention: options with a mask or lengths; expected other options "
                           "[streaming_attention_c3]");
    constexpr bool fits = X::rank == 2 && detail::first(X::shape).divisible(Chunk);
    if constexpr (!is_free || !is_sound) {
      return x;
    } else if constexpr (!fits) {
      x.tracer->fail(rules::streaming_attention_c2, detail::typed(x).data(),
                     Text().put("[a multiple of ").put(Chunk).put(", width]").data());
      return x;
    } else {
      constexpr Dim chunks = detail::first(X::shape).divided(Chunk);
      auto q = reshape<chunks, Chunk, Width>(q_proj(x, site), site);
      auto k = windows<chunks>("keys", k_proj(x, site), site), v = windows<chunks>("values", v_proj(x, site), site);
      auto attended = [&] {
        if constexpr (Left == 0)
          return attention<Heads>(q, k, v, options, site);
        else
          return attention<Heads>(q, k, v, options | begun<chunks>(x, site), site);
      }();
      return out_proj(reshape<detail::first(X::shape), Width>(attended, site), site);
    }
  }
  template <class... Given> constexpr auto operator()(const Given &...given) const {
    return detail::refuse_call(given...);
  }

private:
  using Projection = Linear<Width, Width, Bias, WeightOrder::out_in, Weight>;
  static constexpr std::int64_t keys_of_chunk = Left + Chunk;

  /// Returns the rows that each chunk attends to, [chunks, Left + Chunk, Width], and keeps the last ones.
  template <Dim Chunks, tensor X> static constexpr auto windows(const char *name, const X &rows, Site site) {
    if constexpr (Left == 0) {
      return reshape<Chunks, Chunk, Width>(rows, site);
    } else {
      const State<X::element, Left, Width> earlier(name);
      auto longer = concat<0>(earlier.read(rows, site), rows);
      earlier.store(last<0, Left>(longer, site), site);
      if constexpr (Chunks == Dim(1)) {
        return reshape<1, keys_of_chunk, Width>(longer, site);
      } else {
        auto chunks = reshape<Chunks + Dim(Left / Chunk), Chunk, Width>(longer, site);
        return joined<Chunks>(chunks, site, std::make_integer_sequence<std::int64_t, Left / Chunk + 1>());
      }
    }
  }
  template <Dim Chunks, tensor X, std::int64_t... Before>
  static constexpr auto joined(const X &chunks, Site site, std::integer_sequence<std::int64_t, Before...>) {
    return concat<1>(slice<0, Before, Chunks>(chunks, site)...);
  }

  /// A mask of the rows before the beginning of the stream, [chunks, 1, Left + Chunk].
  template <Dim Chunks, tensor X> static constexpr auto begun(const X &x, Site site) {
    const State<i32, 1> seen("seen");
    auto earlier = seen.read(x, site);
    auto rows = add(last<0, 1>(positions<0>(x, site), site), 1, site);
    seen.store(minimum(add(earlier, rows, site), Left, site), site);
    auto chunk = reshape<Chunks, 1>(mul(arange<Chunks>(x, site), Chunk, site), site);
    auto key = reshape<1, keys_of_chunk>(arange<keys_of_chunk>(x, site), site);
    auto place = add(add(chunk, key, site), reshape<1, 1>(earlier, site), site);
    auto none = detail::number<X::element>(x.tracer, 0);
    auto excluded = where(less(place, Left, site), -std::numeric_limits<double>::infinity(), none, site);
    return mask(reshape<Chunks, 1, keys_of_chunk>(excluded, site));
  }

  Projection q_proj{"q_proj"}, k_proj{"k_proj"}, v_proj{"v_proj"}, out_proj{"out_proj"};
};

} // namespace kiln
