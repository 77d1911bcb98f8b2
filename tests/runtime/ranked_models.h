// SPDX-License-Identifier: Apache-2.0
//
// A model with slices of every kind, for a number of ranks and stages or for one process, and its training arena. The
// values of the whole tensors do not depend on the number of ranks and stages.
#pragma once

#include "../read_file.h"
#include "parallel/processes.h"
#include "stored_numbers.h"
#include "tests/ranks/thread_ranks.h"
#include "weights/bind.h"
#include "weights/pack.h"

#include <deque>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <memory>
#include <mutex>

namespace kiln_test {

namespace fs = std::filesystem;

/// Bits of the stage roles that have a tensor.
enum : uint32_t {
  OnFirst = 1 << KILN_STAGE_ROLE_FIRST,
  OnLast = 1 << KILN_STAGE_ROLE_LAST,
  OnBoth = OnFirst | OnLast,
  OnAll = 7
};

/// The number of the six layers that each stage has, and its role.
struct StagesCut {
  std::vector<uint32_t> Layers, Roles;
  uint32_t roles() const { return *std::max_element(Roles.begin(), Roles.end()) + 1; }
  uint32_t layersOf(uint32_t role) const {
    return Layers[static_cast<size_t>(std::find(Roles.begin(), Roles.end(), role) - Roles.begin())];
  }
};
inline const StagesCut &cutOf(uint32_t stages) {
  static const StagesCut cuts[] = {{{6}, {0}},
                                   {{3, 3}, {0, 1}},
                                   {{2, 2, 2}, {0, 2, 1}},
                                   {{1, 2, 2, 1}, {0, 2, 2, 1}},
                                   {{1, 1, 1, 2, 1}, {0, 2, 2, 3, 1}}};
  return cuts[stages - 1];
}

/// A tensor of the file, and the parts of it that ranks and stages have. With copies, it belongs to the layers.
struct Described {
  const char *Name;
  const char *Type;
  std::vector<int64_t> Shape;
  Sections Cut;
  uint32_t Tile = 0, Copies = 1;
  bool IsVariable = true;
  uint32_t Roles = OnAll;

