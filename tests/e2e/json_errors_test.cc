// dtf-launch --json: whatever goes wrong with whichever verb, a program that reads stdout can parse
// each line, and finds the exit code in the last one.

#include <unistd.h>

#include <filesystem>
#include <regex>
#include <set>
#include <sstream>

#include "common/base/json.h"
#include "tests/e2e/cluster_fixture.h"

namespace dtf::testing {

using std::chrono::seconds;

namespace {

struct VerbCase {
  std::string verb;
  std::vector<std::string> more;  // that it needs
  int without_a_run;              // its exit code where nothing has run; 0: it needs none
};

const std::vector<VerbCase>& allVerbs() {
  static const std::vector<VerbCase> all = {{"up", {}, 0},
                                            {"check", {"--network"}, 0},
                                            {"explain", {}, 0},
                                            {"status", {}, 3},
                                            {"attach", {}, 69},
                                            {"logs", {}, 65},
                                            {"stop", {}, 3},
                                            {"graph", {"--graph", "none.yaml"}, 78},
                                            {"serve", {}, 0},
                                            {"submit", {}, 0},
                                            {"eval", {}, 65},
                                            {"predict", {}, 65},
                                            {"export", {"--to", "model.npz"}, 65},
                                            {"import", {"--from", "none.npz"}, 65}};
  return all;
}

}  // namespace

class JsonErrorsTest : public ClusterTest {
 protected:
  // Runs without root's rights.
  ProcessResult run(const VerbCase& verb, const std::string& file,
                    const std::vector<std::string>& more) {
    std::vector<std::string> argv = {binary("dtf-launch"), verb.verb, file, "--json"};
    argv.insert(argv.end(), verb.more.begin(), verb.more.end());
    argv.insert(argv.end(), more.begin(), more.end());
    if (::geteuid() == 0)
      argv.insert(argv.begin(), {"setpriv", "--bounding-set=-dac_override,-dac_read_search", "--"});
    return runProcess(argv, seconds(30), {}, folder_.path());
  }

  // The events on stdout, of which each line is one.
  static std::vector<Json> eventsOf(const ProcessResult& result) {
    std::vector<Json> events;
    std::istringstream lines(result.out);
    for (std::string line; std::getline(lines, line);) {
      events.push_back(Json::parseOrNull(line));
      const Json& event = events.back();
      EXPECT_TRUE(event.isObject()) << "no JSON: " << line;
      if (!event.isObject()) continue;
      EXPECT_EQ(event.intOr("schema", 0), 1) << line;
      EXPECT_TRUE(event.contains("event") && event.contains("time")) << line;
    }
    return events;
  }

