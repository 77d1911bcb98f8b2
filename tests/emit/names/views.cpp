// SPDX-License-Identifier: Apache-2.0
//
// Calls the class of wide.hpp, which write_headers wrote, with views of correct and incorrect sizes. This program
// defines the C functions itself, so that it needs no library.
#include "wide.hpp"

#include <array>
#include <cstdio>
#include <cstring>
#include <type_traits>
#include <vector>

#if __cplusplus >= 202002L
template <class T> using Range = std::span<T>;
#else
template <class T> using Range = kiln::Span<T>;
#endif

// The conversions of std::span. Views do not convert into others.
using kiln::Span;
using Three = kiln::View<float, 3>;
using Rows = kiln::View<float, kiln::dynamic, 2>;
struct Pointer {
  void *data();
  int size();
  int *begin();
};
template <class From, class To> constexpr bool converts = std::is_convertible_v<From, To>;
static_assert(converts<std::vector<float> &, Span<float>> && converts<std::array<float, 3> &, Span<float>> &&
              converts<float (&)[3], Span<float>> && converts<Span<float>, Span<const float>>);
static_assert(converts<const std::vector<float> &, Span<const float>> &&
              converts<std::vector<float>, Span<const float>>);
static_assert(!converts<const std::vector<float> &, Span<float>> && !converts<std::vector<float>, Span<float>> &&
              !converts<Span<const float>, Span<float>> && !converts<std::vector<double> &, Span<float>>);
static_assert(!converts<float *, Span<float>> && !converts<float (&)[2][3], Span<float>> &&
              !converts<Pointer &, Span<int>> && !converts<Three, Span<float>>);
static_assert(converts<Range<float>, Span<float>> && converts<Range<float>, Span<const float>> &&
              converts<Range<float>, Three> && !converts<Range<const float>, Three>);
static_assert(converts<std::vector<float> &, Rows> && !converts<std::vector<float>, Rows> && converts<float *, Three> &&
              !converts<float *, Rows> && !converts<const float *, Three> && !converts<Rows, Three>);

static int calls = 0, failures = 0;
static std::int64_t lastExtent = 0;
static const float *lastC = nullptr, *lastZ = nullptr;

extern "C" {
void wide_destroy(wide_t *) {}
kiln_status_t wide_narrow(const wide_t *, const kiln_call_t *, std::int64_t n, const float *, float *) {
  ++calls;
  lastExtent = n;
  return KILN_OK;
}
kiln_status_t wide_narrow_batch(const wide_t *, const kiln_call_t *, std::size_t, const kiln_sequence_t *,
                                const float *, float *) {
  ++calls;
  return KILN_OK;
}
kiln_status_t wide_fixed(const wide_t *, const kiln_call_t *, const float *, float *) {
  ++calls;
  return KILN_OK;
}
kiln_status_t wide_many(const wide_t *, const kiln_call_t *, std::int64_t n, const float *, const float *,
                        const float *c, const float *, const float *, const float *, const float *, float *, float *z) {
  ++calls;
  lastExtent = n;
  lastC = c;
  lastZ = z;
  return KILN_OK;
}
}

static void expect(const char *words, kiln_status_t status, const kiln_error_t &error, int line) {
  const bool isRight =
      words ? status == KILN_EXTENT_OUT_OF_RANGE && error.status == status && std::strcmp(words, error.message) == 0
            : status == KILN_OK;
  if (!isRight) {
    std::printf("line %d: status %d, \"%s\"; expected \"%s\"\n", line, status, error.message, words ? words : "");
    ++failures;
  }
}
// A macro, since brace-enclosed arguments are no expressions.
#define EXPECT(words, ...)                                                                                             \
  do {                                                                                                                 \
    error = {KILN_OK, "nothing was written"};                                                                          \
    const kiln_status_t status = __VA_ARGS__;                                                                          \
    expect(words, status, error, __LINE__);                                                                            \
  } while (0)

