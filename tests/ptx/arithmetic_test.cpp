// SPDX-License-Identifier: Apache-2.0
//
// Each arithmetic instruction on odd numbers of values, compared with C++: integers, bits, floats, conversions.
#include <bit>
#include <cmath>
#include <fmt/format.h>
#include <functional>

#include "NumberFormats.h"
#include "support.h"

namespace kiln::ptx {
namespace {

/// Runs `body` for each triple of words %r1, %r2, %r3; the result is %r4 or, 64 bits wide, %rd4.
std::vector<std::uint32_t> evaluate(const std::string &body, const std::vector<std::uint32_t> &words) {
  Device device(kernelOf("setp.ge.u32 %p0, %r0, 37;\n@%p0 exit;\n"
                         "mad.wide.u32 %rd1, %r0, 16, %rd0;\n"
                         "ld.global.v2.u32 {%r1, %r2}, [%rd1];\nld.global.u32 %r3, [%rd1+8];\n" +
                         body + "\nst.global.u32 [%rd1+12], %r4;"));
  const std::uint64_t at = device.upload(words);
  const LaunchResult result = device.run({{1}, {64}, {}}, {at});
  EXPECT_TRUE(result) << body << ": " << result.error;
  return device.download<std::uint32_t>(at, words.size());
}

constexpr std::size_t count = 37;

/// Returns random words, including the ends of ranges.
std::vector<std::uint32_t> someWords(bool floats) {
  std::mt19937 random(7);
  const std::uint32_t ends[] = {0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 31, 32, 33};
  std::vector<std::uint32_t> words(count * 4);
  for (std::uint32_t &word : words) {
    word = random() % 3 ? static_cast<std::uint32_t>(random()) : ends[random() % 8];
    if (floats)
      word = std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(random())) / 65536);
  }
  return words;
}

using Reference = std::function<std::uint32_t(std::uint32_t, std::uint32_t, std::uint32_t)>;
struct Case {
  const char *body;
  Reference reference;
};

void check(const std::vector<Case> &cases, bool floats) {
  const std::vector<std::uint32_t> words = someWords(floats);
  for (const Case &one : cases) {
    const std::vector<std::uint32_t> got = evaluate(one.body, words);
    ASSERT_EQ(got.size(), words.size()) << one.body;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t a = words[4 * i], b = words[4 * i + 1], c = words[4 * i + 2];
      ASSERT_EQ(got[4 * i + 3], one.reference(a, b, c)) << one.body << fmt::format(" of {:#x} {:#x} {:#x}", a, b, c);
    }
  }
}

std::int32_t asSigned(std::uint32_t value) { return static_cast<std::int32_t>(value); }
std::uint32_t asWord(std::int64_t value) { return static_cast<std::uint32_t>(value); }

