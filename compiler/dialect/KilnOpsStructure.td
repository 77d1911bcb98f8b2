// SPDX-License-Identifier: Apache-2.0
//
// Structural ops: weights, constants, states, the repetition of equal layers, and loops over time.
include "KilnDialect.td"

def Kiln_ParameterOp : Kiln_Op<"parameter", [Kiln_ReadsVariables, Kiln_HostOp]> {
  let summary = "a weight that the caller binds by name";
  let description = [{
    A weight that the caller binds by name. Several sources are concatenated along dimension `join_dim` (default 0), with
    the sizes `source_extents`. Inside `kiln.repeat` the index of the layer is written `{}` in the name, once per enclosing
    repeat, and `copies` is the number of layers. A `variable` may be written between calls, so reading it is an effect. An
    f32 weight may have a `storage`, which becomes part of its layout. A `derived` weight is not a tensor of the file: the
    function with `kiln.derives` assigns it once, when weights are bound.

    ```mlir
    %weight = kiln.parameter {sources = ["wte.weight"], storage = #kiln.storage<i8>} : tensor<50257x768xf32>
    %scale = kiln.parameter {derived, sources = ["=0"]} : tensor<64xf32>
    ```
  }];
  let arguments = (ins StrArrayAttr:$sources, DefaultValuedAttr<I64Attr, "1">:$copies,
                       OptionalAttr<DenseI64ArrayAttr>:$source_extents, DefaultValuedAttr<I64Attr, "0">:$join_dim, UnitAttr:$variable,
                       OptionalAttr<Kiln_StorageAttr>:$storage, UnitAttr:$derived);
  let results = (outs Kiln_Tensor:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "::llvm::ArrayRef<::llvm::StringRef>":$sources, "int64_t":$copies,
                                 "bool":$isVariable)>];
}

def Kiln_ConstantOp : Kiln_Op<"constant", [Pure, ConstantLike, AllTypesMatch<["value", "result"]>,
                                           Kiln_InKernel<"Lookup", "Free">]> {
  let summary = "a constant tensor of the model";
  let description = [{
    A constant tensor of the model.

    ```mlir
    %half = kiln.constant dense<0.5> : tensor<f32>
    ```
  }];
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Kiln_Tensor:$result);
  let assemblyFormat = "$value attr-dict";
  let hasFolder = 1;
}

def Kiln_StateOp : Kiln_Op<"state", [Pure, Kiln_HostOp]> {
  let summary = "the first rows of a tensor that persists between calls";
  let description = [{
    The first rows of a tensor that persists between calls, as they were at the start of the call. The state has `rows` rows;
    inside `kiln.repeat` the index of the layer is written `{}` in its name, and `copies` is the number of layers.

    ```mlir
    %past = kiln.state "h.{}.keys" copies = 12 rows = 1024 : tensor<64x768xf32>
    ```
  }];
  let arguments = (ins StrAttr:$name, DefaultValuedAttr<I64Attr, "1">:$copies, I64Attr:$rows);
  let results = (outs Kiln_Tensor:$result);
  let assemblyFormat = "$name (`copies` `=` $copies^)? `rows` `=` $rows attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Kiln_AppendOp : Kiln_Op<"append", [MemoryEffects<[MemWrite]>, Kiln_HostOp]> {
  let summary = "appends rows to a state";
  let description = [{
    Writes rows to a state (`kiln.state`), as the last ones of its first rows, which are the result. With `column` it writes
    the columns of the operand from that one on.

    ```mlir
    %keys = kiln.append %k to "h.{}.keys" copies = 12 rows = 1024 : tensor<7x768xf32> -> tensor<64x768xf32>
    ```
  }];
  let arguments = (ins Kiln_Tensor:$x, StrAttr:$name, DefaultValuedAttr<I64Attr, "1">:$copies, I64Attr:$rows,
                       DefaultValuedAttr<I64Attr, "0">:$column);
  let results = (outs Kiln_Tensor:$result);
  let assemblyFormat = "$x (`column` `=` $column^)? `to` $name (`copies` `=` $copies^)? `rows` `=` $rows attr-dict `:` "
                       "type($x) `->` type($result)";
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
}

