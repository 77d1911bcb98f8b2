// SPDX-License-Identifier: Apache-2.0
//
// Elementwise ops.
include "KilnDialect.td"

// Declares the scalar function of an elementwise op (lowering/Pointwise.cpp).
defvar computeDeclaration = [{
  /// Computes the element of the result from those of the operands.
  ::mlir::Value compute(ElementBuilder &builder, ::llvm::ArrayRef<::mlir::Value> x);
}];

// `expression`: the op on constants a and b, doubles or 64-bit integers. `neutral`: the value of b, if any, for which
// the result is a. `idempotent`: whether the result for x and x is x.
class Kiln_BinaryOp<string mnemonic, string formula, string expression, string neutral = "std::nullopt",
                    string cost = "Cheap", list<Trait> traits = [], string idempotent = "false">
    : Kiln_InferredOp<mnemonic, !listconcat([Kiln_Pointwise<cost>, Kiln_Differentiable], traits)> {
  let summary = formula;
  let description = formula # [{, element by element; the operands broadcast as NumPy does.

    ```mlir
    %0 = kiln.}] # mnemonic # [{ %x, %y : (tensor<7x768xf32>, tensor<768xf32>) -> tensor<7x768xf32>
    ```
  }];
  let arguments = (ins Kiln_NumericTensor:$lhs, Kiln_NumericTensor:$rhs);
  let results = (outs Kiln_NumericTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
  let extraClassDeclaration = computeDeclaration # [{
    static constexpr std::optional<int> neutral = }] # neutral # [{;
    static constexpr bool isIdempotent = }] # idempotent # [{;
    template <class T> static T evaluate(T a, T b) { return }] # expression # [{; }
  }];
  let extraClassDefinition = [{
    ::llvm::LogicalResult $cppClass::inferReturnTypes(::mlir::MLIRContext *, std::optional<::mlir::Location> location,
                                                      Adaptor op, ::llvm::SmallVectorImpl<::mlir::Type> &types) {
      return inferBroadcast(location, op.getOperands(), {}, types);
    }
    ::mlir::OpFoldResult $cppClass::fold(FoldAdaptor constants) {
      return foldBinary(*this, constants.getLhs(), constants.getRhs());
    }
  }];
}

def Kiln_AddOp : Kiln_BinaryOp<"add", "x + y", "a + b", "0", "Cheap", [Commutative]>;
def Kiln_SubOp : Kiln_BinaryOp<"sub", "x - y", "a - b", "0">;
def Kiln_MulOp : Kiln_BinaryOp<"mul", "x y", "a * b", "1", "Cheap", [Commutative]>;
def Kiln_DivOp : Kiln_BinaryOp<"div", "x / y", "std::is_integral_v<T> && b == 0 ? 0 : a / b", "1", "Costly">;
def Kiln_MaximumOp : Kiln_BinaryOp<"maximum", "the larger one of x and y, NaN if one of them is", "a > b || a != a ? a : b",
                                   "std::nullopt", "Cheap", [Commutative], "true">;

def Kiln_MinimumOp : Kiln_BinaryOp<"minimum", "the smaller one of x and y, NaN if one of them is", "a < b || a != a ? a : b",
                                   "std::nullopt", "Cheap", [Commutative], "true">;

class Kiln_ComparisonOp<string mnemonic, string formula> : Kiln_InferredOp<mnemonic, [Kiln_Pointwise<>]> {
  let summary = "whether " # formula;
  let description = "Whether " # formula # [{; the operands broadcast as NumPy does.

    ```mlir
    %0 = kiln.}] # mnemonic # [{ %x, %y : (tensor<7x1xi32>, tensor<4xi32>) -> tensor<7x4xi1>
    ```
  }];
  let arguments = (ins Kiln_NumericTensor:$lhs, Kiln_NumericTensor:$rhs);
  let results = (outs Kiln_BooleanTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = computeDeclaration;
  let extraClassDefinition = [{
    ::llvm::LogicalResult $cppClass::inferReturnTypes(::mlir::MLIRContext *context,
                                                      std::optional<::mlir::Location> location, Adaptor op,
                                                      ::llvm::SmallVectorImpl<::mlir::Type> &types) {
      return inferBroadcast(location, op.getOperands(), ::mlir::IntegerType::get(context, 1), types);
    }
  }];
}

