// SPDX-License-Identifier: Apache-2.0
// Attention with each of its options, separately and combined, and decomposed into other operations.
#include "dims.h"
#include "kiln/windows.h"

struct Attention : kiln::Model {
  template <kiln::Dim N, int Width> using Rows = kiln::Tensor<kiln::f32, B, N, Width>;

  constexpr auto self(Rows<T, 30> x) const {
    return kiln::outputs(kiln::attention<1>(x, x, x), kiln::attention<3>(x, x, x), kiln::attention<15>(x, x, x));
  }
  /// Other keys, and values of another width.
  constexpr auto cross(Rows<T, 24> q, Rows<S, 24> k, Rows<S, 14> v) const { return kiln::attention<2>(q, k, v); }
  /// One sequence of two dynamic parts, by itself and as the keys of one part.
  constexpr auto joined(Rows<T, 24> x, Rows<S, 24> y) const {
    auto both = kiln::concat<1>(y, x);
    return kiln::outputs(kiln::attention<2>(both, both, both), kiln::attention<3>(x, both, both, kiln::causal));
  }
  constexpr auto causal(Rows<T, 24> q, Rows<T, 24> k, Rows<T, 24> v, Rows<T + kiln::Dim(5), 24> longer) const {
    return kiln::outputs(kiln::attention<2>(q, k, v, kiln::causal),
                         kiln::attention<2>(q, longer, longer, kiln::causal));
  }
  /// Sliding windows, of one key, and as long as the sequence or longer.
  constexpr auto windows(Rows<T, 24> q, Rows<T, 24> k, Rows<T + kiln::Dim(5), 12> longer,
                         kiln::Tensor<kiln::i32, B> lengths) const {
    return kiln::outputs(kiln::attention<2>(q, k, k, kiln::causal | kiln::window(1)),
                         kiln::attention<4, 2>(q, longer, longer, kiln::window(7) | kiln::causal),
                         kiln::attention<2>(q, k, k, kiln::causal | kiln::window(1000) | kiln::lengths(lengths)),
                         kiln::attention_scores<2>(q, k, kiln::causal | kiln::window(3)));
  }
  /// Limited scores, alone and with a mask and a window.
  constexpr auto caps(Rows<T, 24> q, Rows<T, 24> k, kiln::Tensor<kiln::f32, T, T> mask) const {
    return kiln::outputs(
        kiln::attention<2>(q, k, k, kiln::softcap(2.0)),
        kiln::attention<3>(q, k, k, kiln::causal | kiln::window(5) | kiln::softcap(0.5) | kiln::mask(mask)),
        kiln::attention_scores<2>(q, k, kiln::softcap(3.0) | kiln::mask(mask)));
  }
  /// A further score of each head, alone and with all other options.
  constexpr auto sinks(Rows<T, 24> q, Rows<T, 24> k, kiln::Tensor<kiln::f32, 2> two, kiln::Tensor<kiln::f32, 4> four,
                       Rows<T + kiln::Dim(5), 12> longer, kiln::Tensor<kiln::f32, T, T + kiln::Dim(5)> mask,
                       kiln::Tensor<kiln::i32, B> lengths) const {
    return kiln::outputs(kiln::attention<2>(q, k, k, kiln::sinks(two)),
                         kiln::attention<4, 2>(q, longer, longer,
                                               kiln::causal | kiln::window(1000) | kiln::sinks(four) |
                                                   kiln::softcap(3.0) | kiln::mask(mask) | kiln::lengths(lengths)));
  }
  constexpr auto sink_of_one(Rows<1, 24> q, Rows<S, 24> k, kiln::Tensor<kiln::f32, 2> two) const {
    return kiln::attention<2>(q, k, k, kiln::sinks(two));
  }
  /// A mask for each pair, for each key, for each sequence.
  constexpr auto masks(Rows<T, 24> q, Rows<S, 24> k, kiln::Tensor<kiln::f32, T, S> pairs,
                       kiln::Tensor<kiln::f32, 1, S> keys, kiln::Tensor<kiln::f32, B, T, S> all) const {
    return kiln::outputs(kiln::attention<2>(q, k, k, kiln::mask(pairs)), kiln::attention<2>(q, k, k, kiln::mask(keys)),
                         kiln::attention<2>(q, k, k, kiln::mask(all)));
  }
  /// A mask that differs by head: whole, and broadcast.
  constexpr auto head_masks(Rows<T, 24> q, Rows<S, 24> k, kiln::Tensor<kiln::f32, B, 2, T, S> all,
                            kiln::Tensor<kiln::f32, 1, 3, 1, S> keys) const {
    return kiln::outputs(kiln::attention<2>(q, k, k, kiln::mask(all)), kiln::attention<3>(q, k, k, kiln::mask(keys)),
                         kiln::attention_scores<2>(q, k, kiln::mask(all)));
  }
  /// The last rows of a context that is declared to be at least as long.
  constexpr auto context(Rows<T, 24> q, Rows<C, 24> k) const { return kiln::attention<2>(q, k, k, kiln::causal); }
  /// A window that covers the image, compared with attention over all positions.
  constexpr auto window_of_all(kiln::Tensor<kiln::f32, B, 5, 5, 12> x) const {
    auto window = kiln::to_windows<5>(x);
    auto rows = kiln::reshape<B, 25, 12>(x);
    return kiln::outputs(kiln::from_windows<5, 5, 5>(kiln::attention<3>(window, window, window)),
                         kiln::attention<3>(rows, rows, rows));
  }
  constexpr auto padded(Rows<T, 24> q, Rows<S, 24> k, kiln::Tensor<kiln::i32, B> lengths) const {
    return kiln::attention<3>(q, k, k, kiln::lengths(lengths));
  }
  constexpr auto scaled(Rows<T, 24> x) const {
    return kiln::outputs(kiln::attention<2>(x, x, x, kiln::scale(0.1)), kiln::attention<2>(x, x, x, kiln::scale(2.5)));
  }
  constexpr auto together(Rows<T, 24> q, Rows<T, 24> k, kiln::Tensor<kiln::f32, T, T> mask,
                          kiln::Tensor<kiln::i32, B> lengths) const {
    return kiln::attention<2>(q, k, k, kiln::causal | kiln::mask(mask) | kiln::lengths(lengths) | kiln::scale(0.5));
  }
  /// One sequence, and two leading axes.
  constexpr auto ranks(kiln::Tensor<kiln::f32, T, 16> one, kiln::Tensor<kiln::f32, B, 2, T, 16> four) const {
    return kiln::outputs(kiln::attention<2>(one, one, one), kiln::attention<2>(four, four, four));
  }
  /// A head as wide as in published models.
  constexpr auto wide(kiln::Tensor<kiln::f32, T, 128> q, kiln::Tensor<kiln::f32, S, 128> k,
                      kiln::Tensor<kiln::f32, S, 128> v) const {
    return kiln::attention<2>(q, k, v);
  }
  /// Biases by distance: ALiBi with its slopes and with given ones, and a table of seven distances.
  constexpr auto distances(Rows<T, 24> q, Rows<T + kiln::Dim(5), 24> k, kiln::Tensor<kiln::f32, T, 24> one,
                           kiln::Tensor<kiln::f32, 2> slopes, kiln::Tensor<kiln::f32, 7, 3> table) const {
    return kiln::outputs(kiln::attention<3>(q, k, k, kiln::alibi<3>(q, k) | kiln::causal),
                         kiln::attention<2>(one, one, one, kiln::alibi(one, one, slopes)),
                         kiln::attention<3>(q, k, k, kiln::distance_bias(q, k, table)));
  }
  /// Documents in one sequence, with a causal mask and a window, and without.
  constexpr auto documents(Rows<T, 24> q, Rows<T + kiln::Dim(5), 24> k, kiln::Tensor<kiln::f32, T, 24> one,
                           kiln::Tensor<kiln::i32, B, 3> lengths, kiln::Tensor<kiln::i32, 2> two) const {
    return kiln::outputs(kiln::attention<3>(q, k, k, kiln::documents(q, k, lengths) | kiln::causal | kiln::window(4)),
                         kiln::attention<2>(one, one, one, kiln::documents(one, one, two)));
  }
  /// Grouped-query attention with two key and value heads for six query heads, and multi-query attention.
  constexpr auto grouped(Rows<T, 48> q, Rows<S, 16> k, Rows<S, 10> v, Rows<S, 8> one,
                         kiln::Tensor<kiln::i32, B> lengths) const {
    return kiln::outputs(kiln::attention<6, 2>(q, k, v), kiln::attention<6, 1>(q, one, one, kiln::lengths(lengths)));
  }
  constexpr auto scores(Rows<T, 24> q, Rows<S, 24> k, Rows<S, 12> grouped, kiln::Tensor<kiln::f32, T, S> mask) const {
    return kiln::outputs(kiln::attention_scores<2>(q, k, kiln::mask(mask)),
                         kiln::attention_scores<4, 2>(q, grouped, kiln::scale(0.7)));
  }
  constexpr auto weights(Rows<T, 24> q, Rows<S, 24> k, Rows<T + kiln::Dim(5), 12> longer,
                         kiln::Tensor<kiln::f32, B, T, S> mask, kiln::Tensor<kiln::i32, B> lengths) const {
    return kiln::outputs(kiln::attention_weights<1>(q, k, kiln::mask(mask)),
                         kiln::attention_weights<3>(q, k, kiln::lengths(lengths)),
                         kiln::attention_weights<4, 2>(q, longer, kiln::causal));
  }
  /// The attention weights in addition to the result, from projections.
  constexpr auto seen(Rows<T, 24> x) const {
    auto projected = kiln::linear(x, kiln::parameter<kiln::f32, 72, 24>(x, "qkv"));
    auto q = kiln::slice<-1, 0, 24>(projected), k = kiln::slice<-1, 24, 24>(projected),
         v = kiln::slice<-1, 48, 24>(projected);
    return kiln::outputs(kiln::attention<3>(q, k, v), kiln::attention_weights<3>(q, k));
  }
  constexpr auto rotary(Rows<T, 24> x) const {
    auto at = kiln::positions<1>(x);
    return kiln::outputs(kiln::rotary<3>(x, kiln::sinusoidal<8>(at, 500000.0)),
                         kiln::rotary<1>(x, kiln::sinusoidal<24>(at)));
  }
  /// matmul, softmax, matmul: the compiler may fuse them to attention.
  constexpr auto by_hand(Rows<T, 12> q, Rows<S, 12> k, Rows<S, 12> v) const {
    auto scores = kiln::matmul(q, kiln::transpose<0, 2, 1>(k)) * 0.3;
    return kiln::matmul(kiln::softmax(scores), v);
  }

