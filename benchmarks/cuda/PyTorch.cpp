// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/cuda/PyTorch.h"

#include <cstdlib>
#include <fcntl.h>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

namespace kiln::bench {

std::unique_ptr<GpuPyTorch> GpuPyTorch::start(std::string &why) {
  int toServer[2], fromServer[2]; // [0] is the read end
  if (pipe2(toServer, O_CLOEXEC) != 0 || pipe2(fromServer, O_CLOEXEC) != 0) {
    why = "no pipe";
    return nullptr;
  }
  const char *python = std::getenv("KILN_BENCH_PYTHON"); // for example of a virtual environment whose PyTorch has CUDA
  std::unique_ptr<GpuPyTorch> peer(new GpuPyTorch);
  peer->child = fork();
  if (peer->child == 0) {
    dup2(toServer[0], STDIN_FILENO);
    dup2(fromServer[1], STDOUT_FILENO);
    execlp(python ? python : "python3", "python3", KILN_BENCH_CUDA_SERVER, nullptr);
    _exit(127);
  }
  close(toServer[0]);
  close(fromServer[1]);
  peer->commands = fdopen(toServer[1], "w");
  peer->answers = fdopen(fromServer[0], "r");
  std::string line = peer->readLine();
  if (line.rfind("ready ", 0) != 0) {
    why = line.empty() ? "python3 does not start serve.py" : line;
    return nullptr;
  }
  peer->words = line.substr(6);
  return peer;
}

GpuPyTorch::~GpuPyTorch() {
  std::fclose(commands);
  std::fclose(answers);
  waitpid(child, nullptr, 0);
}

void GpuPyTorch::command(const std::string &line) {
  std::fprintf(commands, "%s\n", line.c_str());
  std::fflush(commands);
}

std::string GpuPyTorch::readLine() {
  char line[512];
  if (!std::fgets(line, sizeof line, answers))
    return "";
  std::string text = line;
  return text.substr(0, text.find('\n'));
}

std::vector<std::string> GpuPyTorch::make(const std::string &description) {
  command("make " + description);
  std::istringstream line(readLine());
  std::vector<std::string> forms;
  for (std::string form; line >> form;)
    forms.push_back(form);
  return forms;
}

double GpuPyTorch::run(const std::string &form, int calls) {
  command("run " + form + " " + std::to_string(calls));
  const double seconds = std::strtod(readLine().c_str(), nullptr);
  if (seconds > 0)
    return seconds;
  std::fprintf(stderr, "error: PyTorch's process has ended\n");
  std::exit(1);
}

std::vector<float> GpuPyTorch::output(std::size_t count) {
  std::vector<float> values(count);
  command("output");
  if (std::fread(values.data(), sizeof(float), count, answers) != count) {
    std::fprintf(stderr, "error: PyTorch's process: an output is truncated\n");
    std::exit(1);
  }
  return values;
}

} // namespace kiln::bench