TEST(Arithmetic, Integers) {
  check({{"add.s32 %r4, %r1, %r2;", [](auto a, auto b, auto) { return a + b; }},
         {"sub.u32 %r4, %r1, %r2;", [](auto a, auto b, auto) { return a - b; }},
         {"sub.sat.s32 %r4, %r1, %r2;",
          [](auto a, auto b, auto) {
            return asWord(std::clamp<std::int64_t>(std::int64_t{asSigned(a)} - asSigned(b), INT32_MIN, INT32_MAX));
          }},
         {"mul.lo.s32 %r4, %r1, %r2;", [](auto a, auto b, auto) { return a * b; }},
         {"mul.hi.u32 %r4, %r1, %r2;", [](auto a, auto b, auto) { return asWord((std::uint64_t{a} * b) >> 32); }},
         {"mul.hi.s32 %r4, %r1, %r2;",
          [](auto a, auto b, auto) { return asWord((std::int64_t{asSigned(a)} * asSigned(b)) >> 32); }},
         {"mad.lo.u32 %r4, %r1, %r2, %r3;", [](auto a, auto b, auto c) { return a * b + c; }},
         {"mul.wide.s32 %rd4, %r1, %r2;\nshr.s64 %rd4, %rd4, 7;\ncvt.u32.u64 %r4, %rd4;",
          [](auto a, auto b, auto) { return asWord((std::int64_t{asSigned(a)} * asSigned(b)) >> 7); }},
         {"div.u32 %r4, %r1, %r2;", [](auto a, auto b, auto) { return b ? a / b : ~0U; }},
         {"rem.s32 %r4, %r1, 7;", [](auto a, auto, auto) { return asWord(asSigned(a) % 7); }},
         {"div.s32 %r4, %r1, -3;", [](auto a, auto, auto) { return asWord(asSigned(a) / -3); }},
         {"min.relu.s32 %r4, %r1, %r2;",
          [](auto a, auto b, auto) { return asWord(std::max(std::min(asSigned(a), asSigned(b)), 0)); }},
         {"min.s32 %r4, %r1, %r2;", [](auto a, auto b, auto) { return asWord(std::min(asSigned(a), asSigned(b))); }},
         {"max.u32 %r4, %r1, %r2;", [](auto a, auto b, auto) { return std::max(a, b); }},
         {"neg.s32 %r4, %r1;", [](auto a, auto, auto) { return 0 - a; }},
         {"abs.s32 %r4, %r1;", [](auto a, auto, auto) { return asSigned(a) < 0 ? 0 - a : a; }},
         {"cvt.u16.u32 %rs1, %r1;\ncvt.u16.u32 %rs2, %r2;\nmul.wide.s16 %r4, %rs1, %rs2;",
          [](auto a, auto b, auto) { return asWord(static_cast<std::int16_t>(a) * static_cast<std::int16_t>(b)); }},
         {"mov.b64 %rd4, {%r1, %r2};\nmul.lo.u64 %rd4, %rd4, 0x123456789;\nmov.b64 {%r5, %r4}, %rd4;",
          [](auto a, auto b, auto) {
            return asWord(static_cast<std::int64_t>(((std::uint64_t{b} << 32 | a) * 0x123456789ULL) >> 32));
          }}},
        false);
}

TEST(Arithmetic, Bits) {
  const auto field = [](std::uint32_t a, std::uint32_t first, std::uint32_t length, bool sign) {
    std::uint64_t result = 0;
    for (unsigned i = 0; i < 32; ++i) {
      const std::uint32_t at = i < length ? first + i : first + length - 1;
      const bool inside = i < length ? first + i < 32 : false;
      const bool bit = inside ? a >> at & 1 : sign && length && a >> std::min(first + length - 1, 31U) & 1;
      result |= static_cast<std::uint64_t>(bit) << i;
    }
    return asWord(static_cast<std::int64_t>(result));
  };
  check({{"and.b32 %r4, %r1, %r2;", [](auto a, auto b, auto) { return a & b; }},
         {"or.b32 %r4, %r1, %r2;", [](auto a, auto b, auto) { return a | b; }},
         {"xor.b32 %r4, %r1, %r2;", [](auto a, auto b, auto) { return a ^ b; }},
         {"not.b32 %r4, %r1;", [](auto a, auto, auto) { return ~a; }},
         {"shl.b32 %r4, %r1, %r2;", [](auto a, auto b, auto) { return b < 32 ? a << b : 0; }},
         {"shr.u32 %r4, %r1, %r2;", [](auto a, auto b, auto) { return b < 32 ? a >> b : 0; }},
         {"shr.s32 %r4, %r1, %r2;", [](auto a, auto b, auto) { return asWord(asSigned(a) >> std::min(b, 31U)); }},
         {"shf.l.wrap.b32 %r4, %r1, %r2, %r3;",
          [](auto a, auto b, auto c) { return c & 31 ? b << (c & 31) | a >> (32 - (c & 31)) : b; }},
         {"bfe.u32 %r4, %r1, 5, 11;", [&](auto a, auto, auto) { return field(a, 5, 11, false); }},
         {"bfe.s32 %r4, %r1, 25, 11;", [&](auto a, auto, auto) { return field(a, 25, 11, true); }},
         {"bfi.b32 %r4, %r1, %r2, 9, 13;",
          [](auto a, auto b, auto) { return (b & ~(0x1fffU << 9)) | (a & 0x1fffU) << 9; }},
         {"popc.b32 %r4, %r1;", [](auto a, auto, auto) { return static_cast<std::uint32_t>(std::popcount(a)); }},
         {"clz.b32 %r4, %r1;", [](auto a, auto, auto) { return static_cast<std::uint32_t>(std::countl_zero(a)); }},
         {"brev.b32 %r4, %r1;\nbrev.b32 %r4, %r4;\nnot.b32 %r4, %r4;", [](auto a, auto, auto) { return ~a; }},
         {"prmt.b32 %r4, %r1, %r2, 0x7210;", [](auto a, auto b, auto) { return (a & 0xffffffU) | (b & 0xff000000U); }},
         {"prmt.b32 %r4, %r1, %r2, 0xfbb0;",
          [](auto a, auto b, auto) { return (a & 0xffU) | (a >> 31 ? 0xffff00U : 0) | (b >> 31 ? 0xff000000U : 0); }},
         {"lop3.b32 %r4, %r1, %r2, %r3, 0x96;", [](auto a, auto b, auto c) { return a ^ b ^ c; }},
         {"setp.lt.s32 %p1, %r1, %r2;\nsetp.lt.and.u32 %p2, %r1, %r2, !%p1;\nselp.b32 %r4, %r1, %r3, %p2;",
          [](auto a, auto b, auto c) { return a < b && !(asSigned(a) < asSigned(b)) ? a : c; }},
         {"set.gt.u32.s32 %r4, %r1, %r2;", [](auto a, auto b, auto) { return asSigned(a) > asSigned(b) ? ~0U : 0U; }},
         {"slct.u32.s32 %r4, %r1, %r2, %r3;", [](auto a, auto b, auto c) { return asSigned(c) >= 0 ? a : b; }}},
        false);
}