  // It fails with that exit code, and says so to people and programs, with `text`.
  void expectError(const ProcessResult& result, int exit_code, const std::string& text) {
    EXPECT_EQ(result.exit_code, exit_code) << result.out << result.err;
    EXPECT_NE(result.err.find(text), std::string::npos) << result.err;
    const std::vector<Json> events = eventsOf(result);
    ASSERT_FALSE(events.empty()) << result.err;
    const Json& last = events.back();
    EXPECT_EQ(last.stringOr("event", ""), "error") << last;
    EXPECT_EQ(last.intOr("exit_code", 0), exit_code) << last;
    EXPECT_NE(last.stringOr("message", "").find(text), std::string::npos) << last;
    EXPECT_NE(last.stringOr("code", ""), "") << last;
  }
};

TEST_F(JsonErrorsTest, AreJsonOfEveryVerbAndEveryKind) {
  const std::string good = writeCluster({.steps = 20});
  const std::string bad = folder_.write(
      "bad.yaml", "job: x\ncluster:\n  ps: [localhost:auto]\n  wrokers: [localhost:auto]\n");
  const std::string no_yaml = folder_.write("no.yaml", "job: [x\ncluster: {\n");
  const std::string closed = folder_.write("closed.yaml", "job: closed\n");
  std::filesystem::permissions(closed, std::filesystem::perms::none);
  for (const VerbCase& verb : allVerbs()) {
    SCOPED_TRACE(verb.verb);
    expectError(run(verb, good, {"--colour-me"}), 2, "--colour-me");
    expectError(run(verb, good, {"--set", "train.steps=ten"}), 78, "train.steps=ten");
    expectError(run(verb, bad, {}), 78, "did you mean 'worker'?");
    expectError(run(verb, no_yaml, {}), 78, "no.yaml:");
    expectError(run(verb, folder_.path() + "/none.yaml", {}), 78, "none.yaml");
    expectError(run(verb, closed, {}), 77, closed);
  }
  expectNothingLeft();
}

TEST_F(JsonErrorsTest, NoVerbIsLeftOut) {
  const std::string help = runProcess({binary("dtf-launch"), "--help"}).out;
  const std::regex line("\n  dtf-launch ([a-z]+) CLUSTER\\.yaml");
  std::set<std::string> told, tried;
  for (std::sregex_iterator at(help.begin(), help.end(), line), end; at != end; ++at)
    told.insert((*at)[1]);
  for (const VerbCase& verb : allVerbs()) tried.insert(verb.verb);
  EXPECT_EQ(tried, told) << help;
}

// Nothing has run: two verbs answer that, the others can't do their work.
TEST_F(JsonErrorsTest, WithoutARunToo) {
  const std::string file = writeCluster({.steps = 20});
  for (const VerbCase& verb : allVerbs()) {
    if (verb.without_a_run == 0) continue;
    SCOPED_TRACE(verb.verb);
    const ProcessResult result = run(verb, file, {});
    if (verb.without_a_run != 3) {
      expectError(result, verb.without_a_run, "");
      continue;
    }
    EXPECT_EQ(result.exit_code, 3) << result.err;
    const std::vector<Json> events = eventsOf(result);
    ASSERT_EQ(events.size(), 1u) << result.out;
    EXPECT_EQ(events[0]["event"], verb.verb);
  }
  expectNothingLeft();
}

// The verbs that have no job.
TEST_F(JsonErrorsTest, OfInitToo) {
  const auto init = [this](const std::string& data) {
    return runProcess({binary("dtf-launch"), "init", "--json", "--data", data}, seconds(30), {},
                      folder_.path());
  };
  expectError(init("none.csv"), 65, "none.csv");
  folder_.write("t.csv", "a,b\n1,x\n2,y\n1,x\n2,y\n");
  const std::vector<Json> events = eventsOf(init("t.csv"));
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0]["event"], "init");
  expectError(init("t.csv"), 73, "t.yaml");
}
TEST_F(JsonErrorsTest, OfKeysToo) {
  const auto keys = [this](std::vector<std::string> words) {
    words.insert(words.begin(), {binary("dtf-launch"), "keys"});
    words.emplace_back("--json");
    return runProcess(words, seconds(30), {}, folder_.path());
  };
  expectError(keys({}), 2, "keys expects init, issue, renew or show");
  expectError(keys({"init", "k"}), 2, "the name of the job is missing");
  expectError(keys({"show", "none"}), 65, "none has no ca.pem");
  folder_.write("ca.pem", "no certificate");
  expectError(keys({"show", "."}), 65, "ca.pem has no certificate");
  expectError(keys({"init", "/proc/none", "--job", "x"}), 73, "/proc/none");
  const std::vector<Json> events = eventsOf(keys({"init", "k", "--job", "x"}));
  ASSERT_EQ(events.size(), 1u);
  for (const char* time : {"from", "until"})
    EXPECT_TRUE(std::regex_match(events[0]["keys"][0].stringOr(time, ""),
                                 std::regex("20..-..-..T..:..:00\\+00:00")))
        << events[0];
  std::filesystem::permissions(folder_.path() + "/k/ca-key.pem", std::filesystem::perms::none);
  std::vector<std::string> issue{binary("dtf-launch"), "keys", "issue", "k", "ps/0", "--json"};
  if (::geteuid() == 0)
    issue.insert(issue.begin(), {"setpriv", "--bounding-set=-dac_override,-dac_read_search", "--"});
  expectError(runProcess(issue, seconds(30), {}, folder_.path()), 77, "ca-key.pem");
}

// An error during the start: the summary is an event, too.
TEST_F(JsonErrorsTest, OfAJobThatFailsAreTheLastOfItsEvents) {
  const std::string file = writeCluster({.steps = 20});
  const VerbCase up{"up", {}, 0};
  const std::string runs = folder_.path() + "/runs";
  std::filesystem::create_directories(runs);
  std::filesystem::permissions(
      runs, std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  expectError(run(up, file, {}), 77, runs + "/job");
  std::filesystem::permissions(runs, std::filesystem::perms::owner_all);
  const ProcessResult failed = run(up, file, {"--set", "timeouts.start_seconds=0.001"});
  EXPECT_NE(failed.exit_code, 0);
  const std::vector<Json> events = eventsOf(failed);
  ASSERT_FALSE(events.empty()) << failed.err;
  EXPECT_EQ(events.back().stringOr("event", ""), "summary") << events.back();
  EXPECT_EQ(events.back().intOr("exit_code", 0), failed.exit_code) << events.back();
}

}  // namespace dtf::testing
