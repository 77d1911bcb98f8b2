// SPDX-License-Identifier: Apache-2.0
//
// Masks of attention that depend on positions: ALiBi, biases by distance, and documents in one sequence. They are
// composed of elementwise operations, which the kernel of the attention computes for each score.
#pragma once

#include "kiln/attention.h"
#include "kiln/derived.h"

#include <array>
#include <limits>

namespace kiln {

namespace detail {

/// Checks queries and keys of a mask; `rule` states that there are as many keys as queries or more.
template <tensor Q, tensor K> constexpr bool are_of_mask(const Q &q, const K &, const char *rule) {
  if constexpr (Q::rank < 2 || K::rank < 2)
    q.tracer->fail(rules::attention_c6, typed(q).data());
  else if (!at_least(last(K::shape, 2), last(Q::shape, 2)))
    q.tracer->fail(rule, last(K::shape, 2), last(Q::shape, 2));
  return Q::rank >= 2 && K::rank >= 2 && at_least(last(K::shape, 2), last(Q::shape, 2));
}

template <tensor Q, tensor K>
inline constexpr bool is_of_mask = Q::rank >= 2 && K::rank >= 2 && at_least(last(K::shape, 2), last(Q::shape, 2));

/// Returns the position of each key minus that of each query, i32 [queries, keys]; the last query is at the last key.
template <tensor Q, tensor K> constexpr auto distances(const Q &q, const K &k, Site site) {
  constexpr Dim queries = last(Q::shape, 2), keys = last(K::shape, 2);
  auto at_key = reshape<1, keys>(positions<-2>(k, site), site);
  if constexpr (queries == keys)
    return sub(at_key, reshape<queries, 1>(positions<-2>(q, site), site), site);
  else
    return sub(at_key, reshape<queries, 1>(positions_in<keys, -2>(q, site), site), site);
}

/// Returns a mask [heads, queries, keys] with axes of 1 for those of Q before its rows.
template <tensor Q, tensor M> constexpr auto mask_by_head(const M &mask) {
  constexpr auto shape = [] {
    Shape<Q::rank + 1> result{};
    for (std::size_t i = 0; i < result.size(); ++i)
      result[i] = i + 3 < result.size() ? Dim(1) : M::shape[i + 3 - result.size()];
    return result;
  }();
  return kiln::mask(emit<TensorOf<M::element, shape>>(mask.tracer, Op::reshape, {mask.node}));
}

/// 2^(-8 / count * number): the slopes of ALiBi for a power of two of heads.
constexpr double slope(int count, int number) {
  double base = 1.0 / 256;
  for (int part = 1; part < count; part *= 2)
    base = square_root(base);
  double result = 1;
  for (int i = 0; i < number; ++i)
    result *= base;
  return result;
}

/// The slopes of ALiBi for any number of heads: those of a power of two, then every second one of the next power.
template <int Heads> constexpr std::array<double, Heads> slopes() {
  int power = 1;
  while (2 * power <= Heads)
    power *= 2;
  std::array<double, Heads> result{};
  for (int head = 0; head < Heads; ++head)
    result[static_cast<std::size_t>(head)] =
        head < power ? slope(power, head + 1) : slope(2 * power, 2 * (head - power) + 1);
  return result;
}

/// Returns the number of documents that end before each row, i32 [..., rows].
template <Dim Rows, tensor L> constexpr auto documents_before(const L &lengths, Site site) {
  constexpr auto batch = leading<1>(L::shape);
  constexpr Dim count = last(L::shape);
  auto ends = cumsum<-1>(lengths, site);
  auto each = emit<TensorOf<i32, appended(appended(batch, 1), count)>>(lengths.tracer, Op::reshape, {ends.node});
  auto row = reshape<Rows, 1>(arange<Rows>(lengths, site), site);
  return sum<-1>(cast<i32>(less_equal(each, row, site), site), site);
}

} // namespace detail

/// ALiBi (Press et al. 2022): a mask that subtracts the distance of a key from its query times a slope for each head,
/// [heads]. The queries are the last rows of the keys.
template <tensor Q, tensor K, tensor S>
constexpr auto alibi(const Q &q, const K &k, const S &slopes, Site site = Site::here()) {
  q.tracer->at(site);
  detail::are_of_mask(q, k, rules::alibi_c1);
  if constexpr (S::rank != 1 || S::element != Q::element)
    q.tracer->fail(rules::alibi_c2, detail::typed(slopes).data(), Text().put(Q::element).put("[heads]").data());
  if constexpr (detail::is_of_mask<Q, K> && S::rank == 1 && S::element == Q::element) {
    auto far = cast<Q::element>(abs(detail::distances(q, k, site), site), site);
    auto slope = reshape<S::shape[0], 1, 1>(slopes, site);
    return detail::mask_by_head<Q>(mul(far, mul(slope, -1, site), site));
  } else {
    return AttentionOptions<>{};
  }
}

/// ALiBi with the slopes of its paper: 2^(-8 / Heads), its powers for a power of two of heads.
template <int Heads, tensor Q, tensor K> constexpr auto alibi(const Q &q, const K &k, Site site = Site::here()) {
  return alibi(q, k, constant<Q::element, Heads>(q, detail::slopes<Heads>(), site), site);
}

/// A bias for each head by the distance of a key from its query (T5, Raffel et al. 2020): row `distance + F` of a table
/// [2 F + 1, heads], in which distances beyond F have the bias of F.
template <tensor Q, tensor K, tensor T>
constexpr auto distance_bias(const Q &q, const K &k, const T &table, Site site = Site::here()) {
  q.tracer->at(site);
  detail::are_of_mask(q, k, rules::distance_bias_c1);
  constexpr bool is_table = [] {
    if constexpr (T::rank == 2)
      return T::element == Q::element && T::shape[0].fixed() && T::shape[1].fixed() && T::shape[0].offset % 2 == 1;
    return false;
  }();
  if constexpr (!is_table)
    q.tracer->fail(rules::distance_bias_c2, detail::typed(table).data(),
                   Text().put(Q::element).put("[2 F + 1, heads]").data());
  if constexpr (detail::is_of_mask<Q, K> && is_table) {
    constexpr std::int64_t farthest = T::shape[0].offset / 2;
    auto near = minimum(maximum(detail::distances(q, k, site), -farthest, site), farthest, site);
    auto biases = gather<0>(table, add(near, farthest, site), site);
    return detail::mask_by_head<Q>(transpose<2, 0, 1>(biases, site));
  } else {
    return AttentionOptions<>{};
  }
}

/// Several documents in one sequence, of lengths i32 [..., documents]: a query attends to the keys of its document
/// only. The rows after the last document are one more. The queries are the last rows of the keys.
template <tensor Q, tensor K, tensor L>
constexpr auto documents(const Q &q, const K &k, const L &lengths, Site site = Site::here()) {
  using detail::appended, detail::last;
  q.tracer->at(site);
  detail::are_of_mask(q, k, rules::documents_c1);
  constexpr bool are_lengths = [] {
    if constexpr (Q::rank >= 2 && L::rank + 1 == Q::rank)
      return L::element == i32 && detail::same_shape(detail::leading<1>(L::shape), detail::leading<2>(Q::shape));
    return false;
  }();
  if constexpr (!are_lengths)
    q.tracer->fail(rules::documents_c2, detail::typed(lengths).data(), "i32[..., documents]");
  if constexpr (detail::is_of_mask<Q, K> && are_lengths) {
    constexpr Dim queries = last(Q::shape, 2), keys = last(K::shape, 2);
    constexpr auto batch = detail::leading<2>(Q::shape);
    auto of_key = detail::documents_before<keys>(lengths, site);
    auto of_query = kiln::last<-1, queries>(of_key, site);
    auto column = detail::emit<TensorOf<i32, appended(appended(batch, 1), keys)>>(q.tracer, Op::reshape, {of_key.node});
    auto row =
        detail::emit<TensorOf<i32, appended(appended(batch, queries), 1)>>(q.tracer, Op::reshape, {of_query.node});
    auto none = detail::number<Q::element>(q.tracer, 0);
    return mask(where(equal(row, column, site), none, -std::numeric_limits<double>::infinity(), site));
  } else {
    return AttentionOptions<>{};
  }
}

} // namespace kiln
