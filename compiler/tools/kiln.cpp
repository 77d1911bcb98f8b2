// SPDX-License-Identifier: Apache-2.0
//
// `kiln SUBCOMMAND spec.cpp ...`: compiles the spec with the user's C++ compiler into its generator, and runs that.
// `kiln new DIRECTORY` makes a spec.
#include "compiler/new/New.h"

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace {

/// Where the headers and the compiler's library are: beside the installed program, else in the build tree.
struct Toolchain {
  std::vector<std::string> includes;
  fs::path libraryFolder;
  fs::path source;    // of what `kiln new` copies
  std::string prefix; // where it is installed
};

Toolchain findToolchain() {
  fs::path self = fs::read_symlink("/proc/self/exe");
  fs::path prefix = self.parent_path().parent_path();
  if (fs::exists(prefix / KILN_INSTALL_INCLUDEDIR / "kiln/dsl.h"))
    return {{(prefix / KILN_INSTALL_INCLUDEDIR).string()},
            prefix / KILN_INSTALL_LIBDIR,
            prefix / KILN_INSTALL_DATADIR / "kiln",
            prefix.string()};
  return {{KILN_SOURCE_DIR "/dsl/include", KILN_SOURCE_DIR "/compiler/include"},
          KILN_BUILD_LIBRARY_DIR,
          KILN_SOURCE_DIR,
          ""};
}

/// Runs a program and waits; its exit status, or 127 if it could not be started. The program is asked to end when this
/// one does, also when this one is killed.
int runProgram(std::vector<std::string> words) {
  std::vector<char *> arguments;
  for (std::string &word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t parent = getpid(), child = fork();
  if (child == 0) {
    // The parent may have died before the call; its death then sent nothing.
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 && getppid() == parent)
      execvp(arguments[0], arguments.data());
    _exit(127);
  }
  if (child < 0)
    return 127;
  // Ctrl-C is the child's to handle; this program removes its files afterwards.
  std::signal(SIGINT, SIG_IGN);
  int status = 0;
  waitpid(child, &status, 0);
  std::signal(SIGINT, SIG_DFL);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// Whether an object file calls what KILN_MODEL makes of a spec: its `main` gives the model to the compiler. A name
/// stands in a file's symbols as it is.
bool callsGenerator(const fs::path &object) {
  std::ifstream file(object, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  return bytes.find("_ZN4kiln12runGenerator") != std::string::npos;
}

/// `subcommand`: of the generator, "tune coverage" being two words.
int buildAndRun(const std::vector<std::string> &subcommand, const std::string &spec,
                const std::vector<std::string> &rest) {
  if (!fs::is_regular_file(spec)) {
    fmt::print(stderr, "error: there is no spec \"{}\"\n", spec);
    return 1;
  }
  const char *compiler = std::getenv("CXX");
  if (!compiler || !*compiler)
    compiler = "c++";
  const char *temporary = std::getenv("TMPDIR");
  if (!temporary || !*temporary)
    temporary = "/tmp";
  std::string folder = (fs::path(temporary) / "kiln-XXXXXX").string();
  if (!mkdtemp(folder.data())) {
    fmt::print(stderr, "error: cannot make a temporary folder in \"{}\"; set TMPDIR\n", temporary);
    return 1;
  }
  Toolchain tools = findToolchain();
  std::string object = folder + "/spec.o", generator = folder + "/generator";
  std::vector<std::string> compile{compiler, "-std=c++20", "-c", spec, "-o", object};
  for (const std::string &include : tools.includes)
    compile.push_back("-I" + include);
  std::vector<std::string> link{compiler, object, "-o", generator};
  for (const char *flag : {"-L", "-Wl,-rpath,"})
    link.push_back(flag + tools.libraryFolder.string());
  link.push_back("-lkiln_compiler");
  int status = runProgram(compile);
  if (status == 127)
    fmt::print(stderr, "error: the C++ compiler \"{}\" cannot be started; set CXX\n", compiler);
  if (status == 0 && !callsGenerator(object)) {
    fmt::print(stderr, "error: {}: requires KILN_MODEL(name, Model), which makes it a generator\n", spec);
    status = 1;
  }
  if (status == 0)
    status = runProgram(link);
  if (status == 0) {
    setenv("KILN_TUNE_COMMAND", ("kiln tune '" + spec + "'").c_str(), 1);
    std::vector<std::string> run{generator};
    run.insert(run.end(), subcommand.begin(), subcommand.end());
    run.insert(run.end(), rest.begin(), rest.end());
    status = runProgram(run);
  }
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  return status;
}

/// What needs no spec is run by the compiler's library itself: a function of it, with the command and its words.
int runInLibrary(const char *function, const std::string &command, std::vector<std::string> words) {
  fs::path file = findToolchain().libraryFolder / "libkiln_compiler.so";
  void *library = dlopen(file.c_str(), RTLD_NOW);
  auto *run = library ? reinterpret_cast<int (*)(int, char **)>(dlsym(library, function)) : nullptr;
  if (!run) {
    fmt::print(stderr, "error: cannot load the compiler: {}\n", dlerror());
    return 1;
  }
  words.insert(words.begin(), command);
  std::vector<char *> arguments;
  for (std::string &word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  return run(static_cast<int>(words.size()), arguments.data());
}

/// Whether `inspect` or `scale` is given what compiling wrote, not a spec.
bool isLibrary(const fs::path &path) { return path.extension() == ".a" || path.extension() == ".json"; }

/// Either of a library that is there.
int lookAtLibrary(const std::string &subcommand, const std::string &path, std::vector<std::string> words) {
  words.insert(words.begin(), path);
  return runInLibrary(("kiln_" + subcommand + "_archive").c_str(), "kiln " + subcommand, std::move(words));
}

/// Writes the project, says how it is built, and builds it if asked to.
int runNew(kiln::newproject::Options options, bool isBuilt) {
  const Toolchain tools = findToolchain();
  const std::string folder = options.folder.string(); // as it was typed
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
  fmt::print("{} has the spec, a program and what they need; build it and let it answer:\n{}{} && {} && {}/{} {}\n",
             out, fmt::join(configure, " "), tools.prefix.empty() ? " -DCMAKE_PREFIX_PATH=PREFIX" : "",
             fmt::join(compile, " "), build, options.name, folder);
  std::fflush(stdout);
  if (!isBuilt)
    return 0;
  const int status = runProgram(configure);
  return status == 0 ? runProgram(compile) : status;
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("Kiln: a transformer model, written in C++, becomes a static library.");
  app.require_subcommand(0, 1); // an unknown one is then reported by its name
  app.footer("Options after the spec go to the spec's generator: kiln compile spec.cpp --help");
  std::string spec;
  auto addSpec = [&](CLI::App *sub) {
    sub->add_option("spec", spec, "a C++ file that ends with KILN_MODEL(...)");
    sub->prefix_command();
    sub->set_help_flag();
    return sub;
  };
  addSpec(app.add_subcommand("compile", "compile the model of a spec"));
  CLI::App *inspect = addSpec(app.add_subcommand("inspect", "show what a spec's library holds, or one that is there: "
                                                            "kiln inspect SPEC, kiln inspect libNAME.a"));
  CLI::App *scale = addSpec(
      app.add_subcommand("scale", "predict what entries take on many machines: kiln scale SPEC, kiln scale libNAME.a"));
  std::string page;
  inspect->add_option("--html", page, "write it as a page to this file, instead of words");
  addSpec(
      app.add_subcommand("pack", "write a checkpoint in the layout of a spec's library: kiln pack SPEC CHECKPOINT"));
  addSpec(app.add_subcommand("check",
                             "compare a checkpoint with the weights of a spec's model: kiln check SPEC CHECKPOINT"));
  addSpec(app.add_subcommand("bench", "time a spec's entries and their kernels on this machine"));
  CLI::App *tune = addSpec(app.add_subcommand("tune", "measure schedules of a spec's kernels on this machine"));
  tune->require_subcommand(0, 1);
  addSpec(tune->add_subcommand("coverage", "show which schedules a tuning file gives to a spec's kernels"));
  addSpec(tune->add_subcommand("verify", "check a tuning file against a spec"));
  addSpec(tune->add_subcommand("rekey", "rename a spec's kernels in a tuning file whose keys had polynomials"));
  CLI::App *merge = tune->add_subcommand("merge", "join tuning files: kiln tune merge FILE... -o FILE");
  merge->prefix_command();
  merge->set_help_flag();
  kiln::newproject::Options project;
  bool isBuilt = false;
  CLI::App *create = app.add_subcommand("new", "write a spec and a program for a published checkpoint");
  create->add_option("directory", project.folder, "with config.json and model.safetensors")->required();
  create->add_option("--name", project.name, "of the library and the program, if not the directory's");
  create->add_option("-o,--output-dir", project.out, "of the project, if not its name");
  create->add_option("--context", project.context, "tokens that a text may have, at most")
      ->check(CLI::Range(1, 1 << 24));
  create->add_option("--ignore", project.ignored, "a key of config.json that changes nothing")->allow_extra_args(false);
  create->add_flag("--build", isBuilt, "compile it, too");
  std::vector<std::string> subcommand;
  std::vector<std::string> rest;
  try {
    app.parse(argc, argv);
    CLI::App *chosen = &app;
    while (!chosen->get_subcommands().empty()) {
      chosen = chosen->get_subcommands().front();
      subcommand.push_back(chosen->get_name());
    }
    if (chosen == &app)
      throw CLI::RequiredError("A subcommand");
    if (chosen != merge && chosen != create && spec.empty())
      throw CLI::RequiredError("spec");
    rest = chosen->remaining();
  } catch (const CLI::ParseError &error) {
    return app.exit(error);
  }
  if (create->parsed())
    return runNew(project, isBuilt);
  if (!page.empty())
    rest.insert(rest.end(), {"--html", page});
  if (merge->parsed())
    return runInLibrary("kiln_tune_merge", "kiln tune merge", std::move(rest));
  if ((inspect->parsed() || scale->parsed()) && isLibrary(spec))
    return lookAtLibrary(subcommand.front(), spec, std::move(rest));
  return buildAndRun(subcommand, spec, rest);
}
