#include "common/data/csv_times.h"

#include <gtest/gtest.h>

#include <vector>

namespace dtf::data {
namespace {

TEST(CsvTimes, LaterTimesAreLarger) {
  const auto expectAscending = [](const std::vector<const char*>& times) {
    std::optional<uint64_t> before;
    for (const char* time : times) {
      const std::optional<uint64_t> key = timeKey(time);
      ASSERT_TRUE(key) << time;
      if (before) {
        EXPECT_LT(*before, *key) << time;
      }
      before = key;
    }
  };
  expectAscending({"-1e9", "-2.5", "0", "1e-3", "7", "1717171717"});
  expectAscending({"1969-12-31", "1970-01-01", "2024-02-29", "2024-02-29T00:01",
                   "2024-02-29 10:00:00", "2024-02-29T10:00:00.5Z", "2024-03-01"});
  EXPECT_EQ(timeKey("2024-05-31"), timeKey(" 2024-05-31T00:00:00Z "));
  EXPECT_EQ(timeKey("0"), timeKey("-0"));
  EXPECT_EQ(timeKey("1,5", ','), timeKey("1.5"));
}

TEST(CsvTimes, OtherTextsAreNone) {
  for (const char* text : {"", "yesterday", "2023-02-29", "2024-13-01", "31.05.2024", "2024-05-31T",
                           "2024-05-31T25:00", "2024-05-31T10:00:99", "nan"})
    EXPECT_FALSE(timeKey(text)) << text;
}

}  // namespace
}  // namespace dtf::data
