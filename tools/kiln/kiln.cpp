// SPDX-License-Identifier: Apache-2.0
//
// `kiln SUBCOMMAND spec.cpp ...` compiles the spec with the user's C++ compiler to its generator, and runs that. `kiln
// new DIRECTORY` creates a spec.
#include "compiler/library/Version.h"
#include "tools/kiln/CommandLine.h"
#include "tools/kiln/Diagnose.h"
#include "tools/kiln/GeneratorCache.h"
#include "tools/kiln/SpecCheck.h"
#include "tools/new/New.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <dlfcn.h>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <optional>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace {

/// The location of the headers and the compiler's library: next to the installed program, else in the build tree, of
/// which a package knows nothing.
struct Toolchain {
  std::vector<std::string> includes;
  fs::path libraryFolder;
  fs::path source;    // source folder of the files that `kiln new` copies
  std::string prefix; // installation prefix
};

Toolchain findToolchain() {
  fs::path self = fs::read_symlink("/proc/self/exe");
  fs::path prefix = self.parent_path().parent_path();
#ifdef KILN_SOURCE_DIR
  if (!fs::exists(prefix / KILN_INSTALL_INCLUDEDIR / "kiln/dsl.h"))
    return {{KILN_SOURCE_DIR "/dsl/include", KILN_SOURCE_DIR "/compiler/include"},
            KILN_BUILD_LIBRARY_DIR,
            KILN_SOURCE_DIR,
            ""};
#endif
  return {{(prefix / KILN_INSTALL_INCLUDEDIR).string()},
          prefix / KILN_INSTALL_LIBDIR,
          prefix / KILN_INSTALL_DATADIR / "kiln",
          prefix.string()};
}

