#include "launcher/init/written_job.h"

#include <gmock/gmock.h>

#include "tests/unit/launcher/init/init_fixture.h"

namespace dtf::launcher {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class WrittenJob : public InitTest {
 protected:
  JobPlace place() const { return {"tried", path("tried.yaml")}; }
  JobFile madeOf(const DatasetProfile& profile) const {
    return checkedJob(place(), [&](bool divides) { return describe(profile, place(), divides); });
  }
  // `records` behind a header, so many times.
  JobFile madeOfTable(const std::string& header, const std::string& records, int times) {
    std::string text = header;
    for (int i = 0; i < times; ++i) text += records;
    folder_.write("t.csv", text);
    return madeOf(profileData(path("t.csv"), std::nullopt, std::nullopt));
  }
};

TEST_F(WrittenJob, AJobThatCheckAcceptsStaysAsItIs) {
  const std::string text = madeOfTable("a,kind\n", "1,x\n2,y\n3,x\n5,y\n4,\n", 20).text;
  EXPECT_THAT(text, AllOf(HasSubstr("eval_split: 0.2"), HasSubstr("max_bad_records: 40")));
  EXPECT_EQ(mistakesIn(text, place()), "");
}

TEST_F(WrittenJob, MistakesOfTheFileOfTheModelAndOfTheDataAreFound) {
  const std::string text = madeOfTable("a,kind\n", "1,ash\n2,oak\n3,ash\n5,oak\n", 20).text;
  const auto with = [&text](const std::string& from, const std::string& to) {
    std::string changed = text;
    const size_t at = changed.find(from);
    EXPECT_NE(at, changed.npos) << from;
    return at == changed.npos ? text : changed.replace(at, from.size(), to);
  };
  EXPECT_THAT(mistakesIn(with("  optimizer:", "  optimiser:"), place()), HasSubstr("tried.yaml:"));
  EXPECT_THAT(mistakesIn(with("input: {shape: [1]}", "input: {shape: [3]}"), place()),
              HasSubstr("the model reads examples of shape [3]"));
  EXPECT_THAT(mistakesIn(with("class_names: [ash, oak]", "class_names: [ash, elm]"), place()),
              HasSubstr("'oak' in column 'kind' is none of the class_names"));
}

TEST_F(WrittenJob, ASmallerNumberOfBadRecordsThanThereAreIsAMistake) {
  std::string text = madeOfTable("a,kind\n", "1,x\n2,y\n3,x\n5,y\n4,\n", 20).text;
  const std::string key = "max_bad_records: ";
  const size_t at = text.find(key + "40");
  ASSERT_NE(at, text.npos) << text;
  text.replace(at, key.size() + 2, key + "19");
  EXPECT_THAT(mistakesIn(text, place()), HasSubstr("and max_bad_records is 19"));
}

TEST_F(WrittenJob, RecordsThatAStrayQuoteJoinsAreLeftOut) {
  std::string records, joined = "4,\"a note,x\n6,another\",y\n";
  for (int i = 0; i < 80; ++i)
    records +=
        std::to_string(i * i) + ",note " + std::to_string(i) + (i % 2 == 0 ? ",x\n" : ",y\n");
  ::testing::internal::CaptureStderr();
  const JobFile job = madeOfTable("a,note,kind\n", records + joined, 1);
  EXPECT_EQ(mistakesIn(job.text, place()), "");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_THAT(job.text, HasSubstr("max_bad_records: 11"));
}

TEST_F(WrittenJob, ExamplesThatCannotBeDividedAreAllTrainedOn) {
  const JobFile job = madeOfTable("a,kind\n", "1,x\n2,y\n", 20);
  EXPECT_THAT(job.text, ::testing::Not(HasSubstr("eval_split")));
  EXPECT_THAT(job.text, HasSubstr("#   all examples are trained on: no class has two that differ"));
  EXPECT_EQ(mistakesIn(job.text, place()), "");
}

TEST_F(WrittenJob, AJobThatCheckRefusesIsAnInternalErrorAndAReport) {
  const auto broken = [](bool) { return JobFile{"job: x\ntrain: {modle: {}}\n", {}, {}}; };
  EXPECT_THAT(
      mistakeOf(ErrorCode::kInternal, [&] { checkedJob(place(), broken); }),
      AllOf(HasSubstr("internal error: `dtf-launch check` refuses the job that init has made, so "),
            HasSubstr("/tried.yaml is not written. Please report this"),
            HasSubstr("did you mean 'model'?")));
}

TEST_F(WrittenJob, AFileThatWouldBeTooLongIsRefused) {
  std::string header, record_x, record_y;
  for (int i = 0; i < 3000; ++i) {
    header += "a long name of a column, which " + std::string(500, 'x') + std::to_string(i) + ";";
    record_x += i % 2 == 0 ? "1;" : "2;";
    record_y += i % 2 == 0 ? "3;" : "5;";
  }
  // The empty column is left out, so the others are to be named.
  const std::string records = record_x + ";x\n" + record_y + ";y\n";
  EXPECT_THAT(
      mistakeOf(ErrorCode::kBadData, [&] { madeOfTable(header + "gap;kind\n", records, 6); }),
      HasSubstr("a job's file has 1048576 at most"));
}

}  // namespace
}  // namespace dtf::launcher
