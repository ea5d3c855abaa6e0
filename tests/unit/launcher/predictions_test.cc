#include "launcher/predictions.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "common/base/error.h"

namespace dtf::launcher {
namespace {

model::ModelSpec modelWith(model::Loss loss) {
  model::ModelSpec model;
  model.loss.kind = loss;
  return model;
}

const std::vector<float> kOutputs = {0.1F, 0.9F, 0.75F, 0.25F};

TEST(Predictions, AsLinesOfTextCsvAndJson) {
  const model::ModelSpec softmax = modelWith(model::Loss::kSoftmaxCrossEntropy);
  EXPECT_EQ(encodePredictions(PredictionFormat::kText, softmax, kOutputs, 2),
            "# example\tclass\tprobabilities\n0\t1\t0.1 0.9\n1\t0\t0.75 0.25\n");
  EXPECT_EQ(encodePredictions(PredictionFormat::kCsv, softmax, kOutputs, 2),
            "example,class,probability_0,probability_1\n0,1,0.1,0.9\n1,0,0.75,0.25\n");
  EXPECT_EQ(encodePredictions(PredictionFormat::kJson, softmax, kOutputs, 2),
            "{\"event\":\"prediction\",\"example\":0,\"class\":1,\"probabilities\":[0.1,0.9]}\n"
            "{\"event\":\"prediction\",\"example\":1,\"class\":0,\"probabilities\":[0.75,0.25]}\n");
}

TEST(Predictions, FilesAndClassesAreCalledByTheirNames) {
  const model::ModelSpec softmax = modelWith(model::Loss::kSoftmaxCrossEntropy);
  const std::filesystem::path files[] = {"d/a.png", "d/\"b\",\tc.png"};
  const std::string classes[] = {"cat", "dog"};
  const auto encoded = [&](PredictionFormat format, const PredictionNames& names) {
    return encodePredictions(format, softmax, kOutputs, 2, names);
  };
  EXPECT_EQ(encoded(PredictionFormat::kText, {files, classes}),
            "# example\tfile\tclass\tclass_name\tprobabilities\n0\td/a.png\t1\tdog\t0.1 "
            "0.9\n1\td/\"b\",?c.png\t0\tcat\t0.75 0.25\n");
  EXPECT_EQ(encoded(PredictionFormat::kCsv, {files, classes}),
            "example,file,class,class_name,probability_0,probability_1\n0,d/a.png,1,dog,0.1,0.9\n"
            "1,\"d/\"\"b\"\",\tc.png\",0,cat,0.75,0.25\n");
  EXPECT_EQ(
      encoded(PredictionFormat::kJson, {files, classes}),
      "{\"event\":\"prediction\",\"example\":0,\"file\":\"d/a.png\",\"class\":1,\"class_name\":"
      "\"dog\",\"probabilities\":[0.1,0.9]}\n"
      "{\"event\":\"prediction\",\"example\":1,\"file\":\"d/\\\"b\\\",\\tc.png\",\"class\":0,"
      "\"class_name\":\"cat\",\"probabilities\":[0.75,0.25]}\n");
  EXPECT_EQ(encoded(PredictionFormat::kCsv, {files, {}}).substr(0, 24), "example,file,class,proba");
  const std::string one[] = {"cat"};
  EXPECT_NE(encoded(PredictionFormat::kCsv, {{}, one}).find("\n0,1,,0.1,0.9\n1,0,cat,"),
            std::string::npos)
      << "class 1 has no name";
}

TEST(Predictions, OfTargetsNameNoClass) {
  model::ModelSpec model = modelWith(model::Loss::kMse);
  model.labels_dtype = DType::kFloat32;
  EXPECT_EQ(encodePredictions(PredictionFormat::kText, model, kOutputs, 1),
            "# example\toutputs\n0\t0.1\n1\t0.9\n2\t0.75\n3\t0.25\n");
  EXPECT_EQ(encodePredictions(PredictionFormat::kCsv, model, kOutputs, 2),
            "example,output_0,output_1\n0,0.1,0.9\n1,0.75,0.25\n");
  const std::vector<float> spoilt = {std::numeric_limits<float>::quiet_NaN()};
  EXPECT_EQ(encodePredictions(PredictionFormat::kJson, model, spoilt, 1),
            "{\"event\":\"prediction\",\"example\":0,\"outputs\":[null]}\n");
}

TEST(Predictions, AsAnArrayOfNumpy) {
  const std::string bytes =
      encodePredictions(PredictionFormat::kNpy, modelWith(model::Loss::kHinge), kOutputs, 2);
  EXPECT_NE(bytes.find("'shape': (2, 2)"), std::string::npos);
  ASSERT_EQ(bytes.size() % 64, 4 * sizeof(float));
  EXPECT_EQ(std::memcmp(bytes.data() + bytes.size() - 16, kOutputs.data(), 16), 0);
}

TEST(Predictions, TheEndingOfTheFileSaysTheFormat) {
  EXPECT_EQ(predictionFormat(std::nullopt, false), PredictionFormat::kText);
  EXPECT_EQ(predictionFormat(std::nullopt, true), PredictionFormat::kJson);
  EXPECT_EQ(predictionFormat("a/b.csv", true), PredictionFormat::kCsv);
  EXPECT_EQ(predictionFormat("b.npy", false), PredictionFormat::kNpy);
  EXPECT_EQ(predictionFormat("b.txt", false), PredictionFormat::kText);
  EXPECT_EQ(predictionFormat("b.jsonl", false), PredictionFormat::kJson);
  try {
    predictionFormat("b.xls", false);
    ADD_FAILURE() << "must throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_NE(error.message().find("b.xls: the ending says"), std::string::npos) << error.message();
  }
}

}  // namespace
}  // namespace dtf::launcher
