#include "common/base/cores.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace dtf {
namespace {

TEST(Cores, AQuotaIsRoundedDownToAtLeastOne) {
  EXPECT_EQ(coresOfQuota("200000 100000", 8), 2);
  EXPECT_EQ(coresOfQuota("150000 100000", 8), 1);
  EXPECT_EQ(coresOfQuota("1000 100000", 8), 1);
  EXPECT_EQ(coresOfQuota("900000 100000", 8), 8) << "no more than there are";
}

TEST(Cores, NoQuotaLeavesAll) {
  for (const char* const text :
       {"max 100000", "", "200000", "200000 ", "200000 0", "-1 100000", "x y"})
    EXPECT_EQ(coresOfQuota(text, 8), 8) << text;
}

TEST(Cores, CountsThoseThatTheThreadMayRunOn) {
  const int all = availableCores();
  EXPECT_GE(all, 1);
  int on_one = 0;
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<size_t>(::sched_getcpu()), &one);
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    on_one = availableCores();
  }).join();
  EXPECT_EQ(on_one, 1);
  EXPECT_EQ(availableCores(), all);
}

}  // namespace
}  // namespace dtf
