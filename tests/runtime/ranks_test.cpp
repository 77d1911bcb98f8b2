// SPDX-License-Identifier: Apache-2.0
// Models of several ranks, each in a thread of this process: what create and calls refuse, the collectives, and how a
// call ends if a communicator fails.
#include "stored_numbers.h"

#include <barrier>
#include <functional>
#include <gtest/gtest.h>
#include <thread>

namespace {

using namespace kiln_test;

/// The body of a rank, per calling thread.
thread_local std::function<int(const kiln_frame_t *)> Body;
int runBody(const kiln_frame_t *frame) { return Body(frame); }

/// A model of one entry and no weights, for one or several ranks.
struct RankModel {
  kiln_body_t Code = {runBody, 0, 0, 0, 0};
  kiln_entry_t Entry = entryOf("forward", nullptr, nullptr, 0, 0);
  kiln_variant_t Variant = hostVariant("x86-64-v2", HostFeatures, nullptr, 0, &Code);
  kiln_descriptor_t Descriptor = {KILN_ABI_VERSION, 0, 1, 1, "ranked", nullptr, &Entry, &Variant};
  kiln_model_t *Model = nullptr;
  kiln_error_t Error = {};

  explicit RankModel(uint32_t ranks) {
    Descriptor.ranks = ranks;
    Descriptor.sharding = ranks > 1 ? &kiln_sharding : nullptr;
  }
  RankModel(uint32_t rank, uint32_t ranks) : RankModel(ranks) {
    EXPECT_EQ(create({.rank = rank, .ranks = ranks}), KILN_OK) << Error.message;
  }
  RankModel(const RankModel &) = delete;
  RankModel &operator=(const RankModel &) = delete;
  ~RankModel() { kiln_destroy(Model); }
  kiln_status_t create(const kiln_options_t &options) {
    const kiln_cpu_t cpu = kiln_cpu_detect();
    return kiln_model_create(&Descriptor, &cpu, &options, &Model, &Error);
  }
  kiln_status_t run(const kiln_communicator_t *communicator) {
    alignas(KILN_ARENA_ALIGNMENT) char arena[256];
    const kiln_call_t call = {.arena = arena,
                              .arena_bytes = sizeof arena,
                              .executor = nullptr,
                              .error = &Error,
                              .communicator = communicator};
    return kiln_run(Model, &call, 0, nullptr, nullptr);
  }
};

/// Ranks that are threads: a collective runs once all ranks have begun it.
class Threads {
public:
  explicit Threads(uint32_t size) : Meeting(size), Begun(size), Ranks(size) {}
  kiln_communicator_t of(uint32_t rank) {
    Ranks[rank] = {this, rank};
    return {&Ranks[rank], rank, static_cast<uint32_t>(Begun.size()),
            [](void *self, const kiln_collective_t *what, kiln_error_t *) {
              const Rank &own = *static_cast<Rank *>(self);
              own.Of->Begun[own.Number] = *what;
              return KILN_OK;
            },
            [](void *self, kiln_error_t *) {
              const Rank &own = *static_cast<Rank *>(self);
              own.Of->finish(own.Number);
              return KILN_OK;
            }};
  }

private:
  struct Rank {
    Threads *Of;
    uint32_t Number;
  };

  std::vector<float> partOf(const kiln_collective_t &what, uint32_t part) const {
    const float *values = static_cast<const float *>(what.from) + part * what.elements;
    return {values, values + what.elements};
  }
  void finish(uint32_t rank) {
    Meeting.arrive_and_wait();
    const kiln_collective_t &own = Begun[rank];
    const bool isSum = own.kind == KILN_ALL_REDUCE || own.kind == KILN_REDUCE_SCATTER;
    std::vector<float> result(isSum ? own.elements : 0);
    for (uint32_t other = 0; other < Begun.size(); ++other) {
      const uint32_t part = own.kind == KILN_REDUCE_SCATTER || own.kind == KILN_EXCHANGE ? rank : 0;
      const std::vector<float> values = partOf(Begun[other], part);
      for (size_t i = 0; i < values.size(); ++i)
        if (isSum)
          result[i] += values[i];
        else
          result.push_back(values[i]);
    }
    Meeting.arrive_and_wait(); // all have read
    std::copy(result.begin(), result.end(), static_cast<float *>(own.to));
  }

