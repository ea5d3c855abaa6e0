#include "common/cluster/tf_config.h"

#include <gtest/gtest.h>

#include "common/base/error.h"
#include "tests/support/temporary_files.h"

namespace dtf::cluster {
namespace {

using testing::badConfigOf;
using Addresses = std::vector<std::string>;

std::string mistakesOf(const std::string& text) {
  return badConfigOf([&] { readTfConfig(text); });
}

std::string firstMistakeOf(const std::string& text) {
  const std::string all = mistakesOf(text);
  return all.substr(0, all.find('\n'));
}

TEST(TfConfig, HasAClusterAndATask) {
  const TfConfig config = readTfConfig(
      R"({"cluster": {"ps": ["a:1", "[::1]:2"], "worker": ["c:3"]},
          "task": {"type": "ps", "index": 1}})");
  EXPECT_EQ(config.ps, (Addresses{"a:1", "[::1]:2"}));
  EXPECT_EQ(config.worker, Addresses{"c:3"});
  EXPECT_EQ(config.task, (TaskId{JobKind::kPs, 1}));
  EXPECT_EQ(config.setting(), R"(cluster={"ps":["a:1","[::1]:2"],"worker":["c:3"]})");
}

TEST(TfConfig, TheChiefIsTheFirstWorker) {
  for (const std::string chief : {"chief", "master"}) {
    const std::string cluster =
        R"({"cluster": {"worker": ["b:1", "b:2"], ")" + chief + R"(": ["a:1"]}, "task": )";
    const TfConfig config = readTfConfig(cluster + R"({"type": "worker", "index": "1"}})");
    EXPECT_EQ(config.worker, (Addresses{"a:1", "b:1", "b:2"}));
    EXPECT_EQ(config.task, (TaskId{JobKind::kWorker, 2}));
    EXPECT_EQ(readTfConfig(cluster + R"({"type": ")" + chief + R"(", "index": 0}})").task, kChief);
  }
  EXPECT_EQ(readTfConfig(R"({"cluster": {"worker": ["b:1"]},
                             "task": {"type": "worker", "index": 0}})")
                .task,
            kChief)
      << "of workers alone it is the first";
}

TEST(TfConfig, KeysThatMeanNothingHereMayStandThere) {
  const TfConfig config = readTfConfig(
      R"({"environment": "cloud", "job": {"x": 1}, "rpc_layer": "grpc",
          "cluster": {"worker": ["b:1"], "evaluator": []}})");
  EXPECT_EQ(config.worker, Addresses{"b:1"});
  EXPECT_FALSE(config.task);
}

TEST(TfConfig, TextThatIsNoJsonHasItsPlace) {
  EXPECT_TRUE(firstMistakeOf("{\"cluster\": {\n\"ps\": [a:1]}}").starts_with("TF_CONFIG:2:"))
      << firstMistakeOf("{\"cluster\": {\n\"ps\": [a:1]}}");
  EXPECT_TRUE(firstMistakeOf("[]").starts_with("TF_CONFIG:1:1: error: expected an object"));
}

TEST(TfConfig, EachMistakeIsNamedWithItsPlace) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"clusters": {}})",
       "TF_CONFIG:1:2: error: unknown key 'clusters' - did you mean 'cluster'?"},
      {R"({"cluster": {"workers": ["a:1"]}})",
       "TF_CONFIG:1:14: error: unknown key 'workers' in 'cluster' - did you mean 'worker'?"},
      {R"({"cluster": {"worker": ["a"]}})",
       "TF_CONFIG:1:25: error: bad address 'a': an address is host:port"},
      {R"({"cluster": {"worker": ["a:1"], "ps": ["a:1"]}})",
       "TF_CONFIG:1:25: error: ps/0 and worker/0 are both at a:1"},
      {R"({"cluster": {"worker": ["a:1"], "evaluator": ["b:1"]}})",
       "TF_CONFIG:1:33: error: dtf has no evaluator: worker/0 evaluates on 'data.eval'; leave this "
       "task out"},
      {R"({"task": {"type": "evaluator", "index": 0}})",
       "TF_CONFIG:1:19: error: dtf has no evaluator: worker/0 evaluates on 'data.eval'; leave this "
       "task out"},
      {R"({"cluster": {"ps": ["a:1"]}})",
       "TF_CONFIG:1:2: error: the cluster has no 'worker' and no 'chief'"},
      {R"({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 1}})",
       "TF_CONFIG:1:70: error: the cluster has no worker 1"},
      {R"({"cluster": {"worker": ["a:1"]}, "task": {"type": "chief", "index": 0}})",
       "TF_CONFIG:1:69: error: the cluster has no chief 0"},
      {R"({"cluster": {"chief": ["a:1", "a:2"]}})",
       "TF_CONFIG:1:14: error: 'chief' must have one address, got 2"},
      {R"({"task": {"type": "worker", "index": -1}})",
       "TF_CONFIG:1:38: error: an index is a whole number from 0 on"},
      {R"({"task": {"type": "worker"}})",
       "TF_CONFIG:1:2: error: a task has \"type\" and \"index\""},
  };
  for (const auto& [text, message] : cases) EXPECT_EQ(firstMistakeOf(text), message) << text;
  EXPECT_NE(mistakesOf(R"({"cluster": {"worker": ["a"], "ps": ["b"]}})").find("'b'"),
            std::string::npos)
      << "all are named at once";
}

}  // namespace
}  // namespace dtf::cluster
