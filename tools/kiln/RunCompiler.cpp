// SPDX-License-Identifier: Apache-2.0
#include "tools/kiln/Diagnose.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kiln::diagnose {
namespace {

/// Reads a pipe until its end.
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

/// Runs a program in the C locale, so that its messages are in English. Returns its exit status, and its output in
/// `said`.
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

} // namespace

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

int compile(std::vector<std::string> words, const std::string &spec, bool isVerbose, const std::string &hint) {
  const std::vector<Source> sources = readSources(spec, includeFolders(words));
  // The user's line may be at any depth of the instantiations.
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
