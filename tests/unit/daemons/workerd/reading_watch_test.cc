#include "daemons/workerd/reading_watch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "common/data/byte_source.h"
#include "tests/support/temporary_files.h"

namespace dtf::workerd {
namespace {

using std::chrono::milliseconds;

TEST(ReadingWatch, ReportsTheBytesAsLongAsSomeCome) {
  std::atomic<uint64_t> bytes{1000};
  std::promise<uint64_t> reported;
  std::atomic<bool> is_reported{false};
  const ReadingWatch watch([&] { return bytes += 10; }, [] { return Duration{0}; }, milliseconds(1),
                           [&](uint64_t read) {
                             if (!is_reported.exchange(true)) reported.set_value(read);
                           });
  const uint64_t read = reported.get_future().get();
  EXPECT_GT(read, 0u);
  EXPECT_EQ(read % 10, 0u);
}

TEST(ReadingWatch, LearningFromWhatIsReadIsProgress) {
  std::atomic<int64_t> computed{0};
  std::promise<void> reported;
  std::atomic<bool> is_reported{false};
  const ReadingWatch watch([] { return uint64_t{7}; }, [&] { return milliseconds(computed += 1); },
                           milliseconds(1),
                           [&](uint64_t read) {
                             EXPECT_EQ(read, 0u);
                             if (!is_reported.exchange(true)) reported.set_value();
                           });
  reported.get_future().get();
}

// The totals are asked for at the beginning and after each interval.
TEST(ReadingWatch, SaysNothingOfAReadingThatStandsStill) {
  std::promise<void> asked;
  std::atomic<int> times{0};
  const ReadingWatch watch(
      [&] {
        if (++times == 20) asked.set_value();
        return uint64_t{7};
      },
      [] { return Duration{0}; }, milliseconds(1), [](uint64_t) { ADD_FAILURE(); });
  asked.get_future().get();
}

TEST(ReadingWatch, EndsAtOnce) {
  const ReadingWatch watch([] { return uint64_t{0}; }, [] { return Duration{0}; },
                           std::chrono::hours(1), [](uint64_t) { ADD_FAILURE(); });
}

TEST(ReadingWatch, TheBytesOfAllSourcesAreCounted) {
  const testing::TemporaryFiles files;
  files.write("t", "0123456789");
  const uint64_t before = data::bytesRead();
  uint8_t bytes[100];
  EXPECT_EQ(data::ByteSource("t").read(bytes, sizeof(bytes)), 10u);
  EXPECT_EQ(data::bytesRead() - before, 10u);
  const Duration computed = processTime();
  while (processTime() == computed) continue;
  EXPECT_GT(processTime(), computed);
}

}  // namespace
}  // namespace dtf::workerd
