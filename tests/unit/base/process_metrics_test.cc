#include "common/base/process_metrics.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <chrono>
#include <ctime>
#include <thread>

#include "common/base/file.h"

namespace dtf {
namespace {

double valueOf(std::string_view name) {
  for (const Metric& metric : processMetrics())
    if (metric.name == name) return metric.values.at(0).value;
  ADD_FAILURE() << name << " is missing";
  return -1;
}

TEST(ProcessMetrics, DescriptorsAndThreadsAreCounted) {
  const double open = valueOf("process_open_fds");
  EXPECT_GE(open, 3);
  const Fd one(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(valueOf("process_open_fds"), open + 1);
  EXPECT_GT(valueOf("process_max_fds"), open);
  EXPECT_GE(valueOf("process_threads"), 1);
}

TEST(ProcessMetrics, MemoryIsWhatWasTouched) {
  const double before = valueOf("process_resident_memory_bytes");
  EXPECT_GT(before, 1e5);
  const std::vector<char> memory(64 << 20, 'x');
  EXPECT_GT(valueOf("process_resident_memory_bytes"), before + 60e6);
  EXPECT_GT(valueOf("process_virtual_memory_bytes"), before);
  EXPECT_EQ(memory[100], 'x');
}

TEST(ProcessMetrics, TimeIsThatOfThisProcess) {
  const auto now = static_cast<double>(std::time(nullptr));
  EXPECT_LE(valueOf("process_start_time_seconds"), now + 2) << "the boot's time is a whole number";
  EXPECT_GT(valueOf("process_start_time_seconds"), now - 86400);
  const double before = valueOf("process_cpu_seconds_total");
  while (valueOf("process_cpu_seconds_total") <= before) {  // works until it shows
  }
}

}  // namespace
}  // namespace dtf
