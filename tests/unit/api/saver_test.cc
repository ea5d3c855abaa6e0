#include <dtf/saver.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <functional>

#include "tests/unit/api/errors.h"
#include "tests/unit/api/temporary_folder.h"

namespace dtf::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ApiSaver : public ::testing::Test {
 protected:
  ApiSaver() {
    const Output w = graph_.variable("w", {2}, "ones");
    train_ = graph_.name(graph_.minimize(graph_.sum(graph_.mul(w, w)), Momentum{}).train);
  }
  std::string folder() const { return folder_.path() + "/run/checkpoints"; }

  Graph graph_;
  std::string train_;
  TemporaryFolder folder_;
};

TEST_F(ApiSaver, AProgramGoesOnWhereItWas) {
  Saver saver;
  Session first(graph_);
  first.initialize();
  for (int step = 0; step < 3; ++step) first.run({}, {}, {train_});
  EXPECT_EQ(saver.latestCheckpoint(folder()), "");
  EXPECT_EQ(saver.save(first, folder()), folder() + "/step-3");
  EXPECT_EQ(saver.latestCheckpoint(folder()), folder() + "/step-3");
  Session second(graph_);
  EXPECT_EQ(saver.restore(second, folder()), 3u);
  for (Session* session : {&first, &second}) session->run({}, {}, {train_});
  const std::vector<std::string> all = {"w", "w/Momentum", "global_step"};
  const auto one = first.run({}, all), two = second.run({}, all);
  EXPECT_EQ(one[0].as<float>()[0], two[0].as<float>()[0]);
  EXPECT_EQ(one[1].as<float>()[0], two[1].as<float>()[0]);
  EXPECT_EQ(two[2].as<int64_t>()[0], 4);
}

TEST_F(ApiSaver, KeepsTheNewest) {
  Saver saver({.max_to_keep = 2});
  Session session(graph_);
  session.initialize();
  for (int step = 0; step < 4; ++step) {
    session.run({}, {}, {train_});
    saver.save(session, folder());
  }
  Session other(graph_);
  EXPECT_EQ(saver.restore(other, folder() + "/step-3"), 3u);
  EXPECT_THAT(refusal([&] { saver.restore(other, folder() + "/step-2"); }),
              AllOf(StartsWith("65: "), HasSubstr("there is no checkpoint")));
}

TEST_F(ApiSaver, MistakesAreNamed) {
  EXPECT_THAT(refusal([] { Saver({.max_to_keep = -2}); }), AllOf(StartsWith("2: ")));
  EXPECT_THAT(refusal([] { Saver({.job = ""}); }), AllOf(StartsWith("2: ")));
  dtf_saver_options options{};
  dtf_saver* made = nullptr;
  EXPECT_THAT(refusal([&] { check(dtf_saver_new(&options, &made)); }), StartsWith("2: "));
  Saver saver;
  Session session(graph_);
  EXPECT_THAT(refusal([&] { saver.save(session, folder()); }),
              AllOf(StartsWith("78: "), HasSubstr("has no value yet")));
  session.initialize();
  const std::vector<std::function<void()>> calls = {[&] { saver.save(session, ""); },
                                                    [&] { saver.restore(session, ""); },
                                                    [&] { saver.latestCheckpoint(""); }};
  for (const auto& call : calls)
    EXPECT_THAT(refusal(call), AllOf(StartsWith("78: "), HasSubstr("is empty")));
}

}  // namespace
}  // namespace dtf::testing
