// SPDX-License-Identifier: Apache-2.0
//
// PyTorch: whole models in a separate Python process, which receives commands through a pipe and times its own turns;
// eager, and traced and optimised for inference.
#include "benchmarks/peers/Peers.h"
#include "benchmarks/support/Placement.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kiln::bench {

namespace {

constexpr const char *python = "/usr/bin/python3"; // the interpreter of Debian's python3-torch

/// A process that serves one model.
class Server {
public:
  Server(const std::string &model, int threads) {
    int toServer[2], fromServer[2]; // [0] is the read end
    if (pipe2(toServer, O_CLOEXEC) != 0 || pipe2(fromServer, O_CLOEXEC) != 0)
      fail("no pipe");
    // The OpenBLAS build that shares PyTorch's threads: with another one, two pools would compete for the CPUs.
    std::string libraries = "LD_LIBRARY_PATH=" KILN_BENCH_TORCH_LIBRARIES;
    std::string count = std::to_string(threads), cpu = std::to_string(Placement::callersCpu());
    std::string workers = "OMP_NUM_THREADS=" + count;
    child = fork();
    if (child == 0) {
      dup2(toServer[0], STDIN_FILENO);
      dup2(fromServer[1], STDOUT_FILENO);
      execl("/usr/bin/env", "env", libraries.c_str(), workers.c_str(), python, KILN_BENCH_PYTORCH "/serve.py",
            model.c_str(), count.c_str(), cpu.c_str(), nullptr);
      _exit(127);
    }
    close(toServer[0]);
    close(fromServer[1]);
    commands = fdopen(toServer[1], "w");
    answers = fdopen(fromServer[0], "r");
    if (readLine() != "ready\n")
      fail("the model does not start");
  }
  ~Server() {
    std::fclose(commands);
    std::fclose(answers);
    waitpid(child, nullptr, 0);
  }
  Server(const Server &) = delete;
  Server &operator=(const Server &) = delete;

  /// Returns the seconds of one run.
  double run(const char *form) {
    command(std::string("run ") + form);
    return std::strtod(readLine().c_str(), nullptr);
  }
  void fetch(std::vector<float> &output) {
    command("output");
    if (std::fread(output.data(), sizeof(float), output.size(), answers) != output.size())
      fail("an output ends early");
  }

private:
  [[noreturn]] static void fail(const char *words) {
    std::fprintf(stderr, "error: PyTorch: %s\n", words);
    std::exit(1);
  }
  void command(const std::string &line) {
    std::fprintf(commands, "%s\n", line.c_str());
    std::fflush(commands);
  }
  std::string readLine() {
    char line[64];
    if (!std::fgets(line, sizeof line, answers))
      fail("the process has ended");
    return line;
  }

  pid_t child;
  std::FILE *commands, *answers;
};

class PyTorch : public Peer {
public:
  std::string name() const override { return "pytorch"; }
  void setThreads(int count) override { threads = count; }

  std::vector<Contender> model(const WholeModel &p) override {
    auto server = std::make_shared<Server>(p.name, threads);
    auto output = std::make_shared<std::vector<float>>(p.output.count());
    std::vector<Contender> ways;
    for (const char *form : {"eager", "jit"})
      ways.push_back({name(),
                      [server, output, form] {
                        server->run(form);
                        server->fetch(*output);
                      },
                      *output, [server, form] { return server->run(form); }});
    return ways;
  }

private:
  int threads = 1;
};

/// Whether Python finds PyTorch.
bool isInstalled() {
  static const bool found =
      std::system(
          (std::string(python) +
           " -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec(\"torch\") is None)' 2>/dev/null")
              .c_str()) == 0;
  return found;
}

} // namespace

std::unique_ptr<Peer> makePyTorch() { return isInstalled() ? std::make_unique<PyTorch>() : nullptr; }

} // namespace kiln::bench
