// SPDX-License-Identifier: Apache-2.0
// The commands as a user types them: refused command lines with exit status and message, and the files that are
// written.
#include "command.h"

#include <algorithm>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

using namespace kiln::testing;

namespace {

const std::string kilnProgram = KILN_PROGRAM, pairProgram = PAIR_GENERATOR, takenProgram = TAKEN_GENERATOR,
                  sources = PACKAGE_FOLDER;

struct CommandCase {
  const char *name;
  std::string command;
  std::string message; // a regular expression that matches the output
};

const CommandCase commandCases[] = {
    {"kiln alone", kilnProgram, "A subcommand is required"},
    {"unknown subcommand", kilnProgram + " bake x.cpp",
     "error: subcommand \"bake\": unknown; expected one of compile, .*; nearest: pack"},
    {"no spec", kilnProgram + " compile", "spec is required"},
    {"a spec that is not there", kilnProgram + " compile /nonexistent/spec.cpp",
     "error: spec \"/nonexistent/spec.cpp\": not found; expected a C\\+\\+ source file"},
    {"a folder as spec", kilnProgram + " compile /tmp",
     "error: spec \"/tmp\": a folder; expected a C\\+\\+ source file, such as /tmp/spec.cpp"},
    {"a spec that breaks a rule", kilnProgram + " compile " + sources + "/broken.cpp",
     "[^\n]*/broken.cpp:[0-9]+: error: fc: linear: wrong input width; expected [0-9]+, got [0-9]+ \\[linear_c1\\]"},
    {"a spec without KILN_MODEL", kilnProgram + " compile " + sources + "/plain.cpp -o /tmp/kiln-plain",
     "[^\n]*/plain.cpp:[0-9]+: error: the spec: it makes no generator; expected KILN_MODEL\\(name, Model\\)[^\n]*"},
    {"a program of its own", kilnProgram + " compile " + sources + "/program.cpp -o /tmp/kiln-plain",
     "[^\n]*/program.cpp:[0-9]+: error: the spec: it makes no generator; expected KILN_MODEL\\(name, Model\\)[^\n]*"},
    {"a C++ compiler that is not there", "CXX=/nonexistent/c++ " + kilnProgram + " compile " + sources + "/pair.cpp",
     "error: the C\\+\\+ compiler \"/nonexistent/c\\+\\+\" cannot be started; set CXX"},
    {"no place for temporary files", "TMPDIR=/nonexistent " + kilnProgram + " compile " + sources + "/pair.cpp",
     "error: cannot make a temporary folder in \"/nonexistent\"; set TMPDIR"},
    {"generator alone", pairProgram, "A subcommand is required"},
    {"generator with an unknown subcommand", pairProgram + " bake",
     "error: subcommand \"bake\": unknown; expected one of compile, .*; nearest: pack"},
    {"unknown option", pairProgram + " compile --fast",
     "error: option \"--fast\": unknown; expected one that --help shows; nearest: --"},
    {"unknown target", pairProgram + " compile --target x86-64-v9",
     "--target: \"x86-64-v9\" is unknown; expected one of .*; nearest: x86-64-v"},
    {"no target", pairProgram + " compile --target", "--target.* required"},
    {"an option with two letters exchanged", pairProgram + " compile --taget " KILN_V2,
     "error: option \"--taget\": unknown; expected one that --help shows; nearest: --target, "},
    {"kiln with an unknown option", kilnProgram + " --taget " KILN_V2, "error: option \"--taget\": unknown"},
    {"a word that no option takes", pairProgram + " compile --no-cache " KILN_V2,
     "error: word \"" KILN_V2 "\": no option takes it; expected options"},
    {"an unknown language", pairProgram + " compile --shared --bindings pyhton",
     "--bindings: \"pyhton\" is unknown; expected one of python, rust; nearest: python, rust"},
    {"Python without a shared object", pairProgram + " compile --bindings python -o /tmp/kiln-plain",
     "error: bindings: Python loads a shared object; expected --shared with --bindings python, got an archive"},
    {"a model that hides a module of Python",
     pairProgram + " compile --shared --bindings python --name zipfile -o /tmp/kiln-plain",
     "error: bindings: zipfile.py would hide a module of Python's library; expected another name of the model"},
    {"an empty folder", pairProgram + " compile -o ''", "--output-dir: empty; expected a folder, such as"},
    {"an empty folder of packed files", pairProgram + " pack w -o ''", "--output-dir: empty; expected a folder"},
    {"an empty folder of a project", kilnProgram + " new somewhere -o ''", "--output-dir: empty; expected a folder"},
    {"unknown form", pairProgram + " compile --emit=wasm", "--emit: .*wasm"},
    {"a budget that is no number", pairProgram + " compile --max-text-bytes much", "--max-text-bytes"},
    {"a negative budget", pairProgram + " compile --max-arena-bytes -5", "--max-arena-bytes"},
    {"a name that begins with a digit", pairProgram + " compile --name 9lives",
     "error: model \"9lives\": its name is no identifier in C and C\\+\\+; expected one, since it begins every symbol"},
    {"a name with a dash", pairProgram + " compile --name my-model",
     "model \"my-model\": its name is no identifier.*; expected one"},
    {"an empty name", pairProgram + " compile --name ''", "model \"\": its name is no identifier.*; expected one"},
    {"a keyword as name", pairProgram + " compile --name int",
     "model \"int\": its name is no identifier.*; expected one"},
    {"the run time's name", pairProgram + " compile --name kiln",
     "error: model \"kiln\": its name is reserved; expected one that its headers do not use"},
    {"Halide's name", pairProgram + " compile --name halide",
     "error: model \"halide\": its name is reserved; expected one that its headers do not use"},
    {"an entry of a taken name", takenProgram + " compile -o /tmp",
     "error: entry \"create\": its name is taken; expected another, since taken_create is a function of the run time"},
    {"an extent that is no identifier", kilnProgram + " compile " + sources + "/spaced.cpp -o /tmp",
     "spaced.cpp:[0-9]+: error: .*dimension: invalid name; expected an identifier in C and C\\+\\+, got my rows "
     "\\[dim_c8\\]"},
    {"a name that is a macro", pairProgram + " compile --name linux",
     "error: model \"linux\": its name is a macro of compilers or standard headers; expected another name"},
    {"a name that a header declares", pairProgram + " compile --name index",
     "error: model \"index\": its name is declared by standard headers; expected another name"},
    {"a name of a header", pairProgram + " compile --name math",
     "error: model \"math\": math.h is a header of the system; expected another name"},
    {"a name whose type is another's", pairProgram + " compile --name size",
     "error: model \"size\": [^\n]*, size_t, is a name of the standard headers; expected another name"},
    {"a name that begins as the run time's", pairProgram + " compile --name kiln_demo",
     "error: model \"kiln_demo\": its name begins as symbols of the run time do; expected one without \"kiln_\""},
    {"a name that begins as Halide's", pairProgram + " compile --name halide_x",
     "error: model \"halide_x\": its name begins as symbols of the run time do; expected one without \"halide_\""},
    {"a folder that cannot be made", pairProgram + " compile --target " KILN_V2 " -o /proc/nowhere",
     "error: cannot write \"/proc/nowhere/pair.h\": No such file or directory"},
    {"code above its budget", pairProgram + " compile --target " KILN_V2 " -o /tmp/kiln-budget --max-text-bytes 1000",
     "error: the code of \"pair\" exceeds its budget: [0-9]+ bytes, at most 1000 allowed"},
    {"arena above its budget", pairProgram + " compile --target " KILN_V2 " -o /tmp/kiln-budget --max-arena-bytes 64",
     "error: the arena of entry \"(encode|cycle)\" exceeds its budget: [0-9]+ bytes with one worker, at most 64 "
     "allowed"},
    {"a negative number of jobs", pairProgram + " compile --jobs -1", "--jobs: Value -1 not in range"},
    {"activations of another type", pairProgram + " compile --activations int4",
     "--activations: unknown type; expected f32 or int8, got \"int4\""},
    {"activations without weights", pairProgram + " compile --activations int8 -o /tmp",
     "activations of int8: no quantised weights; expected some of int8 or int4 that linear reads, got none"},
    {"a number of jobs that is no number", pairProgram + " compile -j many", "--jobs: .*many"},
    {"a negative time", pairProgram + " compile --kernel-seconds -1", "--kernel-seconds: .*-1"},
    {"a kernel that takes too long", pairProgram + " compile --no-cache -o /tmp/kiln-late --kernel-seconds 1e-5",
     "error: kernel \"pair_(x86_64_v4|aarch64)_linear_tanh_0_up\": compilation took too long; expected at most 1e-05 "
     "seconds"},
    {"inspect with an unknown target", pairProgram + " inspect --target arm64",
     "--target: \"arm64\" is unknown; expected one of "},
    {"pack without a checkpoint", pairProgram + " pack", "checkpoint is required"},
    {"kiln pack without a checkpoint", kilnProgram + " pack " + sources + "/pair.cpp", "checkpoint is required"},
    {"pack of weights that are not there", pairProgram + " pack /nonexistent/w.safetensors -o /tmp",
     "error: cannot open weight file \"/nonexistent/w.safetensors\": No such file or directory"},
    {"pack of weights that are none", pairProgram + " pack " + sources + "/pair.cpp -o /tmp",
     "error: file \"pair.cpp\": weight file: of another kind; expected a safetensors file, got text"},
    {"pack of an index that is none", "echo [] > kiln-index.json && " + pairProgram + " pack kiln-index.json -o /tmp",
     "error: index of weight files: malformed JSON; expected '\\{' to begin, got '\\[' at byte 0"},
    {"pack of a GGUF file that is none",
     "echo GGUF > kiln-none.gguf && " + pairProgram + " pack kiln-none.gguf -o /tmp",
     "error: file \"kiln-none.gguf\": GGUF file: truncated; expected a version, got its end at byte 4"},
    {"pack of a GGUF file that is said to be another", pairProgram + " pack w.gguf --quantized awq",
     "error: --quantized: wrong kind of file; expected safetensors, got \"w.gguf\""},
    {"pack with renames that are not there", pairProgram + " pack w.safetensors --renames no-such-names",
     "error: cannot read the renames \"no-such-names\""},
    {"pack with a rename of nothing", pairProgram + " pack w.safetensors --rename =b",
     "--rename: wrong form; expected FROM=TO, or FROM= for an ignored tensor, got \"=b\""},
    {"check without a checkpoint", pairProgram + " check", "checkpoint is required"},
    {"check of weights that are not there", pairProgram + " check /nonexistent/w.safetensors",
     "error: cannot open weight file \"/nonexistent/w.safetensors\": No such file or directory"},
    {"pack with an unknown quantization", pairProgram + " pack w --quantized int3",
     "--quantized: \"int3\" is unknown; expected one of "},
    {"pack with an unknown target", pairProgram + " pack w --target arm64",
     "--target: \"arm64\" is unknown; expected one of "},
    {"pack with an option of compile", pairProgram + " pack w --emit=ir", "error: option \"--emit\": unknown"},
    {"inspect with an option of compile", pairProgram + " inspect --emit=ir", "error: option \"--emit\": unknown"},
};

TEST(BadCommand, IsRefusedWithWords) {
  for (const CommandCase &wrong : commandCases) {
    SCOPED_TRACE(wrong.name);
    Result result = run(wrong.command);
    EXPECT_NE(result.status, 0);
    EXPECT_LT(result.status, 128) << "it crashed";
    EXPECT_TRUE(std::regex_search(result.text, std::regex(wrong.message))) << result.text;
  }
  EXPECT_FALSE(fs::exists("/tmp/kiln-budget")) << "a library above its budget was written";
  EXPECT_FALSE(fs::exists("/tmp/kiln-plain")) << "something was written of a spec without a model";
}

// Two runs with different folders and environments write the same bytes, with any number of jobs, with and without the
// cache.
TEST(Compile, IsDeterministic) {
  Folder a;
  const std::string command = pairProgram + " compile --target " KILN_V3 "," KILN_V2 " -o ";
  ASSERT_EQ(run(command + a.path.string() + " --no-cache --jobs 1").status, 0);
  const auto first = contents(a.path);
  ASSERT_EQ(first.size(), 6u);
  Folder cache;
  const std::string cached = " --cache-dir " + cache.path.string();
  for (const std::string &options : {std::string(" --no-cache --jobs 5"), cached, cached}) {
    SCOPED_TRACE(options);
    Folder b;
    ASSERT_EQ(run("cd / && FOO=bar " + command + b.path.string() + options).status, 0);
    const auto second = contents(b.path);
    for (const auto &[name, text] : first) {
      EXPECT_FALSE(text.empty()) << name;
      EXPECT_TRUE(second.count(name) && second.at(name) == text) << name << " differs";
    }
  }
}

// A parameter whose name is taken gets a trailing underscore.
TEST(Compile, NamesParametersThatAreTaken) {
  Folder folder;
  const std::string path = folder.path.string();
  Result result = run(CALLING_GENERATOR " compile --target " KILN_V2 " -o " + path);
  ASSERT_EQ(result.status, 0) << result.text;
  EXPECT_NE(contents(folder.path).at("calling.h").find("const float *call_,"), std::string::npos);
  result = run("echo '#include \"calling.hpp\"' > " + path + "/use.cpp && c++ -std=c++20 -fsyntax-only " + path +
               "/use.cpp");
  EXPECT_EQ(result.status, 0) << result.text;
}

std::size_t count(const std::string &text, const std::string &words) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(words, at)) != std::string::npos; at += words.size())
    ++found;
  return found;
}

