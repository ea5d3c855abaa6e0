#pragma once

// A thread with a name (shown by top -H and gdb) and one owner, which joins it.

#include <functional>
#include <string>
#include <thread>

namespace dtf {

// Owns: the thread. The destructor joins, so end the body first.
// Threads: used by its owner's thread alone.
// Errors: the constructor throws kUnavailable with the limits if the host gives no thread. An
// exception that leaves `body` aborts the process. std::bad_alloc ends the process with the exit
// code of kUnavailable, and the limit in the log.
class Thread {
 public:
  Thread() = default;
  Thread(std::string name, std::function<void()> body);
  Thread(Thread&&) = default;
  Thread& operator=(Thread&& other) noexcept;
  ~Thread() { join(); }
  void join();
  bool joinable() const { return thread_.joinable(); }

 private:
  std::thread thread_;
};

// Returns the name of the calling thread, up to the kernel's 15 characters.
std::string threadName();

}  // namespace dtf
