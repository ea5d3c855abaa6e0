#include "common/summary/event.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "common/data/image_decoder.h"
#include "common/summary/crc32c.h"
#include "tests/unit/summary/proto_reader.h"

namespace dtf::summary {

using namespace std::string_literals;

TEST(Event, TheFirstNamesTheFormat) {
  const std::string event = fileVersionEvent(12.5);
  EXPECT_EQ(fieldOf(event, 1).number64(), 12.5);
  EXPECT_EQ(fieldOf(event, 3).bytes, "brain.Event:2");
}

TEST(Event, HoldsScalarsAndHistograms) {
  StepSummary summary;
  summary.scalars = {{"loss", 0.25}, {"eval/accuracy", 0.5}};
  summary.histograms = {{"softmax/weights", {1, 2, 3}}};
  const std::string event = summaryEvent(1, 300, summary);
  EXPECT_EQ(fieldOf(event, 2).integer, 300u);
  const std::vector<ProtoField> values = fieldsOf(fieldOf(event, 5).bytes, 1);
  ASSERT_EQ(values.size(), 3u);
  EXPECT_EQ(fieldOf(values[0].bytes, 1).bytes, "loss");
  EXPECT_EQ(fieldOf(values[0].bytes, 2).number32(), 0.25f);
  EXPECT_EQ(fieldOf(values[1].bytes, 1).bytes, "eval/accuracy");
  EXPECT_EQ(fieldOf(values[2].bytes, 1).bytes, "softmax/weights");
  const std::string histogram = fieldOf(values[2].bytes, 5).bytes;
  EXPECT_EQ(fieldOf(histogram, 3).number64(), 3);
  EXPECT_EQ(fieldOf(histogram, 4).number64(), 6);
}

TEST(Event, HoldsImagesAsPng) {
  StepSummary summary;
  summary.images = {{"features/image/0", 2, 3, 1, {0, 50, 100, 150, 200, 250}}};
  const std::string value = fieldOf(fieldOf(summaryEvent(1, 300, summary), 5).bytes, 1).bytes;
  EXPECT_EQ(fieldOf(value, 1).bytes, "features/image/0");
  const std::string image = fieldOf(value, 4).bytes;
  EXPECT_EQ(fieldOf(image, 1).integer, 2u);
  EXPECT_EQ(fieldOf(image, 2).integer, 3u);
  EXPECT_EQ(fieldOf(image, 3).integer, 1u);
  const std::string png = fieldOf(image, 4).bytes;
  const data::Image read =
      data::decodeImage({reinterpret_cast<const uint8_t*>(png.data()), png.size()}, "png", 1);
  EXPECT_EQ(read.height, 2);
  EXPECT_EQ(read.width, 3);
  ASSERT_EQ(read.pixels.size(), 6u);
  EXPECT_TRUE(
      std::equal(read.pixels.data(), read.pixels.data() + 6, summary.images[0].pixels.begin()));
}

TEST(Event, HoldsTextsForTheTextPage) {
  StepSummary summary;
  summary.texts = {{"eval/classes", "    a b"}};
  const std::string value = fieldOf(fieldOf(summaryEvent(1, 300, summary), 5).bytes, 1).bytes;
  EXPECT_EQ(fieldOf(value, 1).bytes, "eval/classes");
  const std::string tensor = fieldOf(value, 8).bytes;
  EXPECT_EQ(fieldOf(tensor, 1).integer, 7u) << "DT_STRING";
  EXPECT_EQ(fieldOf(tensor, 2).bytes, "") << "a scalar";
  EXPECT_EQ(fieldOf(tensor, 8).bytes, "    a b");
  const std::string metadata = fieldOf(value, 9).bytes;
  EXPECT_EQ(fieldOf(fieldOf(metadata, 1).bytes, 1).bytes, "text");
}

// Protocol buffers' encoding, worked out by hand; fields with default values are written, too.
TEST(Event, HasTheseBytes) {
  const std::string at = "\x09\0\0\0\0\0\0\xf8\x3f\x10\x07"s;  // 1: 1.5, 2: 7
  StepSummary summary;
  summary.scalars = {{"a", 0.5}};
  EXPECT_EQ(summaryEvent(1.5, 7, summary), at + "\x2a\x0a\x0a\x08\x0a\x01" + "a\x15\0\0\0\x3f"s);
  EXPECT_EQ(summaryEvent(1.5, 7, {}), at + "\x2a\0"s);
  EXPECT_EQ(sessionEvent(1.5, 7, SessionStatus::kStart, ""), at + "\x3a\x02\x08\x01");
  EXPECT_EQ(graphEvent(0, ""), "\x09\0\0\0\0\0\0\0\0\x10\0\x22\0"s);
}

TEST(EventDeathTest, ATimeIsANumber) {
  EXPECT_DEATH(fileVersionEvent(std::numeric_limits<double>::quiet_NaN()), "wall_time");
}

TEST(Event, HoldsTheGraphAndTheSession) {
  EXPECT_EQ(fieldOf(graphEvent(1, "graph bytes"), 4).bytes, "graph bytes");
  const std::string event = sessionEvent(1, 7, SessionStatus::kCheckpoint, "checkpoints/step-7");
  const std::string log = fieldOf(event, 7).bytes;
  EXPECT_EQ(fieldOf(log, 1).integer, 3u);
  EXPECT_EQ(fieldOf(log, 2).bytes, "checkpoints/step-7");
}

TEST(Event, ARecordIsFramedByItsLengthAndTwoChecksums) {
  const std::string record = encodeRecord("abc");
  ASSERT_EQ(record.size(), 8u + 4 + 3 + 4);
  EXPECT_EQ(record.substr(0, 8), "\x03\0\0\0\0\0\0\0"s);
  uint32_t of_length = 0;
  std::memcpy(&of_length, record.data() + 8, sizeof of_length);
  EXPECT_EQ(of_length, maskedCrc32c("\x03\0\0\0\0\0\0\0"s));
  EXPECT_EQ(record.substr(12, 3), "abc");
  uint32_t of_data = 0;
  std::memcpy(&of_data, record.data() + 15, sizeof of_data);
  EXPECT_EQ(of_data, maskedCrc32c("abc"));
}

}  // namespace dtf::summary
