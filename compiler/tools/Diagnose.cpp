// SPDX-License-Identifier: Apache-2.0
#include "compiler/tools/Diagnose.h"
#include "compiler/tools/CompilerOutput.h"

#include <algorithm>
#include <cctype>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace kiln::diagnose {
namespace {

bool isLetter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

/// Where the word is in the text, not as a part of a longer one.
std::size_t findWord(std::string_view text, std::string_view word, std::size_t from = 0) {
  for (std::size_t at = text.find(word, from); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !isLetter(text[at - 1])) && (end == text.size() || !isLetter(text[end])))
      return at;
  }
  return std::string_view::npos;
}
bool containsWord(std::string_view text, std::string_view word) {
  return findWord(text, word) != std::string_view::npos;
}

void replaceAll(std::string &text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

// --- the rules' texts

/// Rules that compare two widths, shapes or numbers: what is wrong, in place of the rule's sentence.
struct Wrong {
  const char *label, *thing, *what;
};
constexpr Wrong wrongs[] = {
    {"append_c1", "append", "wrong type or shape of the rows"},
    {"attention_c2", "attention", "wrong width of the keys"},
    {"attention_c4", "attention", "wrong number of values"},
    {"batch_norm_c1", "batch_norm", "wrong input width"},
    {"constant_c1", "constant", "wrong number of values"},
    {"conv2d_c3", "conv2d", "wrong number of channels"},
    {"conv2d_c5", "conv2d", "wrong bias shape"},
    {"dim_c5", "dimension", "other bounds than before"},
    {"embedding_c3", "embedding", "too few rows for the positions"},
    {"expand_c1", "expand", "wrong shape"},
    {"group_norm_c3", "group_norm", "wrong shape of weight or bias"},
    {"layer_norm_c1", "layer_norm", "wrong input width"},
    {"layer_norm_c2", "layer_norm", "wrong bias shape"},
    {"linear_c1", "linear", "wrong input width"},
    {"linear_c4", "linear", "wrong bias shape"},
    {"logits_c1", "logits", "wrong input width"},
    {"matmul_c1", "matmul", "wrong inner extent"},
    {"model_c1", "entry", "wrong number of input names"},
    {"model_c2", "entry", "wrong number of output names"},
    {"parameter_c1", "parameter", "another shape than before"},
    {"reshape_c1", "reshape", "another number of elements"},
    {"rms_norm_c1", "rms_norm", "wrong input width"},
    {"rotary_c2", "rotary", "wrong shape of the angles"},
    {"scan_c2", "scan", "the step changes the state's type"},
    {"stack_c1", "stack", "the layer returns another type than its argument's"},
    {"state_c5", "state", "another shape than before"},
    {"store_c1", "store", "wrong type or shape"},
    {"tensor_c2", "argument", "wrong element type or shape"},
};

/// "block.down: RULE [label]: got G, expected E (spec.cpp:14)" in its parts.
struct Told {
  std::string path, rule, label, got, expected;
  Place place; // of which the file has no folder
};

/// " (spec.cpp:14)" at the end.
void takePlace(std::string &text, Place &place) {
  if (text.empty() || text.back() != ')')
    return;
  const std::size_t open = text.rfind(" ("), colon = text.rfind(':');
  if (open == std::string::npos || colon == std::string::npos || colon < open)
    return;
  const std::string number = text.substr(colon + 1, text.size() - colon - 2);
  if (number.empty() || !std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; }))
    return;
  place = {text.substr(open + 2, colon - open - 2), std::atoi(number.c_str())};
  text.resize(open);
}

/// Where a label stands, " [linear_c1]"; npos if there is none.
std::size_t findLabel(const std::string &text, std::size_t &end) {
  for (std::size_t at = text.find(" ["); at != std::string::npos; at = text.find(" [", at + 1)) {
    end = at + 2;
    while (end < text.size() && isLetter(text[end]))
      ++end;
    const std::string label = text.substr(at + 2, end - at - 2);
    const std::size_t number = label.rfind("_c");
    if (end < text.size() && text[end] == ']' && number != std::string::npos && number + 2 < label.size())
      return at;
  }
  return std::string::npos;
}

