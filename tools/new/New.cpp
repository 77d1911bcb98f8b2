// SPDX-License-Identifier: Apache-2.0
#include "tools/new/New.h"
#include "tools/new/Project.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <map>

namespace kiln::newproject {

namespace fs = std::filesystem;

// CMake writes families.inc, with a line for each family.
#define KILN_MODEL_FAMILY(folder)                                                                                      \
  namespace folder {                                                                                                   \
  Family family();                                                                                                     \
  }
#include "models/families.inc"
#undef KILN_MODEL_FAMILY

namespace {

/// A family with its folder of models/.
struct Entry {
  std::string folder;
  Family family;
};

/// Returns the families by the "model_type" of config.json.
const std::map<std::string, Entry> &families() {
  static const std::map<std::string, Entry> all = [] {
    std::map<std::string, Entry> found;
    auto add = [&](const std::string &folder, const Family &family) {
      for (const std::string &type : family.types)
        found.insert({type, {folder, family}});
    };
#define KILN_MODEL_FAMILY(folder) add(#folder, folder::family());
#include "models/families.inc"
#undef KILN_MODEL_FAMILY
    return found;
  }();
  return all;
}

const Entry &findFamily(Fields &fields) {
  std::vector<std::string> names;
  for (const auto &[name, entry] : families())
    names.push_back(name);
  const nlohmann::json &type = fields.raw("model_type");
  const std::string name = type.is_string() ? type.get<std::string>() : "";
  const auto found = families().find(name);
  if (found == families().end())
    fields.refuse("model_type", fmt::format("one of {}", fmt::join(names, ", ")), near(name, names));
  return found->second;
}

/// Returns the name of a folder as an identifier: "SmolLM2-135M" becomes smollm2_135m.
std::string identifierOf(const std::string &folder) {
  std::string name;
  for (unsigned char c : folder)
    name += std::isalnum(c) && c < 128 ? static_cast<char>(std::tolower(c)) : '_';
  return name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) ? "model_" + name : name;
}

void checkName(const std::string &name) {
  bool isIdentifier = !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0]));
  for (unsigned char c : name)
    isIdentifier = isIdentifier && (c == '_' || (std::isalnum(c) && c < 128));
  // These names already have a meaning in the project or the library.
  for (const char *taken :
       {"all", "clean", "example_text", "halide", "install", "kiln", "main", "specs", "std", "support", "test"})
    isIdentifier = isIdentifier && name != taken;
  if (!isIdentifier)
    throw Refusal(fmt::format(
        "--name: no identifier, or taken; expected an identifier that no part of the project has, got \"{}\"", name));
}

} // namespace

std::vector<std::string> createProject(Options &options) {
  if (!fs::is_directory(options.folder))
    throw Refusal(fmt::format("checkpoint \"{}\": not found; expected a directory", options.folder.string()));
  options.folder = fs::canonical(options.folder); // so that the path ends with the folder's name
  if (options.name.empty())
    options.name = identifierOf(options.folder.filename().string());
  checkName(options.name);
  if (options.out.empty())
    options.out = options.name;

  Fields fields = Fields::read((options.folder / "config.json").string());
  const auto &[folder, family] = findFamily(fields);
  const Tensors tensors = Tensors::read(options.folder.string());
  const std::vector<std::string> keys = fields.keys();
  for (const std::string &key : options.ignored)
    if (std::find(keys.begin(), keys.end(), key) == keys.end())
      throw Refusal(fmt::format("--ignore {}: config.json has no such key{}", key, near(key, keys)));
  fields.ignore(options.ignored);
  ignoreCommon(fields, family.isEncoderDecoder);
  Model model = family.read(fields, tensors, options);
  model.family = folder;
  fields.finish();
  writeProject(model, fields, options);
  return model.notes;
}

} // namespace kiln::newproject
