#include "tests/e2e/limited_run.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

namespace dtf::testing {

namespace {

constexpr unsigned kWaitSecondsMax = 60;  // a hang is no slow machine
constexpr long kOutputMax = 200'000;

void holdToPermissions() {
  ::prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0);
  ::prctl(PR_CAPBSET_DROP, CAP_DAC_READ_SEARCH, 0, 0, 0);
}

[[noreturn]] void runChild(std::vector<std::string>& argv, const std::string& folder, int out,
                           bool may_read_all) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  constexpr auto kProcessorMax = static_cast<rlim_t>(2 * kSecondsMax);
  const rlimit no_core{0, 0}, processor{kProcessorMax, kProcessorMax};
  ::setrlimit(RLIMIT_CORE, &no_core);
  ::setrlimit(RLIMIT_CPU, &processor);
  if (!may_read_all) holdToPermissions();
  ::dup2(out, STDOUT_FILENO);
  ::dup2(out, STDERR_FILENO);
  ::dup2(::open("/dev/null", O_RDONLY), STDIN_FILENO);
  std::vector<char*> words;
  for (std::string& word : argv) words.push_back(word.data());
  words.push_back(nullptr);
  ::alarm(kWaitSecondsMax);
  if (::chdir(folder.c_str()) == 0) ::execv(words[0], words.data());
  ::_exit(127);
}

double secondsOf(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

}  // namespace

Spent runLimited(std::vector<std::string> argv, const std::string& folder, bool may_read_all) {
  std::FILE* const out = std::tmpfile();
  Spent spent;
  const pid_t pid = ::fork();
  if (pid == 0) runChild(argv, folder, ::fileno(out), may_read_all);
  int status = 0;
  rusage usage{};
  EXPECT_EQ(::wait4(pid, &status, 0, &usage), pid);
  spent.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  spent.memory_kib = usage.ru_maxrss;
  spent.seconds = secondsOf(usage.ru_utime) + secondsOf(usage.ru_stime);
  spent.said.resize(kOutputMax);
  std::rewind(out);
  spent.said.resize(std::fread(spent.said.data(), 1, spent.said.size(), out));
  std::fclose(out);
  return spent;
}

}  // namespace dtf::testing