Told readTold(std::string text, bool hasPath) {
  Told told;
  takePlace(text, told.place);
  std::size_t end = 0;
  const std::size_t at = findLabel(text, end);
  if (at == std::string::npos) {
    told.rule = text;
    return told;
  }
  told.rule = text.substr(0, at);
  told.label = text.substr(at + 2, end - at - 2);
  std::string values = text.substr(end + 1);
  if (values.starts_with(": got ")) {
    values.erase(0, 6);
    const std::size_t expected = values.find(", expected ");
    told.got = values.substr(0, expected);
    if (expected != std::string::npos)
      told.expected = values.substr(expected + 11);
  }
  if (const std::size_t colon = told.rule.find(": "); hasPath && colon != std::string::npos) {
    told.path = told.rule.substr(0, colon);
    told.rule.erase(0, colon + 2);
  }
  return told;
}

/// "block.down: linear: wrong input width; expected 768, got 512 [linear_c1]".
std::string textOf(const Told &told) {
  std::string text = told.path.empty() ? "" : told.path + ": ";
  const auto *wrong =
      std::find_if(std::begin(wrongs), std::end(wrongs), [&](const Wrong &each) { return told.label == each.label; });
  text += wrong != std::end(wrongs) ? std::string(wrong->thing) + ": " + wrong->what : told.rule;
  const char *separator = contains(text, "; expected ") ? ", " : "; ";
  if (!told.expected.empty()) {
    text += separator + ("expected " + told.expected);
    separator = ", ";
  }
  if (!told.got.empty())
    text += separator + ("got " + told.got);
  return told.label.empty() ? text : text + " [" + told.label + "]";
}

// --- places in the sources

/// The model that the spec gives to KILN_MODEL, without its template arguments.
std::string modelName(const std::vector<Source> &sources) {
  for (const Source &source : sources)
    for (const std::string &line : source.lines)
      if (const std::size_t at = findWord(line, "KILN_MODEL"); at != std::string::npos)
        if (const std::size_t comma = line.find(',', at); comma != std::string::npos) {
          std::size_t end = line.find_first_of("<)", comma);
          std::string name = line.substr(comma + 1, end == std::string::npos ? end : end - comma - 1);
          name.erase(0, std::min(name.size(), name.find_first_not_of(' ')));
          const std::size_t colon = name.rfind(':');
          return colon == std::string::npos ? name : name.substr(colon + 1);
        }
  return "";
}

struct Found {
  const Source *source = nullptr;
  std::size_t line = 0; // from 0

  explicit operator bool() const { return source != nullptr; }
  Place place() const { return {source->path, static_cast<int>(line) + 1}; }
  const std::string &text() const { return source->lines[line]; }
};

/// The line that declares the model.
Found findModel(const std::vector<Source> &sources) {
  const std::string name = modelName(sources);
  for (const Source &source : sources)
    for (std::size_t i = 0; !name.empty() && i < source.lines.size(); ++i)
      for (const char *word : {"struct", "class"})
        if (const std::size_t at = findWord(source.lines[i], word); at != std::string::npos)
          if (const std::size_t named = findWord(source.lines[i], name, at);
              named != std::string::npos && source.lines[i].find(';', named) == std::string::npos)
            return {&source, i};
  return {};
}

/// The first line at or after the model's with the word, and a parenthesis after it if it is a function.
Found findInModel(const std::vector<Source> &sources, std::string_view word, bool isFunction, int skipped = 0) {
  Found model = findModel(sources);
  if (!model)
    return {};
  for (std::size_t i = model.line; i < model.source->lines.size(); ++i) {
    const std::string &line = model.source->lines[i];
    const std::size_t at = findWord(line, word);
    if (at == std::string::npos || at > line.find("//"))
      continue;
    std::size_t end = at + word.size();
    while (end < line.size() && line[end] == ' ')
      ++end;
    if ((!isFunction || (end < line.size() && line[end] == '(')) && skipped-- == 0)
      return {model.source, i};
  }
  return {};
}

