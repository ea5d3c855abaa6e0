#include "launcher/ssh/program_check.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>

#include "common/base/error.h"
#include "launcher/spawner.h"
#include "launcher/ssh/ssh_command.h"

namespace dtf::launcher {

namespace {

constexpr int kPatienceMs = 10'000;
constexpr size_t kVersionBytesMax = 4096;

// What it has said by now: it has ended, and a pipe holds that much.
std::string readSaid(int fd) {
  std::array<char, kVersionBytesMax> buffer{};
  const ssize_t n = ::read(fd, buffer.data(), buffer.size());
  return {buffer.data(), n > 0 ? static_cast<size_t>(n) : 0};
}

}  // namespace

void checkProgramRuns(const std::filesystem::path& program) {
  Spawner spawner;
  const SpawnedProgram running = spawner.run({program.string(), "--version"});
  pollfd ended{running.exited.get(), POLLIN, 0};
  const bool in_time = ::poll(&ended, 1, kPatienceMs) > 0;
  if (!in_time) spawner.signal(running.pid, SIGKILL);
  const ExitStatus status = spawner.reap(running.pid);
  const std::string name = program.filename().string();
  if (!in_time) throw Error(ErrorCode::kDeadline, name + " --version has not ended within 10 s");
  if (status.code == 0 && status.signal == 0) return;
  const std::string said = lastLine(readSaid(running.err.get()));
  throw Error(ErrorCode::kBadConfig,
              name + ", which was copied there, can't run: " +
                  (said.empty() ? "it " + status.text() : said) +
                  "\n  install dtf's dependencies there (scripts/install-deps.sh), or dtf itself");
}

}  // namespace dtf::launcher
