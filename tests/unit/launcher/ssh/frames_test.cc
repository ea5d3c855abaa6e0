#include "launcher/ssh/frames.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "tests/support/test_seed.h"

namespace dtf::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

using Frames = std::vector<std::pair<FrameKind, std::string>>;

Frames readIn(const std::string& bytes, size_t piece, bool greeting) {
  Frames frames;
  FrameReader reader(greeting, [&frames](FrameKind kind, std::string_view payload) {
    frames.emplace_back(kind, payload);
  });
  for (size_t at = 0; at < bytes.size(); at += piece) reader.feed(bytes.substr(at, piece));
  return frames;
}

TEST(Frames, ComeAsTheyWereSentInWhateverPieces) {
  const std::string output("\x00\xFF\n{", 4);
  const std::string bytes = "hello 1\n" + messageFrame("{}") + messageFrame("") +
                            bytesFrame(FrameKind::kOutput, 70000, output) +
                            bytesFrame(FrameKind::kNotices, 0, "");
  for (const size_t piece : {1, 2, 3, 5, 1000}) {
    const Frames frames = readIn(bytes, piece, true);
    ASSERT_EQ(frames.size(), 5u);
    EXPECT_EQ(frames[0], std::pair(FrameKind::kGreeting, std::string("hello 1")));
    EXPECT_EQ(frames[1], std::pair(FrameKind::kMessage, std::string("{}")));
    EXPECT_EQ(frames[2], std::pair(FrameKind::kMessage, std::string()));
    EXPECT_EQ(readTaskBytes(frames[3].second).task, 70000u);
    EXPECT_EQ(readTaskBytes(frames[3].second).bytes, output);
    EXPECT_EQ(frames[4].first, FrameKind::kNotices);
    EXPECT_EQ(readTaskBytes(frames[4].second).bytes, "");
  }
}

TEST(Frames, LinesMayComeBeforeTheGreeting) {
  std::vector<std::string> lines;
  FrameReader* reader = nullptr;
  FrameReader made(true, [&](FrameKind kind, std::string_view payload) {
    lines.emplace_back(payload);
    if (kind == FrameKind::kGreeting && lines.size() < 3) reader->awaitLine();
  });
  reader = &made;
  made.feed("one\ntwo\nhello 1\n" + copyFrame("bytes"));
  EXPECT_THAT(lines, ElementsAre("one", "two", "hello 1", "bytes"));
}

TEST(Frames, WhatCantBeIsRefusedBeforeMemoryIsTakenForIt) {
  const std::string huge("\xFF\xFF\xFF\xFF\x01", 5);
  const std::string empty("\x00\x00\x00\x00\x01", 5);
  const std::string unknown("\x01\x00\x00\x00\x09", 5);
  const std::string greeting_kind("\x01\x00\x00\x00\x00", 5);
  for (const std::string& bytes : {huge, empty, unknown, greeting_kind})
    EXPECT_THROW(readIn(bytes, 5, false), Error);
  EXPECT_THROW(readIn(std::string(1000, 'x'), 100, true), Error) << "a line without an end";
  EXPECT_THROW(readTaskBytes("abc"), Error);
}

TEST(Frames, AReportHasFewBytesAndAnOrderMayHaveMany) {
  const std::string large = messageFrame(std::string(kReportBytesMax, ' '));
  EXPECT_EQ(readIn(large, large.size(), false).size(), 1u) << "a launcher's files";
  EXPECT_THROW(readIn("hello\n" + large.substr(0, 5), 11, true), Error) << "by its length alone";
  const std::string output = bytesFrame(FrameKind::kOutput, 1, large);
  EXPECT_EQ(readIn("hello\n" + output, 1000, true).size(), 2u);
}

TEST(Frames, RandomBytesNeverDoMoreThanThrow) {
  const uint64_t seed = testing::testSeed();
  std::mt19937_64 random(seed);
  for (int round = 0; round < 200; ++round) {
    std::string bytes;
    for (int i = 0; i < 64; ++i) bytes += static_cast<char>(random() % 4 == 0 ? random() : 0);
    try {
      readIn(bytes, 1 + random() % 7, random() % 2 == 0);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kBadData);
    }
  }
}

}  // namespace
}  // namespace dtf::launcher
