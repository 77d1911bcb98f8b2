// SPDX-License-Identifier: Apache-2.0
//
// Layers of streams: a batch-invariant library gives the same bits however a stream is cut into calls, and the numbers
// are those of loops in f64 over the whole stream.
#include "counter.h"
#include "session.h"
#include "streaming.h"
#include "support.h"

#include <algorithm>
#include <cmath>

namespace kiln::testing {
namespace {

constexpr std::int64_t channels = 6, width = 12;

const Library<streaming_t> &library() {
  static const Library<streaming_t> only = KILN_TEST_LIBRARY(streaming, STREAMING_WEIGHTS);
  return only;
}
Session<streaming_t> &session() {
  static Session<streaming_t> only(library());
  return only;
}

std::vector<float> weightOf(const std::string &name) {
  for (const Weight &weight : counterWeights(library().weights))
    if (weight.name == name)
      return weight.values;
  ADD_FAILURE() << name << " is no weight";
  return {};
}

/// An entry for `step` rows or a multiple of it, with one result row for each `rowsPerResult` of them.
struct Entry {
  const char *name;
  std::int64_t in, step, rowsPerResult;
  std::size_t arenaBytes;
  bool hasContext;
};
const Entry convolve{"convolve", channels, 8, 2, STREAMING_CONVOLVE_ARENA_BYTES(2), false};
const Entry chunks{"chunks", width, 4, 1, STREAMING_CHUNKS_ARENA_BYTES(2), false};
const Entry window{"window", width, 1, 1, STREAMING_WINDOW_ARENA_BYTES(2), true};
const Entry frames{"frames", channels, 1, 1, STREAMING_FRAMES_ARENA_BYTES(2), true};

/// Calls the entry for each part of the stream: parts are numbers of steps.
std::vector<float> play(const Entry &entry, const std::vector<float> &x, const std::vector<std::int64_t> &parts,
                        std::uint32_t workers) {
  Conversation<streaming_t> talk(session(), workers, STREAMING_STATE_BYTES, entry.arenaBytes);
  std::vector<float> result;
  std::int64_t done = 0;
  for (std::int64_t part : parts) {
    const std::int64_t rows = part * entry.step;
    const Input<float> in(std::vector(x.begin() + done * entry.in, x.begin() + (done + rows) * entry.in));
    Output<float> out(rows / entry.rowsPerResult * width);
    done += rows;
    if (entry.hasContext)
      talk.run(entry.in == channels ? streaming_frames : streaming_window, part, done, in, out);
    else
      talk.run(entry.in == channels ? streaming_convolve : streaming_chunks, part, in, out);
    result.insert(result.end(), out.values().begin(), out.values().end());
  }
  EXPECT_EQ(done * entry.in, static_cast<std::int64_t>(x.size()));
  return result;
}

void expectSameBits(const std::vector<float> &got, const std::vector<float> &expected, const char *what) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(std::bit_cast<std::uint32_t>(got[i]), std::bit_cast<std::uint32_t>(expected[i]))
        << what << ": row " << i / width << ", column " << i % width << ": " << got[i] << " and " << expected[i];
}

TEST(Streaming, AnyPartsHaveTheBitsOfOneCall) {
  for (const Entry &entry : {convolve, chunks, frames, window}) {
    const std::int64_t steps = entry.hasContext ? 90 : 12;
    const std::vector<float> x = counterValues(entry.name, steps * entry.step * entry.in, 1);
    const std::vector<float> whole = play(entry, x, {steps}, 1);
    std::vector<std::vector<std::int64_t>> cuts{std::vector<std::int64_t>(steps, 1)};
    if (entry.hasContext)
      cuts.insert(cuts.end(), {{1, 2, 3, 5, 8, 13, 21, 37}, {64, 1, 25}, {17, 17, 17, 17, 22}});
    else
      cuts.insert(cuts.end(), {{5, 7}, {1, 2, 3, 6}, {11, 1}});
    for (const auto &parts : cuts)
      expectSameBits(play(entry, x, parts, 2), whole, entry.name);
  }
}

// The entry of one chunk shares its states with that of several, and has its own kernels.
TEST(Streaming, OneChunkAndSeveral) {
  constexpr std::int64_t rows = 4 * 9;
  const std::vector<float> x = counterValues("chunks", rows * width, 1), whole = play(chunks, x, {9}, 1);
  Conversation<streaming_t> talk(session(), 1, STREAMING_STATE_BYTES,
                                 std::max(STREAMING_CHUNK_ARENA_BYTES(1), STREAMING_CHUNKS_ARENA_BYTES(1)));
  std::vector<float> result;
  std::int64_t done = 0;
  for (std::int64_t part : {1, 3, 1, 1, 2, 1}) {
    const Input<float> in(std::vector(x.begin() + done * width, x.begin() + (done + 4 * part) * width));
    Output<float> out(4 * part * width);
    done += 4 * part;
    if (part == 1)
      talk.run(streaming_chunk, in, out);
    else
      talk.run(streaming_chunks, part, in, out);
    result.insert(result.end(), out.values().begin(), out.values().end());
  }
  expectSameBits(result, whole, "one chunk and several");
}

// The convolution of every second row, of two groups of channels, with a dilation of 2.
TEST(Streaming, ConvolutionsAreThoseOfTheWholeStream) {
  constexpr std::int64_t rows = 8 * 12, kernel = 3, dilation = 2, group = channels / 2;
  const std::vector<float> x = counterValues("convolve", rows * channels, 1), got = play(convolve, x, {2, 1, 5, 4}, 1),
                           weight = weightOf("halve.weight"), bias = weightOf("halve.bias");
  ASSERT_EQ(got.size(), std::size_t(rows / 2 * width));
  for (std::int64_t t = 0; t < rows / 2; ++t)
    for (std::int64_t o = 0; o < width; ++o) {
      double sum = bias[o];
      for (std::int64_t k = 0; k < kernel; ++k)
        if (const std::int64_t row = 2 * t + 1 - (kernel - 1 - k) * dilation; row >= 0)
          for (std::int64_t c = 0; c < group; ++c)
            sum += double(weight[(o * group + c) * kernel + k]) * x[row * channels + o / (width / 2) * group + c];
      ASSERT_NEAR(got[t * width + o], sum, 1e-5) << t << ", " << o;
    }
}

std::vector<double> projected(const std::vector<double> &x, const std::string &name) {
  const std::vector<float> weight = weightOf(name + ".weight"), bias = weightOf(name + ".bias");
  std::vector<double> y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    y[i] = bias[i % width];
    for (std::int64_t c = 0; c < width; ++c)
      y[i] += weight[i % width * width + c] * x[i / width * width + c];
  }
  return y;
}