float number(std::uint32_t bits) { return std::bit_cast<float>(bits); }
std::uint32_t bitsOfNumber(double value) { return std::bit_cast<std::uint32_t>(static_cast<float>(value)); }

TEST(Arithmetic, Floats) {
  check({{"add.rn.f32 %r4, %r1, %r2;", [](auto a, auto b, auto) { return bitsOfNumber(number(a) + number(b)); }},
         {"mul.ftz.f32 %r4, %r1, %r2;", [](auto a, auto b, auto) { return bitsOfNumber(number(a) * number(b)); }},
         {"fma.rn.f32 %r4, %r1, %r2, %r3;",
          [](auto a, auto b, auto c) { return bitsOfNumber(std::fma(number(a), number(b), number(c))); }},
         {"div.rn.f32 %r4, %r1, %r2;", [](auto a, auto b, auto) { return bitsOfNumber(number(a) / number(b)); }},
         {"max.f32 %r4, %r1, %r2;", [](auto a, auto b, auto) { return bitsOfNumber(std::fmax(number(a), number(b))); }},
         {"neg.f32 %r4, %r1;\nabs.f32 %r4, %r4;", [](auto a, auto, auto) { return a & 0x7fffffffU; }},
         {"abs.f32 %r4, %r1;\nsqrt.rn.f32 %r4, %r4;",
          [](auto a, auto, auto) { return bitsOfNumber(std::sqrt(std::fabs(number(a)))); }},
         {"copysign.f32 %r4, %r1, %r2;", [](auto a, auto b, auto) { return (a & 0x80000000U) | (b & 0x7fffffffU); }},
         {"mul.f32 %r4, %r1, 0f38000000;\nex2.approx.ftz.f32 %r4, %r4;",
          [](auto a, auto, auto) {
            return bitsOfNumber(flushed(static_cast<float>(std::exp2(double{number(a)} / 32768))));
          }},
         {"abs.f32 %r4, %r1;\nlg2.approx.f32 %r4, %r4;",
          [](auto a, auto, auto) { return bitsOfNumber(std::log2(std::fabs(double{number(a)}))); }},
         {"rcp.approx.f32 %r4, %r1;", [](auto a, auto, auto) { return bitsOfNumber(1 / double{number(a)}); }},
         {"tanh.approx.f32 %r4, %r1;", [](auto a, auto, auto) { return bitsOfNumber(std::tanh(double{number(a)})); }},
         {"cvt.f64.f32 %rd4, %r1;\nadd.rn.f64 %rd4, %rd4, 0d3FB999999999999A;\ncvt.rn.f32.f64 %r4, %rd4;",
          [](auto a, auto, auto) { return bitsOfNumber(double{number(a)} + 0.1); }},
         {"setp.leu.f32 %p1|%p2, %r1, %r2;\nselp.f32 %r4, %r1, %r3, %p2;",
          [](auto a, auto b, auto c) { return number(a) > number(b) ? a : c; }}},
        true);
}

