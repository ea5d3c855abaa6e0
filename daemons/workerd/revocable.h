#pragma once

// A function of one thread for calls by another, until the first revokes it.

#include <functional>
#include <utility>

#include "common/base/check.h"
#include "common/base/mutex.h"

namespace dtf::workerd {

// After revoke() no call runs, so the objects that the function refers to may be destroyed. No lock
// is held during a call. Exceptions of the function pass through call().
// Threads: thread-safe; the function itself must not revoke it.
// Blocks: call() as long as the function does; revoke() until running calls have returned.
template <class... Args>
class Revocable {
 public:
  using Function = std::function<void(Args...)>;

  // With null, call() does nothing.
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

  // Returns false without a function.
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
  // An already counted call; ends it also if the function throws.
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
  int calls_ DTF_GUARDED_BY(mutex_) = 0;  // running
};

}  // namespace dtf::workerd
