#include "common/data/table_preparation.h"

#include <gtest/gtest.h>

#include "common/base/error.h"
#include "common/data/learn_table.h"
#include "common/data/open_dataset.h"
#include "common/data/read_signature.h"
#include "tests/unit/data/idx_files.h"

namespace dtf::data {
namespace {

using cluster::DatasetSpec;
using Fill = cluster::NumericColumn::Fill;

class TablePreparation : public ::testing::Test {
 protected:
  DatasetSpec tableOf(const std::string& name, const std::string& text) {
    DatasetSpec spec;
    spec.format = DatasetSpec::Format::kCsv;
    spec.files = {folder_.write(name, text)};
    spec.files_marks = {{"job.yaml", 5, 9}};
    spec.csv.label = "kind";
    spec.csv.learns_classes = true;
    spec.csv.numeric = {{"*", Fill::kMean, 0, true, false, true}};
    spec.csv.categorical = {{"place", {"city"}, 0, {}, 1, {}, 10, 1}};
    return spec;
  }
  static std::vector<float> features(const DatasetSpec& spec) {
    const auto data = openDataset(spec, 1, true);
    const std::span<const float> all = data->features().as<float>();
    return {all.begin(), all.end()};
  }

  TemporaryFolder folder_;
  const DatasetSpec trained_ =
      tableOf("t.csv", "a,city,b,kind\n1,rome,5,x\n,oslo,7,y\n3,rome,9,x\n");
};

TEST_F(TablePreparation, IsPartOfTheSignature) {
  const DataSignature signature = readSignature(trained_);
  const std::string text = encodeSignature(signature);
  EXPECT_NE(
      text.find(
          R"("preparation":[{"op":"fill","columns":["a","b"],"with":["mean","mean"],"values":)"
          R"([2.0,7.0]},{"op":"missing_indicator","columns":["a","b"]},{"op":"standardize",)"
          R"("columns":["a","b"],"mean":[2.0,7.0],"stddev":[1.0,1.63299)"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find(R"({"op":"vocabulary","words":["rome","oslo"],"num_oov_buckets":1,)"
                      R"("from":"data","max_size":10,"min_count":1})"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(R"({"op":"vocabulary","words":["x","y"],"from":"data"})"), std::string::npos)
      << text;
  EXPECT_EQ(classWords(signature), (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(decodeSignature(text, "text"), signature);
}

TEST_F(TablePreparation, SeveralWordsOfAFieldAreOfTheModel) {
  DatasetSpec bag = trained_;
  bag.csv.categorical[0].split = '|';
  bag.csv.categorical[0].max_words = 4;
  const DataSignature model = readSignature(bag);
  EXPECT_NE(
      encodeSignature(model).find(R"("max_size":10,"min_count":1,"split":"|","max_words":4})"),
      std::string::npos)
      << encodeSignature(model);
  EXPECT_EQ(preparationDifference(bag, model), "");
  EXPECT_NE(preparationDifference(trained_, model).find("split=|"), std::string::npos)
      << preparationDifference(trained_, model);
}

TEST_F(TablePreparation, OtherDataAreReadWithTheNumbersOfTheModel) {
  const DataSignature model = readSignature(trained_);
  const DatasetSpec other = tableOf("o.csv", "b,kind,a,city\n7,y,4,oslo\n,x,,paris\n");
  const DatasetSpec read = readAsTrained(other, model);
  EXPECT_EQ(features(read), (std::vector<float>{2, 0, 0, 0, 0, 0, 1, 1}));
  const auto data = openDataset(read, 1, true);
  EXPECT_EQ(data->categories()[0].as<int32_t>()[0], 1) << "oslo";
  EXPECT_EQ(data->categories()[0].as<int32_t>()[1], 2) << "a word that the model lacks";
  EXPECT_EQ(data->labels().as<int32_t>()[0], 1) << "y";
}

TEST_F(TablePreparation, AResumedJobTakesItsNumbersAlthoughTheTableHasGrown) {
  const DataSignature model = readSignature(trained_);
  const DatasetSpec grown =
      tableOf("t.csv", "a,city,b,kind\n1,rome,5,x\n,oslo,7,y\n3,rome,9,x\n100,york,900,x\n");
  EXPECT_EQ(readSignature(withLearnedOf(model, grown)), model);
  EXPECT_NE(readSignature(grown), model);
}

TEST_F(TablePreparation, AnotherPreparationIsRefusedWithBothSides) {
  const DataSignature model = readSignature(trained_);
  DatasetSpec other = trained_;
  other.csv.numeric[0].fill = Fill::kMedian;
  EXPECT_FALSE(withLearnedOf(model, other).csv.learned);
  EXPECT_NE(preparationDifference(other, model).find("was trained with the preparation fill"),
            std::string::npos);
  EXPECT_EQ(preparationDifference(trained_, model), "");
  DatasetSpec words = trained_;
  words.csv.categorical[0].learned_max_size = 11;
  EXPECT_FALSE(withLearnedOf(model, words).csv.learned);
  DatasetSpec none = trained_;
  none.csv.numeric.clear();
  EXPECT_NE(preparationDifference(none, model), "");
}

TEST_F(TablePreparation, NumbersThatTheFileGivesAreAPreparationToo) {
  DatasetSpec spec = tableOf("n.csv", "a,b,kind\n1,,0\n2,3,1\n");
  spec.csv.learns_classes = false;
  spec.csv.categorical.clear();
  spec.csv.numeric = {{"b", Fill::kValue, -1}};
  const DataSignature model = readSignature(spec);
  EXPECT_EQ(preparedFeatures(model).at(1).fill, -1);
  EXPECT_EQ(features(readAsTrained(spec, model)), (std::vector<float>{1, -1, 2, 3}));
  DatasetSpec other = spec;
  other.csv.numeric[0].fill_value = 0;
  EXPECT_NE(preparationDifference(other, model), "");
}

TEST_F(TablePreparation, RecordsToPredictFromMayLackValues) {
  const DataSignature model = readSignature(trained_);
  const UnlabelledExamples rows =
      readFeatures(folder_.write("p.csv", "city,b,a\nrome,,3\noslo,7,NA\n"), trained_, {4}, model);
  const std::span<const float> all = rows.features.as<float>();
  EXPECT_EQ((std::vector<float>{all.begin(), all.end()}),
            (std::vector<float>{1, 0, 0, 1, 0, 0, 1, 0}));
}

TEST_F(TablePreparation, ASignatureThatContradictsItselfIsRefused) {
  DataSignature model = readSignature(trained_);
  for (Json& step : model.inputs[0].preparation)
    if (step.stringAt("op") == "standardize") step["stddev"] = Json::array({0.0, 1.0});
  EXPECT_THROW(preparedFeatures(model), Error);
  model = readSignature(trained_);
  model.inputs[0].preparation[0]["values"] = Json::array({1.0});
  EXPECT_THROW(preparedFeatures(model), Error);
  model = readSignature(trained_);
  model.inputs[0].preparation[0]["columns"] = Json::array({"a", "z"});
  EXPECT_THROW(preparedFeatures(model), Error);
}

}  // namespace
}  // namespace dtf::data