// A model uses cached kernels of a model with another name; an unwritable cache folder only costs time.
TEST(Cache, ServesOtherModels) {
  Folder folder;
  const std::string command = pairProgram + " compile --verbose --target " KILN_V2 " -o " + folder.path.string(),
                    cache = (folder.path / "cache").string();
  Result first = run(command + " --cache-dir " + cache);
  EXPECT_EQ(first.status, 0) << first.text;
  const std::size_t kernels = count(first.text, " s\n");
  EXPECT_GE(kernels, 2u) << first.text;
  EXPECT_EQ(contents(cache).size(), kernels);
  EXPECT_EQ(count(first.text, " cached\n"), 0u) << first.text;
  for (const std::string &way :
       {"KILN_CACHE_DIR=" + cache + " " + command + " --name other", command + " --name third --cache-dir " + cache}) {
    Result next = run(way);
    EXPECT_EQ(next.status, 0) << next.text;
    EXPECT_EQ(count(next.text, " cached\n"), kernels) << next.text;
  }
  Result without = run("KILN_CACHE_DIR=" + cache + " " + command + " --no-cache");
  EXPECT_EQ(count(without.text, " cached\n"), 0u) << without.text;
  for (const char *environment : {"KILN_CACHE_DIR=/proc/nowhere", "-u KILN_CACHE_DIR -u XDG_CACHE_HOME -u HOME",
                                  "-u KILN_CACHE_DIR -u XDG_CACHE_HOME HOME=/proc/nowhere"}) {
    Result nowhere = run(std::string("env ") + environment + " " + command);
    EXPECT_EQ(nowhere.status, 0) << nowhere.text;
    EXPECT_EQ(count(nowhere.text, "error") + count(nowhere.text, "warning"), 0u) << nowhere.text;
  }
}

