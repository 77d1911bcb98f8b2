// SPDX-License-Identifier: Apache-2.0
//
// Structural ops: weights, constants, states, the repetition of equal layers, and loops over time.
include "KilnDialect.td"

def Kiln_ParameterOp : Kiln_Op<"parameter", [Kiln_ReadsVariables, Kiln_HostOp]> {
  let summary = "a weight that the caller binds by name";
  let description = [{
    A weight that the caller binds by name. Several sources are joined along dimension `join_dim` (0 unless given) and
    `source_extents` says how much of it each one is. Inside `kiln.repeat` the index of the layer is written `{}` in the
    name, once per enclosing repeat, and `copies` is the number of layers. A `variable` may be written between calls, so
    that reading it is an effect. A weight of f32 may have a `storage`, which its layout takes up. A `derived` one is no
    tensor of the file: the function with `kiln.derives` assigns it, once, when weights are bound.

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

def Kiln_StateOp : Kiln_Op<"state", [Pure, Kiln_HostOp]> {
  let summary = "the first rows of a tensor that lives between calls";
  let description = [{
    The first rows of a tensor that lives between calls, as the call found them. The state has `rows` in all; inside `kiln.repeat` the
    index of the layer is written `{}` in its name, and `copies` is the number of layers.

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
  let summary = "rows written to a tensor that lives between calls";
  let description = [{
    Writes rows to a state (`kiln.state`), as the last ones of its first rows, which are the result. With `column` they are columns
    of the operand, from that one on.

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
  let summary = "rows written after those of a state";
  let description = [{
    Writes rows after those of a state (`kiln.state`), and gives the state's rows with them. The state stays as it is until a
    `kiln.store` replaces it. If that stores the last rows of the result, nothing is copied: the state's memory has `room` for
    more rows, and remembers where its rows begin. What begins after more than `rows` others is moved to the beginning.

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
  let summary = "the value that the next call finds in a state";
  let description = [{
    Replaces a state (`kiln.state`). Stands after everything that reads the state. `flushed`: floats below
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
  let summary = "the value that a weight has from now on";
  let description = [{
    Replaces a weight that may be written, a `kiln.parameter` with `variable` or `derived`. Stands after everything that
    reads it.

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
  let summary = "its operand, for gradients a constant";
  let description = [{
    Its operand, for gradients a constant. Stands in entries that are to be differentiated, until they are.

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
  let summary = "a value that a parameter is to go towards";
  let description = [{
    The value. As the gradient of the parameter that is kept stands its distance from the target, by which a step moves it. Stands
    in entries that are to be differentiated, until they are.

    ```mlir
    %0 = kiln.running_average %running_mean, %mean, %mean : tensor<64xf32>
    ```
  }];
  let arguments = (ins Kiln_FloatTensor:$kept, Kiln_FloatTensor:$value, Kiln_FloatTensor:$target);
  let results = (outs Kiln_FloatTensor:$result);
  let assemblyFormat = "$kept `,` $value `,` $target attr-dict `:` type($result)";
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
  let summary = "equal layers one after another";
  let description = [{
    Runs its body `count` times: the first time on the initial values, then on the values that the body yielded before. The
    results are those that it yields last, then what else it yields, stacked along a new first axis: all hidden states, for
    instance. The body may use values from above; the parameters inside it have a copy for each layer.

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
    values and the first slices, then on the values that the body yielded before and the next slices. What else it yields is
    stacked along a new first axis. The results are the values that it yields last, then the stacked ones. The body may use values
    from above. With `layers` iteration i is layer i of a stack, as of `kiln.repeat`, and parameters stand inside: what
    differentiation makes of a stack, which it goes through backwards.

    A loop that is `ahead` goes on together with the next one, which has as many iterations and reads what this one stacks: stage s
    of S runs iteration k + S - 1 - s of this one, then iteration k of that one. Of each stacked value `ahead` slices are kept.

    ```mlir
    %last, %all = kiln.scan (%h = %init : tensor<4x64xf32>) over (%x = %xs : tensor<9x4x64xf32>) -> (tensor<9x4x64xf32>) {
      %sum = kiln.add %h, %x : (tensor<4x64xf32>, tensor<4x64xf32>) -> tensor<4x64xf32>
      kiln.yield %sum, %sum : tensor<4x64xf32>, tensor<4x64xf32>
    }
    ```
  }];
  let arguments = (ins Variadic<Kiln_Tensor>:$inits, Variadic<Kiln_Tensor>:$sequences, UnitAttr:$reverse, UnitAttr:$layers,
                       DefaultValuedAttr<I64Attr, "0">:$ahead);
  let results = (outs Variadic<Kiln_Tensor>:$last, Variadic<Kiln_Tensor>:$stacked);
  let builders = [OpBuilder<(ins "::mlir::ValueRange":$inits, "::mlir::ValueRange":$sequences, "::mlir::TypeRange":$stacked,
      "bool":$reverse, CArg<"bool", "false">:$layers)>];
}

def Kiln_EachSequenceOp : Kiln_LoopOp<"each_sequence"> {
  let summary = "what a batched entry does for each of its sequences";
  let description = [{
    Runs its body for each sequence of a call. The operands have the rows of all sequences, one sequence behind another along the
    first axis, and the body gets those of its own; what it yields lies likewise in the results. In the body states are the
    sequence's, and so are the values of all symbols but two: symbol `count` is the number of sequences, and `rows`, if there is
    one, the sum of symbol `own` over them. So n rows of a sequence are n * count in all, and `own` rows are `rows`.

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
  let summary = "what the body of a loop gives";
  let description = [{
    Ends the body of a loop with the values that the next iteration gets, then the outputs of this one.
  }];
  let arguments = (ins Variadic<Kiln_Tensor>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
}
