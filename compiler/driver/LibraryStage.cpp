// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/LibraryStage.h"

#include "compiler/driver/Budgets.h"
#include "compiler/library/Bindings.h"
#include "compiler/library/Headers.h"
#include "compiler/package/Archive.h"
#include "compiler/package/Descriptor.h"
#include "compiler/package/EmbedWeights.h"
#include "compiler/package/License.h"
#include "compiler/package/PkgConfig.h"
#include "compiler/package/SharedObject.h"
#include "runtime/src/core/model.h"

#include "llvm/Support/xxhash.h"

using namespace mlir;

namespace kiln {

/// Appends the objects that are not kernels: descriptor and glue, embedded weights, self-test.
static LogicalResult addModelObjects(CompileContext &context, LibraryParts &parts, std::vector<ObjectFile> &members) {
  const std::string &name = parts.model.name;
  const CpuName cpu{context.host().hostTriple, context.host().hostCpu};
  llvm::Module &host = *parts.host.module;
  host.setTargetTriple(llvm::Triple(cpu.triple));
  emitDescriptor(host, parts.model, parts.variants);
  FailureOr<std::string> glue = context.require(compileToObject(host, cpu));
  if (failed(glue))
    return failure();
  members.push_back({name + "_host.o", std::move(*glue)});
  std::vector<uint64_t> digests;
  if (parts.model.embedsWeights) {
    FailureOr<EmbeddedWeights> weights =
        context.require(compileWeights(parts.model, parts.variants, *context.options.embedded, cpu));
    if (failed(weights))
      return failure();
    members.push_back({name + "_weights.o", std::move(weights->object)});
    digests = std::move(weights->digests);
  }
  if (parts.model.hasSelfTest) {
    FailureOr<std::string> table = context.require(compileSelfTest(parts.trials, digests, cpu));
    if (failed(table))
      return failure();
    members.push_back({name + "_selftest.o", std::move(*table)});
  }
  return success();
}

FailureOr<LibraryMembers> joinParts(CompileContext &context, LibraryParts &parts) {
  LibraryMembers members{std::move(parts.kernels)};
  if (failed(addModelObjects(context, parts, members.files)))
    return failure();
  FailureOr<uint64_t> bytes = context.require(joinMembers(members.files, std::move(context.runtime), parts.model,
                                                          parts.variants, parts.host.hookPrefixes.getArrayRef()));
  if (failed(bytes))
    return failure();
  members.textBytes = *bytes;
  if (std::string wrong = checkBudgets(parts.model, parts.variants, members.textBytes, context.options); !wrong.empty())
    return context.fail(wrong);
  return members;
}

/// Writes the files next to the archive.
static LogicalResult writeCompanions(const CompileContext &context, const ModelInterface &model,
                                     const std::vector<Variant> &variants, const std::string &header,
                                     const std::string &library) {
  const std::string stem = context.options.outputDirectory + "/";
  if (failed(context.write(stem + model.name + ".h", header)) ||
      failed(context.write(stem + model.name + ".hpp", writeCxxHeader(model, variants))) ||
      failed(context.write(stem + model.name + ".manifest.json", writeManifest(model, variants))) ||
      failed(context.write(stem + model.name + ".pc", writePkgConfig(model, context.options.isShared))) ||
      failed(context.write(stem + model.name + ".LICENSE.txt", writeLicense(model))))
    return failure();
  for (const std::string &language : context.options.bindings) {
    const Binding binding = writeBinding(language, model, library);
    if (failed(context.write(stem + binding.file, binding.text)))
      return failure();
  }
  return success();
}

FailureOr<WrittenLibrary> writeLibrary(CompileContext &context, ModelInterface &model,
                                       const std::vector<Variant> &variants, std::vector<ObjectFile> members) {
  const CompileOptions &options = context.options;
  FailureOr<std::string> archive = context.require(makeArchive(members));
  if (failed(archive))
    return failure();
  model.digest = llvm::xxh3_64bits(*archive);
  const std::string &triple = context.host().hostTriple;
  WrittenLibrary written{options.isShared ? sharedObjectName(model.name, triple) : "lib" + model.name + ".a",
                         archive->size()};
  const std::string header = writeCHeader(model, variants);
  if (failed(writeCompanions(context, model, variants, header, written.file)))
    return failure();
  const std::string path = options.outputDirectory + "/" + written.file;
  if (!options.isShared) {
    if (failed(context.write(path, *archive)))
      return failure();
    return written;
  }
  const SharedObject shared{path, model.name, triple, options.linker, KILN_ABI_VERSION};
  if (llvm::Error error = linkSharedObject(shared, std::move(members), header))
    return context.fail(std::move(error));
  return written;
}

} // namespace kiln
