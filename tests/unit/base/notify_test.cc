#include "common/base/notify.h"
#include "common/base/json.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "common/base/file.h"

namespace dtf {

TEST(Notify, WritesOneJsonLineToTheLaunchersPipe) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  Fd read_end(ends[0]);
  Fd write_end(ends[1]);
  ::setenv("DTF_NOTIFY_FD", std::to_string(write_end.get()).c_str(), 1);
  ASSERT_TRUE(notifyEnabled());
  notify({{"event", "progress"}, {"step", 7}});
  char buffer[256];
  const ssize_t n = ::read(read_end.get(), buffer, sizeof buffer);
  ASSERT_GT(n, 0);
  const std::string line(buffer, static_cast<size_t>(n));
  EXPECT_EQ(line.back(), '\n');
  EXPECT_EQ(Json::parse(line)["step"], 7);
}

TEST(Notify, TasksFindWhenTheLauncherStarted) {
  const TimePoint before = SystemClock().now();
  markLaunch();
  ASSERT_TRUE(launchedAt());
  EXPECT_GE(*launchedAt(), before);
  EXPECT_LE(*launchedAt(), SystemClock().now());
}

}  // namespace dtf