def Kiln_LessOp : Kiln_ComparisonOp<"less", "x < y">;
def Kiln_LessEqualOp : Kiln_ComparisonOp<"less_equal", "x <= y">;
def Kiln_EqualOp : Kiln_ComparisonOp<"equal", "x == y">;

class Kiln_LogicOp<string mnemonic, string formula> : Kiln_InferredOp<mnemonic, [Kiln_Pointwise<>, Commutative]> {
  let summary = "whether " # formula # " hold";
  let description = "Whether " # formula # [{ hold; the operands broadcast as NumPy does.

    ```mlir
    %0 = kiln.}] # mnemonic # [{ %x, %y : (tensor<7x1xi1>, tensor<4xi1>) -> tensor<7x4xi1>
    ```
  }];
  let arguments = (ins Kiln_BooleanTensor:$lhs, Kiln_BooleanTensor:$rhs);
  let results = (outs Kiln_BooleanTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = computeDeclaration;
  let extraClassDefinition = [{
    ::llvm::LogicalResult $cppClass::inferReturnTypes(::mlir::MLIRContext *, std::optional<::mlir::Location> location,
                                                      Adaptor op, ::llvm::SmallVectorImpl<::mlir::Type> &types) {
      return inferBroadcast(location, op.getOperands(), {}, types);
    }
  }];
}

def Kiln_LogicalAndOp : Kiln_LogicOp<"logical_and", "x and y">;
def Kiln_LogicalOrOp : Kiln_LogicOp<"logical_or", "x or y or both">;
def Kiln_LogicalXorOp : Kiln_LogicOp<"logical_xor", "either x or y">;

def Kiln_CastOp : Kiln_Op<"cast", [Pure, SameOperandsAndResultShape, Kiln_HasExtents, Kiln_Pointwise<>,
                               Kiln_Differentiable]> {
  let summary = "the elements as numbers of another type";
  let description = [{
    The elements as numbers of the result's type: a boolean is 0 or 1; casts to i32 and i8 truncate, and numbers beyond
    the range become the nearest f32 number within it.

    ```mlir
    %0 = kiln.cast %x : tensor<7xi32> -> tensor<7xf32>
    ```
  }];
  let arguments = (ins Kiln_Tensor:$x);
  let results = (outs Kiln_NumericTensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($result)";
  let extraClassDeclaration = computeDeclaration;
  let hasVerifier = 1;
}

def Kiln_WhereOp : Kiln_InferredOp<"where", [Kiln_Pointwise<>, Kiln_Differentiable]> {
  let summary = "x where a condition holds, y elsewhere";
  let description = [{
    x where the condition holds, y elsewhere; the three broadcast as NumPy does. The other value has no effect, even if it is NaN.

    ```mlir
    %0 = kiln.where %condition, %x, %y : (tensor<7x1xi1>, tensor<7x768xf32>, tensor<f32>) -> tensor<7x768xf32>
    ```
  }];
  let arguments = (ins Kiln_BooleanTensor:$condition, Kiln_Tensor:$lhs, Kiln_Tensor:$rhs);
  let results = (outs Kiln_Tensor:$result);
  let assemblyFormat = "$condition `,` $lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = computeDeclaration;
}

def Kiln_DropoutOp : Kiln_Op<"dropout", [Pure, AllTypesMatch<["x", "result"]>, Kiln_HasExtents, Kiln_InKernel<"Pointwise", "Costly">,
                                     Kiln_IndexOperands, Kiln_Differentiable]> {
  let summary = "elements that are dropped at random, with the others scaled";
  let description = [{
    0 for each element with the probability p, x / (1 - p) for the others. Element e, counted along the last axis first, is dropped
    if the upper 24 bits of a word are below p 2^24: word 0 of Philox4x32-10 (Salmon et al. 2011, section 3.3) for the counter
    (e, `stream`, `iteration`, `step`) and the key (`seed`, 0). All of these are integers, so that the same elements are dropped
    on every machine. `iteration` is that of the loops around, none is 0.

    ```mlir
    %0 = kiln.dropout %x, %seed, %step probability = 0.1 stream = 3
        : (tensor<7x768xf32>, tensor<i32>, tensor<i32>) -> tensor<7x768xf32>
    %1 = kiln.dropout %x, %seed, %step, %layer probability = 0.1 stream = 4
        : (tensor<7x768xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<7x768xf32>
    ```
  }];
  let arguments = (ins Kiln_FloatTensor:$x, Kiln_IntegerTensor:$seed, Kiln_IntegerTensor:$step,
                       Optional<Kiln_IntegerTensor>:$iteration, F64Attr:$probability, I64Attr:$stream);
  let results = (outs Kiln_FloatTensor:$result);
  let assemblyFormat = [{
    $x `,` $seed `,` $step (`,` $iteration^)? `probability` `=` $probability `stream` `=` $stream attr-dict `:`
    functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

// `expression`: the op on a constant x, a double.
class Kiln_UnaryOp<string mnemonic, string formula, string expression, string cost = "Costly", list<Trait> traits = []>
    : Kiln_Op<mnemonic, !listconcat([Pure, SameOperandsAndResultType, Kiln_HasExtents, Kiln_Pointwise<cost>, Kiln_Differentiable],
                                    traits)> {
  let summary = formula;
  let description = formula # [{, element by element.

    ```mlir
    %0 = kiln.}] # mnemonic # [{ %x : tensor<7x768xf32>
    ```
  }];
  let arguments = (ins Kiln_FloatTensor:$x);
  let results = (outs Kiln_FloatTensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($result)";
  let hasFolder = 1;
  let extraClassDeclaration = computeDeclaration # [{
    static double evaluate(double x) { return }] # expression # [{; }
  }];
  let extraClassDefinition = [{
    ::mlir::OpFoldResult $cppClass::fold(FoldAdaptor constants) { return foldUnary(*this, constants.getX()); }
  }];
}

