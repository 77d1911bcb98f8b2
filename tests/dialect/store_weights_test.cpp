// SPDX-License-Identifier: Apache-2.0
//
// The storage formats of a model's weights.
#include "compiler/dialect/KilnDialect.h"
#include "compiler/pipeline/ImportModel.h"
#include "kiln/dsl.h"
#include "mlir/IR/Verifier.h"
#include <array>
#include <gtest/gtest.h>
#include <map>

namespace kiln {
namespace {

StorageChoices parsed(const std::string &text) {
  std::string error;
  std::optional<StorageChoices> choices = parseStorageChoices(text, error);
  EXPECT_TRUE(choices) << error;
  return choices.value_or(StorageChoices());
}

std::string mistakeIn(const std::string &text) {
  std::string error;
  EXPECT_FALSE(parseStorageChoices(text, error));
  return error;
}

TEST(StorageChoices, AreWhatTheTextSays) {
  for (const std::string text :
       {"f32", "f16", "bf16", "int8", "fp8", "mxfp4", "q8_0", "fp8_block", "nvfp4", "q4_k", "q6_k", "int4<128>",
        "int4_zero<64>", "int8 except a.*=f16", "f32 except *=int8 b=f32"})
    EXPECT_EQ(toString(parsed(text)), text);
  EXPECT_EQ(toString(parsed("int8 except a=f16,b=bf16")), "int8 except a=f16 b=bf16");
  EXPECT_TRUE(parsed("f32").isPlain());
  EXPECT_FALSE(parsed("f32 except a=f16").isPlain());
}

TEST(StorageChoices, MistakesAreSaid) {
  const std::string formats = "f32, f16, bf16, int8, int4, fp8, mxfp4, q8_0, fp8_block, nvfp4, q4_k or q6_k";
  EXPECT_EQ(mistakeIn(""), "no type; expected " + formats + ", got nothing");
  EXPECT_EQ(mistakeIn("int4<48>"), "unknown type; expected " + formats + ", got \"int4<48>\"");
  EXPECT_EQ(mistakeIn("int9"), "unknown type; expected " + formats + ", got \"int9\"");
  EXPECT_EQ(mistakeIn("q8_0<64>"), "unknown type; expected " + formats + ", got \"q8_0<64>\"");
  EXPECT_EQ(mistakeIn("int8 a=f16"), "wrong form; expected \"TYPE except PATTERN=TYPE ...\", got \"int8 a=f16\"");
  EXPECT_EQ(mistakeIn("int8 except"), "wrong form; expected \"TYPE except PATTERN=TYPE ...\", got \"int8 except\"");
  EXPECT_EQ(mistakeIn("int8 except =f16"),
            "wrong exception; expected PATTERN=TYPE with a type " + formats + ", got \"=f16\"");
  EXPECT_EQ(mistakeIn("int8 except a=i4"),
            "wrong exception; expected PATTERN=TYPE with a type " + formats + ", got \"a=i4\"");
}

/// Weights of each kind: tied, a matrix of either order, an addend, one that may be written, and no matrix.
struct Kinds : Model {
  constexpr auto forward(Tensor<i32, 4> tokens, Tensor<f32, 4, 8> x) const {
    auto tied = parameter<f32, 40, 8>(x, "tied");
    auto y = matmul(embedding(tokens, tied), parameter<f32, 8, 8>(x, "in_out")) + parameter<f32, 4, 8>(x, "addend");
    auto z = linear(y, parameter<f32, 8, 8>(x, "written")) + embedding(tokens, parameter<f32, 9, 8>(x, "table"));
    return linear(z, tied, parameter<f32, 40>(x, "bias"));
  }
  static constexpr Names variables{"written"};
};

std::map<std::string, std::string> storagesOf(const Graph &graph, const std::string &text, std::string &said) {
  mlir::MLIRContext context;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
    said = diagnostic.str();
    return mlir::success();
  });
  mlir::OwningOpRef<mlir::ModuleOp> module = importModel(graph, &context, "kinds", parsed(text));
  std::map<std::string, std::string> storages;
  if (!module)
    return storages;
  EXPECT_TRUE(succeeded(mlir::verify(*module)));
  module->walk([&](mlir::kiln::ParameterOp parameter) {
    std::string storage;
    if (std::optional<mlir::kiln::StorageAttr> attribute = parameter.getStorage())
      llvm::raw_string_ostream(storage) << *attribute;
    storages[mlir::cast<mlir::StringAttr>(parameter.getSources()[0]).getValue().str()] = storage;
  });
  return storages;
}
std::map<std::string, std::string> storagesOf(const std::string &text, std::string &said) {
  return storagesOf(trace<Kinds>(), text, said);
}