  kiln_dtype_t dtype() const { return std::string(Type) == "BF16" ? KILN_BF16 : KILN_F32; }
  size_t elementBytes() const { return dtype() == KILN_BF16 ? 2 : 4; }
  /// Returns the number of copies on a stage with this role.
  uint32_t copiesOf(const StagesCut &cut, uint32_t role) const {
    if (cut.Layers.size() > 1 && !(Roles >> std::min<uint32_t>(role, KILN_STAGE_ROLE_MIDDLE) & 1))
      return 0;
    return Copies > 1 ? cut.layersOf(role) : 1;
  }
  /// Returns a rank's slice; without sections, the whole tensor.
  kiln_weight_t slice(uint32_t stages) const {
    std::vector<int64_t> shape = Shape;
    if (!Cut.All.empty()) {
      shape[Cut.Dim] = 0;
      for (const kiln_section_t &section : Cut.All)
        shape[Cut.Dim] += static_cast<int64_t>(section.extent);
    }
    kiln_weight_t weight = weightOf(Name, dtype(), shape);
    weight.copies = Copies;
    weight.flags = IsVariable ? uint32_t{KILN_WEIGHT_VARIABLE} : 0;
    if (stages > 1)
      weight.flags |= (Copies > 1 ? KILN_WEIGHT_OF_STAGE : 0) | (OnAll & ~Roles) * KILN_WEIGHT_ABSENT;
    return weight;
  }
  std::string name(uint32_t copy) const {
    std::string text = Name;
    if (const size_t hole = text.find("{}"); hole != std::string::npos)
      text.replace(hole, 2, std::to_string(copy));
    return text;
  }
  /// Returns random bytes for a copy of the whole tensor, as a function of the seed.
  std::string bytes(uint32_t copy, uint32_t seed) const {
    uint32_t state = seed * 1000 + copy * 100 + static_cast<uint32_t>(Name[0]);
    std::string result(productOf(Shape) * elementBytes(), '\0');
    for (size_t at = 0; at + 4 <= result.size(); at += 4) {
      state = state * 1664525u + 1013904223u;
      const uint32_t bits = (state ^ state >> 16) & 0x5F5F5F5F; // always finite
      std::memcpy(&result[at], &bits, 4);
    }
    return result;
  }
};

/// Returns the sections of a weight of 20 query rows and 8 key rows for this number of ranks: with four ranks, two
/// share a key.
inline Sections sharedKeys(uint32_t dim, uint32_t ranks) {
  const uint32_t group = ranks > 2 ? 2 : 1;
  const uint64_t queries = 20 / ranks, keys = 8 * group / ranks;
  return {dim, 28, {{0, queries, queries, 1, 0}, {20, keys, keys, group, 0}}};
}

/// Options: some weights are frozen and tiled; some tensors are larger than what is sent at a time.
struct Kind {
  bool HasFrozen = false, IsLarge = false;
};

/// Returns the weights for 1, 2 or 4 ranks, and 1 to 5 stages.
inline std::vector<Described> describeWeights(uint32_t ranks, Kind kind) {
  const int64_t most = kind.IsLarge ? 1032 : 20;
  std::vector<Described> weights = {
      {"b.out", "F32", {5, 24}, sharesOf(1, {24}, ranks), 0, 1, true, OnFirst},
      {"c.{}.fused", "F32", {7, 40}, sharesOf(1, {16, 16, 8}, ranks), 0, 6},
      {"d.shared", "F32", {28, 3}, sharedKeys(0, ranks), 0, 1, true, OnBoth},
      {"e.norm", "F32", {6}, {}},
      {"g.deep", "F32", {most - 9, most}, sharesOf(1, {static_cast<uint64_t>(most)}, ranks), 0, 1, true, OnLast},
      {"h.scale", "F32", {}, {}, 0, 1, true, OnLast},
      {"i.wide",
       "F32",
       {most, most - 7},
       sharesOf(0, {static_cast<uint64_t>(most) - 8, 8}, ranks),
       0,
       1,
       true,
       OnFirst},
      {"j.whole", "F32", {most, most}, {}, 0, 1, true, OnLast},
      {"k.table", "F32", {25, 3}, sharesOf(0, {25}, ranks), 0, 1, true, OnBoth}, // not divisible by two or four
  };
  if (kind.HasFrozen) {
    weights.push_back({"a.{}.qkv", "F32", {32, 6}, sharesOf(0, {16, 8, 8}, ranks), 16, 6, false});
    weights.push_back({"f.half", "BF16", {8, 4}, sharesOf(0, {8}, ranks), 0, 1, false, OnLast});
  }
  return weights;
}

inline std::vector<Described> describeStates(uint32_t ranks, Kind kind) {
  const int64_t most = kind.IsLarge ? 1032 : 20;
  return {{"state:cache.{}", "F32", {3, 4, 8}, sharesOf(2, {8}, ranks), 0, 6},
          {"average:c.{}.fused", "F32", {7, 40}, sharesOf(1, {16, 16, 8}, ranks), 0, 6},
          {"mean:d.shared", "F32", {28, 3}, sharedKeys(0, ranks), 0, 1, true, OnBoth},
          {"mean:e.norm", "F32", {6}, {}},
          {"average:i.wide",
           "F32",
           {most, most - 7},
           sharesOf(0, {static_cast<uint64_t>(most) - 8, 8}, ranks),
           0,
           1,
           true,
           OnFirst},
          {"mean:k.table", "F32", {25, 3}, sharesOf(0, {25}, ranks), 0, 1, true, OnBoth},
          {"momentum:h.scale", "F32", {1}, {}, 0, 1, true, OnLast}};
}

/// Places each weight for each role, and sets member.RoleBytes to the total sizes.
inline std::vector<kiln_placement_t> placeWeights(const std::vector<Described> &described,
                                                  const std::vector<kiln_weight_t> &weights, const StagesCut &cut,
                                                  Member &member) {
  std::vector<kiln_placement_t> places;
  for (uint32_t role = 0; role < cut.roles(); ++role) {
    uint64_t packed = 0;
    for (size_t i = 0; i < weights.size(); ++i) {
      kiln_placement_t &place =
          places.emplace_back(makePlacement(packed, 0, described[i].Tile, 0, 0, described[i].dtype()));
      place.stride = KILN_ARENA_ROUND(kiln_pack_bytes(&weights[i], &place));
      packed += place.stride * described[i].copiesOf(cut, role);
    }
    member.RoleBytes.push_back(packed);
  }
  return places;
}

/// One of several ranks, or a model in one process. Replicas shard the optimiser state of weights that can be split
/// evenly.
class RankedModel {
public:
  RankedModel(uint32_t rank, uint32_t ranks, Kind kind = {}, Member member = {})
      : Rank(rank), Ranks(ranks), Replica(member.Replica), Weights(describeWeights(ranks, kind)),
        States(describeStates(ranks, kind)) {
    const uint32_t stages = std::max(member.Stages, 1u);
    const StagesCut &cut = cutOf(stages);
    member.Roles = cut.Roles;
    std::vector<kiln_weight_t> weights;
    std::vector<kiln_state_t> states;
    std::vector<Sections> sections;
    std::vector<uint64_t> arena(cut.roles());
    for (const Described &each : Weights) {
      weights.push_back(each.slice(stages));
      sections.push_back(ranks > 1 ? each.Cut : Sections());
    }
    const std::vector<kiln_placement_t> places = placeWeights(Weights, weights, cut, member);
    for (Described &each : States) {
      const kiln_weight_t slice = each.slice(stages);
      const uint64_t bytes = KILN_ARENA_ROUND(productOf(each.Shape) * 4);
      if (member.Replicas > 1 && each.name(0).find("state:") != 0 &&
          kiln_weight_bytes(&slice) / 4 % member.Replicas == 0)
        each.Cut.Parts = member.Replicas;
      states.push_back({slice, Offsets.emplace_back(arena).data(), bytes});
      for (uint32_t role = 0; role < cut.roles(); ++role)
        arena[role] += bytes * each.copiesOf(cut, role);
      sections.push_back(ranks > 1 ? each.Cut : Sections());
      sections.back().Parts = each.Cut.Parts;
    }
    Arena.resize(*std::max_element(arena.begin(), arena.end()) + KILN_ARENA_ALIGNMENT, '\x7F');
    const uint64_t packed = *std::max_element(member.RoleBytes.begin(), member.RoleBytes.end());
    Bound =
        std::make_unique<BoundModel>(weights, places, packed, rank, ranks > 1 ? ranks : 0, sections, states, member);
  }