/// A line with the text; the last one if `isLast`.
Found findText(const std::vector<Source> &sources, const std::string &text, bool isLast = false) {
  Found found;
  for (const Source &source : sources)
    for (std::size_t i = 0; i < source.lines.size(); ++i)
      if (contains(source.lines[i], text) && (!found || isLast))
        found = {&source, i};
  return found;
}

/// What the model's function that a rule is about looks like: of which the rule names several faults.
std::string faultOf(const std::vector<Source> &sources, const Found &forward) {
  const std::string &line = forward.text();
  const bool isTemplate = contains(line, "auto &") || contains(line, "auto x") || containsWord(line, "template") ||
                          (forward.line > 0 && contains(forward.source->lines[forward.line - 1], "template"));
  if (isTemplate)
    return "its forward is a template; expected a function of kiln::Tensor parameters, or entries";
  if (findInModel(sources, "forward", true, 1))
    return "it may have several functions of this name, or forward is private; expected one public forward, or entries";
  return "its forward is private; expected a public one";
}

/// Where in the sources a rule of the whole model is broken, of which the compiler knows no line but KILN_MODEL's.
Found placeOfModelRule(Told &told, const std::vector<Source> &sources) {
  const std::string &label = told.label;
  if (label == "model_c11" || label == "model_c12")
    return findModel(sources);
  if (label == "model_c17") {
    for (const Source &source : sources)
      for (std::size_t i = 0; i < source.lines.size(); ++i)
        if (const std::size_t at = findWord(source.lines[i], "mutable");
            at != std::string::npos && (at == 0 || source.lines[i].find(')') > at))
          return {&source, i};
    return {};
  }
  if (label == "model_c19")
    return findInModel(sources, "entries", true);
  if (label == "model_c1" || label == "model_c2" || label == "model_c3" || label == "model_c4" || label == "model_c5") {
    if (const std::size_t space = told.got.find(' '); space == std::string::npos && !told.got.empty())
      if (Found quoted = findText(sources, '"' + told.got + '"'))
        return quoted;
    if (Found names = findInModel(sources, "Names", false))
      return names;
    return findInModel(sources, "entry", true);
  }
  if (label.starts_with("dim_c") && told.place.line == 0) {
    std::size_t end = 0;
    while (end < told.got.size() && (isLetter(told.got[end]) || (label == "dim_c8")))
      ++end;
    return findText(sources, '"' + told.got.substr(0, end) + '"', label == "dim_c5");
  }
  for (const char *each : {"model_c6", "model_c7", "model_c8", "model_c9", "model_c10", "model_c13", "model_c18"})
    if (label == each) {
      if (Found entries = findInModel(sources, "entries", true))
        return entries;
      Found forward = findInModel(sources, "forward", true);
      if (forward && label == "model_c18")
        told.rule = "a model: " + faultOf(sources, forward);
      return forward;
    }
  return {};
}

/// A file's path, of which a message has the name only.
std::string pathOf(const std::string &name, const std::vector<Source> &sources, const Error &error) {
  for (const Source &source : sources)
    if (fs::path(source.path).filename() == name)
      return source.path;
  for (const Remark &remark : error.around)
    if (fs::path(remark.place.file).filename() == name)
      return remark.place.file;
  return name;
}

/// The innermost place of the user's around an error.
Place usersPlace(const Error &error) {
  if (isUsers(error.said.place.file))
    return error.said.place;
  for (const Remark &remark : error.around)
    if (isUsers(remark.place.file))
      return remark.place;
  return {};
}

std::string lineAt(const Place &place, const std::vector<Source> &sources) {
  for (const Source &source : sources)
    if (source.path == place.file && place.line >= 1 && place.line <= static_cast<int>(source.lines.size()))
      return source.lines[static_cast<std::size_t>(place.line) - 1];
  return "";
}

// --- C++'s own errors

struct Mistake {
  Place place;
  std::string text;
};

/// What stands between the first quotes after `from`.
std::string quotedIn(const std::string &text, std::size_t from = 0) {
  const std::size_t open = text.find('\'', from), close = open == std::string::npos ? open : text.find('\'', open + 1);
  return close == std::string::npos ? "" : text.substr(open + 1, close - open - 1);
}

