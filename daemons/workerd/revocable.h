#pragma once

// A function of one thread that another calls, until the first takes it back.

#include <functional>
#include <utility>

#include "common/base/check.h"
#include "common/base/mutex.h"

namespace dtf::workerd {

// revoke() returns when no call is under way: what the function refers to need live no longer. No
// lock is held while it runs. What it throws leaves call().
// Threads: thread-safe; the function itself must not revoke it.
// Blocks: call() for as long as the function does, revoke() until calls under way have returned.
template <class... Args>
class Revocable {
 public:
  using Function = std::function<void(Args...)>;

  // Null: call() does nothing.
  void set(Function function) {
    MutexLock lock(mutex_);
    DTF_CHECK(function_ == nullptr && calls_ == 0);
    function_ = std::move(function);
  }

  void revoke() {
    MutexLock lock(mutex_);
    function_ = nullptr;
    while (calls_ > 0) returned_.wait(mutex_);
  }

  // False: there is none.
  bool call(Args... args) {
    Function function;
    {
      MutexLock lock(mutex_);
      if (function_ == nullptr) return false;
      function = function_;
      ++calls_;
    }
    const Call under_way(*this);
    function(std::move(args)...);
    return true;
  }

 private:
  // Counted already; also when the function throws.
  class Call {
   public:
    explicit Call(Revocable& function) : function_(function) {}
    ~Call() { function_.returned(); }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    Revocable& function_;
  };
  void returned() {
    MutexLock lock(mutex_);
    DTF_CHECK(calls_ > 0);
    --calls_;
    returned_.notifyAll();
  }

  Mutex mutex_;
  CondVar returned_;
  Function function_ DTF_GUARDED_BY(mutex_);
  int calls_ DTF_GUARDED_BY(mutex_) = 0;  // under way
};

}  // namespace dtf::workerd
