// SPDX-License-Identifier: Apache-2.0
//
// Weights are identified by the names of their sources: the same weight in two entries gets one layout.
#include "compiler/transforms/Passes.h"

#include "compiler/dialect/WeightUses.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <numeric>

namespace mlir::kiln {

#define GEN_PASS_DEF_LAYOUTWEIGHTS
#include "compiler/transforms/Passes.h.inc"

namespace {

struct LayOutWeights : impl::LayOutWeightsBase<LayOutWeights> {
  using LayOutWeightsBase::LayOutWeightsBase;
  LayOutWeights(WeightTileFunction weightTile, const LayOutWeightsOptions &options)
      : LayOutWeightsBase(options), weightTile(std::move(weightTile)) {}

  void runOnOperation() override {
    llvm::MapVector<Attribute, SmallVector<ParameterOp>> weights;
    getOperation().walk([&](ParameterOp parameter) { weights[parameter.getSourcesAttr()].push_back(parameter); });
    for (auto &[sources, parameters] : weights)
      takeView(parameters);
    for (auto &[sources, parameters] : weights)
      if (TiledAttr layout = chooseLayout(parameters)) {
        for (ParameterOp parameter : parameters) {
          auto type = cast<RankedTensorType>(parameter.getType());
          parameter.getResult().setType(RankedTensorType::get(type.getShape(), type.getElementType(), layout));
          parameter.removeStorageAttr();
        }
      } else if (ParameterOp parameter = parameters.front(); parameter.getStorage()) {
        parameter.emitOpError("has a storage that no use of it reads: ") << *parameter.getStorage();
        return signalPassFailure();
      }
  }

private:
  /// A weight that is only read through one reshape that preserves its first dimension, as a matrix or as the window of
  /// a 1D convolution, takes the reshaped type: its layout in memory is the same.
  static void takeView(ArrayRef<ParameterOp> parameters) {
    Type view;
    for (ParameterOp parameter : parameters)
      for (Operation *user : parameter.getResult().getUsers()) {
        auto reshape = dyn_cast<ReshapeOp>(user);
        if (!reshape || (view && reshape.getType() != view))
          return;
        view = reshape.getType();
      }
    auto read = dyn_cast_or_null<RankedTensorType>(view);
    if (!read || read.getRank() < 2 || !read.hasStaticShape())
      return;
    for (ParameterOp parameter : parameters) {
      auto type = cast<RankedTensorType>(parameter.getType());
      if (type.getRank() == 0 || type.getDimSize(0) != read.getDimSize(0) || parameter.getSources().size() > 1)
        return;
    }
    for (ParameterOp parameter : parameters) {
      SmallVector<Operation *> views(parameter.getResult().getUsers());
      parameter.getResult().setType(read);
      for (Operation *reshape : views) {
        reshape->getResult(0).replaceAllUsesWith(parameter.getResult());
        reshape->erase();
      }
    }
  }

  /// Returns the largest tile of at most `size` that divides `outputs` and is filled by vectors of 16 or 8 elements; 0
  /// if there is none.
  static int64_t divideInTiles(int64_t outputs, int64_t size) {
    for (int64_t lanes : {16, 8})
      for (int64_t tile = size / lanes * lanes; tile > 0; tile -= lanes)
        if (outputs % tile == 0)
          return tile;
    return 0;
  }

  TiledAttr chooseLayout(ArrayRef<ParameterOp> parameters) {
    ParameterOp parameter = parameters.front();
    StorageAttr storage = parameter.getStorageAttr();
    std::optional<int64_t> outputDim;
    bool isMultiplied = false, isMultipliedByBytes = false;
    if (storage)
      outputDim = storage.getDim();
    for (ParameterOp each : parameters)
      for (OpOperand &use : each.getResult().getUses()) {
        if (!takesLayout(use))
          return {};
        const std::optional<int64_t> dim = getOutputDim(use);
        // The weight is contracted along both dimensions, as a weight and its gradient are: tiles for one serve the
        // other badly.
        if (isMultiplied && dim && dim != outputDim && !storage)
          return {};
        isMultiplied |= dim.has_value();
        if (auto linear = dyn_cast<LinearOp>(use.getOwner()))
          isMultipliedByBytes |= linear.getScales() != nullptr;
        if (!outputDim)
          outputDim = dim;
      }
    if (!outputDim)
      return {};
    // A tile has outputs of one group only, so that the groups of a grouped_linear are stored one after another.
    int64_t groups = 1;
    for (ParameterOp each : parameters)
      for (Operation *user : each.getResult().getUsers())
        if (auto grouped = dyn_cast<GroupedLinearOp>(user))
          groups = std::lcm(groups, grouped.getNumGroups());
    ArrayRef<int64_t> shape = cast<RankedTensorType>(parameter.getType()).getShape();
    if (parameter.getSources().size() > 1 && int64_t(parameter.getJoinDim()) != *outputDim)
      return {};
    int64_t outputs = shape[*outputDim], inputs = ShapedType::getNumElements(shape) / outputs;
    // Integer contractions need the strategies for tiles of whole vectors, so int8-multiplied weights are never dense.
    constexpr int64_t many = 1024;
    int64_t size = weightTile ? weightTile(outputs / groups, inputs) : int64_t(tile);
    if (groups > 1 && size > 0)
      size = divideInTiles(outputs / groups, size);
    if (size == 0 && isMultipliedByBytes && weightTile)
      size = weightTile(many, inputs);
    // Sources that are joined along the columns, and quantised weights, are packed in tiles only: a single tile is
    // equivalent to dense.
    if (size == 0 && (storage || (parameter.getSources().size() > 1 && *outputDim == 1)))
      size = outputs / groups;
    // Rows that are only looked up keep their order.
    if (storage && !isMultiplied)
      size = 1;
    const bool isVnni = isMultipliedByBytes && storage && !storage.isGrouped(); // groups define their own interleave
    return size > 0 ? TiledAttr::get(&getContext(), *outputDim, size, isVnni ? int64_t(word) : 1, storage)
                    : TiledAttr();
  }

  WeightTileFunction weightTile;
};

} // namespace

std::unique_ptr<Pass> createLayOutWeights(WeightTileFunction weightTile, int64_t word) {
  LayOutWeightsOptions options;
  options.word = word;
  return std::make_unique<LayOutWeights>(std::move(weightTile), options);
}

} // namespace mlir::kiln
