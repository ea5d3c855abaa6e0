#include "launcher/init/table_job.h"

#include <gmock/gmock.h>

#include "tests/unit/launcher/init/init_fixture.h"

namespace dtf::launcher {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class TableJob : public InitTest {
 protected:
  cluster::JobSpec jobOfText(const std::string& text,
                             const std::optional<std::string>& target = std::nullopt) {
    folder_.write("t.csv", text);
    return jobOf("t.csv", target);
  }
};

std::string times(const std::string& records, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += records;
  return text;
}

TEST_F(TableJob, NumbersAndWordsBecomeOneOfThreeClasses) {
  const cluster::JobSpec job =
      jobOfText("row,beach,size,kind\n1,north,1.5,a\n2,south,2.5,b\n3,north,7,c\n" +
                times("9,south,1,a\n3,north,2,b\n8,south,6,c\n", 20));
  const cluster::TrainSpec& train = *job.train;
  EXPECT_EQ(job.job, "tried");
  EXPECT_EQ(train.model.input_shape, (std::vector<int64_t>{2}));
  EXPECT_EQ(train.model.loss.kind, model::Loss::kSoftmaxCrossEntropy);
  EXPECT_EQ(model::outputOf(train.model).units, 3);
  const cluster::CsvSpec& csv = train.data.train.csv;
  EXPECT_EQ(csv.label, "kind");
  EXPECT_EQ(csv.class_names, (std::vector<std::string>{"a", "b", "c"}));
  ASSERT_EQ(csv.categorical.size(), 1u);
  EXPECT_EQ(csv.categorical[0].vocabulary_list, (std::vector<std::string>{"north", "south"}));
  EXPECT_EQ(train.data.train.files[0], path("t.csv"));
  EXPECT_TRUE(train.data.eval && train.data.train.split);
  EXPECT_EQ(train.checkpoint.value().keep_best, "accuracy");
  EXPECT_GT(train.epochs, 0u);
}

TEST_F(TableJob, TwoClassesHaveOneUnit) {
  const cluster::JobSpec job = jobOfText("a,win\n" + times("1.5,no\n2.5,yes\n7,no\n", 10));
  EXPECT_EQ(model::outputOf(job.train->model).units, 1);
  EXPECT_EQ(job.train->model.loss.kind, model::Loss::kSigmoidCrossEntropy);
  EXPECT_EQ(job.train->data.train.csv.class_names, (std::vector<std::string>{"no", "yes"}));
}

TEST_F(TableJob, ANumberIsLearntInItsOwnScale) {
  std::string text = "a;b;price\n";
  for (int i = 0; i < 50; ++i)
    text += std::to_string(i % 7) + ";" + std::to_string(i * i % 11) + ";" +
            std::to_string(1000 * i + 100'000.5) + "\n";
  const cluster::JobSpec job = jobOfText(text);
  EXPECT_EQ(job.train->model.loss.kind, model::Loss::kMse);
  EXPECT_EQ(job.train->data.train.csv.targets, (std::vector<std::string>{"price"}));
  EXPECT_EQ(job.train->data.train.csv.delimiter, ';');
  EXPECT_EQ(job.train->model.layers.back().type, "normalization");
}

TEST_F(TableJob, WordsAloneAreATableWithoutNumbers) {
  const cluster::JobSpec job = jobOfText("a,b,kind\n" + times("x,u,1\ny,v,0\nx,v,1\ny,u,0\n", 10));
  EXPECT_TRUE(job.train->data.train.csv.no_features);
  EXPECT_EQ(job.train->model.input_shape, (std::vector<int64_t>{1}));
}

TEST_F(TableJob, NumbersAreStandardizedAndGapsFilled) {
  const cluster::JobSpec job =
      jobOfText("a,b,c,kind\n" + times("1,200,u,x\n3,500,v,y\n", 20) + "NA,700,u,x\n4,,v,y\n");
  const cluster::TrainSpec& train = *job.train;
  EXPECT_EQ(train.model.input_shape, (std::vector<int64_t>{4})) << "2, and a flag for each";
  const std::vector<cluster::NumericColumn>& numeric = train.data.train.csv.numeric;
  ASSERT_EQ(numeric.size(), 3u);
  EXPECT_EQ(numeric[0].column, "*");
  EXPECT_TRUE(numeric[0].standardize);
  for (const size_t column : {1, 2}) {
    EXPECT_EQ(numeric[column].fill, cluster::NumericColumn::Fill::kMedian);
    EXPECT_TRUE(numeric[column].missing_indicator && numeric[column].standardize);
  }
  EXPECT_EQ(train.data.train.csv.max_bad_records, 0);
  EXPECT_THAT(file_.text, HasSubstr("a     numbers, 1 missing: filled with the median"));
  EXPECT_THAT(file_.text, Not(HasSubstr("normalization")));
}

TEST_F(TableJob, SomeHundredWordsAreLearnedFromTheData) {
  std::string text = "user,n,click\n";
  for (int i = 0; i < 900; ++i)
    text += "u" + std::to_string(i * 7 % 300) + "," + std::to_string(i % 13) + "," +
            (i % 3 == 0 ? "1\n" : "0\n");
  const cluster::JobSpec job = jobOfText(text);
  const cluster::CategoricalColumns user = job.train->data.train.csv.categorical.at(0);
  EXPECT_EQ(user.learned_max_size, 300);
  EXPECT_EQ(user.learned_min_count, 2);
  EXPECT_EQ(user.num_oov_buckets, 1);
  EXPECT_TRUE(user.vocabulary_list.empty());
}

TEST_F(TableJob, ManyWordsAreHashed) {
  std::string text = "user_id,n,click\n";
  for (int i = 0; i < 900; ++i)
    text += std::to_string(i * 7 % 300) + "," + std::to_string(i % 13) + "," +
            (i % 3 == 0 ? "1\n" : "0\n");
  const cluster::CategoricalColumns user = jobOfText(text).train->data.train.csv.categorical.at(0);
  EXPECT_EQ(user.hash_bucket_size, 1000);
  EXPECT_TRUE(user.vocabulary_list.empty());
}

TEST_F(TableJob, RecordsThatLackAValueMayBeLeftOut) {
  const cluster::JobSpec job =
      jobOfText("a,b,kind\n" + times("1,2,x\n3,5,y\n", 20) + "?,7,\n4,1,\n");
  EXPECT_EQ(job.train->data.train.csv.max_bad_records, 12) << "2 now, and room for 10";
  EXPECT_THAT(file_.text, HasSubstr("# 2 records lack a value, and are left out."));
  const cluster::JobSpec whole = jobOfText("a,b,kind\n" + times("1,2,x\n3,5,y\n", 20));
  EXPECT_EQ(whole.train->data.train.csv.max_bad_records, 0);
}

TEST_F(TableJob, AClassNamedNoneIsLearntAndGapsAreLeftOut) {
  const cluster::JobSpec job =
      jobOfText("a,b,state\n" + times("1,2,rust\n3,5,none\n4,1,\n", 20) + "1,7,NA\n");
  EXPECT_EQ(job.train->data.train.csv.class_names, (std::vector<std::string>{"none", "rust"}));
  EXPECT_EQ(job.train->data.train.csv.max_bad_records, 42);
  EXPECT_THAT(file_.text, HasSubstr("# A class: 'none' (20 records).\n"));
  EXPECT_THAT(file_.text, HasSubstr("# A gap; its records are left out: 'NA' (1 record).\n"));
}

TEST_F(TableJob, DatesAreLeftOutWhereThereIsSomethingElse) {
  const cluster::JobSpec job =
      jobOfText("day,n,kind\n" + times("2024-03-30,1,x\n2024-03-31,2,y\n", 20));
  EXPECT_TRUE(job.train->data.train.csv.categorical.empty());
  EXPECT_THAT(file_.text, HasSubstr("#     day   left out: dates, which dtf has no reader for"));
  const cluster::JobSpec alone =
      jobOfText("day,same,kind\n" + times("30.3.2024,7,x\n31.3.2024,7,y\n", 20));
  ASSERT_EQ(alone.train->data.train.csv.categorical.size(), 1u);
  EXPECT_THAT(file_.text, HasSubstr("#     day   2 dates, read as words"));
}

// Names, words and comments that YAML would misread, and names that collide with layers.
TEST_F(TableJob, ForeignTextIsHarmless) {
  const cluster::JobSpec job = jobOfText(
      "hidden,output,yes,\"a: #\"\"b\",\"new\nline\",\xf0\x9f\x98\x80,kind\n" +
      times("x,u,1,1,1.5,7,\"no\"\ny,v,2,3,2.5,9,\"- [a]: #1\"\ny,u,3,5,1,8,\"{\"\n", 12));
  const cluster::CsvSpec& csv = job.train->data.train.csv;
  EXPECT_EQ(csv.class_names, (std::vector<std::string>{"- [a]: #1", "no", "{"}));
  EXPECT_EQ(csv.features, (std::vector<std::string>{"yes", "a: #\"b", "5", "\xf0\x9f\x98\x80"}));
  EXPECT_EQ(csv.categorical.at(0).name, "hidden_3");
  EXPECT_EQ(csv.categorical.at(1).name, "output_2");
  EXPECT_THAT(file_.text, Not(HasSubstr("new\nline")));
}

TEST_F(TableJob, TheFileSaysWhatWasFound) {
  jobOfText("row,size,note,kind\n1,1.5,aa,x\n2,2.5,bb,y\n3,,cc,x\n4,7,dd,y\n5,8,ee,\n");
  EXPECT_THAT(file_.text,
              HasSubstr("#   t.csv: 5 records of 4 columns, divided by ',', with a header\n"));
  EXPECT_THAT(file_.text, HasSubstr("row   left out: it counts the records"));
  EXPECT_THAT(file_.text, HasSubstr("size  numbers, 1 missing"));
  EXPECT_THAT(file_.text, HasSubstr("note  left out: nearly every record has a text of its own"));
  EXPECT_THAT(file_.text, HasSubstr("kind  learnt: 2 classes: x 2, y 2"));
  EXPECT_THAT(file_.text, HasSubstr("'kind' is learnt, as --target names no other column"));
  EXPECT_THAT(file_.text, HasSubstr("1 of 5 records are left out: they lack a value"));
  EXPECT_THAT(file_.text, HasSubstr("# cluster: {ps: "));
}

TEST_F(TableJob, HundredsOfNumbersAreStandardized) {
  std::string text;
  for (int column = 0; column < 300; ++column) text += "c" + std::to_string(column) + ",";
  text += "kind\n";
  for (int row = 0; row < 30; ++row) {
    for (int column = 0; column < 300; ++column)
      text += std::to_string((row * 7 + column * 3) % 17) + ",";
    text += row % 2 == 0 ? "x\n" : "y\n";
  }
  const cluster::JobSpec job = jobOfText(text);
  EXPECT_EQ(job.train->data.train.csv.numeric.at(0).column, "*");
  EXPECT_EQ(job.train->model.layers.front().type, "dense");
  EXPECT_EQ(job.train->model.input_shape, (std::vector<int64_t>{300}));
  EXPECT_TRUE(job.train->data.train.csv.features.empty()) << "all others";
  EXPECT_THAT(file_.text, HasSubstr("and 260 more columns of numbers"));
}

TEST_F(TableJob, HundredsOfColumnsOfWordsAreAsManyAsAModelHas) {
  std::string text, record_x, record_y;
  for (int column = 0; column < 300; ++column) {
    text += "c" + std::to_string(column) + ",";
    record_x += column % 2 == 0 ? "a," : "b,";
    record_y += column % 3 == 0 ? "d," : "c,";
  }
  const cluster::JobSpec job =
      jobOfText(text + "kind\n" + times(record_x + "x\n" + record_y + "y\n", 12));
  EXPECT_EQ(job.train->data.train.csv.categorical.size(), 256u);
  EXPECT_THAT(file_.text, HasSubstr("and 4 more are left out"));
}

}  // namespace
}  // namespace dtf::launcher
