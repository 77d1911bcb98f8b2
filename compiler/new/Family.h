// SPDX-License-Identifier: Apache-2.0
//
// Families of published models. Each reads the fields of a config.json and says of which headers and numbers a spec is
// made; Project.h writes that down.
#pragma once

#include "compiler/new/Fields.h"
#include "compiler/new/Tensors.h"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace kiln::newproject {

struct Options {
  std::filesystem::path folder;     // of the checkpoint
  std::filesystem::path out;        // of the project
  std::string name;                 // of the library and the program
  std::int64_t context = 4096;      // tokens that a text may have, at most
  std::vector<std::string> ignored; // keys of config.json
  std::filesystem::path source;     // Kiln's own files, in the folders of its source
  std::string prefix;               // where Kiln is installed; empty in its build tree
};

/// How the checkpoint calls tensors that the model calls otherwise: support::Rule.
struct Renaming {
  std::string from;
  std::vector<std::string> to;
};

/// What a config.json becomes.
struct Model {
  std::string headers;                                    // of Kiln's source, separated by spaces, the spec's own first
  std::string shapeType;                                  // "llama::Shape"
  std::vector<std::pair<std::string, std::string>> shape; // its members, in order
  std::string type;                                       // "llama::Writer<shape>"
  std::string program;                                    // the template of main.cpp
  std::vector<std::pair<std::string, std::string>> words; // that the template leaves open
  std::vector<Renaming> renamings;
  std::vector<std::string> notes; // for the user: where the library has less than the checkpoint
};

Model readGpt2(Fields &fields, const Tensors &tensors, const Options &options);
/// llama, mistral, qwen2, qwen3 and gemma.
Model readLlama(Fields &fields, const Tensors &tensors, const Options &options);
Model readPhi(Fields &fields, const Tensors &tensors, const Options &options);
/// bert, roberta and distilbert.
Model readBert(Fields &fields, const Tensors &tensors, const Options &options);
/// vit and deit.
Model readVit(Fields &fields, const Tensors &tensors, const Options &options);
Model readT5(Fields &fields, const Tensors &tensors, const Options &options);
Model readClip(Fields &fields, const Tensors &tensors, const Options &options);
Model readWhisper(Fields &fields, const Tensors &tensors, const Options &options);

// What the families have in common.

/// The largest extent that a field may state: products of two still count as bytes.
inline constexpr std::int64_t mostRows = 1 << 24, mostWidth = 1 << 20, mostLayers = 1 << 12;

/// Keys of all families that change no result of a trained model.
void ignoreCommon(Fields &fields);
/// The single one of `architectures`; `otherwise` without that key.
std::string architecture(Fields &fields, const std::string &otherwise);
/// The name of an activation in the DSL, "kiln::Activation::gelu".
std::string activation(Fields &fields, const std::string &key, const std::string &otherwise = "gelu");
/// A width that `heads` must divide.
void requireHeads(const Fields &fields, const std::string &key, std::int64_t width, std::int64_t heads);
/// Where positions are learned a text has all that there are, whatever --context says; then there is a note.
void keepLearnedContext(Model &model, std::int64_t positions, const Options &options);
/// Names of classes by their number, "class 3" for those that config.json has no name for, as a list of C++ strings.
std::string labels(Fields &fields, std::int64_t count);
/// How pictures become the model's numbers, by preprocessor_config.json: (level / 255 - mean) / deviation.
void addPreprocessor(Model &model, const Options &options, std::int64_t channels);
/// How many classes a checkpoint has, by id2label or num_labels.
std::int64_t countLabels(Fields &fields);

} // namespace kiln::newproject