int main() {
  kiln_error_t error{KILN_OK, ""};
  kiln_call_t call{};
  call.error = &error;
  const wide::Model model;
  std::vector<float> x(8), y(16);
  const auto in = [&](std::size_t count) { return Range<const float>(x.data(), count); };
  const auto out = [&](std::size_t count) { return Range<float>(y.data(), count); };
  float four[4] = {}, three[3] = {}, nine[9] = {}, six[6] = {};

  // narrow: x [n], y [n, 2].
  EXPECT(nullptr, model.narrow(call, in(4), out(8)));
  EXPECT(nullptr, model.narrow(call, x, y));
  EXPECT("narrow: output \"y\": wrong size of dimension 0; expected 4, got 3", model.narrow(call, in(4), out(6)));
  EXPECT("narrow: output \"y\": wrong number of elements; expected a multiple of 2, got 7",
         model.narrow(call, in(4), out(7)));
  EXPECT("narrow: output \"y\": wrong number of elements; expected 8, got 9", model.narrow(call, in(4), {out(9), 4}));
  EXPECT(nullptr, model.narrow(call, {x.data(), 4}, {y.data(), 4}));
  EXPECT("narrow: output \"y\": wrong size of dimension 0; expected 4, got -1",
         model.narrow(call, {x.data(), 4}, {y.data(), -1}));
  // Arrays may be longer than a tensor of known dimensions, but not shorter.
  EXPECT(nullptr, model.narrow(call, four, {nine, 4}));
  EXPECT("narrow: output \"y\": too few elements; expected 8, got 6", model.narrow(call, four, {six, 4}));

  // fixed: x [4], y [2, 3].
  EXPECT(nullptr, model.fixed(call, four, six));
  EXPECT(nullptr, model.fixed(call, four, nine));
  EXPECT(nullptr, model.fixed(call, in(4), out(6)));
  EXPECT(nullptr, model.fixed(call, x.data(), y.data()));
  EXPECT("fixed: input \"x\": too few elements; expected 4, got 3", model.fixed(call, three, six));
  EXPECT("fixed: input \"x\": wrong number of elements; expected 4, got 5", model.fixed(call, in(5), out(6)));
  EXPECT("fixed: output \"y\": wrong number of elements; expected 6, got 0", model.fixed(call, four, out(0)));

  // Two sequences with 3 and 2 rows.
  const std::int64_t lengths[] = {3, 2};
  const kiln_sequence_t sequences[] = {{nullptr, &lengths[0]}, {nullptr, &lengths[1]}};
  EXPECT(nullptr, model.narrow_batch(call, sequences, in(5), out(10)));
  EXPECT("narrow_batch: input \"x\": wrong size of dimension 0; expected 5, got 4",
         model.narrow_batch(call, sequences, in(4), out(10)));

  // Nine tensors by name, in C++ and in C.
  wide::many_arguments many;
  many.a = many.b = many.c = many.d = many.e = many.f = many.g = in(8);
  many.y = out(8);
  many.z = six;
  EXPECT(nullptr, model.many(call, many));
  if (lastExtent != 8 || lastC != x.data() || lastZ != six)
    ++failures;
  many.c = in(7);
  EXPECT("many: input \"c\": wrong size of dimension 0; expected 8, got 7", model.many(call, many));
  many.c = {};
  lastC = x.data();
  EXPECT(nullptr, model.many(call, many)); // null pointers are checked by the library
  if (lastC)
    ++failures;
  wide_many_arguments_t plain{};
  plain.n = 5;
  plain.c = four;
  plain.z = six;
  EXPECT(nullptr, wide_many_with(nullptr, &call, &plain));
  if (lastExtent != 5 || lastC != four || lastZ != six)
    ++failures;

  // The error pointer may be null.
  call.error = nullptr;
  if (model.fixed(call, three, six) != KILN_EXTENT_OUT_OF_RANGE || calls != 12)
    std::printf("%d calls; expected 12\n", calls), ++failures;
  return failures != 0;
}
