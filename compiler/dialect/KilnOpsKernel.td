// SPDX-License-Identifier: Apache-2.0
//
// Ops that kernel formation introduces: the kernel call and the sinusoidal encoding with its table of frequencies.
include "KilnDialect.td"
include "mlir/IR/SymbolInterfaces.td"

def Kiln_CallOp : Kiln_Op<"call", [Kiln_ReadsVariables, Kiln_HostOp, AttrSizedOperandSegments, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "the call of a kernel function";
  let description = [{
    The call of a kernel function. The types here have extents over the module's symbols, those of the kernel over its
    index arguments, whose values are in brackets. `func.call` cannot express this, since it requires equal types.

    With `ends` it is a call for each group of rows that is not empty. Rows are sorted by group: a group ends before the
    row that its end names, and the last one has all rows that are left. The kernel's only index argument is the number of
    rows, and all tensors have rows but those that `per_group` numbers, which have one part for each group along their
    first axis.

    ```mlir
    %0 = kiln.call @kernel_3[%rows](%x, %bias)
        : (tensor<?x768xf32, affine_map<()[s0, s1] -> (s0 * s1, 768)>>, tensor<768xf32>)
        -> tensor<?x768xf32, affine_map<()[s0, s1] -> (s0 * s1, 768)>>
    ```

    Here the part of each of eight groups has 512 rows of weights:

    ```mlir
    %1 = kiln.call @kernel_4[%rows](%0, %weights) ends %ends : tensor<8xi32> {per_group = array<i64: 1>}
        : (tensor<7x768xf32>, tensor<4096x768xf32>) -> tensor<7x512xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee, Variadic<Index>:$extents, Variadic<Kiln_Tensor>:$arguments,
                       Optional<RankedTensorOf<[I32]>>:$ends, OptionalAttr<DenseI64ArrayAttr>:$per_group);
  let results = (outs Variadic<Kiln_Tensor>:$results);
  let assemblyFormat = [{
    $callee (`[` $extents^ `]`)? `` `(` $arguments `)` (`ends` $ends^ `:` type($ends))? attr-dict
    `:` functional-type($arguments, $results)
  }];
  let extraClassDeclaration = [{
    /// Returns the number of groups; 1 without `ends`.
    int64_t getNumGroups();
    /// Returns the type that the kernel has for a tensor of this type that `per_group` numbers: that of one group's part.
    static ::mlir::RankedTensorType getPart(::mlir::RankedTensorType type, int64_t groups);
    bool isPerGroup(int64_t argument);
  }];
}

def Kiln_SinusoidOp : Kiln_Op<"sinusoid", [Pure, Kiln_InKernel<"Lookup", "Costly">, Kiln_IndexOperands]> {
  let summary = "sines of the positions times a table of frequencies";
  let description = [{
    Column c of position p is sin(2 pi / 2^32 (p (table[0, c] + f) + table[2, c])), where f is the float whose bits are
    table[1, c]: a frequency and a phase in units of 2^-32 turns. f32 positions have another row, the bits of the frequency
    in turns, by which the fraction of a position is multiplied. If pairs have axes, the last row is that of column c
    along the positions' first axis. Kernel formation makes it from `kiln.sinusoidal`.

    ```mlir
    %0 = kiln.sinusoid %positions, %table : (tensor<7xi32>, tensor<3x512xi32>) -> tensor<7x512xf32>
    ```
  }];
  let arguments = (ins RankedTensorOf<[I32, F32]>:$positions, Kiln_IntegerTensor:$table);
  let results = (outs Kiln_FloatTensor:$result);
  let assemblyFormat = "$positions `,` $table attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = [{
    bool hasFloatPositions() {
      return isa<FloatType>(cast<RankedTensorType>(getPositions().getType()).getElementType());
    }
    /// Whether the last row of the table selects a slice of the positions for each column.
    bool hasAxes() {
      return cast<RankedTensorType>(getTable().getType()).getDimSize(0) == (hasFloatPositions() ? 5 : 4);
    }
  }];
  let hasVerifier = 1;
}
