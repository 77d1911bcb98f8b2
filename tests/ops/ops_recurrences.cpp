// SPDX-License-Identifier: Apache-2.0
// Loops over time that are one kernel on CPUs: recurrences of channels and heads, as in Mamba, linear attention, the
// gated delta rule and RWKV-7; scans that have no blocks, several kinds of states, and no state.
#include "dims.h"

struct Recurrences : kiln::Model {
  using U = kiln::Tensor<kiln::f32, T, 33>;
  using N = kiln::Tensor<kiln::f32, T, 5>;
  using A = kiln::Tensor<kiln::f32, 33, 5>;
  using K = kiln::Tensor<kiln::f32, T, 3, 7>;
  using V = kiln::Tensor<kiln::f32, T, 3, 5>;
  using G = kiln::Tensor<kiln::f32, T, 3>;
  using S3 = kiln::Tensor<kiln::f32, 3, 7, 5>;
  using Z = kiln::Tensor<kiln::f32, T, B, 9>;

  /// The selective scan of Mamba: a state of 5 numbers for each channel.
  template <kiln::Direction D> static constexpr auto selective_scan(U u, U delta, A a, N b, N c, A h0) {
    auto [last, all] = kiln::scan<D>(h0, std::tuple{u, delta, b, c}, [&](auto h, auto here) {
      auto [x, d, in, out] = here;
      auto dt = kiln::softplus(d);
      auto next = h * kiln::exp(kiln::reshape<33, 1>(dt) * a) + kiln::reshape<33, 1>(dt * x) * in;
      return std::pair{next, kiln::sum<1>(next * out)};
    });
    return kiln::outputs(last, all);
  }
  constexpr auto selective(U u, U delta, A a, N b, N c, A h0) const {
    return selective_scan<kiln::Direction::forward>(u, delta, a, b, c, h0);
  }
  constexpr auto selective_reverse(U u, U delta, A a, N b, N c, A h0) const {
    return selective_scan<kiln::Direction::reverse>(u, delta, a, b, c, h0);
  }
  /// Linear attention with a decay for each head; the state is zero at first.
  constexpr auto linear_attention(K q, K k, V v, G g) const {
    auto [last, all] = kiln::scan(kiln::zeros<kiln::f32, 3, 7, 5>(q), std::tuple{q, k, v, g}, [](auto s, auto here) {
      auto [query, key, value, decay] = here;
      auto next = s * kiln::reshape<3, 1, 1>(decay) + kiln::reshape<3, 7, 1>(key) * kiln::reshape<3, 1, 5>(value);
      return std::pair{next, kiln::reshape<3, 5>(kiln::matmul(kiln::reshape<3, 1, 7>(query), next))};
    });
    return kiln::outputs(last, all);
  }
  /// The gated delta rule: what the state has for the key is replaced, so a sum precedes the update.
  constexpr auto delta_rule(K q, K k, V v, G g, S3 s0) const {
    auto [last, all] = kiln::scan(s0, std::tuple{q, k, v, g}, [](auto s, auto here) {
      auto [query, key, value, gate] = here;
      auto decayed = s * kiln::reshape<3, 1, 1>(kiln::sigmoid(gate));
      auto known = kiln::sum<1>(decayed * kiln::reshape<3, 7, 1>(key));
      auto next = decayed + kiln::reshape<3, 7, 1>(key) * kiln::reshape<3, 1, 5>((value - known) * 0.5);
      return std::pair{next, kiln::sum<1>(next * kiln::reshape<3, 7, 1>(query))};
    });
    return kiln::outputs(last, all);
  }
  /// The recurrence of RWKV-7; the state has a row for each channel of the value.
  constexpr auto wkv(K r, K w, K k, V v, K a, K b) const {
    auto [last, all] =
        kiln::scan(kiln::zeros<kiln::f32, 3, 5, 7>(r), std::tuple{r, w, k, v, a, b}, [](auto s, auto here) {
          auto [receptance, decay, key, value, remove, replace] = here;
          auto row = [](auto x) { return kiln::reshape<3, 1, 7>(x); };
          auto removed = kiln::sum<2>(s * row(remove));
          auto next = s * row(decay) + kiln::reshape<3, 5, 1>(removed) * row(replace) +
                      kiln::reshape<3, 5, 1>(value) * row(key);
          return std::pair{next, kiln::sum<2>(next * row(receptance))};
        });
    return kiln::outputs(last, all);
  }
  /// Running maxima and sums; the old state and the slice are outputs, too.
  constexpr auto running(Z x) const {
    auto start = kiln::zeros<kiln::f32, B, 9>(x);
    auto [last, all] = kiln::scan(std::tuple{start, start}, x, [](auto state, auto here) {
      auto [most, sum] = state;
      auto larger = kiln::maximum(most, here);
      return std::pair{std::tuple{larger, sum + here}, std::tuple{larger, sum, here}};
    });
    auto [most, sum] = last;
    auto [larger, before, slice] = all;
    return kiln::outputs(most, sum, larger, before, slice);
  }
  /// The sum of all channels is in each next state, so there are no blocks.
  constexpr auto mixed(Z x, kiln::Tensor<kiln::f32, B, 9> h0) const {
    auto [last, all] = kiln::scan(h0, x, [](auto h, auto here) {
      auto next = h * 0.25 + here - kiln::reshape<B, 1>(kiln::mean<1>(h)) * 0.5;
      return std::pair{next, kiln::mean<1>(next)};
    });
    return kiln::outputs(last, all);
  }
  /// Three states that take turns.
  constexpr auto turns(Z x, kiln::Tensor<kiln::f32, B, 9> a0, kiln::Tensor<kiln::f32, B, 9> b0,
                       kiln::Tensor<kiln::f32, B, 9> c0) const {
    auto [last, all] = kiln::scan(std::tuple{a0, b0, c0}, x, [](auto state, auto here) {
      auto [a, b, c] = state;
      return std::pair{std::tuple{b, c, a + here}, b - c};
    });
    auto [a, b, c] = last;
    return kiln::outputs(a, b, c, all);
  }
  /// A token: a scan of one step.
  constexpr auto token(kiln::Tensor<kiln::f32, 1, 33> u, A a, A h0) const {
    auto [last, all] = kiln::scan(h0, u, [&](auto h, auto x) {
      auto next = h * a + kiln::reshape<33, 1>(x);
      return std::pair{next, kiln::sum<1>(next)};
    });
    return kiln::outputs(last, all);
  }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("selective", &Recurrences::selective),
                      kiln::entry("selective_reverse", &Recurrences::selective_reverse),
                      kiln::entry("linear_attention", &Recurrences::linear_attention),
                      kiln::entry("delta_rule", &Recurrences::delta_rule),
                      kiln::entry("wkv", &Recurrences::wkv),
                      kiln::entry("running", &Recurrences::running),
                      kiln::entry("mixed", &Recurrences::mixed),
                      kiln::entry("turns", &Recurrences::turns),
                      kiln::entry("token", &Recurrences::token)};
  }
};

KILN_MODEL(ops_recurrences, Recurrences)
