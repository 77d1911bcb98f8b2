// SPDX-License-Identifier: Apache-2.0
//
// Self-attention with a KV cache: the keys and values of earlier calls are states, of the layer's element type or
// quantised.
#pragma once

#include "kiln/attention.h"
#include "kiln/sources.h"
#include "kiln/state.h"
#include "kiln/storage.h"

namespace kiln {

/// The element type of a KV cache: by default that of the keys and values, otherwise another float type or
/// `kiln::int8`, which stores integers with one scale per head and row.
struct CacheType {
  ElementType element = ElementType::f32;
  bool is_stated = false;

  constexpr CacheType() {} // g++ 13 refuses a default argument that calls a defaulted constructor
  constexpr CacheType(ElementType element) : element(element), is_stated(true) {}
  constexpr CacheType(const Storage &storage) : element(storage.element), is_stated(true) {}
  constexpr bool operator==(const CacheType &) const = default;
};

/// Causal self-attention over the last `Context` rows of a sequence that continues from call to call: the rows of
/// earlier calls, whose keys and values are cached (states `keys` and `values`), then the rows of this call. With a
/// `Window` each row attends to the last so many rows only, and the cache has no others.
template <Dim Context, CacheType Type = CacheType(), std::int64_t Window = 0, class Options = AttentionOptions<>>
struct Cached {
  static_assert(floating(Type.element) || Type.element == ElementType::i8,
                "kiln: cache: unsupported element type; expected f32, f16, bf16 or int8 [cache_c1]");
  static_assert(Window == 0 || floating(Type.element),
                "kiln: cache of a window: unsupported element type; expected f32, f16 or bf16 [cache_c4]");
  Options options{};
};
template <Dim Context, CacheType Type = CacheType()> inline constexpr Cached<Context, Type> cached{};

/// A cache that keeps the rows of a sliding window only.
template <Dim Context, std::int64_t Window, CacheType Type = CacheType()>
inline constexpr auto cached_window = [] {
  static_assert(Window >= 2, "kiln: cache of a window: too few keys; expected at least two [cache_c5]");
  return Cached<Context, Type, Window>{window(Window)};
}();

/// Adds options: `kiln::cached<C> | kiln::window(1024) | kiln::softcap(50)`.
template <Dim Context, CacheType Type, std::int64_t Window, class Options, class M, class L, class S>
constexpr auto operator|(const Cached<Context, Type, Window, Options> &cached,
                         const AttentionOptions<M, L, S> &options) {
  auto both = cached.options | options;
  return Cached<Context, Type, Window, decltype(both)>{both};
}

namespace detail {

/// Appends `rows` to the state and returns all rows of the context in the state's type; `rows` are the last of them.
template <ElementType E, Dim Context, tensor X>
constexpr auto kept(const char *name, const X &rows, Site site = Site::here()) {
  return State<E, Context.max(), last(X::shape)>(name).template append<Context>(cast<E>(rows, site), site);
}

/// Stores the last rows of a window, without the newest, and returns the stored rows of earlier calls, then `rows`.
template <ElementType E, std::int64_t Window, tensor X>
constexpr auto kept_in_window(const char *name, const X &rows, Site site) {
  const State<E, Window - 1, last(X::shape)> earlier(name);
  auto stored = cast<E>(rows, site);
  auto all = concat<0>(earlier.read(stored, site), stored);
  earlier.store(kiln::last<0, Window - 1>(all, site), site);
  return all;
}

/// A mask of the rows of kept_in_window, `all`, that are before the beginning of the sequence.
template <Dim Context, std::int64_t Window, ElementType E, tensor X, tensor All>
constexpr auto begun(const X &rows, const All &all, Site site) {
  auto first_row = slice<0, 0, 1>(positions_in<Context, 0>(rows, site), site);
  auto place = add(positions<0>(all, site), sub(first_row, Window - 1, site), site);
  auto none = number<E>(rows.tracer, 0);
  auto excluded = where(less(place, 0, site), -std::numeric_limits<double>::infinity(), none, site);
  return kiln::mask(reshape<1, first(All::shape)>(excluded, site));
}

/// Like kept(), but quantised: integers q with one scale s per head and row, which represent q s. The heads come first:
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

/// Causal attention of the last rows of a sequence with a KV cache: q [T, H*D], k [T, G*D], v [T, G*E]. The layer that
/// is being traced owns the cached keys and values of the earlier rows. A cache of a narrower type is widened when it
/// is read.
template <int Heads, int KeyHeads = Heads, tensor Q, tensor K, tensor V, Dim Context, CacheType Type,
          std::int64_t Window, class Options>
constexpr auto attention(const Q &q, const K &k, const V &v, const Cached<Context, Type, Window, Options> &cached,
                         Site site = Site::here()) {
  if constexpr (Type.element == ElementType::i8) {
    static_assert(!Options::has_mask && !Options::has_sinks && !Options::has_lengths,
                  "kiln: cache of int8: options with tensors; expected other options, or another type [cache_c3]");
    static_assert(Heads % KeyHeads == 0 && detail::last(K::shape).offset % KeyHeads == 0 &&
                      detail::last(V::shape).offset % KeyHeads == 0,
                  "kiln: cache of int8: width is not divisible by the heads; expected heads that divide it [cache_c2]");
    constexpr int shared = Heads / KeyHeads; // query heads per key/value head
    constexpr Dim count = detail::first(Q::shape), width = detail::last(Q::shape);
    auto keys = detail::kept_in_int8<KeyHeads, Context>("keys", "key_scales", k, site);
    auto values = detail::kept_in_int8<KeyHeads, Context>("values", "value_scales", v, site);
    auto queries =
        transpose<1, 0, 2>(reshape<count, KeyHeads, width.offset / KeyHeads>(cast<f32>(q, site), site), site);
    auto result = transpose<1, 0, 2>(attention<shared, 1>(queries, keys, values, causal | cached.options, site), site);
    return cast<Q::element>(reshape<count, detail::last(V::shape).offset * shared>(result, site), site);
  } else {
    constexpr ElementType element = Type.is_stated ? Type.element : Q::element;
    auto attended = [&](const auto &keys, const auto &values, const auto &options) {
      if constexpr (element == Q::element)
        return attention<Heads, KeyHeads>(q, keys, values, options, site);
      else
        return cast<Q::element>(attention<Heads, KeyHeads>(cast<f32>(q, site), cast<f32>(keys, site),
                                                           cast<f32>(values, site), detail::in_f32(options, site),
                                                           site),
                                site);
    };
    if constexpr (Window == 0) {
      auto keys = detail::kept<element, Context>("keys", k, site),
           values = detail::kept<element, Context>("values", v, site);
      return attended(keys, values, causal | cached.options);
    } else {
      auto keys = detail::kept_in_window<element, Window>("keys", k, site),
           values = detail::kept_in_window<element, Window>("values", v, site);
      return attended(keys, values,
                      causal | cached.options | detail::begun<Context, Window, Q::element>(k, keys, site));
    }
  }
}

} // namespace kiln