/// "auto Block::forward(const auto:1&) const [with ...]" and "forward<...>" are "Block::forward" and "forward".
std::string functionName(std::string text) {
  text.resize(std::min({text.size(), text.find('('), text.find('<')}));
  const std::size_t space = text.rfind(' ');
  return space == std::string::npos ? text : text.substr(space + 1);
}

/// A trace that is no constant expression, because of a function, or of something else in it that is none.
std::optional<Mistake> notConstant(const Error &error) {
  const std::string &said = error.said.text;
  std::vector<Remark> all{error.said};
  all.insert(all.end(), error.around.begin(), error.around.end());
  if (contains(said, "mutable '") && contains(said, "is not usable in a constant expression"))
    return Mistake{
        {}, "a model: " + quotedIn(said) + " is mutable; expected members that a call does not change [model_c17]"};
  const bool isAboutConstants = contains(said, "constant expression") || contains(said, "non-'constexpr' function") ||
                                contains(said, "called in a constant expression");
  if (!isAboutConstants)
    return std::nullopt;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string &text = all[i].text;
    const bool isFunction =
        contains(text, "non-constexpr function '") || contains(text, "call to non-'constexpr' function");
    const bool isOther =
        contains(text, "not valid in a constant expression") || contains(text, "not allowed in a constant expression");
    if (!isFunction && !isOther)
      continue;
    if (isOther)
      return Mistake{isUsers(all[i].place.file) ? all[i].place : usersPlace(error),
                     "a model: " + shorten(text.substr(text.find(':') == 4 ? 6 : 0)) +
                         "; expected a forward that the compiler can evaluate"};
    const std::size_t quote = text.find("constexpr' function ");
    const std::string name = functionName(quotedIn(text, quote == std::string::npos ? 0 : quote + 19));
    // The function, if it is the user's, else the call.
    Place place = isUsers(all[i].place.file) ? all[i].place : Place();
    for (const Remark &remark : error.around)
      if ((contains(remark.text, "declared here") || contains(remark.text, "is not usable as a")) &&
          isUsers(remark.place.file))
        place = remark.place;
    return Mistake{place.line != 0 ? place : usersPlace(error),
                   name + ": it is not constexpr; expected a constexpr function, since a model is traced while it is "
                          "compiled"};
  }
  return std::nullopt;
}

/// The layer's own type in `struct Block : kiln::Layer<Block<W>>` at or above a line.
std::string layerAbove(const Place &place, const std::vector<Source> &sources) {
  for (const Source &source : sources)
    if (source.path == place.file)
      for (int i = std::min(place.line, static_cast<int>(source.lines.size())); i > 0; --i) {
        const std::string &line = source.lines[static_cast<std::size_t>(i) - 1];
        const std::size_t at = line.find(": kiln::Layer<") != std::string::npos ? line.find(": kiln::Layer<") + 2
                                                                                : line.find("public kiln::Layer<");
        if (at != std::string::npos && line.rfind('>') != std::string::npos)
          return line.substr(line.find("kiln::Layer<"), line.rfind('>') + 1 - line.find("kiln::Layer<"));
      }
  return "kiln::Layer<Self>";
}

