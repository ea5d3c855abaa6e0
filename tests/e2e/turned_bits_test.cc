// Bits turned on the way between workers and ps over plain TCP: each is found and named, and the
// job ends with the parameters of an undisturbed one.

#include <cstdlib>
#include <random>
#include <regex>

#include "tests/e2e/cluster_fixture.h"
#include "tests/e2e/turning_proxy.h"

namespace dtf::testing {

using std::chrono::seconds;

class TurnedBitsTest : public ClusterTest {
 protected:
  // Two ps and two workers, which meet through `proxy`, in the order of startFour().
  std::vector<Process> startThrough(const TurningProxy& proxy, const std::string& file) {
    std::vector<std::string> through = {"--set", "cluster.ps=["};
    for (const int port : proxy.ports())
      through[1] += (through[1].back() == '[' ? "" : ", ") + ("localhost:" + std::to_string(port));
    through[1] += "]";
    std::vector<Process> tasks;
    for (const int i : {0, 1}) tasks.push_back(startTask(file, "ps", i));
    for (const int i : {0, 1}) tasks.push_back(startTask(file, "worker", i, through));
    return tasks;
  }
  static size_t numberOf(const std::string& log, const std::string& field) {
    std::smatch found;
    if (std::regex_search(log, found, std::regex("\\b" + field + "=(\\d+)")))
      return std::stoul(found[1]);
    ADD_FAILURE() << field << " is not in\n" << log;
    return 0;
  }
  static size_t wordsIn(const std::string& log, const std::string& words) {
    size_t found = 0;
    for (size_t at = 0; (at = log.find(words, at)) != std::string::npos; ++at) ++found;
    return found;
  }
};

// 60, or as many as DTF_TURNED_BITS says.
TEST_F(TurnedBitsTest, EachIsNamedAndTheJobEndsWithTheSameParameters) {
  const char* wanted = std::getenv("DTF_TURNED_BITS");
  const size_t turns = wanted == nullptr ? 60 : std::stoul(wanted);
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  ClusterOptions options{.mode = "sync",
                         .steps = static_cast<int>(200 + 4 * turns),
                         .optimizer = "{adam: {learning_rate: 0.01}}",
                         .layers = "[flatten: , dense: {units: 30}, dense: {units: 10}]",
                         .top_more = "shared_memory: false\n",
                         .train_more = "  placement: {partition: {min_bytes: 1000}}\n"};
  ASSERT_EQ(launch(writeCluster(options, "calm")).exit_code, 0);
  options.ports = freePorts(4);
  const TurningProxy proxy({options.ports[0], options.ports[1]}, turns, 128 << 10, seed);
  std::vector<Process> tasks = startThrough(proxy, writeCluster(options, "turned"));
  std::vector<std::string> logs;
  for (Process& task : tasks) {
    const ProcessResult result = task.wait(seconds(30) + seconds(turns));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    logs.push_back(result.err);
  }
  EXPECT_EQ(proxy.turned(), turns) << "the job was too short";
  EXPECT_GT(proxy.turned(Toward::kPs), 0u);
  EXPECT_GT(proxy.turned(Toward::kWorker), 0u);

  const auto counted = [&](size_t first) {
    size_t damaged = 0;
    for (const size_t i : {first, first + 1}) {
      const size_t of_task = numberOf(logs[i], "messages_damaged");
      const size_t lines = wordsIn(logs[i], "event=message_damaged peer=\"");
      EXPECT_LE(lines, of_task) << logs[i];
      EXPECT_EQ(lines > 0, of_task > 0) << logs[i];
      damaged += of_task;
    }
    return damaged;
  };
  // A task that closes a connection for another reason leaves its last message unread.
  const auto expectCounted = [&](size_t first, Toward direction) {
    EXPECT_LE(counted(first), proxy.turned(direction)) << logs[first] << logs[first + 1];
    EXPECT_GE(counted(first) + 2, proxy.turned(direction)) << logs[first] << logs[first + 1];
  };
  expectCounted(0, Toward::kPs);
  expectCounted(2, Toward::kWorker);
  EXPECT_EQ(summary("turned")["parameters_digest"], summary("calm")["parameters_digest"]);
  EXPECT_EQ(summary("turned")["final_loss"], summary("calm")["final_loss"]);
}

// A network that turns a bit of every other message: nobody can train through it.
TEST_F(TurnedBitsTest, ANetworkThatDamagesEverythingEndsTheJobInWords) {
  ClusterOptions options{
      .mode = "sync",
      .steps = 1000000,
      .top_more =
          "shared_memory: false\ntimeouts: {start_seconds: 5, rejoin_seconds: 3, "
          "step_seconds: 3}\n"};
  options.ports = freePorts(4);
  const TurningProxy proxy({options.ports[0], options.ports[1]}, SIZE_MAX, 4096, 7);
  std::vector<Process> tasks = startThrough(proxy, writeCluster(options));
  const ProcessResult chief = tasks[2].wait(seconds(60));
  // Unavailable, or a deadline where it waits for a worker that can't come through.
  EXPECT_TRUE(chief.exit_code == 69 || chief.exit_code == 124) << chief.err;
  EXPECT_NE(chief.err.find("was damaged on the way"), std::string::npos) << chief.err;
}

}  // namespace dtf::testing
