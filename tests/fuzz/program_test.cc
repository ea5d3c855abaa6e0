// Any bytes are a program, and every change of one is a program again.

#include "tests/fuzz/program.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/support/test_seed.h"

namespace dtf::fuzz {

namespace {

Program parsed(const std::string& bytes) {
  return parseProgram(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}

std::string someBytes(Random& random, size_t size_max) {
  std::string bytes(random.below(size_max), '\0');
  for (char& c : bytes) c = static_cast<char>(random.below(random.below(2) == 0 ? 256 : 8));
  return bytes;
}

}  // namespace

TEST(Program, BytesAndBack) {
  const Program program{7, {"", "a", std::string(300, 'x'), "the end"}};
  EXPECT_EQ(parsed(programBytes(program, 1000)), program);
  const Program cut{7, {"", "a", "the end"}};
  EXPECT_EQ(parsed(programBytes(program, 100)), cut) << "what does not fit is left out";
}

TEST(Program, LengthsBeyondTheEndMeanWhatIsLeft) {
  using namespace std::string_literals;
  EXPECT_EQ(parsed(""), Program{});
  EXPECT_EQ(parsed("\x05"), (Program{5, {}}));
  EXPECT_EQ(parsed("\x05\x09"), (Program{5, {""}}));
  EXPECT_EQ(parsed("\x05\x09\x00"s + "abc"), (Program{5, {"abc"}}));
  EXPECT_EQ(parsed("\x05\x01\x00"s + "ab\xff"), (Program{5, {"a", ""}}));
}

TEST(Program, IsShortenedAnywhereInItsOrder) {
  const uint64_t seed = testing::testSeed();
  Random random(seed);
  std::set<std::string> left;
  for (int round = 0; round < 200; ++round) {
    Program program{7, {"a", "b", "c", "d"}};
    shortenProgram(program, 2, random);
    ASSERT_EQ(program.calls.size(), 2u);
    EXPECT_LT(program.calls[0], program.calls[1]) << "their order stays";
    left.insert(program.calls.begin(), program.calls.end());
    const Program short_already = program;
    shortenProgram(program, 2, random);
    EXPECT_EQ(program, short_already);
  }
  EXPECT_EQ(left.size(), 4u) << "each is left sometimes; seed " << seed;
}

TEST(Program, ChangesKeepToTheSizesAndReachEveryKind) {
  const uint64_t seed = testing::testSeed();
  Random random(seed);
  size_t longer = 0, shorter = 0, other_world = 0, other_bytes = 0;
  for (int round = 0; round < 2000; ++round) {
    const Program before = parsed(someBytes(random, 200));
    Program after = before;
    mutateProgram(after, random, [&](uint8_t* data, size_t size, size_t size_max) {
      EXPECT_LE(size, size_max);
      if (size < size_max) data[size++] = 'm';
      return size;
    });
    for (const std::string& call : after.calls) EXPECT_LE(call.size(), kCallBytesMax);
    EXPECT_EQ(parsed(programBytes(after, 1 << 20)), after) << "seed " << seed;
    longer += after.calls.size() > before.calls.size();
    shorter += after.calls.size() < before.calls.size();
    other_world += after.world != before.world;
    other_bytes += after.calls.size() == before.calls.size() && after.calls != before.calls;
    const Program crossed = crossPrograms(before, after, random);
    EXPECT_LE(crossed.calls.size(), before.calls.size() + after.calls.size());
  }
  for (const size_t times : {longer, shorter, other_world, other_bytes})
    EXPECT_GT(times, 20u) << "seed " << seed;
}

}  // namespace dtf::fuzz
