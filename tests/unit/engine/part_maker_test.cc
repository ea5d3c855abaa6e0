// The compilation of nodes that the engine computes itself; part_program_test.cc has the rest.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/engine/part_program.h"
#include "tests/unit/engine/devices.h"
#include "tests/unit/graph/error_text.h"

namespace dtf::engine {
namespace {

using graph::Output;
using graph::testing::errorText;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class PartMakerTest : public ::testing::Test {
 protected:
  PartProgram compiled(const std::vector<Output>& fetches = {}) {
    return {graph_, fetches, *devices_.all()[0].device, devices_.kernels(), {}};
  }

  graph::Graph graph_{graph::standardOps()};
  graph::Builder b_{graph_};
  testing::Devices devices_{testing::cpusOfWorker0(1)};
};

TEST_F(PartMakerTest, AnActOfTheEngineIsAPieceWithoutKernels) {
  const Output x = b_.placeholder("x", DType::kFloat32, {2});
  const graph::NodeId clip = b_.node("ClipByGlobalNorm", {b_.relu(x)}, {{"clip_norm", 1.0}});
  const PartProgram program = compiled({b_.relu({clip, 0})});
  ASSERT_THAT(program.pieces(), SizeIs(3));
  EXPECT_GT(program.pieces()[0].kernels, 0u);
  EXPECT_EQ(program.pieces()[1].kernels, 0u);
  EXPECT_THAT(program.pieces()[2].after, SizeIs(1));
}

TEST_F(PartMakerTest, ASlotThatIsNoVariableIsNamed) {
  const Output w = b_.variable("w", {2}), x = b_.placeholder("x", DType::kFloat32, {2});
  b_.node("ApplyOptimizer", {w, b_.relu(x), x, b_.constant({}, 0, DType::kInt64)},
          {{"optimizer", std::string("momentum")}}, "update");
  EXPECT_THAT(errorText([&] { compiled(); }),
              AllOf(HasSubstr("'update' (ApplyOptimizer)"), HasSubstr("is no Variable")));
}

}  // namespace
}  // namespace dtf::engine
