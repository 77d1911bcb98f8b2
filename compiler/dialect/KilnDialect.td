// SPDX-License-Identifier: Apache-2.0
//
// The kiln dialect, its attributes and the type constraints that the op families share.
#ifndef KILN_DIALECT
#define KILN_DIALECT

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/TensorEncoding.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "KilnInterfaces.td"

def Kiln_Dialect : Dialect {
  let name = "kiln";
  let cppNamespace = "::mlir::kiln";
  let summary = "Operations of transformer models with value semantics on ranked tensors";
  let description = [{
    One op for each op of dsl/SPEC.md, with the same name. Extents are exact: a tensor with dynamic dimensions has an affine
    map without dimensions as its encoding. The results of the map are the extents, over the symbols of the module:

    ```
    module attributes {kiln.symbols = [#kiln.symbol<"tokens", 1, 1024>]}
    tensor<?x768xf32, affine_map<()[s0] -> (s0, 768)>>
    ```
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasConstantMaterializer = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
}

class Kiln_Attr<string name, string attrMnemonic, list<Trait> traits = []> : AttrDef<Kiln_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

def Kiln_SymbolAttr : Kiln_Attr<"Symbol", "symbol"> {
  let summary = "A named dynamic dimension with inclusive bounds";
  let description = [{
    An element of the module's `kiln.symbols`; the symbol `s_i` of an extents map in an entry function is the i-th of them.
    Example: `#kiln.symbol<"tokens", 1, 1024>`. With `least`, it is at least as large as that symbol, which every call checks.
  }];
  let parameters = (ins StringRefParameter<"the name of the dimension in the model">:$name, "int64_t":$min, "int64_t":$max,
                        StringRefParameter<"a symbol that is a lower bound, if any", [{""}]>:$least);
  let assemblyFormat = "`<` $name `,` $min `,` $max (`,` `least` `=` $least^)? `>`";
  let genVerifyDecl = 1;
}

def Kiln_StorageAttr : Kiln_Attr<"Storage", "storage"> {
  let summary = "The storage format of an f32 weight in fewer bits";
  let description = [{
    The weight has the dequantised values (dsl/SPEC.md, Stored weights), and is f32 for all ops that read it. f16 and bf16
    are rounded; others have a scale for each index of dimension `dim`, the outputs, or, with a `group`, for each index and
    each group of elements along K, and with `zero` also a zero point; some have outer scales, too. Each is a row of dsl/include/kiln/formats.def.
    `#kiln.storage<i8, dim = 1>` `#kiln.storage<i4, group = 32, zero = true>`
  }];
  let parameters = (ins TypeParameter<"::mlir::Type", "the stored element type">:$element,
                        DefaultValuedParameter<"int64_t", "0">:$dim,
                        DefaultValuedParameter<"int64_t", "0">:$group,
                        DefaultValuedParameter<"bool", "false">:$zero);
  let builders = [AttrBuilder<(ins "::mlir::Type":$element, "int64_t":$dim),
                              [{ return $_get($_ctxt, element, dim, 0, false); }]>];
  let assemblyFormat = "`<` $element (`,` struct($dim, $group, $zero)^)? `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    bool hasScales() const;
    /// Whether scales apply to groups of elements.
    bool isGrouped() const { return getGroup() != 0; }
  }];
}