def Kiln_SlideOp : Kiln_Op<"slide", [MemoryEffects<[MemWrite]>, Kiln_HostOp]> {
  let summary = "writes rows after those of a state";
  let description = [{
    Writes rows after those of a state (`kiln.state`), and returns the state's rows with them. The state does not change until
    a `kiln.store` replaces it. If that stores the last rows of the result, they stay in place: the state's memory has `room` for
    more rows, and a counter of where its rows begin. It is a ring in which rows are stored twice, so that they are
    contiguous from every place.

    ```mlir
    %longer = kiln.slide %x after "heard" rows = 2 room = 13 : tensor<9x8xf32> -> tensor<11x8xf32>
    %last = kiln.slice %longer axis = 0 start = 9 : tensor<11x8xf32> -> tensor<2x8xf32>
    kiln.store %last to "heard" rows = 2 flushed : tensor<2x8xf32>
    ```
  }];
  let arguments = (ins Kiln_Tensor:$x, StrAttr:$name, DefaultValuedAttr<I64Attr, "1">:$copies, I64Attr:$rows, I64Attr:$room);
  let results = (outs Kiln_Tensor:$result);
  let assemblyFormat = "$x `after` $name (`copies` `=` $copies^)? `rows` `=` $rows `room` `=` $room attr-dict `:` "
                       "type($x) `->` type($result)";
  let hasVerifier = 1;
}

def Kiln_StoreOp : Kiln_Op<"store", [MemoryEffects<[MemWrite]>, Kiln_HostOp]> {
  let summary = "replaces a state";
  let description = [{
    Replaces a state (`kiln.state`). It follows all ops that read the state. `flushed`: floats below
    `least_state_magnitude` are stored as 0.

    ```mlir
    kiln.store %h to "hidden" rows = 4 : tensor<4x64xf32>
    kiln.store %h to "hidden" rows = 4 flushed : tensor<4x64xf32>
    ```
  }];
  let arguments = (ins Kiln_Tensor:$x, StrAttr:$name, DefaultValuedAttr<I64Attr, "1">:$copies, I64Attr:$rows,
                       UnitAttr:$flushed);
  let assemblyFormat = "$x `to` $name (`copies` `=` $copies^)? `rows` `=` $rows (`flushed` $flushed^)? attr-dict `:` type($x)";
  let hasVerifier = 1;
}

def Kiln_AssignOp : Kiln_Op<"assign", [Kiln_HostOp, AllTypesMatch<["x", "parameter"]>,
                                       DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "replaces a weight";
  let description = [{
    Replaces a weight that may be written, a `kiln.parameter` with `variable` or `derived`. It follows all ops that read
    the weight.

    ```mlir
    %weight = kiln.parameter {sources = ["head.weight"], variable} : tensor<4x64xf32>
    kiln.assign %next to %weight : tensor<4x64xf32>
    ```
  }];
  let arguments = (ins Kiln_Tensor:$x, Kiln_Tensor:$parameter);
  let assemblyFormat = "$x `to` $parameter attr-dict `:` type($x)";
  let hasVerifier = 1;
}

def Kiln_RequireFiniteOp : Kiln_Op<"require_finite", [MemoryEffects<[MemWrite]>, Kiln_HostOp]> {
  let summary = "ends the call with a status unless a number is finite";
  let description = [{
    Ends the call of the entry with KILN_NOT_FINITE if the number is NaN or infinite.

    ```mlir
    kiln.require_finite %loss : tensor<f32>
    ```
  }];
  let arguments = (ins RankedTensorOf<[F32]>:$x);
  let assemblyFormat = "$x attr-dict `:` type($x)";
  let hasVerifier = 1;
}