def Kiln_ExpOp : Kiln_UnaryOp<"exp", "e^x", "std::exp(x)">;
def Kiln_LogOp : Kiln_UnaryOp<"log", "the natural logarithm of x", "std::log(x)">;
def Kiln_SqrtOp : Kiln_UnaryOp<"sqrt", "the square root of x", "std::sqrt(x)">;
def Kiln_TanhOp : Kiln_UnaryOp<"tanh", "the hyperbolic tangent of x", "std::tanh(x)">;
def Kiln_SigmoidOp : Kiln_UnaryOp<"sigmoid", "1 / (1 + e^-x)", "1 / (1 + std::exp(-x))">;
def Kiln_ReluOp : Kiln_UnaryOp<"relu", "max(x, 0)", "x < 0 ? 0 : x", "Cheap", [Idempotent]>;
def Kiln_GeluOp : Kiln_UnaryOp<"gelu", "x (1 + erf(x / sqrt(2))) / 2", "x * (1 + std::erf(x / std::numbers::sqrt2)) / 2">;
def Kiln_GeluTanhOp : Kiln_UnaryOp<"gelu_tanh", "x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2",
    "x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x))) / 2">;
def Kiln_SiluOp : Kiln_UnaryOp<"silu", "x / (1 + e^-x)", "x / (1 + std::exp(-x))">;
def Kiln_SoftplusOp : Kiln_UnaryOp<"softplus", "log(1 + e^x)", "std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)))">;
def Kiln_AbsOp : Kiln_UnaryOp<"abs", "|x|", "std::abs(x)", "Cheap", [Idempotent]>;
def Kiln_FloorOp : Kiln_UnaryOp<"floor", "the largest integer that is not above x", "std::floor(x)", "Cheap", [Idempotent]>;
def Kiln_RoundOp : Kiln_UnaryOp<"round", "the nearest integer, of two the even one,", "std::nearbyint(x)", "Cheap", [Idempotent]>;
def Kiln_SinOp : Kiln_UnaryOp<"sin", "the sine of x", "std::sin(x)">;
def Kiln_CosOp : Kiln_UnaryOp<"cos", "the cosine of x", "std::cos(x)">;
def Kiln_ErfOp : Kiln_UnaryOp<"erf", "the error function of x", "std::erf(x)">;
def Kiln_Expm1Op : Kiln_UnaryOp<"expm1", "e^x - 1", "std::expm1(x)">;
def Kiln_Log1pOp : Kiln_UnaryOp<"log1p", "log(1 + x)", "std::log1p(x)">;
// Only the compiler creates it, for the derivative of gelu.
def Kiln_NormalCdfOp : Kiln_UnaryOp<"normal_cdf", "(1 + erf(x / sqrt(2))) / 2",
    "(1 + std::erf(x / std::numbers::sqrt2)) / 2">;
