#include "tests/bench/child.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <map>

#include "common/base/clock.h"
#include "common/base/error.h"

namespace dtf::bench {

namespace {

cpu_set_t allowedCpus() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  ::sched_getaffinity(0, sizeof(cpus), &cpus);
  return cpus;
}

void pinTo(int cpu) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(cpu, &cpus);
  ::sched_setaffinity(0, sizeof(cpus), &cpus);
}

double readSeconds(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

[[noreturn]] void throwErrno(const char* what) {
  throw Error(ErrorCode::kUnavailable, std::string(what) + ": " + errnoText(errno));
}

}  // namespace

ListeningSocket::ListeningSocket() : fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (!fd.valid() || ::bind(fd.get(), generic, bytes) != 0 || ::listen(fd.get(), 8) != 0 ||
      ::getsockname(fd.get(), generic, &bytes) != 0)
    throwErrno("cannot listen on loopback");
  port = ntohs(address.sin_port);
}

Child::Child(const std::function<void()>& body, Cpu cpu) : pid_(::fork()) {
  if (pid_ < 0) throwErrno("fork");
  if (pid_ > 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (cpu == Cpu::kFirst) {
    const cpu_set_t cpus = allowedCpus();
    int first = 0;
    while (first + 1 < CPU_SETSIZE && !CPU_ISSET(first, &cpus)) ++first;
    pinTo(first);
  }
  try {
    body();
  } catch (const std::exception& error) {
    std::cerr << "dtf-bench, a child: " << error.what() << std::endl;
    ::_exit(1);
  }
  ::_exit(0);
}

Child::~Child() {
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

double Child::cpuSeconds() const {
  clockid_t clock;
  return ::clock_getcpuclockid(pid_, &clock) == 0 ? readSeconds(clock) : 0;
}

// Found from our own place: <build>/tests/bench/dtf-bench.
std::string buildProgram(const std::string& path) {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  return std::filesystem::canonical(self.parent_path() / "../.." / path).string();
}

std::unique_ptr<testing::Process> startTask(const std::string& program, const std::string& file,
                                            uint32_t task, const ListeningSocket& socket,
                                            const std::vector<std::string>& more) {
  const Fd passed(::dup(socket.fd.get()));  // a copy stays open in the program
  if (!passed.valid()) throwErrno("dup");
  std::vector<std::string> words = {buildProgram(program), "--cluster", file, "--task",
                                    std::to_string(task)};
  words.insert(words.end(), more.begin(), more.end());
  const std::map<std::string, std::string> environment = {
      {"DTF_LISTEN_FD", std::to_string(passed.get())}};
  return std::make_unique<testing::Process>(words, environment);
}

double ownCpuSeconds() {
  return readSeconds(CLOCK_PROCESS_CPUTIME_ID);
}

PinnedToLastCpu::PinnedToLastCpu() {
  const cpu_set_t cpus = allowedCpus();
  static_assert(sizeof(allowed_) == sizeof(cpus));
  std::memcpy(allowed_, &cpus, sizeof(cpus));
  int last = CPU_SETSIZE - 1;
  while (last > 0 && !CPU_ISSET(last, &cpus)) --last;
  pinTo(last);
}

PinnedToLastCpu::~PinnedToLastCpu() {
  cpu_set_t cpus;
  std::memcpy(&cpus, allowed_, sizeof(cpus));
  ::sched_setaffinity(0, sizeof(cpus), &cpus);
}

Pipe::Pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw Error(ErrorCode::kUnavailable, "cannot make a pipe");
  in = Fd(ends[0]);
  out = Fd(ends[1]);
}

void writeValues(const Fd& out, const std::vector<double>& values) {
  const size_t bytes = values.size() * sizeof(double);
  if (writeAll(out.get(), {reinterpret_cast<const char*>(values.data()), bytes}) > 0)
    throw Error(ErrorCode::kUnavailable, "nobody reads the times");
}

std::vector<double> readValues(const Fd& in, size_t count, std::chrono::seconds deadline,
                               const std::string& writer) {
  std::vector<double> values(count);
  auto* at = reinterpret_cast<std::byte*>(values.data());
  const SystemClock clock;
  const TimePoint end = clock.now() + deadline;
  for (size_t left = count * sizeof(double); left > 0;) {
    const int wait_ms = std::max(0, static_cast<int>(toSeconds(end - clock.now()) * 1000));
    pollfd ready{in.get(), POLLIN, 0};
    const int polled = ::poll(&ready, 1, wait_ms);
    if (polled < 0 && errno == EINTR) continue;
    if (polled == 0)
      throw Error(ErrorCode::kDeadline,
                  fmt::format("{} has not ended after {} s", writer, deadline.count()));
    const ssize_t got = ::read(in.get(), at, left);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) throw Error(ErrorCode::kInternal, writer + " ended early");
    at += got;
    left -= static_cast<size_t>(got);
  }
  return values;
}

}  // namespace dtf::bench
