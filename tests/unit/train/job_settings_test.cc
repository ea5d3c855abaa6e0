#include "common/train/job_settings.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <set>
#include <string_view>

#include "common/cluster/schema.h"
#include "common/data/digits.h"
#include "tests/unit/model/models.h"

namespace dtf::train {
namespace {

constexpr int64_t kCount = 50;

cluster::TrainSpec smallJob() {
  cluster::TrainSpec train;
  train.model = model::softmaxModel();
  train.data.batch_size = 5;
  return train;
}

// Returns the names of settings that differ after `change`, with the digits of `seed`.
std::string changed(const std::function<void(cluster::TrainSpec&)>& change, int64_t count = kCount,
                    uint64_t seed = 1) {
  const auto digits = [](uint64_t of_seed, int64_t so_many) {
    return data::drawDigits(of_seed, data::DigitStream::kTrain, so_many, 1);
  };
  cluster::TrainSpec other = smallJob();
  change(other);
  std::map<std::string, std::string> before;
  for (const arena::Setting& setting : jobSettings(smallJob(), digits(1, kCount), {}))
    before[setting.name] = setting.value;
  std::string names;
  for (const arena::Setting& setting : jobSettings(other, digits(seed, count), {}))
    if (before[setting.name] != setting.value) names += setting.name + " ";
  return names;
}

TEST(JobSettings, AreTheSameForTheSameJob) {
  EXPECT_EQ(changed([](auto&) {}), "");
}

TEST(JobSettings, TellWhateverChangesTheWork) {
  EXPECT_EQ(changed([](auto& t) { t.data.seed = 2; }), "data.seed ");
  EXPECT_EQ(changed([](auto& t) { t.data.batch_size = 6; }), "data.batch_size ");
  EXPECT_EQ(changed([](auto& t) { t.data.augment.crop_padding = 4; }), "data.augment ");
  EXPECT_EQ(changed([](auto& t) { t.data.augment.flip_horizontal = true; }), "data.augment ");
  EXPECT_EQ(changed([](auto& t) {
              t.data.train.split = cluster::EvalSplit{0.2, false};
            }),
            "data.eval_split ");
  EXPECT_EQ(changed([](auto& t) { t.model.loss.kind = model::Loss::kMse; }), "model.loss ");
  EXPECT_EQ(changed([](auto& t) {
              t.model.layers.back() = model::dense("softmax", 10, model::Activation::kTanh);
            }),
            "model.layers[1] ");
  EXPECT_EQ(changed([](auto& t) {
              t.model.layers.back() = model::dense("softmax", 10, model::Activation::kNone, 0,
                                                   "kernel_initializer: zeros");
            }),
            "model.layers[1] ");
}

// A new key of the training file's tables fails here until its author has decided on it. If workers
// that differ in it do different work, they must be rejected: put it in the declaration or in a
// setting, and add a case above. Otherwise it concerns each worker alone, or the chief.
TEST(JobSettings, EveryKeyOfATrainingFileIsToldOrIsNobodyElsesAffair) {
  using Names = std::set<std::string_view>;
  struct Decided {
    const yaml::Table& table;
    Names alike;
    Names own;
  };
  const Decided all[] = {
      {cluster::schema::kTrain,
       {"model", "data", "optimizer", "replication", "placement", "steps", "epochs", "kernels",
        "precision"},
       {"eval", "report", "checkpoint", "summaries", "early_stopping"}},
      {cluster::schema::kData, {"train", "eval_split", "augment", "batch_size", "seed"}, {"eval"}},
      {cluster::schema::kAugment, {"flip_horizontal", "crop_padding"}, {}}};
  for (const Decided& decided : all) {
    Names known;
    for (const yaml::Key& key : decided.table.keys)
      if (key.available) known.insert(key.name);
    Names either = decided.alike;
    either.insert(decided.own.begin(), decided.own.end());
    EXPECT_EQ(either, known) << decided.table.path;
  }
}

TEST(JobSettings, TellThePrecision) {
  EXPECT_EQ(changed([](auto& t) { t.precision = Precision::kTf32; }), "precision ");
  EXPECT_EQ(changed([](auto& t) { t.precision = Precision::kBFloat16; }), "precision ");
}

TEST(JobSettings, TellTheCountOfTheDataAndEachByteOfThem) {
  EXPECT_EQ(changed([](auto&) {}, kCount + 1), "data.train data.train: content ");
  EXPECT_EQ(changed([](auto&) {}, kCount, 2), "data.train: content ");
}

TEST(JobSettings, TellWhetherConvolutionsMayRoundAsWinogradsDo) {
  const auto value = [] {
    for (const arena::Setting& setting :
         jobSettings(smallJob(), data::drawDigits(1, data::DigitStream::kTrain, kCount, 1), {}))
      if (setting.name == "environment DTF_WINOGRAD") return setting.value;
    return std::string("not told");
  };
  EXPECT_EQ(value(), "1");
  ::setenv("DTF_WINOGRAD", "0", 1);
  EXPECT_EQ(value(), "0");
  ::unsetenv("DTF_WINOGRAD");
}

TEST(JobSettings, TellWhichWayTheKernelsGo) {
  const data::Dataset data = data::drawDigits(1, data::DigitStream::kTrain, kCount, 1);
  const auto told = [&data](const std::string& first, const std::string& second) {
    runtime::StepPlan plan;
    plan.kernels = {
        {"Relu", "r", {}, {}, ""}, {"Conv2D", "a", {}, {}, first}, {"Conv2D", "b", {}, {}, second}};
    for (const arena::Setting& setting : jobSettings(smallJob(), data, plan))
      if (setting.name == "kernels") return setting.value;
    return std::string("not told");
  };
  EXPECT_EQ(told("", ""), "not told");
  EXPECT_EQ(told("winograd", "framed").substr(0, 22), "framed 1, winograd 1: ");
  EXPECT_EQ(told("winograd", "framed"), told("winograd", "framed"));
  EXPECT_NE(told("winograd", "framed"), told("framed", "winograd"));
}

// Each setting fits a message, and a line of a checkpoint's manifest.
TEST(JobSettings, AreOneForEachLayerHoweverDeep) {
  EXPECT_EQ(changed([](auto& t) {
              t.model.layers[0] = model::layerOf(
                  "block", "{layers: [flatten, relu: {name: other, from: flatten}]}", "flatten");
            }),
            "model.layers[0] model.layers[0].1 model.layers[0].2 ");
}

// Paths of files may differ from host to host.
TEST(JobSettings, DoNotTellPaths) {
  EXPECT_EQ(changed([](auto& t) { t.data.train.images = "/elsewhere/images"; }), "");
}

}  // namespace
}  // namespace dtf::train