TEST(StoreWeights, TakesWhatIsReadAsAMatrix) {
  std::string said;
  EXPECT_EQ(storagesOf("int8 except in_*=f16 table=f32", said),
            (std::map<std::string, std::string>{{"tied", "#kiln.storage<i8>"},
                                                {"in_out", "#kiln.storage<f16, dim = 1>"},
                                                {"addend", ""},
                                                {"written", ""},
                                                {"table", ""},
                                                {"bias", ""}}));
  EXPECT_EQ(said, "");
  EXPECT_EQ(storagesOf("f32 except *=int8 ti*=bf16", said)["tied"], "#kiln.storage<bf16>");
  EXPECT_EQ(storagesOf("f32 except *=int8 ti*=bf16", said)["table"], "#kiln.storage<i8>");
}

struct Deep : Model {
  constexpr auto forward(Tensor<f32, 4, 64> x) const {
    auto y = linear(x, parameter<int4_zero<64>, 96, 64>(x, "stated"));
    return linear(linear(y, parameter<f32, 40, 96>(x, "wide")), parameter<f32, 8, 40>(x, "odd"));
  }
};

TEST(StoreWeights, GroupsAreWhole) {
  std::string said;
  using Storages = std::map<std::string, std::string>;
  EXPECT_EQ(storagesOf(trace<Deep>(), "int4", said), (Storages{{"stated", "#kiln.storage<i4, group = 64, zero = true>"},
                                                               {"wide", "#kiln.storage<i4, group = 32>"},
                                                               {"odd", ""}}))
      << said;
  EXPECT_TRUE(storagesOf(trace<Deep>(), "f32 except wide=int4<64>", said).empty());
  EXPECT_EQ(said, "weights \"wide=int4<64>\" cannot be obeyed: weight \"wide\": the 96 numbers of an output are no "
                  "whole groups of 64");
}

struct Blocks : Model {
  constexpr auto forward(Tensor<f32, 4, 256> x) const {
    auto y = linear(x, parameter<q4_k, 96, 256>(x, "stated"));
    return linear(y, parameter<f32, 40, 96>(x, "wide"));
  }
};

TEST(StoreWeights, BlocksAreWhole) {
  std::string said;
  using Storages = std::map<std::string, std::string>;
  EXPECT_EQ(storagesOf(trace<Blocks>(), "nvfp4", said),
            (Storages{{"stated", "#kiln.storage<ui4, group = 32>"}, {"wide", "#kiln.storage<f4E2M1FN, group = 16>"}}))
      << said;
  EXPECT_EQ(storagesOf(trace<Blocks>(), "q8_0", said)["wide"], "#kiln.storage<i8, group = 32>");
  EXPECT_EQ(storagesOf(trace<Blocks>(), "q6_k", said)["wide"], "");
  EXPECT_EQ(storagesOf(trace<Blocks>(), "q6_k except st*=q6_k", said)["stated"], "#kiln.storage<i6, group = 16>");
  EXPECT_TRUE(storagesOf(trace<Blocks>(), "f32 except wide=q4_k", said).empty());
  EXPECT_EQ(said, "weights \"wide=q4_k\" cannot be obeyed: weight \"wide\": the 96 numbers of an output are no whole "
                  "groups of 256");
}

TEST(StoreWeights, SaysWhyAnExceptionCannotBeObeyed) {
  auto refusal = [](const std::string &text) {
    std::string said;
    EXPECT_TRUE(storagesOf(text, said).empty());
    return said;
  };
  EXPECT_EQ(refusal("int8 except nothing=f16"),
            "weights \"nothing=f16\" cannot be obeyed: no weight is named so; nearest: tied, addend, bias");
  EXPECT_EQ(refusal("int8 except bias=f16"), "weights \"bias=f16\" cannot be obeyed: weight \"bias\": it is no matrix");
  EXPECT_EQ(refusal("f32 except written=int8"),
            "weights \"written=int8\" cannot be obeyed: weight \"written\": it may be written between calls");
  EXPECT_EQ(refusal("f32 except addend=int8"), "weights \"addend=int8\" cannot be obeyed: weight \"addend\": kiln.add "
                                               "reads it otherwise than as a matrix");
}

/// Storage formats that the spec states for a layer's weight and for parameters, one of which two entries read; two
/// parameters are left to the build.
struct Stated : Model {
  Linear<8, 8, true, WeightOrder::in_out, int8> fc{"fc"};
  constexpr auto first(Tensor<i32, 4> tokens) const {
    return fc(embedding(tokens, parameter<stored<bf16>, 40, 8>(tokens, "table")));
  }
  constexpr auto second(Tensor<f32, 4, 8> x) const {
    auto y = linear(linear(x, parameter<stored<f32>, 8, 8>(x, "whole")), parameter<f32, 8, 8>(x, "left"));
    return linear(y, parameter<stored<bf16>, 40, 8>(x, "table")) + parameter<f32, 4, 40>(x, "addend");
  }
  static constexpr auto entries() {
    return std::tuple{entry("first", &Stated::first), entry("second", &Stated::second)};
  }
};