  /// Sets the trained weights and the states to values of a seed; frozen weights always have those of seed 1.
  void fill(uint32_t seed) {
    std::vector<Tensor> tensors;
    for (const Described &each : Weights)
      for (uint32_t copy = 0; copy < each.Copies; ++copy)
        tensors.push_back({each.name(copy), each.Type, each.Shape, each.bytes(copy, each.IsVariable ? seed : 1)});
    ASSERT_EQ(Bound->bind(tensors), KILN_OK) << Bound->Error.message;
    forEachCopy([&](size_t i, uint32_t copy, char *place) {
      const std::string own = sliceOf(States[i].bytes(copy, seed), States[i].Shape, States[i].Cut, Rank, 4);
      const auto count = static_cast<std::ptrdiff_t>(own.size() / partsOf(i));
      const auto first = own.begin() + (partsOf(i) > 1 ? Replica * count : 0);
      std::copy(first, first + count, place);
    });
    Training = {static_cast<int32_t>(seed), 1611};
  }
  /// Returns everything that loading a file must restore.
  std::string contents() {
    std::string all = Bound->packed();
    forEachCopy([&](size_t i, uint32_t, const char *place) {
      all.append(place, kiln_weight_bytes(&Bound->Model->descriptor->states[i].tensor) / partsOf(i));
    });
    return all + std::to_string(Training.step) + " " + std::to_string(Training.seed);
  }
  char *arena() {
    const auto address = reinterpret_cast<uintptr_t>(Arena.data());
    return Arena.data() + (KILN_ARENA_ROUND(address) - address);
  }
  size_t arenaBytes() const { return Arena.size() - KILN_ARENA_ALIGNMENT; }

