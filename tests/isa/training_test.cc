// Real processes train a perceptron on every instruction set of this CPU. All learn, and those with
// a fused multiply-add end with the same bytes.

#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "common/base/isa.h"
#include "common/base/json.h"
#include "tests/e2e/cluster_fixture.h"

namespace dtf::testing {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

class IsaTrainingTest : public ClusterTest {
 protected:
  ProcessResult train(const std::string& name, const std::string& isa,
                      const std::string& precision = "float32") {
    const ClusterOptions options{
        .mode = "sync",
        .steps = 300,
        .examples = 2000,
        .eval_examples = 500,
        .batch_size = 50,
        .optimizer = "{momentum: {learning_rate: 0.1, momentum: 0.9}}",
        .layers = "[flatten: , dense: {units: 33, activation: relu}, dense: {units: 10}]",
        .train_more = "  precision: " + precision + "\n"};
    // empty: every set of the processor
    std::map<std::string, std::string> environment;
    if (!isa.empty()) environment["DTF_MAX_CPU_ISA"] = isa;
    Process launcher(launchCommand(writeCluster(options, name)), environment, folder_.path());
    return launcher.wait(seconds(60));
  }
};

TEST_F(IsaTrainingTest, LearnsAlikeOnEverySet) {
  std::string fused_digest;
  double first_loss = NAN;
  for (const Isa isa : supportedIsas()) {
    const std::string name(isaName(isa));
    SCOPED_TRACE(name);
    const ProcessResult result = train(name, name);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const Json found = summary(name);
    EXPECT_GT(found["eval"]["accuracy"].asDouble(), 0.8);  // of ten classes
    const double loss = found.doubleAt("final_loss");
    EXPECT_LT(loss, 0.7);  // from about ln(10)
    for (const char* task : {"ps-0", "worker-0"}) {
      const std::string log = folder_.read("runs/" + name + "/logs/" + task + ".1.log");
      EXPECT_THAT(log, HasSubstr("isa=" + name)) << task;
    }
    if (std::isnan(first_loss)) first_loss = loss;
    EXPECT_NEAR(loss, first_loss, 0.05) << "rounding differs, the formulae don't";
    if (isa == Isa::kBaseline) continue;
    const std::string digest = found.stringAt("parameters_digest");
    if (fused_digest.empty()) fused_digest = digest;
    EXPECT_EQ(digest, fused_digest);
  }
}

// With matrix tiles, if the CPU has them, and without, on each set.
TEST_F(IsaTrainingTest, RoundedToBFloat16ItEndsWithTheSameBytesOnSetsWithFusedMultiplyAdd) {
  std::vector<std::string> sets = {""};
  for (const Isa isa : supportedIsas())
    if (isa != Isa::kBaseline) sets.emplace_back(isaName(isa));
  std::string digest;
  for (const std::string& isa : sets) {
    const std::string name = "bfloat16" + isa;
    SCOPED_TRACE(name);
    const ProcessResult result = train(name, isa, "bfloat16");
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const std::string log = folder_.read("runs/" + name + "/logs/worker-0.1.log");
    EXPECT_THAT(log, HasSubstr(isa.empty() && hasMatrixTiles() ? "tiles=yes" : "tiles=no"));
    const Json found = summary(name);
    EXPECT_GT(found["eval"]["accuracy"].asDouble(), 0.8);
    if (digest.empty()) digest = found.stringAt("parameters_digest");
    EXPECT_EQ(found["parameters_digest"], digest);
  }
}

TEST_F(IsaTrainingTest, AnUnknownSetEndsTheJobWithItsNameAndTheKnownOnes) {
  const ProcessResult result = train("unknown", "sse9");
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("DTF_MAX_CPU_ISA is 'sse9'"));
}

}  // namespace
}  // namespace dtf::testing
