#include "launcher/event_writer.h"
#include "common/base/json.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <limits>

#include "common/base/file.h"
#include "common/base/text.h"

namespace dtf::launcher {

namespace {

class EventWriterTest : public ::testing::Test {
 protected:
  EventWriterTest() {
    ::signal(SIGPIPE, SIG_IGN);  // as in dtf-launch
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    reader_ = Fd(ends[0]);
    writer_ = Fd(ends[1]);
  }

  // Returns the events that were written, one for each line.
  std::vector<Json> events() const {
    std::string text(1 << 16, '\0');
    const ssize_t n = ::read(reader_.get(), text.data(), text.size());
    text.resize(n > 0 ? static_cast<size_t>(n) : 0);
    std::vector<Json> events;
    for (const std::string& line : split(text, '\n'))
      if (!line.empty()) events.push_back(Json::parse(line));
    return events;
  }

  Fd reader_;
  Fd writer_;
};

}  // namespace

TEST_F(EventWriterTest, EveryLineHasItsSchemaItsNameAndATimeWithItsZone) {
  EventWriter writer(writer_.get(), true);
  writer.started({JobKind::kWorker, 1}, 4711);
  writer.ended({JobKind::kPs, 0}, ExitStatus{0, SIGKILL});
  writer.restarting({JobKind::kWorker, 1}, 2);
  const auto lines = events();
  ASSERT_EQ(lines.size(), 3u);
  for (const Json& line : lines) {
    EXPECT_EQ(line["schema"], 1);
    EXPECT_EQ(line["time"].asString().size(), std::string("2026-03-01T10:11:12.345+01:00").size());
  }
  EXPECT_EQ(lines[0]["event"], "started");
  EXPECT_EQ(lines[0]["task"], "worker/1");
  EXPECT_EQ(lines[0]["pid"], 4711);
  EXPECT_EQ(lines[1]["exit_code"], 137) << "as a shell says it";
  EXPECT_EQ(lines[2]["restarts"], 2);
}

TEST_F(EventWriterTest, WhatIsNotKnownIsNullAndWhatIsNoTextIsReplaced) {
  EventWriter writer(writer_.get(), true);
  writer.progress({.step = 3, .steps = 10});
  writer.summary({{"message", "caf\xe9"}});
  const auto lines = events();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0]["step"], 3);
  EXPECT_TRUE(lines[0]["loss"].isNull());
  EXPECT_TRUE(lines[0]["eval_accuracy"].isNull());
  EXPECT_TRUE(lines[0]["straggler"].isNull());
  EXPECT_EQ(lines[1]["message"], "caf\xef\xbf\xbd") << "a name in Latin-1 is no reason to fail";
}

TEST_F(EventWriterTest, WithoutJsonNothingIsWritten) {
  EventWriter writer(writer_.get(), false);
  writer.ready({JobKind::kPs, 0});
  EXPECT_TRUE(writer.summary({{"outcome", "done"}})) << "nothing was lost";
  EXPECT_TRUE(events().empty());
}

TEST_F(EventWriterTest, AReaderThatHasGoneIsToldByTheLastLine) {
  EventWriter writer(writer_.get(), true);
  reader_.reset();
  writer.ready({JobKind::kPs, 0});
  EXPECT_FALSE(writer.summary({{"outcome", "done"}}));
}

}  // namespace dtf::launcher
