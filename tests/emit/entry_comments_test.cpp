// SPDX-License-Identifier: Apache-2.0
//
// The comment of an entry in NAME.h: the names of the states that it reads or writes, also within stacks, and which
// function initialises them.
#include "compiler/library/Headers.h"
#include "kiln/dsl.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

constexpr Dim commentedFrames{"frames", 1, 8};

struct CommentedLayer : Layer<CommentedLayer> {
  using Layer<CommentedLayer>::Layer;
  constexpr auto forward(const tensor auto &x) const {
    State<f32, 1, 4> last("last");
    auto before = last.read(x);
    last.store(::kiln::last<0, 1>(x));
    return x + before;
  }
};

struct Commented : Model {
  State<f32, 2, 4> heard{"heard"}, said{"said"};
  Stack<2, CommentedLayer> layers{"layers"};
  Linear<4, 4> head{"head"};

  constexpr auto listen(Tensor<f32, 2, 4> x) const {
    heard.store(x);
    return x * 2.f;
  }
  constexpr auto talk(Tensor<f32, 2, 4> x) const {
    auto before = heard.read(x);
    said.store(x);
    return before + said.read(x);
  }
  constexpr auto deep(Tensor<f32, commentedFrames, 4> x) const { return layers(x); }
  constexpr auto plain(Tensor<f32, commentedFrames, 4> x) const { return head(x); }
};

struct CommentedEntries : Commented {
  static constexpr auto entries() {
    return std::tuple{entry("listen", &CommentedEntries::listen, {"x"}, {"y"}),
                      entry("talk", &CommentedEntries::talk, {"x"}, {"y"}),
                      entry("deep", &CommentedEntries::deep, {"x"}, {"y"}).batched(3),
                      entry("plain", &CommentedEntries::plain, {"x"}, {"y"})};
  }
};

struct CommentedTraining : Commented {
  constexpr auto loss(Tensor<f32, 2, 4> x) const {
    auto error = head(x) - said.read(x);
    said.store(x);
    return mean<0>(mean<1>(error * error));
  }
  constexpr auto stateless(Tensor<f32, 2, 4> x) const {
    auto error = head(x) - x;
    return mean<0>(mean<1>(error * error));
  }
  static constexpr auto entries() {
    return std::tuple{train("train", &CommentedTraining::loss, {"x"}, {"loss"}, AdamW{}),
                      train("tune", &CommentedTraining::stateless, {"x"}, {"loss"}, AdamW{}),
                      entry("talk", &CommentedTraining::talk, {"x"}, {"y"}),
                      entry("plain", &CommentedTraining::plain, {"x"}, {"y"})};
  }
};

struct CommentedWithout : Commented {
  static constexpr auto entries() { return std::tuple{entry("plain", &CommentedWithout::plain, {"x"}, {"y"})}; }
};

/// Returns the lines about states in the comment before the declaration of net_ENTRY.
std::string statesOfEntry(const std::string &header, const std::string &entry) {
  const std::string declaration = "kiln_status_t net_" + entry + "(";
  const size_t end = header.find(declaration), begin = header.rfind("/* ", end);
  EXPECT_NE(end, header.npos) << entry << "\n" << header;
  std::string found;
  for (size_t at = begin, next; at < end; at = next + 1) {
    next = header.find('\n', at);
    const std::string line = header.substr(at, next - at);
    if (line.rfind(" *   state", 0) == 0 || line.rfind(" *   uses no states", 0) == 0)
      found += (found.empty() ? "" : "\n") + line.substr(5);
  }
  return found;
}

// The states are in the order of their first use in the model.
TEST(EntryComments, NameTheStates) {
  const std::string header = writeCHeader(describeInterface(trace<CommentedEntries>(), "net"), {});
  EXPECT_EQ(statesOfEntry(header, "listen"),
            "states at the beginning of the arena: heard; kept between calls, net_begin_session initialises them");
  EXPECT_EQ(
      statesOfEntry(header, "talk"),
      "states at the beginning of the arena: heard, said; kept between calls, net_begin_session initialises them");
  EXPECT_EQ(statesOfEntry(header, "deep"), "states at the beginning of the arena: layers.{}.last; kept between calls, "
                                           "net_begin_session initialises them");
  EXPECT_EQ(statesOfEntry(header, "deep_batch"), "states of each sequence: layers.{}.last; kept between calls");
  EXPECT_EQ(statesOfEntry(header, "plain"), "uses no states, and does not change those at the beginning of the arena");
}

TEST(EntryComments, NameTheOptimizerState) {
  const std::string header = writeCHeader(describeInterface(trace<CommentedTraining>(), "net"), {});
  EXPECT_EQ(statesOfEntry(header, "train"), "state at the beginning of the arena: said, the optimiser state; kept "
                                            "between calls, net_begin_training initialises it");
  EXPECT_EQ(statesOfEntry(header, "tune"), "state at the beginning of the arena: the optimiser state; kept between "
                                           "calls, net_begin_training initialises it");
  EXPECT_EQ(
      statesOfEntry(header, "talk"),
      "states at the beginning of the arena: said, heard; kept between calls, net_begin_session initialises them");
  EXPECT_EQ(statesOfEntry(header, "plain"), "uses no states, and does not change those at the beginning of the arena");
}

// A model without states does not speak of any.
TEST(EntryComments, AreSilentWithoutStates) {
  const std::string header = writeCHeader(describeInterface(trace<CommentedWithout>(), "net"), {});
  EXPECT_EQ(statesOfEntry(header, "plain"), "");
}

} // namespace
} // namespace kiln
