// SPDX-License-Identifier: Apache-2.0
//
// Roots, reciprocals, exponentials: computed in f64 and rounded, so that they are more accurate than the hardware's
// .approx.
#include <cmath>

#include "Decoder.h"
#include "Lanes.h"

namespace kiln::ptx {
namespace {

template <double (*function)(double)> struct Math {
  template <class T> static T apply(T a) { return static_cast<T>(function(a)); }
};

double reciprocal(double a) { return 1 / a; }
double reciprocalRoot(double a) { return 1 / std::sqrt(a); }
double root(double a) { return std::sqrt(a); }
double power(double a) { return std::exp2(a); }
double logarithm(double a) { return std::log2(a); }
double sine(double a) { return std::sin(a); }
double cosine(double a) { return std::cos(a); }
double hyperbolic(double a) { return std::tanh(a); }

template <double (*function)(double)> void decodeMath(Decoding &d) {
  if (d.takeOneOf({"approx", "rn"}).empty())
    d.fail("rounding other than .rn and .approx is not modelled");
  const bool ftz = d.take("ftz");
  const Type type = d.takeType();
  const Handler handler = forFloats<Unary, Math<function>>(type, ftz);
  if (!handler)
    d.failType(type);
  d.expectOperands(2);
  d.target(d.operand(0), type);
  d.source(d.operand(1), type);
  d.emit(handler);
}

} // namespace

std::span<const Opcode> approximationOpcodes() {
  static constexpr Opcode opcodes[] = {{"cos", &decodeMath<&cosine>},
                                       {"ex2", &decodeMath<&power>},
                                       {"lg2", &decodeMath<&logarithm>},
                                       {"rcp", &decodeMath<&reciprocal>},
                                       {"rsqrt", &decodeMath<&reciprocalRoot>},
                                       {"sin", &decodeMath<&sine>},
                                       {"sqrt", &decodeMath<&root>},
                                       {"tanh", &decodeMath<&hyperbolic>}};
  return opcodes;
}

} // namespace kiln::ptx