def Kiln_TiledAttr : Kiln_Attr<"Tiled", "tiled", [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let summary = "The stored layout of a weight whose dimension `dim` is split into tiles of `size`";
  let description = [{
    Stored dense as [ceil(extent / size)][other extents][size], zero padded. `tensor<3072x768xf32, #kiln.tiled<0, 48>>` and
    its transpose `tensor<768x3072xf32, #kiln.tiled<1, 48>>` have equal bytes. The other dimensions are collapsed:
    `tensor<512x256x3x3xf32, #kiln.tiled<0, 64>>` is [8][2304][64].

    With a `storage`, the quantised elements have this order. Scales and zero points, if any, follow as arrays of their
    own, which dsl/include/kiln/formats.h defines. `#kiln.tiled<0, 48, storage = <i8>>`

    K is the product of the other extents. With `interleave`, that number of consecutive elements along K is adjacent:
    [tiles][ceil(K / interleave)][size][interleave], zero padded, for dot-product instructions (VNNI layout). For i8 the
    interleave is 2 or 4 bytes. With 4, the sums that follow the scales are subtracted from GEMMs whose instructions multiply
    x + 128 instead of x. Code generation supports no other interleave: `kiln-verify-kernels`, kernel compilers and the placement of weights reject them.
  }];
  let parameters = (ins "int64_t":$dim, "int64_t":$size, DefaultValuedParameter<"int64_t", "1">:$interleave,
                        OptionalParameter<"::mlir::kiln::StorageAttr">:$storage);
  let builders = [AttrBuilder<(ins "int64_t":$dim, "int64_t":$size),
                              [{ return $_get($_ctxt, dim, size, 1, StorageAttr()); }]>];
  let assemblyFormat = "`<` $dim `,` $size (`,` struct($interleave, $storage)^)? `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    bool isInterleaved() const { return getInterleave() != 1; }
    /// Whether i8 elements are interleaved along K (VNNI layout).
    bool isVnni() const;
    /// Whether code generation supports the layout.
    bool isGenerated() const { return !isInterleaved() || isVnni(); }
    /// Whether elements are just tiled: without interleave and quantised storage.
    bool isPlain() const { return !isInterleaved() && !getStorage(); }
    /// The product of the other dimensions (K).
    int64_t kExtentOf(::llvm::ArrayRef<int64_t> shape) const;
    /// [tiles, other dimensions / interleave, size] for a weight of this shape.
    ::llvm::SmallVector<int64_t, 3> getStoredShape(::llvm::ArrayRef<int64_t> shape) const;
  }];
}

def Kiln_ShardAttr : Kiln_Attr<"Shard", "shard"> {
  let summary = "The shard of a weight that a rank has";
  let description = [{
    An element of the module's `kiln.shards`, under the name of a weight. Dimension `dim` of the tensor in the file is a
    sequence of sections, and a rank has an equal share of each: with `#kiln.shard<1, [768, 768, 768]>` and 4 ranks the
    second rank has columns 192..383, 960..1151 and 1728..1919. With a group, that number of ranks have the same share:
    with `#kiln.shard<0, [128], group = 2>` and 4 ranks the first two have rows 0..63. Ops see only the rank's shard.
  }];
  let parameters = (ins "int64_t":$dim, ArrayRefParameter<"int64_t">:$sections, DefaultValuedParameter<"int64_t", "1">:$group);
  let assemblyFormat = "`<` $dim `,` `[` $sections `]` (`,` `group` `=` $group^)? `>`";
  let genVerifyDecl = 1;
}

def Kiln_WeightOrder : I32EnumAttr<"WeightOrder", "how a checkpoint stores the weight of a linear layer", [
  I32EnumAttrCase<"OutIn", 0, "out_in">,
  I32EnumAttrCase<"InOut", 1, "in_out">
]> {
  let cppNamespace = "::mlir::kiln";
  let genSpecializedAttr = 0;
}
def Kiln_WeightOrderAttr : EnumAttr<Kiln_Dialect, Kiln_WeightOrder, "weight_order">;

def Kiln_Group : I32EnumAttr<"Group", "processes that do something together", [
  I32EnumAttrCase<"Ranks", 0, "ranks">,       // tensor-parallel ranks of one model
  I32EnumAttrCase<"Replicas", 1, "replicas">, // data-parallel replicas, which train one model with different inputs
  I32EnumAttrCase<"Stages", 2, "stages">      // pipeline stages, each with consecutive layers of one model
]> {
  let cppNamespace = "::mlir::kiln";
  let genSpecializedAttr = 0;
}
def Kiln_GroupAttr : EnumAttr<Kiln_Dialect, Kiln_Group, "group">;

def Kiln_Way : I32EnumAttr<"Way", "ways from stage to stage", [
  I32EnumAttrCase<"Onward", 0, "onward">, // to the next stage
  I32EnumAttrCase<"Back", 1, "back">,     // to the previous stage
  I32EnumAttrCase<"Across", 2, "across">  // between the first and the last stage, both ways
]> {
  let cppNamespace = "::mlir::kiln";
  let genSpecializedAttr = 0;
}
def Kiln_WayAttr : EnumAttr<Kiln_Dialect, Kiln_Way, "way">;

// The types that a model's tensors may have (compiler/dialect/ElementTypes.h).
class Kiln_Element<string predicate, string text> : Type<CPred<"::mlir::kiln::" # predicate # "($_self)">, text>;
def Kiln_FloatTensor : RankedTensorOf<[Kiln_Element<"isFloatingNumber", "floating-point">]>;
def Kiln_NumericTensor : RankedTensorOf<[Kiln_Element<"isNumber", "numeric">]>;
def Kiln_IntegerTensor : RankedTensorOf<[I32]>;
def Kiln_BooleanTensor : RankedTensorOf<[I1]>;
def Kiln_Tensor : RankedTensorOf<[Kiln_Element<"isElement", "numeric or boolean">]>;

