#include <fmt/core.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "common/base/json.h"
#include "tests/e2e/ssh_fixture.h"

// `dtf-launch check --network` between hosts that are network namespaces, each with a real sshd and
// two network cards: eth0 with the addresses of the cluster file, eth1 with others. eth0 of the
// third host is limited to 40 Mbit/s.

namespace dtf::testing {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kHosts = 3;
constexpr double kSlowBytes = 40e6 / 8;
constexpr std::chrono::seconds kCheckPatience{90};

class NetworkTest : public SshTest {
 protected:
  ~NetworkTest() override {
    sshds_.clear();
    for (const std::string& each : namespaces_) runProcess({"ip", "netns", "del", each});
  }

  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "network namespaces with names take root";
    if (runProcess({"ip", "netns", "add", name("hub")}).exit_code != 0)
      GTEST_SKIP() << "this machine lets nobody make network namespaces (ip netns add)";
    namespaces_.push_back(name("hub"));
    SshTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    makeNetwork();
    if (IsSkipped() || HasFatalFailure()) return;
    for (int host = 1; host <= kHosts; ++host) startSshd(host);
    folder_.write("ssh_config", fmt::format("Host *\n  Port 22\n  IdentityFile {0}/id\n"
                                            "  IdentitiesOnly yes\n  UserKnownHostsFile {0}/known\n"
                                            "  GlobalKnownHostsFile none\n"
                                            "  StrictHostKeyChecking accept-new\n",
                                            folder_.path()));
  }

  static std::string name(const std::string& what) {
    return fmt::format("dtf{}-{}", ::getpid(), what);
  }
  static std::string hostName(int host) { return name(std::to_string(host)); }

  static void must(const std::vector<std::string>& command) {
    const ProcessResult result = runProcess(command);
    std::string text;
    for (const std::string& word : command) text += word + " ";
    ASSERT_EQ(result.exit_code, 0) << text << result.err;
  }

  // Host 0 is where dtf-launch runs.
  void makeNetwork() {
    for (const char* bridge : {"br0", "br1"}) {
      must({"ip", "-n", name("hub"), "link", "add", bridge, "type", "bridge"});
      must({"ip", "-n", name("hub"), "link", "set", bridge, "up"});
    }
    for (int host = 0; host <= kHosts; ++host) {
      must({"ip", "netns", "add", hostName(host)});
      namespaces_.push_back(hostName(host));
      must({"ip", "-n", hostName(host), "link", "set", "lo", "up"});
      for (const int card : {0, 1}) addCard(host, card);
    }
    for (int host = 1; host <= kHosts; ++host)
      for (const int card : {0, 1})
        if (!hold(host, card))
          GTEST_SKIP() << "this kernel can't hold a network card back (tc tbf)";
  }

  // Every card has a rate that two busy cores can do, so that the ratios are the cards'.
  static bool hold(int host, int card) {
    const bool is_slow = host == 3 && card == 0;
    const std::string here = fmt::format("eth{}", card), there = fmt::format("p{}-{}", host, card);
    for (const auto& [where, device] : {std::pair(hostName(host), here), {name("hub"), there}})
      if (runProcess({"tc", "-n", where, "qdisc", "add", "dev", device, "root", "tbf", "rate",
                      is_slow ? "40mbit" : "400mbit", "burst", is_slow ? "64kb" : "512kb",
                      "latency", "50ms"})
              .exit_code != 0)
        return false;
    return true;
  }

  static void addCard(int host, int card) {
    const std::string own = fmt::format("eth{}", card), port = fmt::format("p{}-{}", host, card);
    must({"ip", "link", "add", own, "netns", hostName(host), "type", "veth", "peer", "name", port,
          "netns", name("hub")});
    must({"ip", "-n", hostName(host), "addr", "add", fmt::format("10.7{}.0.{}/24", card, 10 + host),
          "dev", own});
    must({"ip", "-n", hostName(host), "link", "set", own, "up"});
    must({"ip", "-n", name("hub"), "link", "set", port, "master", fmt::format("br{}", card), "up"});
  }

  void startSshd(int host) {
    const std::string file = folder_.write(
        fmt::format("sshd_{}", host),
        fmt::format("ListenAddress 0.0.0.0:22\nHostKey {0}/host_key\n"
                    "AuthorizedKeysFile {0}/authorized\nPidFile none\nUsePAM no\nStrictModes no\n"
                    "PasswordAuthentication no\nKbdInteractiveAuthentication no\n",
                    folder_.path()));
    sshds_.push_back(std::make_unique<Process>(std::vector<std::string>{
        "ip", "netns", "exec", hostName(host), "/usr/sbin/sshd", "-D", "-e", "-f", file}));
    ASSERT_TRUE(sshds_.back()->waitForOutput("Server listening", std::chrono::seconds(20)))
        << sshds_.back()->err();
  }

  std::string hostsJob(const std::string& more) {
    sshJob(1, 10);  // for its train.yaml
    return folder_.write(
        "job.yaml",
        fmt::format("job: job\nrun_dir: {}/runs/job\ncluster:\n  ps: [\"10.70.0.11:2221\"]\n"
                    "  worker: [\"10.70.0.12:2222\", \"10.70.0.13:2223\"]\n"
                    "launch: {{via: ssh, ssh_config: ssh_config, binary_dir: {}}}\n{}"
                    "train: train.yaml\n",
                    folder_.path(), agent_folder_, more));
  }