/// What is known of common mistakes that the C++ compiler tells in its own words.
std::string advised(const Place &place, const std::string &text, const std::vector<Source> &sources) {
  if (contains(text, "'Layer' has not been declared") || contains(text, "undeclared identifier 'Layer'") ||
      (contains(text, "'Layer'") && contains(lineAt(place, sources), "using Layer::Layer")))
    return "using Layer::Layer: a template does not know the name; expected `using " + layerAbove(place, sources) +
           "::Layer;` [layer_c7]";
  if (containsWord(lineAt(place, sources), "KILN_MODEL") && !findText(sources, "kiln/generator.h") &&
      !findText(sources, "KILN_MODEL(", true).text().empty())
    return "KILN_MODEL: it is not declared; expected #include <kiln/generator.h>";
  const bool isConstruction = contains(text, "could not convert") || contains(text, "no matching constructor") ||
                              contains(text, "no matching function for call to") ||
                              contains(text, "no viable conversion");
  if (isConstruction)
    for (std::size_t quote = text.find('\''); quote != std::string::npos; quote = text.find('\'', quote + 1)) {
      std::string type = quotedIn(text, quote);
      type = type.substr(0, type.find('<'));
      if (!type.empty() && std::all_of(type.begin(), type.end(), isLetter))
        if (Found layer = findText(sources, "kiln::Layer<" + type); layer && contains(lineAt(place, sources), type))
          return type + ": it has no constructor that takes its name; expected `using Layer::Layer;` in it [layer_c7]";
    }
  std::string result = shorten(text);
  if (contains(result, "kiln::Recurrence<"))
    result += "; a recurrent layer gives the outputs and the last state: auto [outputs, last] = gru(x)";
  return result;
}

Mistake explain(const Error &error, const std::vector<Source> &sources) {
  Mistake mistake;
  if (std::optional<LanguageText> found = findLanguageText(error)) {
    const std::string &text = found->text;
    const bool isRefused = text.starts_with("a layer: ") || text.starts_with("an elementwise operation: ");
    Told told = readTold(text, found->isComputed && !isRefused); // a trace's text begins with a path
    const Place given = told.place;
    for (const char *label : {"model_c1", "model_c2", "model_c3", "model_c4", "model_c5"})
      if (told.label == label) // the line is the last one of the entry
        told.place = {};
    if (told.place.line != 0)
      mistake.place = {pathOf(told.place.file, sources, error), told.place.line};
    else if (Found found = placeOfModelRule(told, sources))
      mistake.place = found.place();
    else
      mistake.place = given.line != 0 ? Place{pathOf(given.file, sources, error), given.line} : usersPlace(error);
    mistake.text = textOf(told);
    return mistake;
  }
  if (std::optional<Mistake> found = notConstant(error)) {
    mistake = std::move(*found);
    if (mistake.place.line == 0) {
      Told told;
      told.label = "model_c17";
      Found found = placeOfModelRule(told, sources);
      mistake.place = found ? found.place() : usersPlace(error);
    }
    return mistake;
  }
  mistake.place = usersPlace(error);
  mistake.text = advised(mistake.place, error.said.text, sources);
  return mistake;
}

/// The error to show: the first one, unless it is in the language's headers in C++'s words and a rule's text follows,
/// which is not one of those that a broken model breaks next.
const Error &chosen(const std::vector<Error> &errors) {
  if (contains(errors.front().said.text, "called in a constant expression")) // g++ says of what next
    for (const Error &error : errors)
      if (contains(error.said.text, "call to non-'constexpr' function"))
        return error;
  if (isUsers(errors.front().said.place.file) || findLanguageText(errors.front()) || notConstant(errors.front()))
    return errors.front();
  for (const Error &error : errors)
    if (std::optional<LanguageText> found = findLanguageText(error)) {
      bool isNext = false;
      for (const char *label : {"[layer_c6]", "[layer_c8]", "[model_c12]", "[model_c17]", "[model_c18]", "[model_c19]"})
        isNext |= contains(found->text, label);
      if (!isNext)
        return error;
    }
  return errors.front();
}

// --- running the compiler

/// What is written to a pipe, until its end.
std::string readAll(int from) {
  std::string text;
  char buffer[1 << 16];
  for (ssize_t count = 0; (count = read(from, buffer, sizeof(buffer))) != 0;)
    if (count > 0)
      text.append(buffer, static_cast<std::size_t>(count));
    else if (errno != EINTR)
      break;
  return text;
}