/// Runs a program and waits. Returns its exit status, or 127 if it could not be started. The program gets SIGTERM when
/// this process ends, even if this process is killed.
int runProgram(std::vector<std::string> words, bool isSilent = false) {
  std::vector<char *> arguments;
  for (std::string &word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t parent = getpid(), child = fork();
  if (child == 0) {
    if (isSilent)
      if (const int nowhere = open("/dev/null", O_WRONLY); nowhere >= 0)
        dup2(nowhere, STDOUT_FILENO), dup2(nowhere, STDERR_FILENO);
    // If the parent died before the call, no signal is sent.
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 && getppid() == parent)
      execvp(arguments[0], arguments.data());
    _exit(127);
  }
  if (child < 0)
    return 127;
  // The child handles Ctrl-C. This program removes its files afterwards.
  std::signal(SIGINT, SIG_IGN);
  int status = 0;
  waitpid(child, &status, 0);
  std::signal(SIGINT, SIG_DFL);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// Whether an object file contains the call that KILN_MODEL makes: the `main` of a spec passes the model to the
/// compiler. Symbol tables contain names as plain text.
bool callsGenerator(const fs::path &object) {
  std::ifstream file(object, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  return bytes.find("_ZN4kiln12runGenerator") != std::string::npos;
}

/// The words of a command line after the subcommand.
struct SpecCommand {
  std::vector<std::string> subcommand; // "tune coverage" has two words
  std::string spec;
  std::vector<std::string> rest;  // arguments for the generator
  std::vector<std::string> flags; // flags for the C++ compiler, after "--"

  /// Returns the value of the option in `--name VALUE` or `--name=VALUE`.
  std::string valueOf(const std::string &name) const {
    for (std::size_t i = 0; i < rest.size(); ++i)
      if (rest[i] == name && i + 1 < rest.size())
        return rest[i + 1];
      else if (rest[i].starts_with(name + "="))
        return rest[i].substr(name.size() + 1);
    return "";
  }
  bool has(const std::string &word) const { return std::find(rest.begin(), rest.end(), word) != rest.end(); }
};

/// Returns the folder of the cache; empty if generators are not kept.
fs::path cacheFolder(const SpecCommand &command) {
  if (command.has("--no-cache"))
    return {};
  const std::string given = command.valueOf("--cache-dir");
  return given.empty() ? kiln::defaultCacheFolder() : fs::path(given);
}

/// Whether the compiler is g++, which uses X.h.gch when it is told to include X.h. (clang rejects a precompiled header
/// if the times of its headers differ, even if their contents do not.)
bool precompilesHeaders(const std::vector<std::string> &compiler) {
  bool isGcc = false;
  for (const std::string &word : compiler) {
    const std::string name = kiln::findProgram(word).filename().string();
    if (name.find("clang") != std::string::npos)
      return false;
    isGcc |= name.find("g++") != std::string::npos;
  }
  return isGcc;
}

/// Precompiles the headers of the language. Returns the file to include before the spec, or nothing. `base` is the
/// compiler with all of its flags.
std::optional<fs::path> precompileHeaders(const std::vector<std::string> &base, const fs::path &cache,
                                          const fs::path &temporary) {
  const kiln::CompiledFile kept(cache, ".h.gch", base, 2); // each takes about 50 MB
  std::optional<fs::path> found = kept.find();
  const auto write = [](const fs::path &header) {
    std::error_code error;
    if (!fs::exists(header, error))
      std::ofstream(header) << "#include <kiln/generator.h>\n";
    return fs::exists(header, error);
  };
  if (!found && !cache.empty()) {
    const fs::path header = kiln::generatorsFolder(cache) / "language.h", made = temporary / "language.h.gch",
                   rule = temporary / "language.d";
    std::error_code error;
    fs::create_directories(header.parent_path(), error);
    std::vector<std::string> compile = base;
    compile.insert(compile.end(),
                   {"-x", "c++-header", header.string(), "-o", made.string(), "-MD", "-MF", rule.string()});
    if (!write(header))
      return std::nullopt;
    const fs::file_time_type begin = fs::file_time_type::clock::now();
    if (runProgram(compile, /*isSilent=*/true) != 0)
      return std::nullopt;
    found = kept.keep(made, rule, begin);
  }
  if (!found)
    return std::nullopt;
  const fs::path included = fs::path(*found).replace_extension(); // the path without .gch
  return write(included) ? std::optional(included) : std::nullopt;
}

/// Runs the generator of a spec, and passes it facts about the command in the environment.
int runGenerator(const fs::path &generator, const SpecCommand &command) {
  std::string end;
  for (const std::string &flag : command.flags)
    end += (end.empty() ? " -- " : " ") + kiln::quoteFlag(flag);
  setenv("KILN_SPEC_FOLDER", fs::path(command.spec).parent_path().c_str(), 1);
  setenv("KILN_TUNE_COMMAND", ("kiln tune '" + command.spec + "'").c_str(), 1);
  setenv("KILN_TUNE_COMMAND_END", end.c_str(), 1);
  std::vector<std::string> run{generator.string()};
  run.insert(run.end(), command.subcommand.begin(), command.subcommand.end());
  run.insert(run.end(), command.rest.begin(), command.rest.end());
  return runProgram(run);
}

int buildAndRun(SpecCommand command) {
  const bool isVerbose = command.has("--verbose");
  if (command.subcommand.front() != "compile") // the generator's `compile` has this option too
    std::erase(command.rest, "--verbose");
  const std::string &spec = command.spec;
  const char *given = std::getenv("CXX");
  const std::string compiler = given && *given ? given : "c++";
  const std::vector<std::string> words = kiln::splitWords(compiler);
  for (const std::string &wrong :
       {kiln::checkSpec(command.subcommand.front(), spec, command.rest), kiln::checkCompiler(words)})
    if (!wrong.empty()) {
      fmt::print(stderr, "error: {}\n", wrong);
      return 1;
    }
  const char *temporary = std::getenv("TMPDIR");
  if (!temporary || !*temporary)
    temporary = "/tmp";
  std::string folder = (fs::path(temporary) / "kiln-XXXXXX").string();
  if (!mkdtemp(folder.data())) {
    fmt::print(stderr, "error: cannot make a temporary folder in \"{}\"; set TMPDIR\n", temporary);
    return 1;
  }
  Toolchain tools = findToolchain();
  std::string object = folder + "/spec.o", generator = folder + "/generator", rule = folder + "/spec.d";
  std::vector<std::string> base = words;
  base.push_back("-std=c++20");
  for (const std::string &include : tools.includes)
    base.push_back("-I" + include);
  base.insert(base.end(), command.flags.begin(), command.flags.end());
  std::vector<std::string> linking; // what follows the object
  for (const char *flag : {"-L", "-Wl,-rpath,"})
    linking.push_back(flag + tools.libraryFolder.string());
  linking.push_back("-lkiln_compiler");
  linking.insert(linking.end(), command.flags.begin(), command.flags.end());

  std::vector<std::string> identity = base;
  identity.push_back(spec);
  identity.insert(identity.end(), linking.begin(), linking.end());
  const fs::path cache = cacheFolder(command);
  const kiln::CompiledFile kept(cache, ".generator", identity, 32);
  std::optional<fs::path> known = kept.find();
  int status = 0;
  if (!known) {
    std::vector<std::string> compile = base;
    compile.insert(compile.end(), {"-c", spec, "-o", object, "-MD", "-MF", rule});
    if (precompilesHeaders(words) && kiln::beginsWithLanguage(spec, command.flags))
      if (std::optional<fs::path> header = precompileHeaders(base, cache, folder))
        compile.insert(compile.end(), {"-include", header->string(), "-fpch-deps"});
    const fs::file_time_type begin = fs::file_time_type::clock::now();
    std::vector<std::string> link = words;
    link.insert(link.end(), {object, "-o", generator});
    link.insert(link.end(), linking.begin(), linking.end());
    status = kiln::diagnose::compile(compile, spec, isVerbose,
                                     "kiln " + command.subcommand.front() + " --verbose shows them");
    if (status == 127)
      fmt::print(stderr, "error: the C++ compiler \"{}\" cannot be started; set CXX\n", compiler);
    if (status == 0 && !callsGenerator(object)) {
      fmt::print(stderr, "{}\n",
                 kiln::diagnose::findMissingModel(kiln::diagnose::readSources(spec, {}))
                     .value_or(spec + ":1: error: the spec: it makes no generator; expected KILN_MODEL(name, Model)"));
      status = 1;
    }
    if (status == 0)
      status = runProgram(link);
    if (status == 0)
      known = kept.keep(generator, rule, begin).value_or(generator);
  }
  if (status == 0 && known)
    status = runGenerator(*known, command);
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  return status;
}

/// Returns a function of the compiler's library, for commands that need no spec or have none yet.
template <class Function> Function *findInLibrary(const char *name) {
  fs::path file = findToolchain().libraryFolder / "libkiln_compiler.so";
  void *library = dlopen(file.c_str(), RTLD_NOW);
  auto *found = library ? reinterpret_cast<Function *>(dlsym(library, name)) : nullptr;
  if (!found)
    fmt::print(stderr, "error: cannot load the compiler: {}\n", dlerror());
  return found;
}

std::vector<char *> toArguments(std::vector<std::string> &words) {
  std::vector<char *> arguments;
  for (std::string &word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  return arguments;
}

/// Runs a function of the compiler's library that needs no spec. It gets the command and its words.
int runInLibrary(const char *function, const std::string &command, std::vector<std::string> words) {
  auto *run = findInLibrary<int(int, char **)>(function);
  if (!run)
    return 1;
  words.insert(words.begin(), command);
  return run(static_cast<int>(words.size()), toArguments(words).data());
}

/// Removes the spec from the words after a subcommand. If options precede it, the compiler's library separates it from
/// their values; the library also prints the help of a subcommand without a spec, and reports errors in options.
/// Returns the exit status if nothing remains to be done.
std::optional<int> takeSpec(SpecCommand &command) {
  std::size_t at = 0;
  if (command.rest.empty() || command.rest.front().starts_with("-")) {
    auto *find = findInLibrary<int(int, char **, int *)>("kiln_find_spec");
    if (!find)
      return 1;
    std::vector<std::string> words{"kiln"};
    words.insert(words.end(), command.subcommand.begin(), command.subcommand.end());
    const std::size_t before = words.size();
    words.insert(words.end(), command.rest.begin(), command.rest.end());
    int place = -1;
    const int status = find(static_cast<int>(words.size()), toArguments(words).data(), &place);
    if (place < 0)
      return status;
    at = static_cast<std::size_t>(place) - before;
  }
  command.spec = command.rest[at];
  command.rest.erase(command.rest.begin() + static_cast<std::ptrdiff_t>(at));
  return std::nullopt;
}

/// Whether `inspect` or `scale` gets a compiled library instead of a spec.
bool isLibrary(const fs::path &path) { return path.extension() == ".a" || path.extension() == ".json"; }

/// Runs `inspect` or `scale` on an existing library.
int lookAtLibrary(const std::string &subcommand, const std::string &path, std::vector<std::string> words) {
  words.insert(words.begin(), path);
  return runInLibrary(("kiln_" + subcommand + "_archive").c_str(), "kiln " + subcommand, std::move(words));
}

/// Writes the project, prints how to build it, and builds it if `isBuilt`.
int runNew(kiln::newproject::Options options, bool isBuilt) {
  const Toolchain tools = findToolchain();
  const std::string folder = options.folder.string(); // as the user typed it
  options.source = tools.source;
  options.prefix = tools.prefix;
  try {
    for (const std::string &note : createProject(options))
      fmt::print("note: {}\n", note);
  } catch (const std::exception &error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
  const std::string out = options.out.string(), build = (options.out / "build").string();
  const std::vector<std::string> configure{"cmake", "-S", out, "-B", build}, compile{"cmake", "--build", build};
  fmt::print("{} contains the spec, a program and support files; build and run it:\n{}{} && {} && {}/{} {}\n", out,
             fmt::join(configure, " "), tools.prefix.empty() ? " -DCMAKE_PREFIX_PATH=PREFIX" : "",
             fmt::join(compile, " "), build, options.name, folder);
  std::fflush(stdout);
  if (!isBuilt)
    return 0;
  const int status = runProgram(configure);
  return status == 0 ? runProgram(compile) : status;
}

/// Runs `kiln SUBCOMMAND [OPTIONS] SPEC [OPTIONS] [-- FLAGS]`.
int runOfSpec(CLI::App &chosen, std::vector<std::string> words) {
  SpecCommand command{{chosen.get_name()}, "", {}, {}};
  for (const CLI::App *inner : chosen.get_subcommands([](const CLI::App *) { return true; }))
    if (!words.empty() && words.front() == inner->get_name()) {
      command.subcommand.push_back(inner->get_name());
      words.erase(words.begin());
      break;
    }
  const auto end = std::find(words.begin(), words.end(), "--");
  command.rest.assign(words.begin(), end);
  if (end != words.end())
    command.flags.assign(end + 1, words.end());
  if (command.has("--version")) {
    fmt::print("{}\n", kiln::versionReport());
    return 0;
  }
  if (command.subcommand.back() == "merge")
    return runInLibrary("kiln_tune_merge", "kiln tune merge", std::move(command.rest));
  if (const std::string wrong = kiln::checkFlags(command.subcommand.front(), command.rest); !wrong.empty()) {
    fmt::print(stderr, "error: {}\n", wrong);
    return 1;
  }
  if (std::optional<int> status = takeSpec(command))
    return *status;
  if ((command.subcommand.front() == "inspect" || command.subcommand.front() == "scale") && isLibrary(command.spec))
    return lookAtLibrary(command.subcommand.front(), command.spec, std::move(command.rest));
  return buildAndRun(command);
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("Kiln compiles a transformer model, written in C++, to a static library.");
  app.require_subcommand(0, 1); // an unknown subcommand is then reported by its name
  app.set_version_flag("--version", kiln::versionReport());
  app.footer(
      "kiln SUBCOMMAND --help shows the options of a subcommand. Options precede or follow the spec. Flags of the C++\n"
      "compiler, which compiles the spec to a program, follow \"--\": kiln compile spec.cpp -o out -- -Iinclude");
  std::vector<CLI::App *> ofSpecs; // subcommands with the generator's options
  auto addSpec = [&](CLI::App *sub) {
    ofSpecs.push_back(sub);
    return sub;
  };
  addSpec(app.add_subcommand("compile", "compile the model of a spec"));
  addSpec(app.add_subcommand("inspect", "show the content of a spec's library, or of an existing one: "
                                        "kiln inspect SPEC, kiln inspect libNAME.a"));
  addSpec(
      app.add_subcommand("scale", "predict the time of entries on a cluster: kiln scale SPEC, kiln scale libNAME.a"));
  addSpec(app.add_subcommand("pack",
                             "write a checkpoint in the memory layout of a spec's library: kiln pack SPEC CHECKPOINT"));
  addSpec(app.add_subcommand("check",
                             "compare a checkpoint with the weights of a spec's model: kiln check SPEC CHECKPOINT"));
  addSpec(app.add_subcommand("bench", "time a spec's entries and their kernels on this machine"));
  CLI::App *tune = addSpec(app.add_subcommand("tune", "measure schedules of a spec's kernels on this machine"));
  tune->add_subcommand("coverage", "show which schedules a tuning file gives to a spec's kernels");
  tune->add_subcommand("verify", "check a tuning file against a spec");
  tune->add_subcommand("merge", "merge tuning files: kiln tune merge FILE... -o FILE");
  kiln::newproject::Options project;
  bool isBuilt = false;
  CLI::App *create = app.add_subcommand("new", "write a spec and a program for a third-party checkpoint");
  create->set_version_flag("--version", kiln::versionReport());
  create->add_option("directory", project.folder, "folder with config.json and model.safetensors")->required();
  create->add_option("--name", project.name, "name of the library and the program; default: the directory's");
  create->add_option("-o,--output-dir", project.out, "folder of the project; default: its name")
      ->check(kiln::notEmpty());
  CLI::Option *context = create->add_option("--context", project.context, "maximum number of tokens of a text")
                             ->check(CLI::Range(1, 1 << 24));
  create->add_option("--ignore", project.ignored, "a key of config.json that can be ignored")->allow_extra_args(false);
  create->add_flag("--build", isBuilt, "also build the project");
  if (argc > 1)
    for (CLI::App *chosen : ofSpecs)
      if (chosen->get_name() == argv[1])
        return runOfSpec(*chosen, {argv + 2, argv + argc});
  try {
    app.parse(argc, argv);
    if (app.get_subcommands().empty())
      throw CLI::RequiredError("A subcommand");
  } catch (const CLI::ParseError &error) {
    return kiln::refuseCommandLine(app, error);
  }
  project.hasContext = context->count() > 0;
  return runNew(project, isBuilt);
}
