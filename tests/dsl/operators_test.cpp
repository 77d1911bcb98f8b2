// SPDX-License-Identifier: Apache-2.0
//
// Operators of tensors and numbers: each builds its operation.
#include "kiln/dsl.h"

#include <gtest/gtest.h>
#include <string>

namespace {

using namespace kiln; // in a model, `outputs` is then its Names

constexpr Dim T{"tokens", 1, 64};

struct M : Model {
  static constexpr Names inputs{"x", "y"}, outputs{"a", "b", "c", "d", "e", "f", "g", "h"};
  constexpr auto forward(Tensor<f32, T, 8> x, Tensor<f32, T, 8> y) const noexcept {
    auto sum = x;
    sum += y;
    sum *= 2;
    return outputs(-x, x<y, x <= 1, 1> x, x >= y, x == 0, x != y, sum);
  }
};

/// Returns a text such as "less(x, y)" for the entry's result of that number.
std::string shown(int result) {
  const Graph graph = trace<M>();
  const auto show = [&](auto self, int id) -> std::string {
    const Node &node = graph.nodes[static_cast<std::size_t>(id)];
    if (node.op == Op::input)
      return M::inputs.items[node.attributes.index];
    if (node.op == Op::constant)
      return std::to_string(static_cast<int>(node.attributes.values[0]));
    std::string text = name_of(node.op);
    for (std::size_t i = 0; i < node.operands.size(); ++i)
      text += (i == 0 ? "(" : ", ") + self(self, node.operands[i]);
    return text + ")";
  };
  return show(
      show, graph.regions[static_cast<std::size_t>(graph.entries[0].region)].results[static_cast<std::size_t>(result)]);
}

TEST(Operators, AreTheOperations) {
  EXPECT_EQ(shown(0), "mul(x, -1)");
  EXPECT_EQ(shown(1), "less(x, y)");
  EXPECT_EQ(shown(2), "less_equal(x, 1)");
  EXPECT_EQ(shown(3), "less(x, 1)");
  EXPECT_EQ(shown(4), "less_equal(y, x)");
  EXPECT_EQ(shown(5), "equal(x, 0)");
  EXPECT_EQ(shown(6), "logical_xor(equal(x, y), 1)");
}

TEST(Operators, AssignTheResult) { EXPECT_EQ(shown(7), "mul(add(x, y), 2)"); }

} // namespace
