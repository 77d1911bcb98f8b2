// SPDX-License-Identifier: Apache-2.0
#include "Emulator.h"

#include "CompiledModel.h"

#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kiln::fuzz {

namespace fs = std::filesystem;

llvm::Expected<std::unique_ptr<Emulator>> Emulator::start(const std::string &script,
                                                          llvm::ArrayRef<ObjectFile> objects) {
  std::unique_ptr<Emulator> emulator(new Emulator);
  if (llvm::Error error = emulator->link(script, objects))
    return error;
  if (llvm::Error error = emulator->run(script))
    return error;
  return emulator;
}

Emulator::~Emulator() {
  stop();
  std::error_code ignored;
  if (!folder.empty())
    fs::remove_all(folder, ignored);
}

llvm::Error Emulator::link(const std::string &script, llvm::ArrayRef<ObjectFile> objects) {
  std::string pattern = (fs::temp_directory_path() / "kiln_fuzz_XXXXXX").string();
  if (!mkdtemp(pattern.data()))
    return llvm::createStringError("no temporary folder can be made");
  folder = pattern;
  std::string command = fmt::format("'{}' link '{}/program'", script, folder);
  for (const auto &[number, object] : llvm::enumerate(objects)) {
    const std::string path = fmt::format("{}/{}.o", folder, number);
    std::FILE *file = std::fopen(path.c_str(), "wb");
    const bool isWritten =
        file && std::fwrite(object.bytes.data(), 1, object.bytes.size(), file) == object.bytes.size();
    if (!file || std::fclose(file) != 0 || !isWritten)
      return llvm::createStringError(path + " cannot be written");
    command += fmt::format(" '{}'", path);
  }
  if (std::system((command + " >&2").c_str()) != 0)
    return llvm::createStringError("the model was not linked: " + command);
  return llvm::Error::success();
}

llvm::Error Emulator::run(const std::string &script) {
  std::signal(SIGPIPE, SIG_IGN); // a program that died is seen by what it does not take
  int in[2], out[2];
  if (pipe(in) != 0 || pipe(out) != 0)
    return llvm::createStringError("no pipe can be made");
  const std::string program = folder + "/program", errors = folder + "/errors";
  child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL); // as trials that take too long are
    dup2(in[0], STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    const int said = open(errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(said, STDERR_FILENO);
    for (int file : {in[0], in[1], out[0], out[1], said})
      close(file);
    execl(script.c_str(), script.c_str(), "run", program.c_str(), nullptr);
    _exit(127);
  }
  close(in[0]);
  close(out[1]);
  to = fdopen(in[1], "wb");
  from = fdopen(out[0], "rb");
  channel = std::make_unique<Messages>(from, to);
  return child > 0 ? llvm::Error::success() : llvm::createStringError("no process can be made");
}

/// The status of the program, for waitpid().
int Emulator::stop() {
  int status = 0;
  if (child <= 0)
    return status;
  std::fclose(to);
  std::fclose(from);
  waitpid(child, &status, 0);
  child = -1;
  return status;
}

llvm::Error Emulator::answer() {
  channel->send();
  const std::vector<char> words = channel->bytes();
  if (!channel->isAlive()) {
    const int status = stop();
    std::ifstream file(folder + "/errors");
    const std::string said{std::istreambuf_iterator<char>(file), {}};
    isBroken = said.find("qemu-") != said.npos && said.find(": Assertion `") != said.npos;
    return llvm::createStringError(fmt::format("the emulated program ended with {} {}; {}",
                                               WIFSIGNALED(status) ? "signal" : "status",
                                               WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), said));
  }
  return words.empty() ? llvm::Error::success() : llvm::createStringError(std::string(words.begin(), words.end()));
}

llvm::Expected<CompiledModel::Buffers>
CompiledModel::Session::callEmulated(size_t entry, const interpreter::Extents &extents, const Buffers &inputs) {
  const EntryInterface &interface = model.report.model.entries[entry];
  const ArenaBytes sizes = arenaBytes(model.report.variants, entry);
  Messages &messages = model.emulator->messages();
  messages.put(Message::Call);
  messages.put(entry);
  messages.put(static_cast<std::uint64_t>(style.order));
  messages.put(style.workers);
  messages.put(style.poison);
  messages.put(sizes.fixed + style.workers * sizes.perWorker);
  std::vector<char> &states = held.front();
  messages.put(std::vector<char>(states.begin(), states.begin() + static_cast<std::ptrdiff_t>(interface.stateBytes)));
  messages.put(interface.symbols.size());
  for (const Symbol &symbol : interface.symbols)
    messages.put(static_cast<std::uint64_t>(extents.at(symbol.name)));
  messages.put(interface.arguments.size());
  for (const auto &[number, argument] : llvm::enumerate(interface.arguments)) {
    messages.put(static_cast<std::uint64_t>(argument.isOutput));
    if (argument.isOutput)
      messages.put(
          stored_bytes(argument.element, interpreter::elementCount(interpreter::evaluate(argument.shape, extents))));
    else
      messages.put(inputs[number]);
  }
  if (llvm::Error error = model.emulator->answer())
    return error;
  const std::vector<char> after = messages.bytes();
  std::copy(after.begin(), after.end(), states.begin());
  Buffers outputs;
  for (size_t i = inputs.size(); i < interface.arguments.size(); ++i)
    outputs.push_back(messages.bytes());
  if (!messages.isAlive())
    return llvm::createStringError("the emulated program said less than it had to");
  return outputs;
}

} // namespace kiln::fuzz
