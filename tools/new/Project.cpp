// SPDX-License-Identifier: Apache-2.0
#include "tools/new/Project.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

namespace kiln::newproject {

namespace fs = std::filesystem;

namespace {

std::string readText(const fs::path &path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream)
    throw Refusal(fmt::format("cannot read \"{}\": the installation of Kiln may be incomplete", path.string()));
  return {std::istreambuf_iterator<char>(stream), {}};
}

void writeText(const fs::path &path, const std::string &text) {
  fs::create_directories(path.parent_path());
  std::ofstream stream(path, std::ios::binary);
  if (!(stream << text).flush())
    throw Refusal(fmt::format("cannot write \"{}\"", path.string()));
}

/// Returns the files that `text` includes in quotes.
std::vector<std::string> includesOf(const std::string &text) {
  std::vector<std::string> found;
  std::istringstream lines(text);
  const std::string word = "#include \"";
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(word))
      found.push_back(line.substr(word.size(), line.find('"', word.size()) - word.size()));
  return found;
}

/// Returns the path of a family's file, or of the file of this name that families share.
fs::path fileOf(const Options &options, const std::string &family, const std::string &name) {
  const fs::path own = options.source / "models" / family / name;
  return fs::exists(own) ? own : options.source / "models/support" / name;
}

/// Copies the files of Kiln that a text of the project includes, recursively.
class Copier {
public:
  Copier(const Options &options, const std::string &family) : options(options), family(family) {}

  void follow(const std::string &text, const std::string &folder = "") {
    for (const std::string &name : includesOf(text)) {
      const std::string path = name.starts_with("support/") ? name : folder + name;
      const fs::path from = find(path);
      if (!from.empty())
        copy(path, from);
    }
  }
  void copy(const std::string &to, const fs::path &from) {
    if (!known.insert(to).second)
      return;
    const std::string text = readText(from);
    writeText(options.out / to, text);
    follow(text, to.starts_with("support/") ? "support/" : "");
  }

private:
  /// Returns an empty path for files that do not come from these folders.
  fs::path find(const std::string &path) const {
    const fs::path from =
        path.starts_with("support/") ? options.source / "examples" / path : fileOf(options, family, path);
    return fs::exists(from) ? from : fs::path();
  }

  const Options &options;
  const std::string &family;
  std::set<std::string> known;
};

/// Returns a template with each @word@ replaced.
std::string filled(std::string text, const std::vector<std::pair<std::string, std::string>> &words) {
  for (const auto &[word, value] : words) {
    const std::string hole = "@" + word + "@";
    for (std::size_t at = 0; (at = text.find(hole, at)) != text.npos; at += value.size())
      text.replace(at, hole.size(), value);
  }
  return text;
}

std::string specOf(const Model &model, const Options &options) {
  std::string text = fmt::format("// SPDX-License-Identifier: Apache-2.0\n//\n"
                                 "// The model of \"{}\", by its config.json.\n#include \"{}\"\n"
                                 "#include <kiln/generator.h>\n\n",
                                 options.folder.filename().string(), model.header);
  for (const std::string &note : model.notes)
    text += "// Note: " + note + ".\n";
  text += fmt::format("inline constexpr {} shape{{\n", model.shapeType);
  for (const auto &[name, value] : model.shape)
    text += fmt::format("    .{} = {},\n", name, value);
  return text + fmt::format("}};\n\nusing Model = {};\nKILN_MODEL({}, Model)\n", model.type, options.name);
}

std::string checkpointOf(const Model &model) {
  std::string text = "// SPDX-License-Identifier: Apache-2.0\n//\n"
                     "// How the checkpoint calls tensors that the model calls otherwise; those without a name in the "
                     "model are left out.\n"
                     "#pragma once\n\n#include \"support/checkpoint.h\"\n\n"
                     "inline const std::vector<support::Rule> renames{\n";
  for (const Renaming &renaming : model.renamings) {
    text += fmt::format("    {{\"{}\", {{", renaming.from);
    for (std::size_t i = 0; i < renaming.to.size(); ++i)
      text += fmt::format("{}\"{}\"", i ? ", " : "", renaming.to[i]);
    text += "}},\n";
  }
  return text + "};\n";
}

std::string configOf(const Fields &fields) {
  return "// SPDX-License-Identifier: Apache-2.0\n//\n"
         "// Whether a checkpoint's config.json is of the model that the spec describes.\n"
         "#pragma once\n\n#include \"support/config.h\"\n\n"
         "/// Throws std::runtime_error with a line for each field that differs.\n"
         "inline void check_config(const support::Config &config) {\n"
         "  support::ConfigCheck check(config);\n" +
         fields.checks() + "  check.finish();\n}\n";
}

} // namespace

void writeProject(const Model &model, const Fields &fields, const Options &options) {
  std::error_code error;
  if (fs::exists(options.out) && (!fs::is_directory(options.out) || !fs::is_empty(options.out)))
    throw Refusal(fmt::format("\"{}\": exists already; expected no file or an empty directory", options.out.string()));
  if (fs::create_directories(options.out, error); error)
    throw Refusal(fmt::format("cannot make \"{}\": {}", options.out.string(), error.message()));

  std::vector<std::pair<std::string, std::string>> words = model.words;
  std::string upper = options.name;
  std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return std::toupper(c); });
  words.insert(words.end(), {{"name", options.name}, {"NAME", upper}, {"prefix", options.prefix}});
  const std::string program = filled(readText(fileOf(options, model.family, model.program + ".in")), words),
                    build = filled(readText(options.source / "tools/new/templates/CMakeLists.txt.in"), words);
  writeText(options.out / "CMakeLists.txt", build);
  writeText(options.out / "spec.cpp", specOf(model, options));
  writeText(options.out / "main.cpp", program);
  writeText(options.out / "checkpoint.h", checkpointOf(model));
  writeText(options.out / "config.h", configOf(fields));

  Copier copier(options, model.family);
  copier.copy(model.header, fileOf(options, model.family, model.header));
  copier.follow(program + checkpointOf(model) + configOf(fields));
  const fs::path support = options.source / "examples/support";
  copier.copy("support/CMakeLists.txt", support / "CMakeLists.txt");
  for (const fs::directory_entry &entry : fs::directory_iterator(support))
    if (entry.path().extension() == ".cpp")
      copier.copy("support/" + entry.path().filename().string(), entry.path());
}

} // namespace kiln::newproject
