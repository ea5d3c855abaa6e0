#include "common/base/thread.h"

#include <pthread.h>

#include "common/base/check.h"

namespace dtf {

Thread::Thread(std::string name, std::function<void()> body)
    : thread_([name = std::move(name), body = std::move(body)] {
        DTF_CHECK_MSG(body != nullptr, name);
        pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());  // the kernel's limit
        body();
      }) {}

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
