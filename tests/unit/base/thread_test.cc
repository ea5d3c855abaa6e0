#include "common/base/thread.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include "common/base/mutex.h"

namespace dtf {

TEST(Thread, RunsUnderItsName) {
  std::string seen;
  {
    Thread thread("data-io", [&seen] {
      char name[16];
      pthread_getname_np(pthread_self(), name, sizeof name);
      seen = name;
    });
  }
  EXPECT_EQ(seen, "data-io");
}

TEST(CondVar, WakesAWaiterAndTimesOut) {
  Mutex mutex;
  CondVar changed;
  bool ready = false;
  Thread thread("setter", [&] {
    MutexLock lock(mutex);
    ready = true;
    changed.notifyAll();
  });
  MutexLock lock(mutex);
  while (!ready) changed.wait(mutex);
  EXPECT_FALSE(changed.waitUntil(mutex, std::chrono::steady_clock::now()));
}

}  // namespace dtf