/// Runs a program in the C locale, so that its messages are in English. Its exit status, and what it said.
int run(std::vector<std::string> words, std::string &said) {
  std::vector<char *> arguments;
  for (std::string &word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  int ends[2];
  if (pipe(ends) != 0)
    return 127;
  const pid_t parent = getpid(), child = fork();
  if (child == 0) {
    setenv("LC_ALL", "C", 1);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 && getppid() == parent)
      execvp(arguments[0], arguments.data());
    _exit(127);
  }
  close(ends[1]);
  std::signal(SIGINT, SIG_IGN);
  said = readAll(ends[0]);
  close(ends[0]);
  int status = 127 << 8;
  if (child > 0)
    waitpid(child, &status, 0);
  std::signal(SIGINT, SIG_DFL);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::vector<std::string> includeFolders(const std::vector<std::string> &words) {
  std::vector<std::string> folders;
  for (std::size_t i = 0; i < words.size(); ++i)
    for (std::string_view flag : {"-I", "-iquote"})
      if (words[i] == flag && i + 1 < words.size())
        folders.push_back(words[i + 1]);
      else if (words[i].starts_with(flag) && words[i].size() > flag.size())
        folders.push_back(words[i].substr(flag.size()));
  return folders;
}

} // namespace

std::vector<Source> readSources(const fs::path &spec, const std::vector<std::string> &includeFolders) {
  std::vector<Source> sources;
  std::set<std::string> known;
  std::vector<fs::path> open{spec};
  constexpr std::size_t most = 200;
  for (std::size_t i = 0; i < open.size() && i < most; ++i) {
    std::error_code error;
    std::ifstream file(open[i]);
    if (!file || !known.insert(fs::weakly_canonical(open[i], error).string()).second || !isUsers(open[i].string()))
      continue;
    Source source{open[i].string(), {}};
    for (std::string line; std::getline(file, line);) {
      const std::size_t hash = line.find("#include \""),
                        close = line.find('"', hash == std::string::npos ? 0 : hash + 10);
      if (hash != std::string::npos && close != std::string::npos) {
        const std::string name = line.substr(hash + 10, close - hash - 10);
        open.push_back(open[i].parent_path() / name);
        for (const std::string &folder : includeFolders)
          open.push_back(fs::path(folder) / name);
      }
      source.lines.push_back(std::move(line));
    }
    sources.push_back(std::move(source));
  }
  return sources;
}

std::optional<std::string> findMistake(std::string_view output, const std::vector<Source> &sources) {
  std::string text(output);
  replaceAll(text, "\xe2\x80\x98", "'"); // where the locale was not C
  replaceAll(text, "\xe2\x80\x99", "'");
  const std::vector<Error> errors = readErrors(text);
  if (errors.empty())
    return std::nullopt;
  Mistake mistake = explain(chosen(errors), sources);
  if (mistake.place.line == 0)
    mistake.place = sources.empty() ? errors.front().said.place : Place{sources.front().path, 1};
  return mistake.place.file + ":" + std::to_string(mistake.place.line) + ": error: " + mistake.text;
}

std::optional<std::string> findMissingModel(const std::vector<Source> &sources) {
  for (const Source &source : sources)
    for (const std::string &line : source.lines)
      if (containsWord(line, "KILN_MODEL"))
        return std::nullopt;
  if (sources.empty())
    return std::nullopt;
  return sources.front().path + ":" + std::to_string(sources.front().lines.size()) +
         ": error: the spec: it makes no generator; expected KILN_MODEL(name, Model) at its end";
}

int compile(std::vector<std::string> words, const std::string &spec, bool isVerbose, const std::string &hint) {
  const std::vector<Source> sources = readSources(spec, includeFolders(words));
  // The user's line may be anywhere in a list of instantiations.
  words.insert(words.end(), {"-fdiagnostics-color=never", "-ftemplate-backtrace-limit=0"});
  std::string said;
  const int status = run(words, said);
  std::optional<std::string> mistake;
  if (status != 0 && status != 127)
    mistake = findMistake(said, sources);
  if (mistake)
    std::fprintf(stderr, "%s\n", mistake->c_str());
  if (!mistake || isVerbose)
    std::fwrite(said.data(), 1, said.size(), stderr);
  else
    std::fprintf(stderr, "note: the compiler's %zu lines about it: %s\n",
                 static_cast<std::size_t>(std::count(said.begin(), said.end(), '\n')), hint.c_str());
  std::fflush(stderr);
  return status;
}

} // namespace kiln::diagnose