  std::barrier<> Meeting;
  std::vector<kiln_collective_t> Begun;
  std::vector<Rank> Ranks;
};

/// Calls `body` with a frame as each of `size` ranks.
void asRanks(uint32_t size, const std::function<int(const kiln_frame_t *, uint32_t)> &body) {
  Threads threads(size);
  std::vector<std::thread> all;
  for (uint32_t rank = 0; rank < size; ++rank)
    all.emplace_back([&, rank] {
      RankModel model(rank, size);
      const kiln_communicator_t communicator = threads.of(rank);
      Body = [&](const kiln_frame_t *frame) { return body(frame, rank); };
      EXPECT_EQ(model.run(&communicator), KILN_OK) << model.Error.message;
      EXPECT_STREQ(model.Error.message, "");
    });
  for (std::thread &thread : all)
    thread.join();
}

int32_t collect(const kiln_frame_t *frame, uint32_t kind, const void *from, void *to, uint64_t elements,
                uint32_t element) {
  const int32_t status = kiln_begin_collective(frame, KILN_GROUP_RANKS, kind, from, to, elements, element);
  return status ? status : kiln_finish_collectives(frame, KILN_GROUP_RANKS);
}

float valueOf(uint32_t rank, size_t at) { return static_cast<float>(100 * rank + at); }

std::vector<float> valuesOf(uint32_t rank, size_t first, size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = valueOf(rank, first + i);
  return values;
}

TEST(Collect, EachKindMovesWhatItShould) {
  for (uint32_t size : {2u, 3u, 5u})
    for (size_t count : {1u, 7u})
      asRanks(size, [&](const kiln_frame_t *frame, uint32_t rank) {
        std::vector<float> sums(count), wanted(size * count), own = valuesOf(rank, 0, count);
        for (uint32_t other = 0; other < size; ++other)
          for (size_t i = 0; i < count; ++i) {
            sums[i] += valueOf(other, i);
            wanted[other * count + i] = valueOf(other, i);
          }
        // The rank's part is in a separate buffer, and then in place.
        std::vector<float> gathered(size * count, -1), inPlace(size * count, -1);
        EXPECT_EQ(collect(frame, KILN_ALL_GATHER, own.data(), gathered.data(), count, KILN_F32), 0);
        EXPECT_EQ(gathered, wanted);
        std::copy(own.begin(), own.end(), inPlace.begin() + static_cast<std::ptrdiff_t>(rank * count));
        EXPECT_EQ(collect(frame, KILN_ALL_GATHER, &inPlace[rank * count], inPlace.data(), count, KILN_F32), 0);
        EXPECT_EQ(inPlace, wanted);
        EXPECT_EQ(collect(frame, KILN_ALL_REDUCE, own.data(), own.data(), count, KILN_F32), 0);
        EXPECT_EQ(own, sums);
        EXPECT_EQ(collect(frame, KILN_ALL_REDUCE, own.data(), own.data(), 0, KILN_F32), 0) << "nothing to do";

        std::vector<float> from = valuesOf(rank, 0, size * count), to(size * count), part(count);
        EXPECT_EQ(collect(frame, KILN_EXCHANGE, from.data(), to.data(), count, KILN_F32), 0);
        for (uint32_t other = 0; other < size; ++other)
          for (size_t i = 0; i < count; ++i)
            EXPECT_EQ(to[other * count + i], valueOf(other, rank * count + i));
        EXPECT_EQ(collect(frame, KILN_REDUCE_SCATTER, from.data(), part.data(), count, KILN_F32), 0);
        for (size_t i = 0; i < count; ++i)
          EXPECT_EQ(part[i], valueOf(0, rank * count + i) * static_cast<float>(size) +
                                 static_cast<float>(100 * (size * (size - 1) / 2)));
        // An in-place sum, of which each rank gets its part in place.
        from = valuesOf(rank, 0, size * count);
        EXPECT_EQ(kiln_begin_sum(frame, KILN_GROUP_RANKS, KILN_REDUCE_SCATTER, from.data(), count, KILN_F32, "", -1),
                  0);
        EXPECT_EQ(kiln_finish_collectives(frame, KILN_GROUP_RANKS), 0);
        EXPECT_TRUE(std::equal(part.begin(), part.end(), &from[rank * count]));
        return 0;
      });
}

/// A communicator that fails in begin or in finish, with or without a message.
struct Failing {
  int Begun = 0, Finished = 0, BeginFails = 1 << 30, FinishFails = 1 << 30;
  kiln_status_t Status = KILN_RANK_LOST;
  const char *Words = "nobody there";
  kiln_communicator_t get(uint32_t rank, uint32_t size) {
    return {this,
            rank,
            size,
            [](void *self, const kiln_collective_t *, kiln_error_t *error) {
              auto *own = static_cast<Failing *>(self);
              return own->Begun++ < own->BeginFails ? KILN_OK : own->fail(error);
            },
            [](void *self, kiln_error_t *error) {
              auto *own = static_cast<Failing *>(self);
              return own->Finished++ < own->FinishFails ? KILN_OK : own->fail(error);
            },
            nullptr};
  }

private:
  kiln_status_t fail(kiln_error_t *error) const {
    error->status = Status;
    std::snprintf(error->message, sizeof error->message, "%s", Words);
    return Status;
  }
};

// The call returns the status and the message, and begins no collective after a failure.
TEST(Collect, FailuresEndTheCall) {
  float values[6] = {};
  RankModel model(1, 3);
  Failing failing;
  Body = [&](const kiln_frame_t *frame) {
    for (int i = 0; i < 3; ++i)
      if (int32_t status = collect(frame, KILN_ALL_REDUCE, values, values, 5, KILN_F32))
        return status;
    return 0;
  };
  kiln_communicator_t communicator = failing.get(1, 3);
  EXPECT_EQ(model.run(&communicator), KILN_OK);
  failing = {.FinishFails = 1};
  EXPECT_EQ(model.run(&communicator), KILN_RANK_LOST);
  EXPECT_EQ(model.Error.status, KILN_RANK_LOST);
  EXPECT_STREQ(model.Error.message, "forward on rank 1 of 3 cannot finish its all-reduce of 20 bytes: nobody there");
  EXPECT_EQ(failing.Begun, 2);
  failing = {.BeginFails = 0, .Status = KILN_INVALID_ARGUMENT, .Words = ""};
  EXPECT_EQ(model.run(&communicator), KILN_INVALID_ARGUMENT);
  EXPECT_STREQ(model.Error.message,
               "forward on rank 1 of 3 cannot finish its all-reduce of 20 bytes: no words from the communicator");
  EXPECT_EQ(failing.Begun, 1);
  EXPECT_EQ(failing.Finished, 0);

  // A body that continues after the failure does not hide it.
  failing = {.FinishFails = 0};
  Body = [&](const kiln_frame_t *frame) {
    EXPECT_EQ(collect(frame, KILN_EXCHANGE, values, values + 3, 1, KILN_F16), KILN_RANK_LOST);
    EXPECT_EQ(collect(frame, KILN_ALL_REDUCE, values, values, 3, KILN_F32), KILN_RANK_LOST);
    return 0;
  };
  EXPECT_EQ(model.run(&communicator), KILN_RANK_LOST);
  EXPECT_STREQ(model.Error.message, "forward on rank 1 of 3 cannot finish its exchange of 2 bytes: nobody there");
  EXPECT_EQ(failing.Begun, 1);

  // A body that fails without a communicator's failure is a bug of Kiln.
  Body = [&](const kiln_frame_t *frame) {
    EXPECT_EQ(collect(frame, KILN_SEND, values, values, 3, KILN_F32), KILN_INTERNAL_ERROR);
    return 7;
  };
  EXPECT_EQ(model.run(&communicator), KILN_INTERNAL_ERROR);
  EXPECT_STREQ(model.Error.message, "forward of model \"ranked\": wrong result; expected 0, got 7");
}

TEST(Collect, CallsWithoutTheirCommunicatorAreRefused) {
  int calls = 0;
  Body = [&](const kiln_frame_t *) { return ++calls, 0; };
  RankModel model(1, 3), single(0, 0);
  Failing failing;
  const kiln_communicator_t good = failing.get(1, 3);
  kiln_communicator_t bad = good;
  const char *missing = "forward: null given; expected a communicator of ranks with begin and finish";
  EXPECT_EQ(model.run(nullptr), KILN_NULL_ARGUMENT);
  EXPECT_STREQ(model.Error.message, missing);
  bad.begin = nullptr;
  EXPECT_EQ(model.run(&bad), KILN_NULL_ARGUMENT);
  EXPECT_STREQ(model.Error.message, missing);
  bad = good;
  bad.finish = nullptr;
  EXPECT_EQ(model.run(&bad), KILN_NULL_ARGUMENT);
  EXPECT_STREQ(model.Error.message, missing);
  bad = good;
  bad.rank = 0;
  EXPECT_EQ(model.run(&bad), KILN_INVALID_ARGUMENT);
  EXPECT_STREQ(model.Error.message, "forward: wrong communicator; expected rank 1 of 3, as its model, got rank 0");
  bad.rank = 1;
  bad.size = 4;
  EXPECT_EQ(model.run(&bad), KILN_INVALID_ARGUMENT);
  EXPECT_STREQ(model.Error.message, "forward: wrong communicator; expected one of 3 ranks, got rank 1 of 4");
  EXPECT_EQ(single.run(&good), KILN_INVALID_ARGUMENT);
  EXPECT_STREQ(single.Error.message, "forward: communicator set; expected null ones");
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(model.run(&good), KILN_OK) << model.Error.message;
  EXPECT_EQ(single.run(nullptr), KILN_OK) << single.Error.message;
  EXPECT_EQ(calls, 2);

  // Collectives in a library for one rank would be a bug of the compiler.
  Body = [](const kiln_frame_t *frame) {
    float value = 0;
    return static_cast<int>(collect(frame, KILN_ALL_REDUCE, &value, &value, 1, KILN_F32));
  };
  EXPECT_EQ(single.run(nullptr), KILN_INTERNAL_ERROR);
}

TEST(Ranks, CreateWantsOneOfThem) {
  RankModel model(3);
  struct {
    kiln_options_t Options;
    const char *Words;
  } const cases[] = {
      {{}, "model \"ranked\": no rank given; expected create_on with one and 3 ranks"},
      {{.rank = 1}, "model \"ranked\": no rank given; expected create_on with one and 3 ranks"},
      {{.rank = 0, .ranks = 1}, "model \"ranked\": wrong group size; expected 3 ranks, got 1"},
      {{.rank = 0, .ranks = 4}, "model \"ranked\": wrong group size; expected 3 ranks, got 4"},
      {{.rank = 3, .ranks = 3}, "model \"ranked\": rank too large; expected below 3, got 3"},
  };
  for (const auto &test : cases) {
    CountingAllocator counter;
    const kiln_allocator_t functions = counter.get();
    kiln_options_t options = test.Options;
    options.allocator = &functions;
    EXPECT_EQ(model.create(options), KILN_INVALID_ARGUMENT);
    EXPECT_STREQ(model.Error.message, test.Words);
    EXPECT_EQ(model.Model, nullptr);
    EXPECT_EQ(counter.Alive, 0);
  }
  EXPECT_EQ(model.create({.rank = 2, .ranks = 3}), KILN_OK) << model.Error.message;
  EXPECT_EQ(model.Model->rank, 2u);
}

// The library that the tests are linked with is for one rank.
TEST(Ranks, OneIsNotAskedFor) {
  kiln_model_t *model = nullptr;
  kiln_error_t error = {};
  kiln_options_t options = {.rank = 1, .ranks = 2};
  EXPECT_EQ(kiln_create_on(&options, &model, &error), KILN_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "create_on: library is not for several ranks; expected rank 0, got rank 1 of 2");
  options = {.rank = 1};
  EXPECT_EQ(kiln_create_on(&options, &model, &error), KILN_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "create_on: library is not for several ranks; expected rank 0, got rank 1 of 0");
  options = {.rank = 0, .ranks = 1};
  EXPECT_EQ(kiln_create_on(&options, &model, &error), KILN_OK) << error.message;
  kiln_destroy(model);
}

TEST(Ranks, ImpossibleSlicesAreInternalErrors) {
  const kiln_weight_t weight = {"w", KILN_F32, 2, {2, 2}, 1, 0};
  const auto refuse = [&](const Sections &sections) {
    RankModel model(4);
    const kiln_shard_t shard = sections.described();
    model.Descriptor.weights = &weight;
    model.Descriptor.shards = &shard;
    model.Descriptor.weight_count = 1;
    EXPECT_EQ(model.create({.rank = 3, .ranks = 4}), KILN_INTERNAL_ERROR);
    EXPECT_STREQ(model.Error.message, "tensor \"w\": wrong sections; expected all of it for 4 ranks");
  };
  refuse(equalParts(2, 4, 2));                         // no such dimension
  refuse(equalParts(0, 4, 2, 0));                      // groups without ranks
  refuse(equalParts(0, 4, 2, 3));                      // groups of three among four ranks
  refuse({0, 8, {{1, 2, 2, 1, 0}}});                   // the last section ends after the tensor
  refuse(equalParts(0, 3, 2));                         // fewer parts than ranks
  refuse(equalParts(0, 5, 2));                         // more parts than ranks
  refuse({0, 8, {{0, 1, 1, 1, 0}}});                   // less than the slice
  refuse({0, 12, {{0, 2, 2, 1, 0}, {8, 1, 1, 1, 0}}}); // more than the slice
}

// A matrix whose K is split among the ranks: the partial products are reduced.
TEST(Ranks, ShareAMatrix) {
  constexpr uint32_t Size = 4;
  constexpr int Outputs = 3, Depth = 8;
  std::vector<float> matrix(Outputs * Depth), x(Depth), wanted(Outputs);
  for (int i = 0; i < Outputs * Depth; ++i)
    matrix[i] = static_cast<float>(i % 7 - 3);
  for (int k = 0; k < Depth; ++k)
    x[k] = static_cast<float>(k - 2);
  for (int n = 0; n < Outputs; ++n)
    for (int k = 0; k < Depth; ++k)
      wanted[n] += matrix[n * Depth + k] * x[k];
  const kiln_weight_t weight = {"w", KILN_F32, 2, {Outputs, Depth / Size}, 1, 0};
  const Sections shard = equalParts(1, Size, Depth / Size);
  const kiln_placement_t place = makePlacement(0, 0, 0, 0, 0);
  asRanks(Size, [&](const kiln_frame_t *frame, uint32_t rank) {
    BoundModel model({weight}, {place}, sizeof(float) * Outputs * Depth / Size, rank, Size, {shard});
    EXPECT_EQ(model.bind({{"w", "F32", {Outputs, Depth}, bytesOf(matrix)}}), KILN_OK) << model.Error.message;
    const auto *own = reinterpret_cast<const float *>(model.Model->packed);
    std::vector<float> y(Outputs);
    for (int n = 0; n < Outputs; ++n)
      for (uint32_t k = 0; k < Depth / Size; ++k)
        y[n] += own[n * (Depth / Size) + k] * x[rank * (Depth / Size) + k];
    EXPECT_EQ(collect(frame, KILN_ALL_REDUCE, y.data(), y.data(), Outputs, KILN_F32), 0);
    EXPECT_EQ(y, wanted);
    return 0;
  });
}

} // namespace
