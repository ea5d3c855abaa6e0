#include <filesystem>
#include <fstream>

#include "tests/unit/launcher/ssh/agent_fixture.h"

// The agent's replies to requests for the trained model.

namespace dtf::launcher {

namespace fs = std::filesystem;

TEST_F(AgentTest, GivesTheFilesOfAModel) {
  fs::create_directories(folder_ / "run/checkpoints/step-5");
  const std::string shard = std::string(5'000'000, 's') + "end";
  std::ofstream(folder_ / "run/checkpoints/step-5/a.safetensors") << shard;
  std::ofstream(folder_ / "run/checkpoints/step-5/manifest.json") << "{}";
  std::ofstream(folder_ / "run/.launched-x");
  startAgent();
  OpenOrder open = openOrder();
  open.mark = ".launched-x";
  order(open);
  nextReport<ListeningReport>();
  order(FetchOrder{"checkpoints/step-5/a.safetensors"});
  const FetchedReport found = nextReport<FetchedReport>();
  EXPECT_EQ(found.found, FetchedReport::Found::kThere);
  ASSERT_EQ(found.bytes, shard.size());
  std::string bytes;
  while (bytes.size() < shard.size()) {
    const auto [kind, payload] = next();
    ASSERT_EQ(kind, FrameKind::kCopy);
    bytes += payload;
  }
  EXPECT_TRUE(bytes == shard);
  order(FetchOrder{"checkpoints/step-6/manifest.json"});
  EXPECT_EQ(nextReport<FetchedReport>().found, FetchedReport::Found::kSame)
      << "the launcher has this folder";
  order(FetchOrder{"kernels.json"});
  EXPECT_EQ(nextReport<FetchedReport>().found, FetchedReport::Found::kAbsent);
  order(EndOrder{});
  EXPECT_EQ(exitOfAgent(), 0);
}

}  // namespace dtf::launcher
