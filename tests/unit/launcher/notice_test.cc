#include "launcher/notice.h"

#include <gtest/gtest.h>

namespace dtf::launcher {

TEST(Notice, ReadsEveryEvent) {
  EXPECT_TRUE(std::holds_alternative<ReadyNotice>(*parseNotice(R"({"event":"ready"})")));
  EXPECT_TRUE(std::holds_alternative<FinishedNotice>(*parseNotice(R"({"event":"finished"})")));
  const auto progress = std::get<ProgressNotice>(*parseNotice(
      R"({"event":"progress","step":120,"steps":1000,"loss":0.31,"examples_per_second":81000})"));
  EXPECT_EQ(progress.step, 120u);
  EXPECT_EQ(progress.steps, 1000u);
  EXPECT_EQ(progress.loss, 0.31);
  EXPECT_FALSE(progress.eval_accuracy);
  EXPECT_FALSE(progress.straggler);
  const auto failed = std::get<FailedNotice>(
      *parseNotice(R"({"event":"failed","code":"bad_data","message":"short"})"));
  EXPECT_EQ(failed.code, "bad_data");
  EXPECT_EQ(failed.message, "short");
  const auto back = std::get<WentBackNotice>(
      *parseNotice(R"({"event":"went_back","step":4963,"steps_lost":37,"reason":"ps/1 lost"})"));
  EXPECT_EQ(back.step, 4963u);
  EXPECT_EQ(back.steps_lost, 37u);
  EXPECT_EQ(back.reason, "ps/1 lost");
  EXPECT_EQ(std::get<ResultNotice>(*parseNotice(R"({"event":"result","global_step":7})")).json,
            R"({"global_step":7})");
}

TEST(Notice, ProgressNamesTheWorkerThatTheOthersWaitFor) {
  const auto straggler = [](const std::string& json) {
    return std::get<ProgressNotice>(
               *parseNotice(R"({"event":"progress","step":1,"straggler":)" + json + "}"))
        .straggler;
  };
  const auto named = straggler(R"({"worker":"worker/1","phase":"send","excess_ms":4.1})");
  ASSERT_TRUE(named);
  EXPECT_EQ(stragglerText(*named), "worker/1: send, 4.1 ms a step more than the others");
  EXPECT_EQ(stragglerJson(named),
            Json::parse(R"({"worker": "worker/1", "phase": "send", "excess_ms": 4.1})"));
  for (const char* none : {"null", "7", "{}", R"({"worker":3})"}) EXPECT_FALSE(straggler(none));
  EXPECT_TRUE(stragglerJson(std::nullopt).isNull());
}

TEST(Notice, AnEvaluationHasTheMetricsThatThereAre) {
  const auto evaluation = std::get<EvaluationNotice>(*parseNotice(
      R"({"event":"evaluation","step":7,"loss":0.5,"auc":0.75,"r2":null,"x\u001b[2J":1,"mae":2})"));
  EXPECT_EQ(evaluation.accuracy, std::nullopt);
  EXPECT_EQ(evaluation.metrics,
            (std::vector<std::pair<std::string, double>>{{"auc", 0.75}, {"mae", 2}}));
}

TEST(Notice, RecordsThatAreLeftOutHaveTheirReasons) {
  const auto left_out = std::get<LeftOutNotice>(
      *parseNotice(R"({"event":"left_out","records":12,"reasons":["t.csv:3:5: no number",7]})"));
  EXPECT_EQ(left_out.records, 12u);
  EXPECT_EQ(left_out.reasons, std::vector<std::string>{"t.csv:3:5: no number"});
}

TEST(Notice, DropsWhatMakesNoSense) {
  for (const char* line :
       {"", "ready", "[]", "7", "{", R"({"event":7})", R"({"event":"other"})", "\xff\xfe"})
    EXPECT_FALSE(parseNotice(line)) << line;
}

TEST(Notice, FieldsOfAnotherTypeAreUnknown) {
  const auto progress = std::get<ProgressNotice>(*parseNotice(
      R"({"event":"progress","step":-1,"steps":"many","loss":null,"examples_per_second":[1]})"));
  EXPECT_EQ(progress.step, 0u);
  EXPECT_EQ(progress.steps, 0u);
  EXPECT_FALSE(progress.loss);
  EXPECT_FALSE(progress.examples_per_second);
}

}  // namespace dtf::launcher