TEST(Arithmetic, Conversions) {
  const auto half = [](std::uint32_t a) { return toF16(number(a)); };
  check({{"cvt.rzi.s32.f32 %r4, %r1;", [](auto a, auto, auto) { return asWord(std::int64_t(number(a))); }},
         {"cvt.rni.f32.f32 %r4, %r1;", [](auto a, auto, auto) { return bitsOfNumber(std::nearbyint(number(a))); }},
         {"cvt.rmi.ftz.f32.f32 %r4, %r1;", [](auto a, auto, auto) { return bitsOfNumber(std::floor(number(a))); }},
         {"cvt.rzi.u32.f32 %r4, %r1;",
          [](auto a, auto, auto) { return number(a) < 0 ? 0U : static_cast<std::uint32_t>(number(a)); }},
         {"cvt.rn.f32.s32 %r4, %r1;", [](auto a, auto, auto) { return bitsOfNumber(asSigned(a)); }},
         {"cvt.rn.f32.u32 %r4, %r1;", [](auto a, auto, auto) { return bitsOfNumber(a); }},
         {"cvt.s32.s8 %r4, %r1;", [](auto a, auto, auto) { return asWord(static_cast<std::int8_t>(a)); }},
         {"cvt.sat.u8.s32 %r4, %r1;", [](auto a, auto, auto) { return asWord(std::clamp(asSigned(a), 0, 255)); }},
         {"cvt.rna.tf32.f32 %r4, %r1;", [](auto a, auto, auto) { return (a + 0x1000U) & 0xffffe000U; }},
         {"cvt.rn.f16.f32 %rs1, %r1;\ncvt.f32.f16 %r4, %rs1;",
          [&](auto a, auto, auto) { return bitsOfNumber(fromF16(half(a))); }},
         {"cvt.rn.f16x2.f32 %r4, %r1, %r2;",
          [&](auto a, auto b, auto) { return static_cast<std::uint32_t>(half(a) << 16 | half(b)); }},
         {"cvt.rn.relu.bf16x2.f32 %r4, %r1, %r2;",
          [](auto a, auto b, auto) {
            const auto one = [](std::uint32_t x) { return toBf16(std::fmax(number(x), 0)); };
            return static_cast<std::uint32_t>(one(a) << 16 | one(b));
          }},
         {"cvt.rn.f16x2.f32 %r5, %r1, %r2;\ncvt.rn.f16x2.f32 %r6, %r2, %r3;\nfma.rn.f16x2 %r4, %r5, %r6, %r5;",
          [&](auto a, auto b, auto c) {
            const auto one = [&](std::uint32_t x, std::uint32_t y) {
              const double d = fromF16(half(x)), e = fromF16(half(y));
              return toF16(d * e + d);
            };
            return static_cast<std::uint32_t>(one(a, b) << 16 | one(b, c));
          }}},
        true);
}

TEST(NumberFormats, EveryHalfComesBack) {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const auto word = static_cast<std::uint16_t>(bits);
    if (!std::isnan(fromF16(word))) {
      ASSERT_EQ(toF16(fromF16(word)), word);
    }
    if (!std::isnan(fromBf16(word))) {
      ASSERT_EQ(toBf16(fromBf16(word)), word);
    }
  }
}

/// Ties round to even, values above a midpoint round up, and rounding toward zero yields the lower neighbour.
TEST(NumberFormats, RoundsToNearest) {
  for (unsigned bits = 0; bits < 0x7c00; bits += 7) {
    const double low = fromF16(static_cast<std::uint16_t>(bits));
    const double high = bits + 1 == 0x7c00 ? 65536 : fromF16(static_cast<std::uint16_t>(bits + 1));
    const double middle = (low + high) / 2;
    ASSERT_EQ(toF16(middle), bits + (bits & 1)) << bits;
    ASSERT_EQ(toF16(std::nextafter(middle, high)), bits + 1) << bits;
    ASSERT_EQ(toF16(std::nextafter(middle, low)), bits) << bits;
    ASSERT_EQ(toF16TowardZero(middle), bits) << bits;
  }
}

} // namespace
} // namespace kiln::ptx
