// SPDX-License-Identifier: Apache-2.0
//
// Families of published models. Each family reads the fields of a config.json and determines the header and the numbers
// of a spec; Project.h writes the spec. models/CMakeLists.txt finds the families.
#pragma once

#include "tools/new/Fields.h"
#include "tools/new/Tensors.h"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace kiln::newproject {

struct Options {
  std::filesystem::path folder;     // folder of the checkpoint
  std::filesystem::path out;        // folder of the project
  std::string name;                 // name of the library and the program
  std::int64_t context = 4096;      // upper limit of the context length
  bool hasContext = false;          // whether the user gave it
  std::vector<std::string> ignored; // ignored keys of config.json
  std::filesystem::path source;     // root of Kiln's source files
  std::string prefix;               // where Kiln is installed; empty in its build tree
};

/// Maps a tensor name of the checkpoint to the model's names: support::Rule.
struct Renaming {
  std::string from;
  std::vector<std::string> to;
};

/// The model that a config.json describes, as Project.h writes it.
struct Model {
  std::string family;    // the folder of models/ with the header and the program; createProject() sets it
  std::string header;    // of the layers, which the spec includes
  std::string shapeType; // "llama::Shape"
  std::vector<std::pair<std::string, std::string>> shape; // members of the shape, in order
  std::string type;                                       // "llama::Writer<shape>"
  std::string program;                                    // main.cpp; its template is this name with .in
  std::vector<std::pair<std::string, std::string>> words; // values for the template's placeholders
  std::vector<Renaming> renamings;
  std::vector<std::string> notes; // notes for the user: limitations compared with the checkpoint
};

using Reader = Model (*)(Fields &fields, const Tensors &tensors, const Options &options);

/// A family of models. The Reader.cpp of a folder of models/ defines `Family family()` in a namespace of this one that
/// has the folder's name.
struct Family {
  std::vector<std::string> types; // values of "model_type"
  Reader read;
  bool isEncoderDecoder = false; // the only value of "is_encoder_decoder"
};

// Functions that the families share.

/// The largest values that a field may have: products of two must fit in byte counts.
inline constexpr std::int64_t mostRows = 1 << 24, mostWidth = 1 << 20, mostLayers = 1 << 12;

/// Ignores keys of all families that do not change a trained model's results.
void ignoreCommon(Fields &fields, bool isEncoderDecoder = false);
/// Returns the single one of `architectures`, or `otherwise` without that key.
std::string architecture(Fields &fields, const std::string &otherwise);
/// Returns the name of an activation in the DSL, "kiln::Activation::gelu".
std::string activation(Fields &fields, const std::string &key, const std::string &otherwise = "gelu");
/// Checks that `heads` divides the width.
void requireHeads(const Fields &fields, const std::string &key, std::int64_t width, std::int64_t heads);
/// Refuses a context length that the user gave and that is above `most`, which the model allows.
void requireContext(const Options &options, std::int64_t most);
/// Models with learned positions keep their full context length whatever --context says. Adds a note if it says less.
void keepLearnedContext(Model &model, std::int64_t positions, const Options &options);
/// Returns the names of the classes by number as a list of C++ strings; "class 3" if config.json has no name.
std::string labels(Fields &fields, std::int64_t count);
/// Adds the conversion of pictures to the model's numbers from preprocessor_config.json: (level / 255 - mean) /
/// deviation.
void addPreprocessor(Model &model, const Options &options, std::int64_t channels);
/// Returns the number of classes of a checkpoint, from id2label or num_labels.
std::int64_t countLabels(Fields &fields);

} // namespace kiln::newproject
