#include <dtf/dataset.h>
#include <gmock/gmock.h>

#include <cstring>
#include <fstream>
#include <numeric>

#include "tests/unit/api/errors.h"
#include "tests/unit/api/temporary_folder.h"

namespace dtf::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr char kDigits[] = "train: {format: digits, count: 60}\nbatch_size: 10\nseed: 3\n";

bool areEqual(const Tensor& a, const Tensor& b) {
  return a.dims() == b.dims() &&
         std::memcmp(dtf_tensor_const_data(a.get()), dtf_tensor_const_data(b.get()),
                     dtf_tensor_bytes(a.get())) == 0;
}

TEST(ApiDataset, HasTheExamplesOfAJob) {
  Dataset digits(kDigits);
  EXPECT_EQ(digits.size(), 60);
  EXPECT_EQ(digits.batchSize(), 10);
  const auto parts = digits.parts();
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[0].name, "features");
  EXPECT_EQ(parts[0].dtype, DTF_UINT8);
  EXPECT_THAT(parts[0].dims, ElementsAre(28, 28, 1));
  EXPECT_EQ(parts[1].name, "labels");
  EXPECT_THAT(parts[1].dims, IsEmpty());
  EXPECT_THAT(digits.classes(), IsEmpty());
  EXPECT_EQ(Dataset("").size(), 10000) << "the embedded digits, as of a job without data";
}

TEST(ApiDataset, ABatchIsAFunctionOfTheStep) {
  Dataset one(kDigits), two(kDigits), other(kDigits, {{}, {}, 1, 2});
  const Dataset::Batch batch = one.batch(41);
  EXPECT_THAT(batch.features().dims(), ElementsAre(10, 28, 28, 1));
  EXPECT_THAT(batch.labels().dims(), ElementsAre(10));
  two.batch(3);
  two.nextBatch(7);
  EXPECT_TRUE(areEqual(two.batch(41).features(), batch.features()));
  EXPECT_TRUE(areEqual(other.batch(20).labels(), batch.labels())) << "batch 2 * 20 + 1 of all";
}

TEST(ApiDataset, NextBatchCountsEpochs) {
  Dataset digits(kDigits, {{}, {}, 0, 1, 2});
  EXPECT_EQ(digits.steps(), 12U);
  digits.nextBatch(45);
  EXPECT_EQ(digits.epochsCompleted(), 0U);
  EXPECT_THAT(digits.nextBatch(45).features().dims(), ElementsAre(45, 28, 28, 1));
  EXPECT_EQ(digits.epochsCompleted(), 1U);
  EXPECT_THAT(refusal([&] { digits.nextBatch(31); }),
              StartsWith("66: a batch of 31 exceeds the 30 examples left in the 2 epochs"));
  EXPECT_THAT(refusal([&] { digits.batch(12); }), StartsWith("66: step 12 is beyond"));
}

TEST(ApiDataset, EvaluationsReadTheirOwnExamplesInOrder) {
  Dataset eval("train: {format: digits, count: 60}\neval: {format: digits, count: 20}\n",
               {{}, {}, 0, 1, 0, true});
  EXPECT_EQ(eval.size(), 20);
  const Dataset::Batch all = eval.slice(0, 20), end = eval.slice(15, 5);
  EXPECT_EQ(std::memcmp(all.features().as<uint8_t>().data() + 15 * 784,
                        end.features().as<uint8_t>().data(), 5 * 784),
            0);
  EXPECT_THAT(refusal([&] { eval.slice(15, 6); }), StartsWith("66: "));
  EXPECT_THAT(refusal([] {
                Dataset(kDigits, {{}, {}, 0, 1, 0, true});
              }),
              StartsWith("78: the settings have no examples to evaluate"));
}

TEST(ApiDataset, ATableIsPreparedByTheExamplesToTrainOn) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() + "/table.csv") << "x,kind\n0,cat\n10,dog\n20,cat\n30,dog\n";
  std::ofstream(folder.path() + "/eval.csv") << "x,kind\n15,dog\n";
  const std::string settings =
      "train: {format: csv, files: [table.csv], label_column: kind, class_names: {from: data},\n"
      "        numeric_columns: {x: {standardize: true}}}\n"
      "eval: {format: csv, files: [eval.csv], label_column: kind}\n"
      "batch_size: 4\n";
  Dataset train(settings, {folder.path()});
  EXPECT_THAT(train.classes(), ElementsAre("cat", "dog"));
  const auto features = train.slice(0, 4);
  const auto x = features.features().as<float>();
  EXPECT_NEAR(std::accumulate(x.begin(), x.end(), 0.0F), 0, 1e-5);
  Dataset eval(settings, {folder.path(), {}, 0, 1, 0, true});
  EXPECT_NEAR(eval.slice(0, 1).features().as<float>()[0], 0, 1e-5)
      << "the mean of the training data";
}

TEST(ApiDataset, LibsvmTakesItsShapeFromTheProgram) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() + "/a.libsvm") << "1 2:5\n0 1:3\n";
  const std::string settings = "train: {format: libsvm, files: [a.libsvm]}\nbatch_size: 1\n";
  Dataset lines(settings, {folder.path(), {3}});
  EXPECT_THAT(lines.slice(0, 1).features().as<float>(), ElementsAre(0, 5, 0));
  EXPECT_THAT(refusal([&] { Dataset(settings, {folder.path()}); }),
              AllOf(StartsWith("78: "), HasSubstr("input_shape")));
}

TEST(ApiDataset, NamesTheMistakeWithItsLine) {
  EXPECT_THAT(refusal([] { Dataset("train: {format: digits}\nbatchsize: 3\n"); }),
              AllOf(StartsWith("78: "), HasSubstr("data:2:1: error: unknown key 'batchsize'")));
  EXPECT_THAT(
      refusal([] { Dataset("train: {format: idx, images: nowhere.gz, labels: nowhere.gz}"); }),
      AllOf(StartsWith("6"), HasSubstr("nowhere.gz")));
  EXPECT_THAT(refusal([] { Dataset("- 1"); }), StartsWith("78: the settings of a data set"));
  EXPECT_THAT(refusal([] {
                Dataset(kDigits, {{}, {}, 2, 2});
              }),
              StartsWith("78: rank must be from 0 to 1"));
  EXPECT_THAT(refusal([] { Dataset(kDigits, {{}, {}, 0, -1}); }), StartsWith("78: a data set has"));
  EXPECT_THAT(refusal([] { Dataset(kDigits, {{}, {}, 0, 1, -1}); }), StartsWith("78: epochs must"));
  EXPECT_THAT(refusal([] {
                Dataset(kDigits, {{}, {}, 0, 7, 1});
              }),
              AllOf(StartsWith("78: "), HasSubstr("set batch_size to at most 8, or epochs to")));
  Dataset small("train: {format: digits, count: 5}\nbatch_size: 10\n");
  EXPECT_THAT(refusal([&] { small.batch(0); }), StartsWith("78: "));
}

}  // namespace
}  // namespace dtf::testing
