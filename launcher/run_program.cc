#include "launcher/run_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/file.h"
#include "launcher/spawner.h"

namespace dtf::launcher {

namespace {

constexpr size_t kAnswerBytesMax = size_t{1} << 20;
constexpr size_t kAnswerReadBytes = 4096;

// The process, which is killed unless it has ended by itself.
class RunningProgram {
 public:
  explicit RunningProgram(SpawnedProgram program) : program_(std::move(program)) {}
  ~RunningProgram() {
    if (!reaped_) reap();
  }
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;

  ExitStatus reap() {
    reaped_ = true;
    return Spawner().reap(program_.pid);
  }
  SpawnedProgram& program() { return program_; }

 private:
  SpawnedProgram program_;
  bool reaped_ = false;
};

// Holds back SIGPIPE from this thread, which writes to a pipe whose reader may be gone.
class HeldSigpipe {
 public:
  HeldSigpipe() {
    ::sigemptyset(&sigpipe_);
    ::sigaddset(&sigpipe_, SIGPIPE);
    sigset_t pending;
    ::sigpending(&pending);
    was_pending_ = ::sigismember(&pending, SIGPIPE) == 1;
    ::pthread_sigmask(SIG_BLOCK, &sigpipe_, &before_);
  }
  ~HeldSigpipe() {
    const timespec at_once{};
    if (!was_pending_) ::sigtimedwait(&sigpipe_, nullptr, &at_once);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  HeldSigpipe(const HeldSigpipe&) = delete;
  HeldSigpipe& operator=(const HeldSigpipe&) = delete;

 private:
  sigset_t sigpipe_{};
  sigset_t before_{};
  bool was_pending_ = false;
};

// One that ends before it has read all of it says why in its exit code.
void give(SpawnedProgram& program, const std::string& input, const std::string& name) {
  const HeldSigpipe held;
  ::fcntl(program.in.get(), F_SETFL, O_NONBLOCK);
  if (writeAll(program.in.get(), input) > 0 && errno == EAGAIN)
    throw Error(ErrorCode::kUnavailable, name + " does not read its input");
  program.in.reset();
}

// False: the stream has ended.
bool readSome(const Fd& fd, std::string& text, const std::string& program) {
  std::array<char, kAnswerReadBytes> bytes{};
  const ssize_t n = ::read(fd.get(), bytes.data(), bytes.size());
  if (n < 0) return errno == EINTR;
  text.append(bytes.data(), static_cast<size_t>(n));
  if (text.size() > kAnswerBytesMax)
    throw Error(ErrorCode::kBadData, program + " prints too much output");
  return n > 0;
}

}  // namespace

ProgramAnswer runProgram(const std::vector<std::string>& argv, const std::string& input,
                         Duration within) {
  DTF_CHECK(!argv.empty() && input.size() <= kProgramInputBytesMax);
  const SystemClock clock;
  const TimePoint deadline = clock.now() + within;
  RunningProgram child(Spawner().run(argv));
  SpawnedProgram& program = child.program();
  give(program, input, argv[0]);
  ProgramAnswer answer;
  std::array<pollfd, 3> watched = {pollfd{program.out.get(), POLLIN, 0},
                                   pollfd{program.err.get(), POLLIN, 0},
                                   pollfd{program.exited.get(), POLLIN, 0}};
  while (watched[2].fd >= 0) {
    const double left = toSeconds(deadline - clock.now());
    if (left <= 0)
      throw Error(ErrorCode::kDeadline,
                  fmt::format("{} has not answered within {:g} s", argv[0], toSeconds(within)));
    constexpr double kMilliseconds = 1000;
    if (::poll(watched.data(), watched.size(), static_cast<int>(left * kMilliseconds) + 1) <= 0)
      continue;
    if (watched[0].revents != 0 && !readSome(program.out, answer.out, argv[0])) watched[0].fd = -1;
    if (watched[1].revents != 0 && !readSome(program.err, answer.err, argv[0])) watched[1].fd = -1;
    if (watched[2].revents != 0) watched[2].fd = -1;
  }
  // What it has said is in the pipes by now. What it has started may keep them open for longer.
  for (const auto& [fd, text] :
       {std::pair(&program.out, &answer.out), {&program.err, &answer.err}}) {
    pollfd rest{fd->get(), POLLIN, 0};
    while (::poll(&rest, 1, 0) > 0 && readSome(*fd, *text, argv[0])) {
    }
  }
  answer.status = child.reap();
  return answer;
}

}  // namespace dtf::launcher