TEST(Compile, ShowsItsTimes) {
  Folder folder;
  Result result = run(pairProgram + " compile --time --no-cache --target " KILN_V2 " -o " + folder.path.string());
  EXPECT_EQ(result.status, 0);
  for (const char *stage : {"forming of kernels", "kernels\n", "host code", "archive", "total"})
    EXPECT_NE(result.text.find(stage), std::string::npos) << stage << " is not in\n" << result.text;
  // The slowest kernels follow, in order.
  std::istringstream lines(result.text.substr(result.text.find("total")));
  std::vector<double> seconds;
  for (std::string line; std::getline(lines, line);)
    if (const std::size_t at = line.find(" s  kernel linear_"); at != line.npos) {
      seconds.push_back(std::stod(line));
      EXPECT_TRUE(line.ends_with(" of " KILN_V2)) << line;
    }
  EXPECT_FALSE(seconds.empty()) << result.text;
  EXPECT_LE(seconds.size(), 5u);
  EXPECT_TRUE(std::is_sorted(seconds.rbegin(), seconds.rend())) << result.text;
}

TEST(Compile, SaysWhatItMade) {
  Folder folder;
  Result result = run(pairProgram + " compile --target " KILN_V2 " --name couple -o " + folder.path.string());
  EXPECT_EQ(result.status, 0);
  EXPECT_NE(result.text.find("libcouple.a: 136 parameters"), std::string::npos) << result.text;
  EXPECT_NE(result.text.find("encode: arena"), std::string::npos) << result.text;
  for (const char *name :
       {"libcouple.a", "couple.h", "couple.hpp", "couple.manifest.json", "couple.pc", "couple.LICENSE.txt"})
    EXPECT_TRUE(fs::exists(folder.path / name)) << name;
}

