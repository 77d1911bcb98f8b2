// SPDX-License-Identifier: Apache-2.0
#include "compiler/package/Archive.h"

#include "compiler/library/Headers.h"
#include "compiler/library/Names.h"
#include "compiler/library/RuntimeImage.h"
#include "compiler/object/Object.h"
#include "compiler/package/EmbedWeights.h"
#include "compiler/package/SelfTest.h"
#include "targets/registry.h"

namespace kiln {

llvm::Expected<std::vector<ObjectFile>> readRuntime(const Target &target) {
  llvm::Expected<llvm::StringRef> archive = runtimeArchive(target.info().hostTriple);
  if (!archive)
    return archive.takeError();
  return readArchive(*archive);
}

namespace {
/// The code of rare storage formats, and what takes its place in a library without such weights.
struct FormatMember {
  llvm::StringRef name, noneName;
  bool (*isNeededFor)(const Format &format);
};
} // namespace

static bool hasSmallFloats(const Format &format) {
  return info(static_cast<ElementType>(format.element)).kind == ElementKind::small_float;
}

static bool hasBlocks(const Format &format) { return kiln_format_has_blocks(&format); }

/// Whether the numbers of checkpoints in the format may be kept, or are packed in groups.
static bool hasGroups(const Format &format) { return format.group > 0 || hasSmallFloats(format); }

constexpr FormatMember formatMembers[] = {
    {"kept_numbers.c.o", "kept_numbers_none.c.o", hasGroups},
    {"pack_groups.c.o", "pack_groups_none.c.o", hasGroups},
    {"small_floats.c.o", "small_floats_none.c.o", hasSmallFloats},
    {"block_formats.c.o", "block_formats_none.c.o", hasBlocks},
};

/// Whether weights have a storage format of which this is true.
static bool hasFormat(llvm::ArrayRef<Variant> variants, bool (*isOne)(const Format &format)) {
  return llvm::any_of(variants, [&](const Variant &variant) {
    return llvm::any_of(variant.placements, [&](const WeightPlacement &place) {
      const Format *format = find_placed_format(place.element, place.group, place.zeros != 0);
      return format && isOne(*format);
    });
  });
}

/// Whether the model can use this runtime member. The others are left out: they may refer to symbols that the archive
/// does not define.
static bool isNeeded(const ObjectFile &member, const ModelInterface &model, llvm::ArrayRef<Variant> variants) {
  if (member.name == embeddedWeightsMember)
    return model.embedsWeights;
  if (member.name == selfTestMember)
    return model.hasSelfTest;
  for (const FormatMember &format : formatMembers)
    if (member.name == format.name || member.name == format.noneName)
      return hasFormat(variants, format.isNeededFor) == (member.name == format.name);
  const llvm::StringRef folder = runtimeFolder(member.name);
  if (folder == "parallel")
    return model.parallel.has_value();
  const llvm::StringRef backend = backendOfFolder(folder);
  if (backend.empty() && folder == "cuda") // a build without KILN_CUDA has no target for it
    return false;
  return backend.empty() || llvm::any_of(variants, [&](const Variant &v) { return v.backend == backend; });
}

llvm::Expected<uint64_t> joinMembers(std::vector<ObjectFile> &members, std::vector<ObjectFile> runtime,
                                     const ModelInterface &model, llvm::ArrayRef<Variant> variants,
                                     llvm::ArrayRef<llvm::StringRef> hookPrefixes) {
  for (ObjectFile &member : runtime)
    if (isNeeded(member, model, variants))
      members.push_back({"kiln_" + member.name, std::move(member.bytes)});
  uint64_t text = 0;
  for (ObjectFile &member : members) {
    llvm::Expected<std::string> renamed = renameForModel(member.bytes, model.name, hookPrefixes);
    if (!renamed)
      return renamed.takeError();
    // Hide all symbols: a program may also load a shared object with a library of the same name, and neither may bind
    // to the other's functions.
    llvm::Expected<std::string> hidden = setVisibility(*renamed, [](llvm::StringRef) { return false; });
    if (!hidden)
      return hidden.takeError();
    member.bytes = std::move(*hidden);
    llvm::Expected<uint64_t> bytes = textBytes(member.bytes);
    if (!bytes)
      return bytes.takeError();
    text += *bytes;
  }
  return text;
}

} // namespace kiln
