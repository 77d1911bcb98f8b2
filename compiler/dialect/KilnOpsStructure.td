// SPDX-License-Identifier: Apache-2.0
//
// What holds a model together: weights, constants and the repetition of equal layers.
include "KilnDialect.td"

def Kiln_ParameterOp : Kiln_Op<"parameter", [Pure]> {
  let summary = "a weight that the caller binds by name";
  let description = [{
    A weight that the caller binds by name. Several sources are joined along dimension `join_dim` (0 unless given) and
    `source_extents` says how much of it each one is. Inside `kiln.repeat` the index of the layer is written `{}` in the
    name, once per enclosing repeat, and `copies` is the number of layers.

    ```mlir
    %weight = kiln.parameter {sources = ["wte.weight"]} : tensor<50257x768xf32>
    ```
  }];
  let arguments = (ins StrArrayAttr:$sources, DefaultValuedAttr<I64Attr, "1">:$copies,
                       OptionalAttr<DenseI64ArrayAttr>:$source_extents, DefaultValuedAttr<I64Attr, "0">:$join_dim);
  let results = (outs Kiln_Tensor:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "::llvm::ArrayRef<::llvm::StringRef>":$sources, "int64_t":$copies)>];
}

def Kiln_ConstantOp : Kiln_Op<"constant", [Pure, ConstantLike, AllTypesMatch<["value", "result"]>]> {
  let summary = "a tensor whose values the model states";
  let description = [{
    A tensor whose values the model states.

    ```mlir
    %half = kiln.constant dense<0.5> : tensor<f32>
    ```
  }];
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Kiln_Tensor:$result);
  let assemblyFormat = "$value attr-dict";
  let hasFolder = 1;
}

def Kiln_RepeatOp : Kiln_Op<"repeat", [RecursiveMemoryEffects, SingleBlock]> {
  let summary = "equal layers one after another";
  let description = [{
    Runs its body `count` times: the first time on the initial values, then on the values that the body yielded before. The
    results are those that it yields last. The body may use values from above; the parameters inside it have a copy for each layer.

    ```mlir
    %result = kiln.repeat 12 (%x = %init : tensor<64xf32>) {
      %bias = kiln.parameter {sources = ["h.{}.bias"], copies = 12} : tensor<64xf32>
      %next = kiln.add %x, %bias : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
      kiln.yield %next : tensor<64xf32>
    }
    ```
  }];
  let arguments = (ins I64Attr:$count, Variadic<Kiln_Tensor>:$inits);
  let results = (outs Variadic<Kiln_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "int64_t":$count, "::mlir::ValueRange":$inits,
      CArg<"::llvm::function_ref<void(::mlir::OpBuilder &, ::mlir::Location, ::mlir::ValueRange)>", "nullptr">:$buildBody)>];
  let extraClassDeclaration = [{
    /// The op that ends the body.
    YieldOp getYield();
    /// The values of one iteration inside the body.
    ::mlir::Block::BlockArgListType getCarried() { return getBody().getArguments(); }
  }];
}

def Kiln_YieldOp : Kiln_Op<"yield", [Pure, Terminator, HasParent<"RepeatOp">]> {
  let summary = "the values that the next layer gets";
  let description = [{
    Ends the body of `kiln.repeat` with the values that the next layer gets.
  }];
  let arguments = (ins Variadic<Kiln_Tensor>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
}