  static constexpr auto entries() {
    return std::tuple{
        kiln::entry("self", &Attention::self),           kiln::entry("cross", &Attention::cross),
        kiln::entry("joined", &Attention::joined),       kiln::entry("causal", &Attention::causal),
        kiln::entry("windows", &Attention::windows),     kiln::entry("caps", &Attention::caps),
        kiln::entry("sinks", &Attention::sinks),         kiln::entry("sink_of_one", &Attention::sink_of_one),
        kiln::entry("masks", &Attention::masks),         kiln::entry("head_masks", &Attention::head_masks),
        kiln::entry("context", &Attention::context),     kiln::entry("window_of_all", &Attention::window_of_all),
        kiln::entry("padded", &Attention::padded),       kiln::entry("scaled", &Attention::scaled),
        kiln::entry("together", &Attention::together),   kiln::entry("ranks", &Attention::ranks),
        kiln::entry("wide", &Attention::wide),           kiln::entry("distances", &Attention::distances),
        kiln::entry("documents", &Attention::documents), kiln::entry("grouped", &Attention::grouped),
        kiln::entry("scores", &Attention::scores),       kiln::entry("weights", &Attention::weights),
        kiln::entry("seen", &Attention::seen),           kiln::entry("rotary", &Attention::rotary),
        kiln::entry("by_hand", &Attention::by_hand)};
  }
};

KILN_MODEL(ops_attention, Attention)
