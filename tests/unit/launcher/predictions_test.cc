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
            "example,file,class,class_name,p(cat),p(dog)\n0,d/a.png,1,dog,0.1,0.9\n"
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
  EXPECT_TRUE(encoded(PredictionFormat::kCsv, {{}, one})
                  .starts_with("example,class,class_name,p(cat),probability_1\n"));
}

// One unit of a sigmoid gives the probability of the second class.
TEST(Predictions, OfTwoClassesTheProbabilityIsNamedByItsClass) {
  const model::ModelSpec sigmoid = modelWith(model::Loss::kSigmoidCrossEntropy);
  const std::string classes[] = {"no", "yes"};
  const std::vector<float> outputs = {0.125F, 0.75F};
  const auto encoded = [&](PredictionFormat format, const PredictionNames& names) {
    return encodePredictions(format, sigmoid, outputs, 1, names);
  };
  EXPECT_EQ(encoded(PredictionFormat::kText, {{}, classes}),
            "# example\tclass\tclass_name\tp(yes)\n0\t0\tno\t0.125\n1\t1\tyes\t0.75\n");
  EXPECT_EQ(encoded(PredictionFormat::kCsv, {{}, classes}),
            "example,class,class_name,p(yes)\n0,0,no,0.125\n1,1,yes,0.75\n");
  EXPECT_EQ(encoded(PredictionFormat::kJson, {{}, classes}),
            "{\"event\":\"prediction\",\"example\":0,\"class\":0,\"class_name\":\"no\","
            "\"probability_of\":\"yes\",\"probabilities\":[0.125]}\n"
            "{\"event\":\"prediction\",\"example\":1,\"class\":1,\"class_name\":\"yes\","
            "\"probability_of\":\"yes\",\"probabilities\":[0.75]}\n");
  EXPECT_TRUE(encoded(PredictionFormat::kText, {}).starts_with("# example\tclass\tp(1)\n"));
  model::ModelSpec tags = sigmoid;
  tags.labels_dtype = DType::kFloat32;
  EXPECT_TRUE(encodePredictions(PredictionFormat::kCsv, tags, outputs, 1)
                  .starts_with("example,probability_0\n"))
      << "of a target there are no classes";
}

TEST(Predictions, KeptColumnsAreInEachLineAlsoOfARecordThatCannotBeRead) {
  const model::ModelSpec softmax = modelWith(model::Loss::kSoftmaxCrossEntropy);
  const std::vector<std::string> truths = {"1", "0"};
  const std::vector<data::BadRecord> unread = {{1, "t.csv:3:1: 'x' is no number"}};
  const data::KeptColumns kept = {{"id", "full, name"}, {"7", "Ann\tB", "007", "C, D", "9", ""}};
  const auto encoded = [&](PredictionFormat format) {
    return encodePredictions(format, softmax, kOutputs, 2, {{}, {}, truths, unread, &kept});
  };
  EXPECT_EQ(encoded(PredictionFormat::kText),
            "# example\tid\tfull, name\ttruth\tclass\tprobabilities\n"
            "0\t7\tAnn?B\t1\t1\t0.1 0.9\n"
            "1\t007\tC, D\t\t\terror: t.csv:3:1: 'x' is no number\n"
            "2\t9\t\t0\t0\t0.75 0.25\n");
  EXPECT_EQ(encoded(PredictionFormat::kCsv),
            "example,id,\"full, name\",truth,class,probability_0,probability_1,error\n"
            "0,7,Ann\tB,1,1,0.1,0.9,\n"
            "1,007,\"C, D\",,,,,t.csv:3:1: 'x' is no number\n"
            "2,9,,0,0,0.75,0.25,\n");
  const std::string json = encoded(PredictionFormat::kJson);
  EXPECT_TRUE(
      json.starts_with("{\"event\":\"prediction\",\"example\":0,\"id\":7,\"full, name\":"
                       "\"Ann\\tB\",\"truth\":1,"))
      << json;
  EXPECT_NE(json.find("\"example\":1,\"id\":\"007\",\"full, name\":\"C, D\",\"error\":"),
            std::string::npos)
      << json;
}

TEST(Predictions, AKeptColumnHasANameOfItsOwn) {
  const model::ModelSpec softmax = modelWith(model::Loss::kSoftmaxCrossEntropy);
  const auto refused = [&](const std::string& name, PredictionFormat format) {
    const data::KeptColumns kept = {{name}, {"1", "2"}};
    try {
      encodePredictions(format, softmax, kOutputs, 2, {{}, {}, {}, {}, &kept});
      return std::string();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUsage);
      return error.message();
    }
  };
  for (const char* name : {"class", "example", "event", "error", "probability_1", "probabilities"})
    EXPECT_NE(refused(name, PredictionFormat::kCsv).find("already"), std::string::npos) << name;
  EXPECT_EQ(refused("file", PredictionFormat::kCsv), "") << "no line has one";
  EXPECT_NE(refused("id", PredictionFormat::kNpy).find("not for an array"), std::string::npos);
}

TEST(Predictions, OfTargetsNameNoClass) {
  model::ModelSpec model = modelWith(model::Loss::kMse);
  model.labels_dtype = DType::kFloat32;
  EXPECT_EQ(encodePredictions(PredictionFormat::kText, model, kOutputs, 1),
            "# example\toutputs\n0\t0.1\n1\t0.9\n2\t0.75\n3\t0.25\n");
  EXPECT_EQ(encodePredictions(PredictionFormat::kCsv, model, kOutputs, 2),
            "example,output_0,output_1\n0,0.1,0.9\n1,0.75,0.25\n");
  const std::vector<std::string> targets = {"load_mw", "price"};
  PredictionNames names{.targets = targets};
  EXPECT_EQ(encodePredictions(PredictionFormat::kCsv, model, kOutputs, 2, names),
            "example,load_mw,price\n0,0.1,0.9\n1,0.75,0.25\n");
  const data::KeptColumns kept = {{"load_mw"}, {"7", "8"}};
  names.kept = &kept;
  EXPECT_EQ(encodePredictions(PredictionFormat::kCsv, model, kOutputs, 2, names),
            "example,load_mw,output_0,price\n0,7,0.1,0.9\n1,8,0.75,0.25\n");
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
    EXPECT_NE(error.message().find("b.xls: unknown format"), std::string::npos) << error.message();
  }
}

}  // namespace
}  // namespace dtf::launcher
