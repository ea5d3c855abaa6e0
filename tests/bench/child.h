#pragma once

// A benchmark's other side, in a process of its own.

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/file.h"
#include "tests/support/process.h"

namespace dtf::bench {

// A TCP socket that listens on loopback, at a port that the kernel chose.
struct ListeningSocket {
  ListeningSocket();
  Fd fd;
  uint16_t port = 0;
};

// Owns: a forked process that runs `body`, by default on the first CPU only, and is killed with
// this object, or with its parent. An exception of `body` is printed to stderr and ends it with 1.
// Make it before any thread exists.
class Child {
 public:
  enum class Cpu { kFirst, kAny };
  explicit Child(const std::function<void()>& body, Cpu cpu = Cpu::kFirst);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  double cpuSeconds() const;  // used so far, user and system

 private:
  pid_t pid_;
};

// Both ends of a pipe, which programs that are started don't get.
struct Pipe {
  Pipe();
  Fd in, out;
};

// Sends measurements through a pipe.
// Errors: kUnavailable when nobody reads them any more.
void writeValues(const Fd& out, const std::vector<double>& values);

// The other end.
// Blocks: until it has `count` of them, `deadline` at most.
// Errors: kDeadline; kInternal when `writer` ended before.
std::vector<double> readValues(const Fd& in, size_t count, std::chrono::seconds deadline,
                               const std::string& writer);

// The path of a program of this build: "daemons/psd/psd".
std::string buildProgram(const std::string& path);

// psd or workerd, as task `task` of the cluster in `file`, which listens on `socket`. The open
// socket keeps the port from other programs, even while no process of the task runs.
std::unique_ptr<testing::Process> startTask(const std::string& program, const std::string& file,
                                            uint32_t task, const ListeningSocket& socket,
                                            const std::vector<std::string>& more = {});

// Child::cpuSeconds() of this process.
double ownCpuSeconds();

// While it lives the calling thread runs on the last CPU only, away from the children (on one CPU:
// together).
class PinnedToLastCpu {
 public:
  PinnedToLastCpu();
  ~PinnedToLastCpu();
  PinnedToLastCpu(const PinnedToLastCpu&) = delete;
  PinnedToLastCpu& operator=(const PinnedToLastCpu&) = delete;

 private:
  uint64_t allowed_[16];  // a cpu_set_t
};

}  // namespace dtf::bench