def Kiln_StopGradientOp : Kiln_Op<"stop_gradient", [Pure, SameOperandsAndResultType, Kiln_HostOp]> {
  let summary = "its operand, as a constant for gradients";
  let description = [{
    Its operand, as a constant for gradients. It exists only until entries are differentiated.

    ```mlir
    %0 = kiln.stop_gradient %x : tensor<7x768xf32>
    ```
  }];
  let arguments = (ins Kiln_FloatTensor:$x);
  let results = (outs Kiln_FloatTensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($x)";
}

def Kiln_RunningAverageOp : Kiln_Op<"running_average", [Pure, SameOperandsAndResultType, Kiln_HostOp,
                                                        Kiln_Differentiable]> {
  let summary = "a value that updates a running average";
  let description = [{
    Its operand `value`. The gradient of the parameter `kept` is its distance from the target, by which a training step moves
    it. It exists only until entries are differentiated.

    ```mlir
    %0 = kiln.running_average %running_mean, %mean, %mean : tensor<64xf32>
    ```
  }];
  let arguments = (ins Kiln_FloatTensor:$kept, Kiln_FloatTensor:$value, Kiln_FloatTensor:$target);
  let results = (outs Kiln_FloatTensor:$result);
  let assemblyFormat = "$kept `,` $value `,` $target attr-dict `:` type($result)";
}

def Kiln_CustomOp : Kiln_Op<"custom", [Pure, Kiln_HostOp, Kiln_Differentiable]> {
  let summary = "a call of a function that the program defines";
  let description = [{
    The results of a function of the program for the operands. Nothing is known of it but its name and its types. With
    `workspace` the last result is memory that the function may use, in bytes; nothing reads it. `derivative` names the
    function that computes the gradients of the floating-point operands from all operands and the gradients of the
    floating-point results.

    ```mlir
    %y, %next = kiln.custom "biquad"(%x, %memory) : (tensor<64x2xf32>, tensor<2x2xf32>) -> (tensor<64x2xf32>, tensor<2x2xf32>)
    %z, %bytes = kiln.custom "warp"(%x) derivative = "warp_gradient" workspace : (tensor<64x2xf32>) -> (tensor<64x2xf32>, tensor<512xi8>)
    ```
  }];
  let arguments = (ins StrAttr:$function, Variadic<Kiln_Tensor>:$inputs, OptionalAttr<StrAttr>:$derivative, UnitAttr:$workspace);
  let results = (outs Variadic<Kiln_Tensor>:$results);
  let assemblyFormat = "$function `(` $inputs `)` (`derivative` `=` $derivative^)? (`workspace` $workspace^)? attr-dict `:` "
                       "functional-type($inputs, $results)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The results without the workspace.
    ::mlir::ResultRange getOutputs();
    /// The workspace; null if there is none.
    ::mlir::Value getMemory();
    /// The positions of the symbols of the operands' and the results' extents, in the order of their first use: each is an
    /// argument of the function.
    ::llvm::SmallVector<unsigned> getSymbolPositions();
  }];
}

class Kiln_LoopOp<string mnemonic, list<Trait> traits = []>
    : Kiln_Op<mnemonic, !listconcat([RecursiveMemoryEffects, SingleBlock, Kiln_HostOp,
        DeclareOpInterfaceMethods<Kiln_LoopInterface, ["getNumCarried", "getTripCount"]>], traits)> {
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
  let skipDefaultBuilders = 1;
}

def Kiln_RepeatOp : Kiln_LoopOp<"repeat", [DeclareOpInterfaceMethods<Kiln_LoopInterface, ["isOverLayers"]>]> {
  let summary = "a stack of equal layers";
  let description = [{
    Runs its body `count` times: the first time on the initial values, then on the values that the body yielded before. The
    results are those that it yields last, then its other yielded values, stacked along a new first axis: all hidden states,
    for instance. The body may use values of the enclosing region; its parameters have a copy for each layer.

    ```mlir
    %result = kiln.repeat 12 (%x = %init : tensor<64xf32>) {
      %bias = kiln.parameter {sources = ["h.{}.bias"], copies = 12} : tensor<64xf32>
      %next = kiln.add %x, %bias : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
      kiln.yield %next : tensor<64xf32>
    }
    %last, %all = kiln.repeat 12 (%x = %init : tensor<64xf32>) -> (tensor<12x64xf32>) {
      %next = kiln.tanh %x : tensor<64xf32>
      kiln.yield %next, %next : tensor<64xf32>, tensor<64xf32>
    }
    ```
  }];
  let arguments = (ins I64Attr:$count, Variadic<Kiln_Tensor>:$inits);
  let results = (outs Variadic<Kiln_Tensor>:$results);
  let builders = [OpBuilder<(ins "int64_t":$count, "::mlir::ValueRange":$inits,
      CArg<"::mlir::TypeRange", "{}">:$stacked,
      CArg<"::llvm::function_ref<void(::mlir::OpBuilder &, ::mlir::Location, ::mlir::ValueRange)>", "nullptr">:$buildBody)>];
}

