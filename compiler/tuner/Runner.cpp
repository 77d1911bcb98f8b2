// SPDX-License-Identifier: Apache-2.0
#include "compiler/tuner/Runner.h"

#include "compiler/object/ReplaceFile.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include <csignal>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kiln {

llvm::Expected<TemporaryFolder> TemporaryFolder::make() {
  llvm::SmallString<128> made;
  if (std::error_code error = llvm::sys::fs::createUniqueDirectory("kiln-runner", made))
    return llvm::createStringError("no temporary folder can be made: " + error.message());
  return TemporaryFolder(made.str().str());
}

TemporaryFolder::~TemporaryFolder() {
  if (!name.empty())
    llvm::sys::fs::remove_directories(name);
}

llvm::Expected<std::unique_ptr<Runner>> Runner::start(const std::string &script, const std::string &folder,
                                                      llvm::ArrayRef<ObjectFile> files) {
  std::unique_ptr<Runner> runner(new Runner(folder));
  if (llvm::Error error = runner->link(script, files))
    return error;
  if (llvm::Error error = runner->run(script))
    return error;
  return runner;
}

Runner::~Runner() { stop(); }

/// Reads the beginning of a log file: the first message of a crash is the most informative.
static std::string readWords(const std::string &path) {
  static constexpr size_t most = 500;
  auto file = llvm::MemoryBuffer::getFile(path);
  return file ? (*file)->getBuffer().take_front(most).rtrim().str() : "";
}

llvm::Error Runner::link(const std::string &script, llvm::ArrayRef<ObjectFile> files) {
  std::vector<std::string> words{script, "link", folder + "/program"};
  for (const ObjectFile &file : files) {
    words.push_back(folder + "/" + file.name);
    if (llvm::Error error = writeFile(words.back(), file.bytes))
      return error;
  }
  const std::string said = folder + "/linked";
  const std::vector<llvm::StringRef> arguments(words.begin(), words.end());
  std::string problem;
  const int status = llvm::sys::ExecuteAndWait(script, arguments, std::nullopt, {"", said, said}, 0, 0, &problem);
  if (status != 0)
    return llvm::createStringError(
        fmt::format("\"{} link\" ended with status {}: {}", script, status, status < 0 ? problem : readWords(said)));
  return llvm::Error::success();
}

llvm::Error Runner::run(const std::string &script) {
  std::signal(SIGPIPE, SIG_IGN); // the end of the program is detected by failed writes
  int in[2], out[2];
  if (pipe(in) != 0 || pipe(out) != 0)
    return llvm::createStringError("no pipe can be made");
  const std::string program = folder + "/program", errors = folder + "/errors";
  child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL); // as for measurements that time out
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

/// Ends the program and returns its status, as from waitpid().
int Runner::stop() {
  int status = 0;
  if (child <= 0)
    return status;
  std::fclose(to);
  std::fclose(from);
  waitpid(child, &status, 0);
  child = -1;
  return status;
}

llvm::Error Runner::check() {
  if (channel->isAlive())
    return llvm::Error::success();
  const int status = stop();
  const bool isKilled = WIFSIGNALED(status);
  return llvm::createStringError(fmt::format("the program ended with {} {}: {}", isKilled ? "signal" : "status",
                                             isKilled ? WTERMSIG(status) : WEXITSTATUS(status),
                                             readWords(folder + "/errors")));
}

} // namespace kiln
