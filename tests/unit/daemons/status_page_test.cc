#include "daemons/status_page.h"
#include "common/base/json.h"

#include <gmock/gmock.h>

#include <limits>

namespace dtf::daemons {
namespace {
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

cluster::TaskOptions twoHosts(uint16_t port) {
  cluster::TaskOptions options;
  options.task = {JobKind::kWorker, 0};
  options.job.job = "mnist";
  options.job.cluster.ps.push_back({.address = {"gpu1", 2222}});
  options.job.cluster.worker.push_back({.address = {"gpu1", 2223}});
  options.job.cluster.worker.push_back({.address = {"2001:db8::2", 2222}});
  options.job.metrics.emplace().port = port;
  return options;
}

Json documentOf(const cluster::TaskOptions& options, const ServiceLook& look = {},
                const ProgressHistory& history = {}) {
  return Json::parse(statusJson(options, look, look.metrics, history));
}

TEST(StatusPage, NeedsNothingFromElsewhere) {
  EXPECT_THAT(statusPage(), HasSubstr("<!doctype html>"));
  EXPECT_THAT(statusPage(), HasSubstr("</html>"));
  EXPECT_THAT(statusPage(), Not(HasSubstr(" src=")));
  EXPECT_THAT(statusPage(), Not(HasSubstr("https://")));
  EXPECT_THAT(statusPage(), Not(HasSubstr("innerHTML"))) << "a task's words are text, not markup";
}

TEST(StatusPage, SaysWhereTheOtherTasksAnswer) {
  const Json tasks = documentOf(twoHosts(9400))["tasks"];
  EXPECT_EQ(tasks, Json::parse(R"([{"name": "ps/0", "url": "http://gpu1:9400"},
                                   {"name": "worker/0", "url": "http://gpu1:9401"},
                                   {"name": "worker/1", "url": "http://[2001:db8::2]:9400"}])"));
  EXPECT_TRUE(documentOf(twoHosts(0))["tasks"][1]["url"].isNull()) << "port: auto";
  cluster::TaskOptions with_keys = twoHosts(9400);
  with_keys.job.cluster.keys = "keys";
  EXPECT_EQ(documentOf(with_keys)["tasks"][1]["url"], "https://gpu1:9401");
}

TEST(StatusPage, SaysWhatTheTaskDoes) {
  ServiceLook look{"step 3 of 9", false, "it waits for ps/0", {gauge("dtf_loss", "", 0.5)}};
  look.metrics.push_back({"dtf_step_seconds", "", Metric::Kind::kHistogram});
  look.metrics.back().histogram = {{{0.1, 2}, {1, 3}}, 4, 7.5};
  const Json said = documentOf(twoHosts(9400), look);
  EXPECT_EQ(said["job"], "mnist");
  EXPECT_EQ(said["task"], "worker/0");
  EXPECT_EQ(said["status"], "step 3 of 9");
  EXPECT_EQ(said["not_ready"], "it waits for ps/0");
  EXPECT_EQ(said["metrics"],
            Json::parse(R"([["dtf_loss", {}, 0.5], ["dtf_step_seconds_sum", {}, 7.5],
                                             ["dtf_step_seconds_count", {}, 9.0]])"));
}

TEST(StatusPage, ALossThatIsNoNumberIsNull) {
  ProgressHistory history;
  history.offer({1, 10, 0.5, 100});
  history.offer({2, 20, std::numeric_limits<double>::quiet_NaN(), 100});
  const Json said = documentOf(twoHosts(9400), {"caf\xe9"}, history);
  EXPECT_EQ(said["history"]["loss"], Json::parse("[0.5, null]"));
  EXPECT_EQ(said["history"]["step"], Json::parse("[10.0, 20.0]"));
}

TEST(StatusPage, PagesOfTheJobsHostsMayReadIt) {
  EXPECT_THAT(hostsOfTasks(twoHosts(9400)), UnorderedElementsAre("gpu1", "gpu1", "2001:db8::2"));
  cluster::TaskOptions here = twoHosts(9400);
  for (const char* spelling : {"127.0.0.1", "localhost"}) {
    here.job.cluster.ps[0].address.host = spelling;
    EXPECT_THAT(hostsOfTasks(here), IsSupersetOf({"localhost", "127.0.0.1", "::1", "gpu1"}))
        << "however a person spells it";
  }
}

}  // namespace
}  // namespace dtf::daemons
