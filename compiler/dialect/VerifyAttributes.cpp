// SPDX-License-Identifier: Apache-2.0
//
// Verifiers of attributes, including those on modules, functions and their arguments.
#include "compiler/dialect/ElementTypes.h"
#include "compiler/dialect/Extents.h"
#include "compiler/dialect/KilnDialect.h"
#include "compiler/dialect/StoredParts.h"
#include "compiler/dialect/Training.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::kiln {

LogicalResult SymbolAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringRef name, int64_t min, int64_t max,
                                 StringRef) {
  if (name.empty())
    return emitError() << "symbol: empty name; expected at least one character";
  if (min < 1 || min > max)
    return emitError() << "symbol \"" << name << "\": wrong bounds; expected 1 <= minimum <= maximum, got " << min
                       << " and " << max;
  return success();
}

LogicalResult StorageAttr::verify(function_ref<InFlightDiagnostic()> emitError, Type element, int64_t dim,
                                  int64_t group, bool zero) {
  const std::optional<::kiln::ElementType> known = toElementType(element);
  if (!known || !::kiln::Storage(*known).has_fewer_bits() || !::kiln::is_format_element(*known))
    return emitError() << "storage: unsupported element type; expected " << ::kiln::format_elements.data() << ", got "
                       << element;
  if (dim < 0)
    return emitError() << "storage: negative dimension; expected at least 0, got " << dim;
  if (!::kiln::find_format(*known, group, zero))
    return emitError() << "storage of " << element << ": unsupported groups; expected those of a storage format, got "
                       << group << (zero ? " with zero points" : "");
  return success();
}

bool StorageAttr::hasScales() const { return getFormat(*this).scale_bits > 0; }

LogicalResult TiledAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t dim, int64_t size,
                                int64_t interleave, StorageAttr storage) {
  if (dim < 0)
    return emitError() << "tiled: negative dimension; expected at least 0, got " << dim;
  if (size < 1)
    return emitError() << "tiled: wrong size; expected at least 1, got " << size;
  if (interleave < 1)
    return emitError() << "tiled: wrong interleave; expected at least 1, got " << interleave;
  if (storage && storage.hasScales() && storage.getDim() != dim)
    return emitError() << "tiled: scales along another dimension; expected " << dim << ", got " << storage;
  return success();
}

LogicalResult TiledAttr::verifyEncoding(ArrayRef<int64_t> shape, Type element,
                                        function_ref<InFlightDiagnostic()> emitError) const {
  if (shape.size() < 2 || ShapedType::isDynamicShape(shape))
    return emitError() << "tiled: unsupported shape; expected rank 2 or more and fixed dimensions";
  if (getDim() >= static_cast<int64_t>(shape.size()))
    return emitError() << "tiled: dimension out of range; expected one within the rank, got " << getDim() << " of "
                       << shape.size();
  if (getStorage() && !element.isF32())
    return emitError() << "storage: wrong element type of the weight; expected f32, got " << element;
  if (getStorage() && kExtentOf(shape) % getWhole(getStorage()))
    return emitError() << "storage: K is not divisible by the group; expected a multiple of " << getWhole(getStorage())
                       << ", got " << kExtentOf(shape);
  return success();
}

int64_t TiledAttr::kExtentOf(ArrayRef<int64_t> shape) const {
  int64_t kExtent = 1;
  for (auto [dim, extent] : llvm::enumerate(shape))
    if (static_cast<int64_t>(dim) != getDim() && llvm::MulOverflow(kExtent, extent, kExtent))
      return std::numeric_limits<int64_t>::max(); // saturates: exceeds any memory
  return kExtent;
}

bool TiledAttr::isVnni() const {
  return isInterleaved() && getStorage() && !getStorage().isGrouped() &&
         kiln_format_takes(&getFormat(getStorage()), getInterleave());
}

