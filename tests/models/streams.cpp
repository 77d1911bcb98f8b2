// SPDX-License-Identifier: Apache-2.0
// States that shift by the number of rows of a call, and that several entries share.
#include <kiln/generator.h>

inline constexpr kiln::Dim T{"frames", 1, 9};

struct Layer : kiln::Layer<Layer> {
  using kiln::Layer<Layer>::Layer;
  constexpr auto forward(const kiln::tensor auto &x) const {
    kiln::State<kiln::f32, 2, 3> heard("heard");
    auto longer = kiln::concat<0>(heard.read(x), x);
    heard.store(kiln::last<0, 2>(longer));
    return x + kiln::sum<0>(longer);
  }
};

struct Streams : kiln::Model {
  static constexpr int past = 5, width = 3;
  kiln::State<kiln::f32, past, width> heard{"heard"};
  kiln::State<kiln::f32, 40, 512> large{"large"}; // 80 KiB
  kiln::Stack<2, Layer> layers{"layers"};

  /// Returns the earlier rows and these, and keeps the last ones as the state.
  constexpr auto window(const kiln::tensor auto &x) const {
    auto longer = kiln::concat<0>(heard.read(x), x);
    heard.store(kiln::last<0, past>(longer));
    return longer * 2.f;
  }
  constexpr auto listen(kiln::Tensor<kiln::f32, T, width> x) const { return window(x); }
  constexpr auto halve(kiln::Tensor<kiln::f32, T, width> x) const {
    auto half = x * 0.5f;
    return kiln::outputs(window(half), kiln::sum<1>(half));
  }
  constexpr auto one(kiln::Tensor<kiln::f32, 1, width> x) const { return window(x * 0.5f); }
  constexpr auto many(kiln::Tensor<kiln::f32, 12, width> x) const { return window(x * 0.5f); }
  constexpr auto peek(kiln::Tensor<kiln::f32, 1> scale) const { return heard.read(scale) * scale; }
  constexpr auto replace(kiln::Tensor<kiln::f32, past, width> x) const {
    auto before = heard.read(x) * 1.f;
    heard.store(x * 0.5f);
    return before;
  }
  constexpr auto add(kiln::Tensor<kiln::f32, T, 512> x) const {
    auto longer = kiln::concat<0>(large.read(x), x);
    large.store(kiln::last<0, 40>(longer));
    return kiln::sum<0>(longer);
  }
  constexpr auto deep(kiln::Tensor<kiln::f32, T, width> x) const { return layers(x); }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("listen", &Streams::listen, {"x"}, {"window"}),
                      kiln::entry("halve", &Streams::halve, {"x"}, {"window", "sums"}),
                      kiln::entry("one", &Streams::one, {"x"}, {"window"}),
                      kiln::entry("many", &Streams::many, {"x"}, {"window"}),
                      kiln::entry("peek", &Streams::peek, {"scale"}, {"rows"}),
                      kiln::entry("replace", &Streams::replace, {"x"}, {"before"}),
                      kiln::entry("add", &Streams::add, {"x"}, {"sum"}),
                      kiln::entry("deep", &Streams::deep, {"x"}, {"y"}).batched(3)};
  }
};

KILN_MODEL(streams, Streams)