  kiln_status_t save(const kiln_communicator_t &ranks, const char *path, bool isTraining,
                     const kiln_communicator_t *replicas = nullptr, const kiln_communicator_t *stages = nullptr) {
    const kiln_call_t call = {.arena = arena(),
                              .arena_bytes = arenaBytes(),
                              .executor = nullptr,
                              .error = &Bound->Error,
                              .communicator = Ranks > 1 ? &ranks : nullptr,
                              .replicas = replicas,
                              .stages = stages};
    return isTraining ? kiln_save_training_together(Bound->Model, &call, &Training, path)
                      : kiln_save_weights_together(Bound->Model, &call, path);
  }
  kiln_status_t saveAlone(const char *path, bool isTraining) {
    return isTraining ? kiln_save_training(Bound->Model, arena(), &Training, path, &Bound->Error)
                      : kiln_save_weights(Bound->Model, path, &Bound->Error);
  }
  kiln_status_t load(const char *path) {
    return kiln_load_training(Bound->Model, arena(), &Training, path, &Bound->Error);
  }

  std::unique_ptr<BoundModel> Bound;
  kiln_training_t Training = {};

private:
  uint64_t partsOf(size_t state) const { return std::max<uint64_t>(States[state].Cut.Parts, 1); }
  /// Calls `work` with the copies of states that the model has, their numbers in the file, and their addresses.
  void forEachCopy(const std::function<void(size_t, uint32_t, char *)> &work) {
    const kiln_model_t *model = Bound->Model;
    for (size_t i = 0; i < States.size(); ++i) {
      const kiln_state_t &state = model->descriptor->states[i];
      uint32_t first = 0;
      const uint32_t copies = kiln_own_copies(model, &state.tensor, &first);
      for (uint32_t copy = 0; copy < copies; ++copy)
        work(i, first + copy, arena() + kiln_state_place(model, &state, copy));
    }
  }

  uint32_t Rank, Ranks, Replica;
  std::vector<Described> Weights, States;
  std::deque<std::vector<uint64_t>> Offsets; // of the states, by role
  std::string Arena;
};

/// A folder that the destructor removes.
class Folder {
public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "kiln_ranked_XXXXXX").string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    Path = name;
  }
  ~Folder() { fs::remove_all(Path); }
  Folder(const Folder &) = delete;
  Folder &operator=(const Folder &) = delete;
  std::string at(const char *name) const { return (Path / name).string(); }
  std::string read(const char *name) const { return kiln::testing::readFile(Path / name); }
  size_t count() const { return static_cast<size_t>(std::distance(fs::directory_iterator(Path), {})); }

private:
  fs::path Path;
};

/// Calls `work` for each of `count` ranks, which are threads, with its model, whose values are a function of the seed.
inline void asRanked(uint32_t count, Kind kind, uint32_t seed,
                     const std::function<void(kiln::test::ThreadRanks &, RankedModel &, uint32_t)> &work) {
  kiln::test::ThreadRanks ranks(count);
  ranks.run([&](uint32_t rank) {
    RankedModel model(rank, count, kind);
    ASSERT_NO_FATAL_FAILURE(model.fill(seed));
    work(ranks, model, rank);
  });
}

} // namespace kiln_test
