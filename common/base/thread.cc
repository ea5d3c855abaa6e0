#include "common/base/thread.h"

#include <pthread.h>

#include <cstdlib>
#include <new>
#include <system_error>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/host_limits.h"
#include "common/base/log.h"

namespace dtf {

namespace {

// Runs `body`. If memory runs out, the process ends with a message, not with a signal.
void runBody(const std::function<void()>& body) {
  try {
    body();
  } catch (const std::bad_alloc& none) {
    const Error error = *hostError(none);
    log::error("event=failed code={} error=\"{}\"", errorCodeName(error.code()), error.message());
    std::_Exit(exitCode(error.code()));
  }
}

}  // namespace

Thread::Thread(std::string name, std::function<void()> body) try
    : thread_([name, body = std::move(body)] {
        DTF_CHECK_MSG(body != nullptr, name);
        pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());  // the kernel's limit
        runBody(body);
      }) {
} catch (const std::system_error& error) {
  throw Error(ErrorCode::kUnavailable,
              "cannot start the thread '" + name + "': " + shortageText(error.code().value()));
}

Thread& Thread::operator=(Thread&& other) noexcept {
  DTF_CHECK(this != &other);
  join();
  thread_ = std::move(other.thread_);
  return *this;
}

void Thread::join() {
  if (!thread_.joinable()) return;
  DTF_CHECK_MSG(thread_.get_id() != std::this_thread::get_id(), "a thread can't join itself");
  thread_.join();
}

std::string threadName() {
  char name[32] = {};
  ::pthread_getname_np(::pthread_self(), name, sizeof name);
  return name;
}

}  // namespace dtf
