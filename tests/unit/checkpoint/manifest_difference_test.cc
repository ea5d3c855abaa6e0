#include <gtest/gtest.h>

#include "common/checkpoint/manifest.h"

namespace dtf::checkpoint {
namespace {

Manifest job(std::vector<VariableInfo> variables, std::string optimizer = "sgd") {
  Manifest manifest;
  manifest.variables = std::move(variables);
  manifest.optimizer = std::move(optimizer);
  return manifest;
}

TEST(ManifestDifference, IsEmptyForTheSameModelElsewhere) {
  Manifest saved = job({{"w", Shape{2}, {"Adam"}}, {"b", Shape{}, {}}});
  Manifest wanted = job({{"b", Shape{}, {}}, {"w", Shape{2}, {"Adam"}}});
  wanted.seed = 5;
  wanted.worker_batches = {1, 2, 3};
  EXPECT_EQ(manifestDifference(saved, wanted), "");
}

TEST(ManifestDifference, NamesEveryDifferenceWithBothValues) {
  const Manifest saved =
      job({{"w", Shape{2}, {}}, {"s", Shape{}, {"Adam"}}, {"old", Shape{3}, {}}});
  const Manifest wanted =
      job({{"w", Shape{4}, {}}, {"s", Shape{}, {}}, {"new", Shape{5, 1}, {}}}, "adam beta1=0.9");
  EXPECT_EQ(manifestDifference(saved, wanted),
            "  the checkpoint lacks new [5, 1]\n"
            "  s has the slots Adam in the checkpoint, none in this job\n"
            "  w has shape [2] in the checkpoint, [4] in this job\n"
            "  this job lacks old [3] of the checkpoint\n"
            "  the optimizer is 'sgd' in the checkpoint, 'adam beta1=0.9' in this job: the saved "
            "slots have no meaning for another optimizer");
}

}  // namespace
}  // namespace dtf::checkpoint
