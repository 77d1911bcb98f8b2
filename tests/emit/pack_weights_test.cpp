// SPDX-License-Identifier: Apache-2.0
//
// The digest of a packed file: of all that says what lies where, and of nothing else.
#include "compiler/emit/PackWeights.h"

#include <functional>
#include <gtest/gtest.h>
#include <set>

namespace kiln {
namespace {

struct Packable {
  ModelInterface model;
  Variant variant;

  Packable() {
    model.name = "model";
    model.weights = {{"h.{}.w", ElementType::f32, {30, 20}, 3, {}, false}, {"b", ElementType::f32, {30}, 1, {}, false}};
    variant.target = "x86-64-v3";
    variant.placements = {{0, 960, 16, 0, 0, ElementType::i8, 640}, {2880, 128, 0, 0, 0, ElementType::f32, 0}};
    variant.packedBytes = 3008;
  }
  std::array<uint64_t, 4> digest() const { return packedDigest(model, variant); }
};

TEST(PackedDigest, ChangesWithAllThatBindingDependsOn) {
  const std::function<void(Packable &)> changes[] = {
      [](Packable &) {},
      [](Packable &p) { p.model.name = "models"; },
      [](Packable &p) { p.variant.target = "x86-64-v4"; },
      [](Packable &p) { p.variant.packedBytes += 64; },
      [](Packable &p) { p.model.weights[0].name = "h.{}.v"; },
      [](Packable &p) { p.model.weights[0].element = ElementType::bf16; },
      [](Packable &p) { p.model.weights[0].shape = {20, 30}; },
      [](Packable &p) { p.model.weights[0].shape = {3, 0, 20}; },
      [](Packable &p) { p.model.weights[0].copies = 2; },
      [](Packable &p) { p.variant.placements[0].offset = 64; },
      [](Packable &p) { p.variant.placements[0].stride = 1024; },
      [](Packable &p) { p.variant.placements[0].tile = 48; },
      [](Packable &p) { p.variant.placements[0].dim = 1; },
      [](Packable &p) { p.variant.placements[0].shift = 2; },
      [](Packable &p) { p.variant.placements[0].element = ElementType::f16; },
      [](Packable &p) { p.variant.placements[0].scales = 704; },
      [](Packable &p) { p.variant.placements[0].group = 32; },
      [](Packable &p) { p.variant.placements[0].zeros = 800; },
      [](Packable &p) { std::swap(p.model.weights[0], p.model.weights[1]); },
      [](Packable &p) {
        p.model.weights.pop_back();
        p.variant.placements.pop_back();
      },
  };
  std::set<std::array<uint64_t, 4>> digests;
  for (const auto &change : changes) {
    Packable changed;
    change(changed);
    EXPECT_TRUE(digests.insert(changed.digest()).second) << "of change " << &change - changes;
  }
}

TEST(PackedDigest, IsOfNothingElse) {
  Packable changed;
  changed.variant.kernels.emplace_back().symbol = "tuned";
  changed.variant.entries.push_back({"forward", 1, 2, 3, 4});
  changed.variant.features = 7;
  changed.model.weights[0].isVariable = true;
  EXPECT_EQ(changed.digest(), Packable().digest());
}

} // namespace
} // namespace kiln
