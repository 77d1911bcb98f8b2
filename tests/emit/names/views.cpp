// SPDX-License-Identifier: Apache-2.0
//
// Calls the class of wide.hpp, which write_headers wrote, with views of correct and incorrect sizes. This program
// defines the C functions itself, so that it needs no library.
#include "wide.hpp"

#include <cstdio>
#include <cstring>
#include <vector>

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
  const std::span<const float> in(x);
  const std::span<float> out(y);
  float four[4] = {}, three[3] = {}, nine[9] = {}, six[6] = {};

  // narrow: x [n], y [n, 2].
  EXPECT(nullptr, model.narrow(call, in.first(4), out.first(8)));
  EXPECT(nullptr, model.narrow(call, x, y));
  EXPECT("narrow: output \"y\": wrong size of dimension 0; expected 4, got 3",
         model.narrow(call, in.first(4), out.first(6)));
  EXPECT("narrow: output \"y\": wrong number of elements; expected a multiple of 2, got 7",
         model.narrow(call, in.first(4), out.first(7)));
  EXPECT("narrow: output \"y\": wrong number of elements; expected 8, got 9",
         model.narrow(call, in.first(4), {out.first(9), 4}));
  EXPECT(nullptr, model.narrow(call, {x.data(), 4}, {y.data(), 4}));
  EXPECT("narrow: output \"y\": wrong size of dimension 0; expected 4, got -1",
         model.narrow(call, {x.data(), 4}, {y.data(), -1}));
  // Arrays may be longer than a tensor of known dimensions, but not shorter.
  EXPECT(nullptr, model.narrow(call, four, {nine, 4}));
  EXPECT("narrow: output \"y\": too few elements; expected 8, got 6", model.narrow(call, four, {six, 4}));

  // fixed: x [4], y [2, 3].
  EXPECT(nullptr, model.fixed(call, four, six));
  EXPECT(nullptr, model.fixed(call, four, nine));
  EXPECT(nullptr, model.fixed(call, in.first(4), out.first(6)));
  EXPECT(nullptr, model.fixed(call, x.data(), y.data()));
  EXPECT("fixed: input \"x\": too few elements; expected 4, got 3", model.fixed(call, three, six));
  EXPECT("fixed: input \"x\": wrong number of elements; expected 4, got 5",
         model.fixed(call, in.first(5), out.first(6)));
  EXPECT("fixed: output \"y\": wrong number of elements; expected 6, got 0", model.fixed(call, four, out.first(0)));

  // Two sequences with 3 and 2 rows.
  const std::int64_t lengths[] = {3, 2};
  const kiln_sequence_t sequences[] = {{nullptr, &lengths[0]}, {nullptr, &lengths[1]}};
  EXPECT(nullptr, model.narrow_batch(call, sequences, in.first(5), out.first(10)));
  EXPECT("narrow_batch: input \"x\": wrong size of dimension 0; expected 5, got 4",
         model.narrow_batch(call, sequences, in.first(4), out.first(10)));

  // Nine tensors by name, in C++ and in C.
  wide::many_arguments many{.a = in, .b = in, .c = in, .d = in, .e = in, .f = in, .g = in, .y = out.first(8), .z = six};
  EXPECT(nullptr, model.many(call, many));
  if (lastExtent != 8 || lastC != x.data() || lastZ != six)
    ++failures;
  many.c = in.first(7);
  EXPECT("many: input \"c\": wrong size of dimension 0; expected 8, got 7", model.many(call, many));
  many.c = {};
  lastC = in.data();
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
