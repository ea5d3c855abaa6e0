#include "common/summary/crc32c.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace dtf::summary {

TEST(Crc32c, KnownValues) {
  EXPECT_EQ(crc32c(""), 0u);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);  // the check value of the catalogues
  // RFC 3720, B.4.
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  std::string ascending;
  for (char i = 0; i < 32; ++i) ascending.push_back(i);
  EXPECT_EQ(crc32c(ascending), 0x46dd794eu);
}

TEST(Crc32c, TheTableAndTheInstructionAgreeOnEveryLengthAndAlignment) {
  constexpr uint32_t kSeed = 7;
  std::mt19937 random(kSeed);
  std::string bytes(300, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  for (size_t begin = 0; begin < 9; ++begin) {
    for (size_t length = 0; begin + length <= bytes.size(); length += 7) {
      const std::string_view part = std::string_view(bytes).substr(begin, length);
      ASSERT_EQ(crc32c(part), crc32cByTable(part))
          << "seed " << kSeed << " " << begin << " " << length;
    }
  }
}

TEST(Crc32c, TheMaskRotatesAndAdds) {
  const uint32_t crc = crc32c("foo");
  EXPECT_EQ(maskedCrc32c("foo"), ((crc >> 15) | (crc << 17)) + 0xa282ead8u);
  EXPECT_NE(maskedCrc32c("foo"), crc);
}

}  // namespace dtf::summary
