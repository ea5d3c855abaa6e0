#include "common/data/eval_split.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "common/base/error.h"
#include "common/data/csv_reader.h"
#include "common/data/open_dataset.h"
#include "common/data/png_encoder.h"
#include "tests/unit/data/idx_files.h"
#include "tests/unit/data/part_of.h"

namespace dtf::data {
namespace {

using Examples = std::vector<int64_t>;

Dataset tableOf(const std::vector<float>& features, const std::vector<int32_t>& classes) {
  return {partOf<float>(kFeatures, Shape{1}, features), partOf<int32_t>(kLabels, Shape(), classes)};
}

// 1000 different records in 4 classes.
Dataset manyRecords(int first = 0) {
  std::vector<float> features;
  std::vector<int32_t> classes;
  for (int i = first; i < first + 1000; ++i) {
    features.push_back(static_cast<float>(i));
    classes.push_back(i % 4);
  }
  return tableOf(features, classes);
}

std::set<float> featuresOf(const Dataset& dataset) {
  const auto features = dataset.features().as<float>();
  return {features.begin(), features.end()};
}

TEST(EvalSplit, EveryExampleIsOnOneSide) {
  const Dataset all = manyRecords();
  Examples both = examplesOfSide(all, {0.2, false});
  const Examples evaluated = examplesOfSide(all, {0.2, true});
  EXPECT_TRUE(std::is_sorted(both.begin(), both.end()));
  EXPECT_NEAR(static_cast<double>(evaluated.size()), 200, 50);
  both.insert(both.end(), evaluated.begin(), evaluated.end());
  std::sort(both.begin(), both.end());
  Examples expected(1000);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(both, expected);
}

TEST(EvalSplit, ALargerShareHasTheSmallerOne) {
  const Dataset all = manyRecords();
  const Examples some = examplesOfSide(all, {0.1, true}), more = examplesOfSide(all, {0.4, true});
  EXPECT_GT(more.size(), 2 * some.size());
  EXPECT_TRUE(std::includes(more.begin(), more.end(), some.begin(), some.end()));
}

TEST(EvalSplit, AnExampleStaysOnItsSideWhenOthersCome) {
  const std::set<float> before = featuresOf(sideOf(manyRecords(0), {0.2, true}));
  const std::set<float> after = featuresOf(sideOf(manyRecords(500), {0.2, true}));
  size_t seen = 0;
  for (int i = 500; i < 1000; ++i) {
    EXPECT_EQ(before.contains(static_cast<float>(i)), after.contains(static_cast<float>(i))) << i;
    seen += before.contains(static_cast<float>(i));
  }
  EXPECT_GT(seen, 50u);
}

TEST(EvalSplit, TheOrderOfTheExamplesChangesNothing) {
  std::vector<float> features;
  std::vector<int32_t> classes;
  for (int i = 999; i >= 0; --i) {
    features.push_back(static_cast<float>(i));
    classes.push_back(i % 4);
  }
  EXPECT_EQ(featuresOf(sideOf(tableOf(features, classes), {0.2, true})),
            featuresOf(sideOf(manyRecords(), {0.2, true})));
}

TEST(EvalSplit, EqualExamplesAreOnOneSide) {
  std::vector<float> features(100);
  std::vector<int32_t> classes(100);
  for (size_t i = 0; i < features.size(); ++i) features[i] = static_cast<float>(i % 10);
  const Dataset all = tableOf(features, classes);
  const std::set<float> trained = featuresOf(sideOf(all, {0.3, false}));
  const std::set<float> evaluated = featuresOf(sideOf(all, {0.3, true}));
  EXPECT_EQ(trained.size() + evaluated.size(), 10u);
}

// For any checksums: among 200 classes of two examples, some have both below any share.
TEST(EvalSplit, EachClassKeepsAnExampleToTrainOn) {
  std::vector<float> features(400);
  std::iota(features.begin(), features.end(), 0.f);
  std::vector<int32_t> classes;
  for (int i = 0; i < 400; ++i) classes.push_back(i / 2);
  const Dataset trained = sideOf(tableOf(features, classes), {0.9, false});
  const auto labels = trained.labels().as<int32_t>();
  EXPECT_EQ(std::set<int32_t>(labels.begin(), labels.end()).size(), 200u);
}

TEST(EvalSplit, OneExampleIsEvaluatedHoweverFewThereAre) {
  const Dataset few = tableOf({1, 2, 3}, {0, 0, 1});
  EXPECT_EQ(examplesOfSide(few, {0.000001, true}).size(), 1u);
  EXPECT_EQ(examplesOfSide(few, {0.000001, false}).size(), 2u);
  const Dataset none = tableOf({1, 2}, {0, 1});
  try {
    examplesOfSide(none, {0.5, true});
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadData);
    EXPECT_NE(error.message().find("data.npy: eval_split leaves no example"), std::string::npos);
  }
}

TEST(EvalSplit, CategoriesStayBesideTheirExamplesAndRecordsLeftOutWithTheTraining) {
  std::vector<float> features(50);
  std::iota(features.begin(), features.end(), 0.f);
  std::vector<int32_t> classes(50), words(50);
  std::iota(words.begin(), words.end(), 0);
  std::vector<Part> categories;
  categories.push_back(partOf<int32_t>("word", Shape{1}, words));
  const Dataset all(partOf<float>(kFeatures, Shape{1}, features),
                    partOf<int32_t>(kLabels, Shape(), classes), std::move(categories), {{7, "bad"}},
                    {{"word", 2, "gold", "t.csv:3:1"}});
  for (const bool evaluates : {false, true}) {
    const Dataset side = sideOf(all, {0.5, evaluates});
    ASSERT_GT(side.size(), 10);
    for (int64_t i = 0; i < side.size(); ++i) {
      const auto at = static_cast<size_t>(i);
      EXPECT_EQ(side.categories()[0].as<int32_t>()[at],
                static_cast<int32_t>(side.features().as<float>()[at]));
    }
    EXPECT_EQ(side.leftOut().size(), evaluates ? 0u : 1u);
    EXPECT_EQ(countOf(side.otherWords()), 2) << "an evaluation may read this side alone";
    EXPECT_EQ(side.recordsRead(), 51) << "1 of all 51 was left out";
  }
}

// Opens both sides of a table in the way of a job's training and evaluation.
TEST(EvalSplit, BothSidesOfATableAreItsRecords) {
  const TemporaryFolder folder;
  std::string text = "a,kind\n";
  for (int i = 0; i < 60; ++i) text += std::to_string(i) + (i % 2 == 0 ? ",x\n" : ",y\n");
  cluster::DatasetSpec spec;
  spec.format = cluster::DatasetSpec::Format::kCsv;
  spec.files = {folder.write("t.csv", text)};
  spec.files_marks = {{"job.yaml", 3, 4}};
  spec.csv.label = "kind";
  spec.csv.class_names = {"x", "y"};
  spec.split = cluster::EvalSplit{0.25, false};
  const auto train = openDataset(spec, 1, false);
  spec.split->evaluates = true;
  const auto eval = openDataset(spec, 1, true);
  EXPECT_EQ(train->size() + eval->size(), 60);
  EXPECT_GE(eval->size(), 5);
  std::set<float> all = featuresOf(*train);
  all.merge(featuresOf(*eval));
  EXPECT_EQ(all.size(), 60u);
  EXPECT_EQ(featuresOf(*openDataset(spec, 7, true)), featuresOf(*eval)) << "whatever the seed";
}

TEST(EvalSplit, AnImageThatIsEvaluatedKeepsItsFile) {
  const TemporaryFolder folder;
  for (const char* name : {"a", "b"}) std::filesystem::create_directory(folder.path() / name);
  for (int i = 0; i < 20; ++i) {
    const std::vector<uint8_t> pixels(16, static_cast<uint8_t>(10 * i));
    folder.write((i % 2 == 0 ? "a/" : "b/") + std::to_string(100 + i) + ".png",
                 encodePng(4, 4, 1, pixels));
  }
  folder.write("a/000.png", "no image");
  cluster::ImagesSpec spec;
  spec.folder.path = folder.path();
  spec.max_bad_records = 1;
  spec.height = spec.width = 4;
  spec.channels = 1;
  const ImageTable evaluated = evaluatedImages(readImageFolder(spec), 0.4);
  ASSERT_EQ(evaluated.files.size(), static_cast<size_t>(evaluated.dataset.size()));
  ASSERT_GT(evaluated.files.size(), 1u);
  for (size_t i = 0; i < evaluated.files.size(); ++i)
    EXPECT_EQ(evaluated.dataset.features().of(static_cast<int64_t>(i))[0],
              10 * (std::stoi(evaluated.files[i].stem().string()) - 100));
}

// A table with the column "at" to split by.
Dataset splitTable(const std::string& text, cluster::SplitBy by) {
  const TemporaryFolder folder;
  cluster::CsvSpec csv;
  csv.label = "kind";
  csv.split_by = by;
  csv.split_column = "at";
  const std::filesystem::path file = folder.write("t.csv", text);
  return readCsv(std::span(&file, 1), csv);
}

TEST(EvalSplit, ByGroupAllExamplesOfAGroupAreOnOneSide) {
  std::string text = "at,a,kind\n";
  for (int i = 0; i < 400; ++i) text += fmt::format("user{},{},{}\n", i % 40, i, i % 3);
  const Dataset all = splitTable(text, cluster::SplitBy::kGroup);
  EXPECT_EQ(all.features().spec().shape, Shape{1}) << "the column is no feature";
  const auto groups = [&](bool evaluates) {
    std::set<int64_t> found;
    for (const int64_t i : examplesOfSide(all, {0.3, evaluates, cluster::SplitBy::kGroup}))
      found.insert(i % 40);
    return found;
  };
  const std::set<int64_t> trained = groups(false), evaluated = groups(true);
  EXPECT_EQ(trained.size() + evaluated.size(), 40u);
  EXPECT_GT(evaluated.size(), 4u);
}

TEST(EvalSplit, ByTimeTheLastExamplesAreEvaluated) {
  const Dataset all = splitTable(
      "a,at,kind\n1,2024-01-03,0\n2,2024-01-01,1\n3,2024-01-05,0\n4,2024-01-02,0\n5,2024-01-05,1\n",
      cluster::SplitBy::kTime);
  const auto side = [&](double fraction, bool evaluates) {
    return examplesOfSide(all, {fraction, evaluates, cluster::SplitBy::kTime});
  };
  EXPECT_EQ(side(0.4, true), (std::vector<int64_t>{2, 4}));
  EXPECT_EQ(side(0.4, false), (std::vector<int64_t>{0, 1, 3}));
  EXPECT_EQ(side(0.2, true), (std::vector<int64_t>{2, 4})) << "one time is on one side";
  EXPECT_EQ(side(0.99, false), (std::vector<int64_t>{1})) << "the first time is trained on";
  const Dataset one = splitTable("a,at,kind\n1,7,0\n2,7,1\n", cluster::SplitBy::kTime);
  EXPECT_THROW(examplesOfSide(one, {0.5, true, cluster::SplitBy::kTime}), Error);
}

}  // namespace
}  // namespace dtf::data