TEST(Streaming, AttentionToTheChunkAndTheTwoBeforeIt) {
  constexpr std::int64_t rows = 4 * 12, heads = 3, depth = width / heads;
  const std::vector<float> x = counterValues("chunks", rows * width, 1), got = play(chunks, x, {1, 1, 2, 5, 3}, 1);
  const std::vector<double> wide(x.begin(), x.end()),
      q = projected(wide, "attend.q_proj"), k = projected(wide, "attend.k_proj"), v = projected(wide, "attend.v_proj");
  std::vector<double> attended(wide.size(), 0.0);
  for (std::int64_t t = 0; t < rows; ++t)
    for (std::int64_t h = 0; h < heads; ++h) {
      const std::int64_t end = t / 4 * 4 + 4, begin = std::max<std::int64_t>(0, end - 12);
      std::vector<double> weights;
      double sum = 0;
      for (std::int64_t key = begin; key < end; ++key) {
        double score = 0;
        for (std::int64_t d = h * depth; d < (h + 1) * depth; ++d)
          score += q[t * width + d] * k[key * width + d];
        sum += weights.emplace_back(std::exp(score / std::sqrt(double(depth))));
      }
      for (std::int64_t key = begin; key < end; ++key)
        for (std::int64_t d = h * depth; d < (h + 1) * depth; ++d)
          attended[t * width + d] += weights[key - begin] / sum * v[key * width + d];
    }
  const std::vector<double> expected = projected(attended, "attend.out_proj");
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], expected[i], 1e-5) << i / width << ", " << i % width;
}

// Several streams in a call, with different numbers of chunks so far: each has the bits of a separate call.
TEST(Streaming, ChunksOfSeveralStreams) {
  constexpr std::size_t streams = 3, values = 4 * width;
  Conversation<streaming_t> each[streams] = {{session(), 1, STREAMING_STATE_BYTES, STREAMING_CHUNK_ARENA_BYTES(1)},
                                             {session(), 1, STREAMING_STATE_BYTES, STREAMING_CHUNK_ARENA_BYTES(1)},
                                             {session(), 1, STREAMING_STATE_BYTES, STREAMING_CHUNK_ARENA_BYTES(1)}};
  const std::vector<float> x = counterValues("streams", 30 * values, 1);
  std::size_t used = 0;
  auto next = [&] { return std::vector(x.begin() + used * values, x.begin() + (used + 1) * values); };
  for (std::size_t stream = 0; stream < streams; ++stream)
    for (std::size_t i = 0; i < 2 * stream; ++i, ++used) {
      Output<float> y(values);
      each[stream].run(streaming_chunk, Input(next()), y);
    }
  std::vector<float> together, expected;
  std::vector<std::vector<unsigned char>> states;
  for (auto &stream : each) {
    states.push_back(stream.states());
    const std::vector<float> rows = next();
    ++used;
    together.insert(together.end(), rows.begin(), rows.end());
    Output<float> y(values);
    stream.run(streaming_chunk, Input(rows), y);
    expected.insert(expected.end(), y.values().begin(), y.values().end());
  }
  std::vector<kiln_sequence_t> sequences;
  struct alignas(KILN_ARENA_ALIGNMENT) States {
    unsigned char bytes[STREAMING_STATE_BYTES];
  };
  std::vector<States> before(streams);
  for (std::size_t stream = 0; stream < streams; ++stream) {
    std::copy(states[stream].begin(), states[stream].end(), before[stream].bytes);
    sequences.push_back({before[stream].bytes, nullptr});
  }
  struct alignas(KILN_ARENA_ALIGNMENT) {
    std::byte bytes[STREAMING_CHUNK_BATCH_ARENA_BYTES(1)];
  } arena;
  kiln_error_t error{};
  const kiln_call_t with{arena.bytes, sizeof arena.bytes, nullptr, &error};
  std::vector<float> got(streams * values);
  ASSERT_EQ(streaming_chunk_batch(session().get(), &with, streams, sequences.data(), together.data(), got.data()),
            KILN_OK)
      << error.message;
  expectSameBits(got, expected, "several streams");
  for (std::size_t stream = 0; stream < streams; ++stream) {
    const std::vector<unsigned char> after = each[stream].states();
    EXPECT_EQ(std::memcmp(before[stream].bytes, after.data(), after.size()), 0) << "states of stream " << stream;
  }
}

} // namespace
} // namespace kiln::testing
