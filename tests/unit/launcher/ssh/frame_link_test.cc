#include "launcher/ssh/frame_link.h"

#include <csignal>
#include <memory>

#include "tests/unit/launcher/loop_fixture.h"

namespace dtf::launcher {
namespace {

using std::chrono::seconds;

// One end of a link, an agent's or a launcher's, and the frames that it received.
struct End {
  FrameLink::Handlers handlers() {
    return {.on_frame =
                [this](FrameKind kind, std::string_view payload) {
                  kinds.push_back(kind);
                  payloads.emplace_back(payload);
                },
            .on_end = [this](const std::string& why) { ends.push_back(why); },
            .on_room = [this] { ++rooms; }};
  }
  std::vector<FrameKind> kinds;
  std::vector<std::string> payloads, ends;
  int rooms = 0;
};

class FrameLinkTest : public ::testing::Test {
 protected:
  FrameLinkTest() { std::signal(SIGPIPE, SIG_IGN); }
  ~FrameLinkTest() override { std::signal(SIGPIPE, SIG_DFL); }

  std::unique_ptr<FrameLink> launchersEnd() {
    return std::make_unique<FrameLink>(
        io_, std::move(there_.read), std::move(here_.write), true,
        [] { return Duration(seconds(60)); }, launcher_.handlers());
  }
  std::unique_ptr<FrameLink> agentsEnd() {
    return std::make_unique<FrameLink>(
        io_, std::move(here_.read), std::move(there_.write), false,
        [] { return Duration(seconds(60)); }, agent_.handlers());
  }
  boost::asio::io_context io_;
  Pipe here_, there_;  // from the launcher, to it
  End launcher_, agent_;
};

TEST_F(FrameLinkTest, FramesComeWholeAndInOrderBothWays) {
  const auto launcher = launchersEnd(), agent = agentsEnd();
  agent->send("dtf-agent 1 0.0.0\n");
  agent->send(bytesFrame(FrameKind::kOutput, 3, "hello"));
  launcher->send(messageFrame("{}") + messageFrame("[]"));
  runUntil(io_, [&] { return launcher_.kinds.size() == 2 && agent_.payloads.size() == 2; });
  EXPECT_EQ(launcher_.kinds, (std::vector<FrameKind>{FrameKind::kGreeting, FrameKind::kOutput}));
  EXPECT_EQ(launcher_.payloads[0], "dtf-agent 1 0.0.0");
  EXPECT_EQ(readTaskBytes(launcher_.payloads[1]).bytes, "hello");
  EXPECT_EQ(agent_.payloads, (std::vector<std::string>{"{}", "[]"}));
}

TEST_F(FrameLinkTest, APeerThatClosesEndsItOnceWithoutAReason) {
  auto launcher = launchersEnd();
  const auto agent = agentsEnd();
  launcher->send(messageFrame("{}"));
  launcher->closeOut();
  runUntil(io_, [&] { return !agent_.ends.empty(); });
  EXPECT_EQ(agent_.payloads, std::vector<std::string>{"{}"}) << "what was sent came first";
  EXPECT_EQ(agent_.ends, std::vector<std::string>{""});
}

TEST_F(FrameLinkTest, WhatIsNoFrameEndsItWithTheReason) {
  const auto agent = agentsEnd();
  here_.send(std::string("\xff\xff\xff\xff\x01", 5));
  runUntil(io_, [&] { return !agent_.ends.empty(); });
  ASSERT_EQ(agent_.ends.size(), 1u);
  EXPECT_NE(agent_.ends[0], "");
  EXPECT_TRUE(agent_.payloads.empty());
}

TEST_F(FrameLinkTest, WhatThePeerHasNotTakenIsCountedAndRoomIsTold) {
  const auto launcher = launchersEnd();
  const std::string frame = messageFrame(std::string(1 << 20, 'x'));
  for (int i = 0; i < 4; ++i) launcher->send(frame);
  EXPECT_GT(launcher->queuedBytes(), size_t{2} << 20) << "nobody reads yet";
  EXPECT_EQ(launcher_.rooms, 0);
  const auto agent = agentsEnd();
  runUntil(io_, [&] { return agent_.payloads.size() == 4; });
  EXPECT_EQ(launcher->queuedBytes(), 0u);
  EXPECT_GT(launcher_.rooms, 0);
}

TEST_F(FrameLinkTest, OneThatIsClosedGivesNothingMore) {
  const auto agent = agentsEnd();
  here_.send(messageFrame("{}"));
  agent->close();
  io_.poll();
  EXPECT_TRUE(agent_.payloads.empty());
  EXPECT_TRUE(agent_.ends.empty());
}

}  // namespace
}  // namespace dtf::launcher
