// SPDX-License-Identifier: Apache-2.0
#include "tools/kiln/Checkpoints.h"

#include "tools/kiln/CommandLine.h"
#include "tools/kiln/Options.h"

#include "llvm/Support/raw_ostream.h"
#include <fmt/format.h>

namespace kiln {

std::string checkCheckpoint(const Checkpoint &checkpoint) {
  if (llvm::StringRef(checkpoint.path).ends_with(".gguf") && !checkpoint.quantization.empty())
    return fmt::format("--quantized: wrong kind of file; expected safetensors, got \"{}\"", checkpoint.path);
  return "";
}

void addCheckpointOptions(CLI::App &app, Checkpoint &checkpoint) {
  app.add_option("--quantized", checkpoint.quantization,
                 "format of quantised weights in safetensors files: gptq, gptq_v2, awq, fp8, mxfp4 or nvfp4")
      ->check(oneOf({"gptq", "gptq_v2", "awq", "fp8", "mxfp4", "nvfp4"}));
  app.add_option(
      "--renames", checkpoint.renames,
      "file with a line FROM TO [HEADS] for each name of the checkpoint that differs from the model's; ?FROM "
      "need not match");
  app.add_option(
         "--rename", checkpoint.renameTexts,
         "FROM=TO: maps a name of the checkpoint to the model's; one * matches any characters; FROM= ignores a tensor")
      ->allow_extra_args(false)
      ->check(checkRename);
}

CLI::App *addPack(CLI::App &app, CompileOptions &options, Checkpoint &checkpoint) {
  CLI::App *pack = app.add_subcommand("pack", "write NAME.TARGET.packed: a weight file in the library's memory layout");
  addModelOptions(*pack, options);
  pack->get_option("--target")->allow_extra_args(false); // otherwise the file would be a target
  pack->add_option("checkpoint", checkpoint.path, "a safetensors file, the index of several, or a .gguf file")
      ->required();
  addCheckpointOptions(*pack, checkpoint);
  pack->add_option("-o,--output-dir", options.outputDirectory, "folder of the files, one for each target")
      ->check(notEmpty())
      ->capture_default_str();
  return pack;
}

CLI::App *addCheck(CLI::App &app, CompileOptions &options, Checkpoint &checkpoint) {
  CLI::App *check = app.add_subcommand("check", "compare names, shapes and types of a checkpoint with the model's");
  addModelOptions(*check, options);
  check->get_option("--target")->allow_extra_args(false); // otherwise the file would be a target
  check->add_option("checkpoint", checkpoint.path, "a safetensors file, the index of several, or a .gguf file")
      ->required();
  addCheckpointOptions(*check, checkpoint);
  return check;
}

int runCheck(const Graph &graph, CompileOptions options, const Checkpoint &checkpoint) {
  options.form = EmitForm::Layout;
  options.targets.resize(1); // all targets have the same weights
  if (std::string wrong = checkCheckpoint(checkpoint); !wrong.empty()) {
    llvm::errs() << "error: " << wrong << "\n";
    return 1;
  }
  mlir::FailureOr<CompileReport> report = compileModel(graph, options, llvm::errs());
  if (failed(report))
    return 1;
  llvm::Expected<CheckpointDifferences> differences =
      compareCheckpoint(report->model, report->variants.front(), checkpoint);
  if (!differences)
    return fail(differences.takeError());
  fmt::print("{}", differences->text);
  if (differences->count == 0)
    fmt::print("{}: fits model \"{}\", {} tensors\n", checkpoint.path, report->model.name, differences->tensors);
  else
    fmt::print("{}: does not fit model \"{}\", {} difference{}\n", checkpoint.path, report->model.name,
               differences->count, differences->count == 1 ? "" : "s");
  return differences->count == 0 ? 0 : 1;
}

int runPack(const Graph &graph, CompileOptions options, const Checkpoint &checkpoint) {
  options.form = EmitForm::Layout;
  if (std::string wrong = checkCheckpoint(checkpoint); !wrong.empty()) {
    llvm::errs() << "error: " << wrong << "\n";
    return 1;
  }
  mlir::FailureOr<CompileReport> report = compileModel(graph, options, llvm::errs());
  if (failed(report))
    return 1;
  for (const Variant &variant : report->variants) {
    const std::string path =
        fmt::format("{}/{}.{}.packed", options.outputDirectory, report->model.name, variant.target);
    if (llvm::Error error = packWeights(report->model, variant, checkpoint, path)) {
      llvm::errs() << "error: " << llvm::toString(std::move(error)) << "\n";
      return 1;
    }
    fmt::print("{}: {}\n", path, mib(variant.packedBytes));
  }
  return 0;
}

} // namespace kiln