// Checks every --emit form by text that only that stage has.
TEST(Compile, EmitsEveryStage) {
  const std::pair<const char *, const char *> forms[] = {
      {"ir", "kiln\\.linear[^]*kiln\\.tanh"},
      {"linalg", "linalg\\.generic[^]*kiln\\.kernel|kiln\\.kernel[^]*linalg\\.generic"},
      {"stmt", "for (<[^>]*> )?\\(|produce |vectorized|ramp\\("},
      {"asm", "\\.globl|\\.text|xmm"},
  };
  for (const auto &[form, words] : forms) {
    SCOPED_TRACE(form);
    Result result = run(pairProgram + " compile --target " KILN_V2 " --emit=" + form);
    EXPECT_EQ(result.status, 0);
    EXPECT_TRUE(std::regex_search(result.text, std::regex(words))) << result.text.substr(0, 2000);
  }
  Folder folder;
  Result result = run(pairProgram + " compile --target " KILN_V2 " --emit=obj -o " + folder.path.string());
  EXPECT_EQ(result.status, 0) << result.text;
  std::size_t objects = 0;
  for (const auto &[name, text] : contents(folder.path))
    objects += name.ends_with(".o") && text.starts_with("\x7f"
                                                        "ELF");
  EXPECT_GE(objects, 2u);
}