// Declares which operands are indices.
def Kiln_IndexOperands : DeclareOpInterfaceMethods<Kiln_IndexOperandsInterface>;

// Whether one of the operands has integer elements only, which may be indices; and whether an op has a trait.
class Kiln_HasIntegers<dag operands> {
  list<string> constraints = !foreach(i, !range(!size(operands)),
      !if(!initialized(!getdagarg<Optional>(operands, i)), !cast<string>(!getdagarg<Optional>(operands, i).baseType),
      !if(!initialized(!getdagarg<Variadic>(operands, i)), !cast<string>(!getdagarg<Variadic>(operands, i).baseType),
      !if(!initialized(!getdagarg<TypeConstraint>(operands, i)), !cast<string>(!getdagarg<TypeConstraint>(operands, i)),
      "of an attribute"))));
  bit yes = !not(!empty(!filter(constraint, constraints, !eq(constraint, "Kiln_IntegerTensor"))));
}
class Kiln_HasTrait<list<Trait> traits, string name> {
  bit yes = !not(!empty(!filter(trait, traits, !eq(!cast<string>(trait), name))));
}

class Kiln_Op<string mnemonic, list<Trait> traits = []> : Op<Kiln_Dialect, mnemonic, traits> {
  assert !or(!not(Kiln_HasIntegers<arguments>.yes), Kiln_HasTrait<traits, "Kiln_IndexOperands">.yes),
         "kiln." # mnemonic # " has an integer operand: Kiln_IndexOperands must state whether it has indices";
}

// Traits of compiler/dialect/KernelOp.h.
class Kiln_Trait<string name> : NativeOpTrait<name> { let cppNamespace = "::mlir::kiln"; }
def Kiln_HostOp : Kiln_Trait<"HostOp">;
def Kiln_Rewritten : Kiln_Trait<"Rewritten">;
def Kiln_RowNorm : Kiln_Trait<"RowNorm">;
def Kiln_HasExtents : Kiln_Trait<"HasExtents">;
def Kiln_HasInferredTypes : Kiln_Trait<"HasInferredTypes">;

class Kiln_Role<string role, string cost>
    : ParamNativeOpTrait<"InKernel", "::mlir::kiln::KernelRole::" # role # ", ::mlir::kiln::ElementCost::" # cost> {
  let cppNamespace = "::mlir::kiln";
}
// The op's role in a kernel, and the optional methods of KernelOpInterface that it implements.
class Kiln_InKernel<string role, string cost = "Cheap", list<string> methods = []>
    : TraitList<[Kiln_Role<role, cost>, DeclareOpInterfaceMethods<Kiln_KernelOpInterface, methods>]>;

class Kiln_PointwiseTrait<string cost> : ParamNativeOpTrait<"Pointwise", "::mlir::kiln::ElementCost::" # cost> {
  let cppNamespace = "::mlir::kiln";
}
class Kiln_Pointwise<string cost = "Cheap"> : TraitList<[Kiln_PointwiseTrait<cost>, Kiln_KernelOpInterface]>;

// Has a derivative.
def Kiln_Differentiable : DeclareOpInterfaceMethods<Kiln_DifferentiableInterface>;

// An op that has a read effect if it reads a variable, and no effect otherwise.
def Kiln_ReadsVariables : TraitList<[AlwaysSpeculatable, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]>;

// An op without effects whose result type follows from its operands and attributes (compiler/dialect/types/). Its
// verifier infers and compares; the interface's own would report a broken rule a second time.
class Kiln_InferredOp<string mnemonic, list<Trait> traits = []>
    : Kiln_Op<mnemonic, !listconcat([Pure, Kiln_HasInferredTypes, InferTypeOpAdaptorBase<[{
        static ::llvm::LogicalResult refineReturnTypes(::mlir::MLIRContext *, std::optional<::mlir::Location>,
                                                       ::mlir::ValueRange, ::mlir::DictionaryAttr, ::mlir::OpaqueProperties,
                                                       ::mlir::RegionRange, ::llvm::SmallVectorImpl<::mlir::Type> &) {
          return ::mlir::success();
        }
      }]>], traits)>;

#endif // KILN_DIALECT
