#include "launcher/ssh/agent_link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/ssh/ssh_command.h"

// One link, with a shell in place of the ssh client; ssh_launch_test.cc has whole launches.

namespace dtf::launcher {

using ::testing::HasSubstr;

// Expects no events: no task was started on the link.
class NoEvents : public TaskEvents {
 public:
  void onStarted(size_t task, pid_t /*pid*/) override { ADD_FAILURE() << task; }
  void onStartFailed(size_t task, const Error& /*error*/) override { ADD_FAILURE() << task; }
  void onOutput(size_t task, std::string_view /*bytes*/) override { ADD_FAILURE() << task; }
  void onNotices(size_t task, std::string_view /*bytes*/) override { ADD_FAILURE() << task; }
  void onExited(size_t task, ExitStatus /*status*/) override { ADD_FAILURE() << task; }
  void onHostTold(const std::string& text) override { ADD_FAILURE() << text; }
  void onHostNews(const std::string& text) override { ADD_FAILURE() << text; }
};

TEST(AgentLink, ADeadlineTellsTheLastThatSshHasSaid) {
  boost::asio::io_context io{1};
  const SystemClock clock;
  NoEvents events;
  AgentLinkOptions options;
  options.host = "gpu1";
  options.command = {"sh", "-c", "echo 'jump: which key?' >&2; exec sleep 60"};
  options.explain = [](const ExitStatus& status, std::string_view said) {
    return sshError("gpu1", {}, status, said);
  };
  options.open.tasks[{JobKind::kPs, 0}].address = {"gpu1", 0};
  options.on_file = [](const FilePiece& piece) { ADD_FAILURE() << piece.name; };
  options.kept_files = [] { return FileSizes(); };
  options.connect_within = std::chrono::seconds(1);
  AgentLink link(io, clock, events, std::move(options));
  link.connect("");
  const TimePoint give_up = clock.now() + std::chrono::seconds(20);
  while (!link.failure() && clock.now() < give_up) {
    io.run_one_for(std::chrono::milliseconds(20));
    link.look();
  }
  ASSERT_TRUE(link.failure());
  EXPECT_EQ(link.failure()->code(), ErrorCode::kDeadline);
  EXPECT_THAT(
      link.failure()->message(),
      HasSubstr("gpu1: dtf-agent has not answered within 1 s\n  ssh printed: jump: which key"));
}

}  // namespace dtf::launcher