TEST(Compile, DumpsEveryStage) {
  Folder folder;
  Result result = run(pairProgram + " compile --target " KILN_V2 " -o " + (folder.path / "out").string() +
                      " --dump-ir " + (folder.path / "ir").string());
  ASSERT_EQ(result.status, 0) << result.text;
  std::size_t stages = 0, statements = 0, assemblies = 0;
  for (const auto &[name, text] : contents(folder.path / "ir")) {
    EXPECT_FALSE(text.empty()) << name;
    stages += name.ends_with(".mlir");
    statements += name.ends_with(".stmt");
    assemblies += name.ends_with(".s");
  }
  EXPECT_GE(stages, 5u);
  EXPECT_GE(statements, 2u);
  EXPECT_EQ(statements, assemblies);
}

TEST(Inspect, ShowsTheModel) {
  Result result = run(pairProgram + " inspect --target " KILN_V2);
  EXPECT_EQ(result.status, 0);
  for (const char *words :
       {"pair: 136 parameters", "up.weight f32\\[10, 6\\]", "lower bound", "pair_" KILN_V2_SYMBOL "_"})
    EXPECT_TRUE(std::regex_search(result.text, std::regex(words))) << words << " is not in\n" << result.text;
  Result manifest = run(pairProgram + " inspect --target " KILN_V2 " --manifest");
  EXPECT_EQ(manifest.text.substr(0, 1), "{");
}

TEST(Kiln, CompilesASpec) {
  Folder folder;
  Result result =
      run(kilnProgram + " compile " + sources + "/pair.cpp -o " + folder.path.string() + " --target " KILN_V2);
  EXPECT_EQ(result.status, 0) << result.text;
  EXPECT_EQ(contents(folder.path).size(), 6u);
  Result help = run(kilnProgram + " --help");
  EXPECT_EQ(help.status, 0);
  EXPECT_NE(help.text.find("compile"), std::string::npos);
}

// Storage formats from the build's exceptions, from the spec, and from the build.
TEST(Kiln, ShowsHowWeightsAreStored) {
  const std::string spec = sources + "/stored.cpp --target " KILN_V2 " ";
  Result ir = run(kilnProgram + " compile " + spec + "--emit=ir");
  for (const char *words : {R"("wte\.weight"\][^\n]*storage = #kiln\.storage<f16>)",
                            R"("fc\.weight"\][^\n]*storage = #kiln\.storage<i8, dim = 1>)", R"("left\.weight"\]\} )"})
    EXPECT_TRUE(std::regex_search(ir.text, std::regex(words))) << words << " is not in\n" << ir.text;
  Result table = run(kilnProgram + " inspect " + spec + "--weights-table --weights \"bf16 except fc.*=f32\"");
  for (const char *words : {"wte.weight f32[40, 8] as f16: 640 bytes", "fc.weight f32[8, 8] as f32: 256 bytes",
                            "left.weight f32[8, 8] as bf16: 128 bytes", "left.bias f32[8] as f32: 32 bytes"})
    EXPECT_NE(table.text.find(words), std::string::npos) << words << " is not in\n" << table.text;
}

} // namespace