def Kiln_ScanOp : Kiln_LoopOp<"scan", [AttrSizedOperandSegments, AttrSizedResultSegments,
                                       DeclareOpInterfaceMethods<Kiln_LoopInterface, ["isOverLayers"]>]> {
  let summary = "a loop over the first axis of sequences";
  let description = [{
    Runs its body for every index of the first axis of the sequences, from the last one if `reverse`: the first time on the initial
    values and the first slices, then on the values that the body yielded before and the next slices. Its other yielded values are
    stacked along a new first axis. The results are the values that it yields last, then the stacked ones. The body may use values
    of the enclosing region. With `layers` iteration i is layer i of a stack, as in `kiln.repeat`, and the body has parameters:
    differentiation turns a stack into such a loop in reverse order.

    A loop with `ahead` is interleaved with the next one, which has the same trip count and reads the stacked results (1F1B):
    stage s of S runs iteration k + S - 1 - s of this loop, then iteration k of the next. `ahead` slices of each stacked value
    are kept.

    With `until` the first carried value is a boolean scalar, and once it is true, no iteration changes carried values and
    all stacked values are 0 (false): host code on CPUs then leaves the loop. Passes may drop the attribute.

    ```mlir
    %last, %all = kiln.scan (%h = %init : tensor<4x64xf32>) over (%x = %xs : tensor<9x4x64xf32>) -> (tensor<9x4x64xf32>) {
      %sum = kiln.add %h, %x : (tensor<4x64xf32>, tensor<4x64xf32>) -> tensor<4x64xf32>
      kiln.yield %sum, %sum : tensor<4x64xf32>, tensor<4x64xf32>
    }
    ```
  }];
  let arguments = (ins Variadic<Kiln_Tensor>:$inits, Variadic<Kiln_Tensor>:$sequences, UnitAttr:$reverse, UnitAttr:$layers, UnitAttr:$until,
                       DefaultValuedAttr<I64Attr, "0">:$ahead);
  let results = (outs Variadic<Kiln_Tensor>:$last, Variadic<Kiln_Tensor>:$stacked);
  let builders = [OpBuilder<(ins "::mlir::ValueRange":$inits, "::mlir::ValueRange":$sequences, "::mlir::TypeRange":$stacked,
      "bool":$reverse, CArg<"bool", "false">:$layers)>];
}

def Kiln_EachSequenceOp : Kiln_LoopOp<"each_sequence"> {
  let summary = "a loop over the sequences of a batched entry";
  let description = [{
    Runs its body for each sequence of a call. The operands have the rows of all sequences, concatenated along the first axis;
    the body has the rows of one sequence, and the results are concatenated likewise. States in the body are those of the
    sequence, and so are the values of all symbols but two: symbol `count` is the number of sequences, and `rows`, if present,
    the sum of symbol `own` over them. So n rows of each sequence are n * count rows in total, and `own` rows are `rows`.

    ```mlir
    kiln.each_sequence 0 () {
      %zeros = kiln.constant dense<0.0> : tensor<4x64xf32>
      kiln.store %zeros to "hidden" rows = 4 : tensor<4x64xf32>
      kiln.yield
    }
    ```
  }];
  let arguments = (ins I64Attr:$count, OptionalAttr<DenseI64ArrayAttr>:$rows, Variadic<Kiln_Tensor>:$wholes);
  let results = (outs Variadic<Kiln_Tensor>:$results);
  let builders = [OpBuilder<(ins "::mlir::kiln::BatchSymbols":$symbols, "::mlir::ValueRange":$wholes,
                                 "::mlir::TypeRange":$slices, "::mlir::TypeRange":$results)>];
  let extraClassDeclaration = [{
    ::mlir::kiln::BatchSymbols getBatchSymbols();
  }];
}

def Kiln_YieldOp : Kiln_Op<"yield", [Pure, Terminator, Kiln_HostOp, ParentOneOf<["RepeatOp", "ScanOp", "EachSequenceOp"]>]> {
  let summary = "the values of a loop's body";
  let description = [{
    Ends the body of a loop with the carried values of the next iteration, then the outputs of this one.
  }];
  let arguments = (ins Variadic<Kiln_Tensor>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
}
