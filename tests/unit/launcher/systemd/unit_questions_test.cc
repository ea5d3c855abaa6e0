#include "launcher/systemd/unit_questions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "launcher/ssh/frames.h"

namespace dtf::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <class T>
T sent(const T& question) {
  return std::get<T>(parseQuestion(questionJson(question)));
}

std::string wrong(const std::string& question) {
  try {
    parseQuestion(question);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadData) << question;
    return error.message();
  }
  return "nothing";
}

TEST(UnitQuestions, ArriveAsTheyWereAsked) {
  const MeetQuestion meet =
      sent(MeetQuestion{"j", "a1", "/run", "/here", {"dtf-j@ps-0.service"}, true});
  EXPECT_EQ(meet.run_dir, "/run");
  EXPECT_THAT(meet.units, ElementsAre("dtf-j@ps-0.service"));
  EXPECT_TRUE(meet.starts);
  WriteQuestion write;
  write.files = {{"dtf-j@ps-0.service", "[Unit]\nDescription=\"a\"\n"}};
  write.logs = {"ps-0.1.log"};
  write.tasks[{JobKind::kPs, 0}].address = {"two", 2221};
  write.keeps_snapshots = true;
  write.sent["/root/c.yaml"] = "job: j\n";
  const WriteQuestion written = sent(write);
  ASSERT_EQ(written.files.size(), 1u);
  EXPECT_EQ(written.files[0].text, write.files[0].text);
  EXPECT_EQ(written.tasks.at({JobKind::kPs, 0}).address.str(), "two:2221");
  EXPECT_TRUE(written.keeps_snapshots);
  EXPECT_EQ(written.sent, write.sent);
  EXPECT_THAT(sent(ControlQuestion{{"stop", "--no-block"}}).words,
              ElementsAre("stop", "--no-block"));
  EXPECT_EQ(sent(StatesQuestion{true, "m", {{"logs/ps-0.1.log", 7}}}).kept.at("logs/ps-0.1.log"),
            7u);
  EXPECT_FALSE(sent(LockQuestion{false}).take);
  EXPECT_FALSE(sent(RemoveQuestion{false, false}).only_ended);
  EXPECT_TRUE(sent(RemoveQuestion{false, true}).drops_snapshots);
  EXPECT_EQ(sent(OwnQuestion{"/run/logs"}).logs, "/run/logs");
}

TEST(UnitQuestions, WhatMakesNoSenseIsRefused) {
  EXPECT_THAT(wrong("{\"ask\":\"reboot\"}"), HasSubstr("unknown question 'reboot'"));
  EXPECT_THAT(wrong("[]"), HasSubstr("malformed message"));
  EXPECT_THAT(wrong("{\"ask\":\"control\",\"words\":[]}"), HasSubstr("without a verb"));
  EXPECT_THAT(wrong("{\"ask\":\"own\",\"logs\":\"../x\"}"), HasSubstr("not an absolute path"));
  EXPECT_THROW(questionJson(ControlQuestion{{"\xff"}}), Error);
}

TEST(UnitQuestions, AnswersSayHowUnitsAreAndFitTheirFrame) {
  UnitAnswer answer;
  answer.locked = true;
  answer.has_more = true;
  UnitState failed;
  failed.name = "dtf-j@ps-0.service";
  failed.active = "failed";
  failed.result = "signal";
  failed.exit.signal = 9;
  failed.restarts = 3;
  failed.ended_usec = 77;
  failed.status = "failed: " + std::string(1000, 'x');
  answer.states.assign(100, failed);
  const std::string text = answerJson(answer);
  const UnitAnswer read = parseAnswer(text);
  EXPECT_TRUE(read.locked && read.has_more && !read.error && !read.facts);
  ASSERT_EQ(read.states.size(), 100u);
  EXPECT_EQ(read.states[0].status, failed.status) << "why it failed is whole";
  EXPECT_EQ(read.states[0].exit.signal, 9);
  EXPECT_EQ(read.states[0].ended_usec, 77u);
  EXPECT_TRUE(read.states[99].hasFailed());
}

TEST(UnitQuestions, AnAnswerOfAThousandUnitsFitsItsFrame) {
  for (const char said : {'x', '"', '\\', '\x01', '\xff'}) {
    UnitState failed;
    failed.name = "dtf-" + std::string(64, 'j') + "@worker-1000.service";
    failed.file = "/run/user/1000/systemd/user/" + failed.name;
    failed.active = "failed";
    failed.result = "start-limit-hit";
    failed.status = std::string(4000, said);
    UnitAnswer answer;
    answer.states.assign(1024, failed);
    EXPECT_LT(reportJson(UnitsReport{7, answerJson(answer)}).size(), kReportBytesMax) << said;
  }
}

TEST(UnitQuestions, AnErrorKeepsItsCodeAndFactsTheirPaths) {
  UnitAnswer answer;
  answer.error.emplace(ErrorCode::kPermission, "no");
  HostFacts& facts = answer.facts.emplace();
  facts.unit_folder = "/run/systemd/system";
  facts.work_folder = "/root";
  facts.sent_folder = "/run/dtf-units/dtf-j@ps-0.service";
  facts.env = {{"HOME", "/root"}};
  facts.attempt = 4;
  facts.systemctl = {"systemctl", "\x1b[2J"};
  const UnitAnswer read = parseAnswer(answerJson(answer));
  ASSERT_TRUE(read.error && read.facts);
  EXPECT_EQ(read.error->code(), ErrorCode::kPermission);
  EXPECT_EQ(read.facts->attempt, 4);
  EXPECT_EQ(read.facts->sent_folder, "/run/dtf-units/dtf-j@ps-0.service");
  EXPECT_TRUE(read.facts->psd.empty());
  EXPECT_THAT(read.facts->systemctl, ElementsAre("systemctl", "?[2J")) << "a terminal may get it";
  facts.unit_folder = "here";
  EXPECT_THROW(parseAnswer(answerJson(answer)), Error);
}

}  // namespace
}  // namespace dtf::launcher
