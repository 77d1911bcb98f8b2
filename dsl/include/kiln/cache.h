// SPDX-License-Identifier: Apache-2.0
//
// Attention to a sequence that goes on from call to call: its keys and values are states, of the layer's type or of
// fewer bits.
#pragma once

#include "kiln/attention.h"
#include "kiln/state.h"
#include "kiln/storage.h"

namespace kiln {

/// In which type a cache keeps keys and values: that of what is kept, or another float; `kiln::int8`, whole numbers
/// with a scale for each head of each row.
struct CacheType {
  ElementType element = ElementType::f32;
  bool is_stated = false;

  constexpr CacheType() = default;
  constexpr CacheType(ElementType element) : element(element), is_stated(true) {}
  constexpr CacheType(const Storage &storage) : element(storage.element), is_stated(true) {}
  constexpr bool operator==(const CacheType &) const = default;
};

/// Self-attention over the `Context` last rows of a sequence that goes on from call to call: those of earlier calls,
/// whose keys and values are kept (states `keys` and `values`), then the rows of this one. Each sees those up to
/// itself.
template <Dim Context, CacheType Type = CacheType()> struct Cached {
  static_assert(floating(Type.element) || Type.element == ElementType::i8,
                "kiln: a cache requires f32, f16, bf16 or int8 [cache_c1]");
};
template <Dim Context, CacheType Type = CacheType()> inline constexpr Cached<Context, Type> cached{};

namespace detail {

/// All rows of the context, these the last of them, as the state has them.
template <ElementType E, Dim Context, tensor X>
constexpr auto kept(const char *name, const X &rows, Site site = Site::here()) {
  return State<E, Context.max(), last(X::shape)>(name).template append<Context>(cast<E>(rows, site), site);
}

/// The same of whole numbers q and of scales s, one for each head of each row, which stand for q s. Heads come first:
/// [Heads, context, depth].
template <int Heads, Dim Context, tensor X>
constexpr auto kept_in_int8(const char *name, const char *scale_name, const X &rows, Site site) {
  constexpr Dim count = first(X::shape);
  constexpr std::int64_t depth = last(X::shape).offset / Heads;
  auto x = reshape<count, Heads, depth>(cast<f32>(rows, site), site);
  auto largest = reshape<count, Heads, 1>(max<-1>(abs(x, site), site), site);
  auto scale = maximum(div(largest, 127, site), 1e-30, site);
  auto numbers = cast<i8>(round(div(x, scale, site), site), site);
  auto q = State<i8, Context.max(), Heads, depth>(name).template append<Context>(numbers, site);
  auto s = State<f32, Context.max(), Heads, 1>(scale_name).template append<Context>(scale, site);
  return transpose<1, 0, 2>(mul(cast<f32>(q, site), s, site), site);
}

} // namespace detail

/// attention of the last rows of a sequence to all rows up to each: q [T, H*D], k [T, G*D], v [T, G*E]. Keys and values
/// of the others are kept by the layer that is being traced. What a cache of another type holds is widened where it is
/// read.
template <int Heads, int KeyHeads = Heads, tensor Q, tensor K, tensor V, Dim Context, CacheType Type>
constexpr auto attention(const Q &q, const K &k, const V &v, const Cached<Context, Type> &, Site site = Site::here()) {
  if constexpr (Type.element == ElementType::i8) {
    static_assert(Heads % KeyHeads == 0 && detail::last(K::shape).offset % KeyHeads == 0 &&
                      detail::last(V::shape).offset % KeyHeads == 0,
                  "kiln: a cache of int8 requires heads that divide the width [cache_c2]");
    constexpr int shared = Heads / KeyHeads; // queries of a head of keys
    constexpr Dim count = detail::first(Q::shape), width = detail::last(Q::shape);
    auto keys = detail::kept_in_int8<KeyHeads, Context>("keys", "key_scales", k, site);
    auto values = detail::kept_in_int8<KeyHeads, Context>("values", "value_scales", v, site);
    auto queries =
        transpose<1, 0, 2>(reshape<count, KeyHeads, width.offset / KeyHeads>(cast<f32>(q, site), site), site);
    auto result = transpose<1, 0, 2>(attention<shared, 1>(queries, keys, values, causal, site), site);
    return cast<Q::element>(reshape<count, detail::last(V::shape).offset * shared>(result, site), site);
  } else {
    constexpr ElementType element = Type.is_stated ? Type.element : Q::element;
    auto keys = detail::kept<element, Context>("keys", k, site),
         values = detail::kept<element, Context>("values", v, site);
    if constexpr (element == Q::element)
      return attention<Heads, KeyHeads>(q, keys, values, causal, site);
    else
      return cast<Q::element>(
          attention<Heads, KeyHeads>(cast<f32>(q, site), cast<f32>(keys, site), cast<f32>(values, site), causal, site),
          site);
  }
}

} // namespace kiln