  ProcessResult check(const std::string& file, std::vector<std::string> more = {}) {
    std::vector<std::string> command = {
        "ip", "netns", "exec", hostName(0), binary("dtf-launch"), "check", file, "--network"};
    command.insert(command.end(), more.begin(), more.end());
    return Process(command, {}, folder_.path()).wait(kCheckPatience);
  }

  static Json networkOf(const ProcessResult& result) {
    std::istringstream lines(result.out);
    for (std::string line; std::getline(lines, line);)
      if (const auto event = Json::parse(line); event["event"] == "network") return event;
    ADD_FAILURE() << result.out << result.err;
    return {};
  }

  std::vector<std::string> namespaces_;
  std::vector<std::unique_ptr<Process>> sshds_;
};

TEST_F(NetworkTest, ASlowCardIsFoundFromBothSidesAndTheBetterOneNamed) {
  const std::string file = hostsJob("insecure: true\n");
  const ProcessResult json = check(file, {"--json"});
  ASSERT_EQ(json.exit_code, 0) << json.err;
  const Json network = networkOf(json);
  size_t slow = 0;
  ASSERT_EQ(network["pairs"].size(), 12u) << "six pairs, to two addresses each";
  for (const Json& pair : network["pairs"]) {
    ASSERT_TRUE(pair.contains("bytes_per_second")) << pair;
    const double rate = pair.doubleAt("bytes_per_second");
    EXPECT_EQ(pair["interface"], pair.boolAt("in_file") ? "eth0" : "eth1");
    const bool is_held =
        pair.boolAt("in_file") && (pair["from"] == "10.70.0.13" || pair["to"] == "10.70.0.13");
    slow += is_held;
    if (is_held) {
      EXPECT_GT(rate, 0.5 * kSlowBytes) << pair;
      EXPECT_LT(rate, 2 * kSlowBytes) << pair;
    } else {
      EXPECT_GT(rate, 4 * kSlowBytes) << pair;
    }
  }
  EXPECT_EQ(slow, 4u);
  EXPECT_THAT(
      network["warnings"].asStrings(),
      ElementsAre(HasSubstr("all connections out of 10.70.0.13 are slow"),
                  HasSubstr("all connections into 10.70.0.13 are slow"),
                  AllOf(HasSubstr("wrong network card? 10.70.0.13 is 10.70.0.13 on its eth0"),
                        HasSubstr("its eth1 with 10.71.0.13"))));
  expectNoTask();

  const ProcessResult text = check(file);
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_THAT(text.out, AllOf(HasSubstr("from        to          address     interface"),
                              HasSubstr("eth1 (not in the file)")));
  EXPECT_THAT(text.err, HasSubstr("warning: wrong network card? 10.70.0.13"));
  EXPECT_FALSE(fs::exists(folder_.path() + "/runs")) << "nothing of the job is touched";
}

TEST_F(NetworkTest, OverTlsAndHostsThatDoNotReachEachOtherAreNamed) {
  const std::string file = hostsJob("keys: keys\n");
  ASSERT_EQ(runProcess(
                {binary("dtf-launch"), "keys", "init", folder_.path() + "/keys", "--cluster", file})
                .exit_code,
            0);
  must({"ip", "-n", hostName(3), "route", "add", "unreachable", "10.70.0.12/32"});
  const ProcessResult result = check(file, {"--json"});
  EXPECT_EQ(result.exit_code, 69) << result.err;
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("2 pairs of hosts can't reach each other"),
                    HasSubstr("10.70.0.13 to 10.70.0.12: "),
                    HasSubstr("10.70.0.12 to 10.70.0.13: "), Not(HasSubstr("10.70.0.11 to"))));
  const Json network = networkOf(result);
  for (const Json& pair : network["pairs"])
    if (pair["from"] == "10.70.0.11" || pair["to"] == "10.70.0.11") {
      EXPECT_TRUE(pair.contains("bytes_per_second")) << pair;
    }
  expectNoTask();
}

// Without other hosts: this one is measured from itself.
TEST_F(ClusterTest, ALocalJobIsMeasuredHere) {
  const std::string file = folder_.write(
      "job.yaml",
      "job: job\ncluster: {ps: [\"localhost:auto\"], worker: [\"localhost:auto\"]}\n"
      "train:\n  model: {input: {shape: [28, 28, 1]}, layers: [flatten: , dense: {units: 10}], "
      "loss: sparse_categorical_crossentropy}\n  data: {train: {format: digits, count: 600}, "
      "batch_size: "
      "20}\n"
      "  steps: 1\n");
  const ProcessResult result = runProcess({binary("dtf-launch"), "check", file, "--network"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("localhost  localhost  127.0.0.1  lo"));
  EXPECT_THAT(result.err, Not(HasSubstr("warning")));
  const ProcessResult elsewhere =
      runProcess({binary("dtf-launch"), "check", file, "--network", "--set",
                  "cluster.worker=[\"192.0.2.7:2000\"]", "--insecure"});
  EXPECT_EQ(elsewhere.exit_code, 78);
  EXPECT_THAT(elsewhere.err, HasSubstr("192.0.2.7 is not this host"));
}

}  // namespace dtf::testing