SmallVector<int64_t, 3> TiledAttr::getStoredShape(ArrayRef<int64_t> shape) const {
  assert(isGenerated() && "verified before anything is stored");
  return {llvm::divideCeilSigned(shape[getDim()], getSize()), llvm::divideCeilSigned(kExtentOf(shape), getInterleave()),
          getSize()};
}

//===- Modules and functions ---===//

LogicalResult KilnDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  StringRef name = attribute.getName();
  if (name == symbolsAttrName) {
    auto symbols = dyn_cast<ArrayAttr>(attribute.getValue());
    if (!isa<ModuleOp>(op) || !symbols || !llvm::all_of(symbols, llvm::IsaPred<SymbolAttr>))
      return op->emitError() << name << ": wrong owner or value; expected a module and an array of symbols";
    llvm::StringSet<> names;
    for (auto symbol : symbols.getAsRange<SymbolAttr>())
      if (!names.insert(symbol.getName()).second)
        return op->emitError() << name << ": repeated name; expected different ones, got \"" << symbol.getName()
                               << "\" twice";
    return success();
  }
  if (name == entryAttrName || name == kernelAttrName) {
    if (!isa<FunctionOpInterface>(op) || !isa<UnitAttr>(attribute.getValue()))
      return op->emitError() << name << ": wrong owner or value; expected a function and no value";
    return success();
  }
  if (name == trainingAttrName)
    return verifyTraining(op, attribute.getValue());
  if (name == batchSymbolsAttrName) {
    if (!isa<ModuleOp>(op) || !BatchSymbols::of(op))
      return op->emitError() << name << ": wrong owner or value; expected a module and positions of its symbols";
    return success();
  }
  if (name == statedStorageAttrName) {
    auto storages = dyn_cast<DictionaryAttr>(attribute.getValue());
    auto isStorage = [](NamedAttribute each) {
      auto text = dyn_cast<StringAttr>(each.getValue());
      return text && ::kiln::find_storage(text.getValue()).is_stated;
    };
    if (!isa<ModuleOp>(op) || !storages || !llvm::all_of(storages, isStorage))
      return op->emitError() << name
                             << ": wrong owner or value; expected a module and a storage format for each weight";
    return success();
  }
  if (name == boundsAttrName) {
    auto function = dyn_cast<FunctionOpInterface>(op);
    auto bounds = dyn_cast<DenseI64ArrayAttr>(attribute.getValue());
    if (!function || !bounds)
      return op->emitError() << name << ": wrong owner or value; expected a function and an array of 64-bit integers";
    int64_t symbols = llvm::count_if(function.getArgumentTypes(), llvm::IsaPred<IndexType>);
    if (bounds.size() != 2 * symbols)
      return op->emitError() << name << ": wrong number of bounds; expected two for each of " << symbols
                             << " index arguments, got " << bounds.size();
  }
  return success();
}

LogicalResult KilnDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned argument,
                                                    NamedAttribute attribute) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  StringRef name = attribute.getName();
  if (!function || (name != symbolAttrName && name != nameAttrName))
    return success();
  auto text = dyn_cast<StringAttr>(attribute.getValue());
  if (!text)
    return op->emitError() << name << ": wrong value; expected a string";
  if (name == symbolAttrName) {
    SmallVector<SymbolAttr> symbols = getSymbols(op);
    if (argument >= symbols.size() || symbols[argument].getName() != text.getValue() ||
        !isa<IndexType>(function.getArgumentTypes()[argument]))
      return op->emitError() << name
                             << ": wrong argument; expected an index at the place of the module's symbol, got \""
                             << text.getValue() << "\" at " << argument;
  }
  return success();
}

LogicalResult KilnDialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned, NamedAttribute attribute) {
  StringRef name = attribute.getName();
  if ((name == nameAttrName || name == gradientAttrName) && !isa<StringAttr>(attribute.getValue()))
    return op->emitError() << name << ": wrong value; expected a string";
  return success();
}

} // namespace mlir::kiln
