// SPDX-License-Identifier: Apache-2.0
//
// Functions of the program: their prototypes in NAME.h, and what a library with them cannot be.
#include "compiler/driver/Compile.h"
#include "compiler/library/Headers.h"
#include "kiln/dsl.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

constexpr Dim customRows{"linux", 1, 9}; // a macro, which is no name of a parameter

struct Called : Model {
  Linear<4, 4> fc{"fc"};
  constexpr auto forward(Tensor<f32, customRows, 4> x, Tensor<i32, 3> indices) const {
    auto [y, isThere] = custom<"warp", Tensor<f16, customRows, 2>, Tensor<boolean>>(
        {.workspace = 4 * customRows + 1, .derivative = "warp_gradient"}, fc(x), indices);
    return outputs(where(isThere, y, 0), custom<"half", Tensor<f32, customRows, 4>>(x));
  }
};

struct Learned : Model {
  Linear<4, 4> fc{"fc"};
  constexpr auto loss(Tensor<f32, 3, 4> x) const {
    auto y = custom<"warp", Tensor<f32, 3, 4>>({.derivative = "warp_gradient"}, fc(x));
    return mse(y, x);
  }
  static constexpr auto entries() { return std::tuple{gradients("learn", &Learned::loss, {"x"}, {"loss"})}; }
};

struct Underived : Model {
  Linear<4, 4> fc{"fc"};
  constexpr auto loss(Tensor<f32, 3, 4> x) const { return mse(custom<"warp", Tensor<f32, 3, 4>>(fc(x)), x); }
  static constexpr auto entries() { return std::tuple{gradients("learn", &Underived::loss, {"x"}, {"loss"})}; }
};

/// A function of inputs needs no derivative.
struct Prepared : Model {
  Linear<4, 4> fc{"fc"};
  constexpr auto loss(Tensor<f32, 3, 4> x) const { return mse(fc(custom<"warp", Tensor<f32, 3, 4>>(x)), x); }
  static constexpr auto entries() { return std::tuple{gradients("learn", &Prepared::loss, {"x"}, {"loss"})}; }
};

struct Clashing : Model {
  constexpr auto forward(Tensor<f32, 3> x) const { return custom<"half", Tensor<f32, 3>>(x); }
  static constexpr auto entries() { return std::tuple{entry("custom_half", &Clashing::forward)}; }
};

struct Crossed : Model {
  constexpr auto forward(Tensor<f32, 3> x) const {
    return custom<"half", Tensor<f32, 3>>(custom<"warp", Tensor<f32, 3>>({.derivative = "half"}, x));
  }
};

struct Compiled {
  std::string errors, header;
};

template <class M> Compiled compiled(CompileOptions options = {}) {
  options.name = "net";
  if (options.targets.empty())
    options.targets = {"x86-64-v2"};
  options.form = EmitForm::Linalg;
  Compiled result;
  llvm::raw_string_ostream errors(result.errors);
  mlir::FailureOr<CompileReport> report = compileModel(trace<M>(), options, errors);
  if (succeeded(report))
    result.header = writeCHeader(report->model, report->variants);
  return result;
}

std::string withOptions(const std::function<void(CompileOptions &)> &change) {
  CompileOptions options;
  change(options);
  return compiled<Called>(std::move(options)).errors;
}

TEST(CustomFunctions, HavePrototypes) {
  const std::string header = compiled<Called>().header;
  EXPECT_NE(header.find(" *   linux_: extent, 1 .. 9\n"
                        " *   input0: f32 [linux_, 4]\n"
                        " *   input1: i32 [3]\n"
                        " *   output0: f16 [linux_, 2]\n"
                        " *   output1: boolean []\n"
                        " *   workspace: 4 * linux_ + 1 bytes, aligned to KILN_ARENA_ALIGNMENT, undefined before and "
                        "after\n"
                        " */\n"
                        "void net_custom_warp(int64_t linux_,\n"
                        "    const float *input0,\n"
                        "    const int32_t *input1,\n"
                        "    uint16_t *output0,\n"
                        "    uint8_t *output1,\n"
                        "    void *workspace);\n"),
            std::string::npos)
      << header;
  EXPECT_NE(header.find("void net_custom_half(int64_t linux_,\n    const float *input,\n    float *output);\n"),
            std::string::npos);
  EXPECT_EQ(header.find("warp_gradient("), std::string::npos) << "no entry calls it";
  EXPECT_NE(compiled<Learned>().header.find("void net_custom_warp_gradient(const float *input0,\n"
                                            "    const float *input1,\n    float *output);\n"),
            std::string::npos);
  EXPECT_EQ(compiled<Prepared>().errors, "");
}

TEST(CustomFunctions, AreRefusedWithWords) {
  const std::string begin = "error: custom: function \"half\" is defined by the program; expected ";
  EXPECT_EQ(withOptions([](CompileOptions &options) { options.isShared = true; }),
            begin + "an archive, since nothing defines the function in a shared object, got a shared object\n");
  EXPECT_EQ(withOptions([](CompileOptions &options) { options.bindings = {"rust"}; }),
            begin + "no bindings, since the function is one of C, got those for rust\n");
  EXPECT_EQ(withOptions([](CompileOptions &options) { options.hasSelfTest = true; }),
            begin + "no self-test, since the compiler cannot call the function, got one\n");
  EXPECT_EQ(withOptions([](CompileOptions &options) { options.targets = {"cuda"}; }),
            begin + "CPUs as targets, got cuda\n");
  const std::string missing = checkBuilt({.ranks = 2}); // empty in a build with KILN_PARALLEL
  EXPECT_EQ(withOptions([](CompileOptions &options) { options.lowering.ranks.ranks = 2; }),
            missing.empty() ? begin + "one process, got --ranks 2\n" : "error: " + missing + "\n");
}

TEST(CustomFunctions, OfWrongNamesAreRefused) {
  EXPECT_EQ(compiled<Clashing>().errors,
            "error: model \"net\": the function of entry \"custom_half\" and the custom function \"half\" are both "
            "net_custom_half; expected names that differ in more than upper and lower case, also with the model's "
            "prefix\n");
  EXPECT_EQ(compiled<Crossed>().errors,
            "error: custom: function \"half\" has two signatures; expected that of the derivative of another one to be "
            "the operands and the gradients of results, then the gradients of operands\n");
}

TEST(CustomFunctions, WithoutADerivativeEndTheDifferentiation) {
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(compiled<Underived>().header, "");
  EXPECT_NE(::testing::internal::GetCapturedStderr().find(
                "custom: function has no derivative; expected one between a parameter and the loss, got warp"),
            std::string::npos);
}

} // namespace
} // namespace kiln