TEST(StoreWeights, AnExceptionCountsBeforeTheSpecAndThatBeforeTheDefault) {
  std::string said;
  using Storages = std::map<std::string, std::string>;
  Storages wanted = {{"fc.weight", "#kiln.storage<i8, dim = 1>"},
                     {"fc.bias", ""},
                     {"table", "#kiln.storage<bf16>"},
                     {"whole", ""},
                     {"left", ""},
                     {"addend", ""}};
  EXPECT_EQ(storagesOf(trace<Stated>(), "f32", said), wanted);
  wanted["left"] = "#kiln.storage<f16>";
  EXPECT_EQ(storagesOf(trace<Stated>(), "f16", said), wanted);
  wanted["fc.weight"] = "#kiln.storage<f16, dim = 1>";
  wanted["table"] = "";
  wanted["whole"] = "#kiln.storage<i8>";
  EXPECT_EQ(storagesOf(trace<Stated>(), "f16 except w*=int8 t*=int8 fc.*=f16 table=f32", said), wanted);
  EXPECT_EQ(said, "");
}

// Graphs that did not come from the DSL, which rejects such specs itself.
TEST(StoreWeights, SaysWhyASpecCannotBeObeyed) {
  auto refusal = [](const std::string &weight, const std::string &text = "f32", Storage storage = int8) {
    Graph graph = trace<Kinds>();
    for (Parameter &parameter : graph.parameters)
      if (graph.name(parameter) == weight)
        parameter.storage = storage;
    std::string said;
    EXPECT_EQ(storagesOf(graph, text, said).empty(), !said.empty());
    return said;
  };
  EXPECT_EQ(refusal("bias"), "weight \"bias\" cannot be stored as int8: it is no matrix");
  EXPECT_EQ(refusal("written"), "weight \"written\" cannot be stored as int8: it may be written between calls");
  EXPECT_EQ(refusal("addend", "f16"),
            "weight \"addend\" cannot be stored as int8: kiln.add reads it otherwise than as a matrix");
  EXPECT_EQ(refusal("tied", "f16 except bias=f32"), "");
  EXPECT_EQ(refusal("bias", "f32", stored<f32>), "");
  EXPECT_EQ(refusal("bias", "int8 except b*=f32"), "");
  EXPECT_EQ(refusal("tied", "f32", Storage(i32)), "forward: parameter: unknown storage; expected f32, f16, bf16, int8, "
                                                  "int4, fp8, mxfp4, q8_0, fp8_block, nvfp4, q4_k or q6_k, got 3");
}

/// Two GEMMs with one activation, one with another, and a weight that no linear uses.
struct ProductsOfRows : Model {
  constexpr auto forward(Tensor<f32, 4, 8> x) const {
    auto y = linear(x, parameter<f32, 6, 8>(x, "left")) + linear(x, parameter<f32, 6, 8>(x, "right"));
    return linear(y, parameter<f32, 5, 6>(x, "last")) + matmul(x, parameter<f32, 8, 5>(x, "matmul"));
  }
};

/// Returns how many linears take int8 and f32 activations, and how many quantisations there are.
std::array<int, 3> rowsOf(const std::string &text, std::string &said) {
  mlir::MLIRContext context;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
    said = diagnostic.str();
    return mlir::success();
  });
  StorageChoices choices = parsed(text);
  choices.quantizesRows = true;
  mlir::OwningOpRef<mlir::ModuleOp> module = importModel(trace<ProductsOfRows>(), &context, "products", choices);
  std::array<int, 3> counts{};
  if (!module)
    return counts;
  EXPECT_TRUE(succeeded(mlir::verify(*module)));
  module->walk([&](mlir::kiln::LinearOp linear) { ++counts[linear.getScales() ? 0 : 1]; });
  module->walk([&](mlir::kiln::QuantizeRowsOp) { ++counts[2]; });
  return counts;
}

TEST(Activations, RowsAreInt8WhereLinearReadsInt8) {
  std::string said;
  EXPECT_EQ(rowsOf("int8", said), (std::array{3, 0, 3})); // equal ones are merged by CSE after the import
  EXPECT_EQ(rowsOf("int8 except left=f16", said), (std::array{2, 1, 2}));
  EXPECT_EQ(rowsOf("f32 except right=int8", said), (std::array{1, 2, 1}));
  EXPECT_EQ(said, "");
  for (const char *none : {"f32", "f16", "nvfp4", "f32 except matmul=int8"}) {
    rowsOf(none, said);
    EXPECT_EQ(said,
              "activations of int8: no quantised weights; expected some of int8 or int4 that linear reads, got none")
        << none;
    said.clear();
  }
}

TEST(Activations, MistakesAreSaid) {
  std::string error;
  EXPECT_EQ(parseActivations("int8", error), true);
  EXPECT_EQ(parseActivations("f32", error), false);
  EXPECT_EQ(error, "");
  EXPECT_EQ(parseActivations("int4", error), std::nullopt);
  EXPECT_EQ(error, "unknown type; expected f32 or int8, got \"int4\"");
}

} // namespace
} // namespace kiln
