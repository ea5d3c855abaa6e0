// Which loops are unrolled, and which can't be. The device suite tests the results.

#include "common/runtime/inlined_functions.h"

#include "common/graph/function.h"
#include "tests/unit/runtime/residual_graph.h"

namespace dtf::runtime::testing {
namespace {

using graph::Function;
using graph::FunctionRef;
using graph::Output;
using OutputList = std::vector<Output>;
using ParametersOf = std::span<const Output>;

const graph::TensorSpec kScalarSpec = {DType::kFloat32, Shape()};

FunctionRef madeFunction(std::vector<graph::TensorSpec> parameters, const Function::Build& build) {
  return Function::build(graph::standardOps(), parameters, build);
}

class InlinedFunctionsTest : public ::testing::Test {
 protected:
  graph::Builder::WhileArguments loopOf(int64_t iterations) {
    graph::Builder::WhileArguments loop;
    loop.carried = {x_};
    loop.body = madeFunction(
        {kScalarSpec}, [](graph::Builder& b, ParametersOf p) { return OutputList{b.tanh(p[0])}; });
    loop.max_iterations = iterations;
    return loop;
  }
  std::vector<std::string> opsOf(OutputList fetches) {
    step_ = lower(graph_, fetches);
    inlineFunctions(step_, KernelTable(), DeviceType::kGpu);
    return opNames(step_);
  }

  graph::Graph graph_{graph::standardOps()};
  graph::Builder b_{graph_};
  const Output x_ = b_.placeholder("x", DType::kFloat32, {});
  LoweredStep step_;
};

TEST_F(InlinedFunctionsTest, ALoopBecomesItsIterations) {
  EXPECT_THAT(opsOf({b_.whileLoop(loopOf(3)).carried[0]}), ElementsAre("Tanh", "Tanh", "Tanh"));
  EXPECT_EQ(step_.operations[0].inputs[0], x_);
  EXPECT_EQ(step_.operations[2].inputs[0], step_.operations[1].outputs[0]);
  EXPECT_EQ(step_.fetches[0].tensor, step_.operations[2].outputs[0]);
}

TEST_F(InlinedFunctionsTest, ALoopThatItsCondEndsStays) {
  graph::Builder::WhileArguments loop = loopOf(3);
  loop.cond = madeFunction({kScalarSpec}, [](graph::Builder& b, ParametersOf p) {
    return OutputList{b.less(p[0], b.constant({}, 1))};
  });
  EXPECT_THAT(opsOf({b_.whileLoop(loop).carried[0]}), ElementsAre("While"));
}

TEST_F(InlinedFunctionsTest, ABranchIsChosenWhereItsConditionIsKnown) {
  const auto scaled = [](double by) {
    return madeFunction({kScalarSpec}, [by](graph::Builder& b, ParametersOf p) {
      return OutputList{b.scale(p[0], by)};
    });
  };
  EXPECT_THAT(opsOf({b_.cond(b_.constant({}, 1), {x_}, scaled(2), scaled(3))[0]}),
              ElementsAre("Scale"));
  EXPECT_EQ(step_.operations[0].attributeOr<double>("factor", 0), 2);
  EXPECT_THAT(opsOf({b_.cond(x_, {x_}, scaled(2), scaled(3))[0]}), ElementsAre("If"));
}

TEST_F(InlinedFunctionsTest, ADeviceThatHasLoopsKeepsThem) {
  KernelTable table;
  table.add("While", DeviceType::kGpu,
            [](const Operation&) -> std::unique_ptr<Kernel> { return nullptr; });
  step_ = lower(graph_, OutputList{b_.whileLoop(loopOf(3)).carried[0]});
  inlineFunctions(step_, table, DeviceType::kGpu);
  EXPECT_THAT(opNames(step_), ElementsAre("While"));
}

TEST_F(InlinedFunctionsTest, ASequenceOfBytesIsRefusedInWords) {
  graph::Builder::WhileArguments loop;
  loop.sequences = {b_.placeholder("bytes", DType::kUInt8, {5, 4})};
  loop.carried = {x_};
  loop.body =
      madeFunction({kScalarSpec, {DType::kUInt8, Shape{4}}}, [](graph::Builder& b, ParametersOf p) {
        return OutputList{b.add(p[0], b.mean(b.normalise(p[1], 1)))};
      });
  loop.max_iterations = 5;
  const OutputList fetches = {b_.whileLoop(loop).carried[0]};
  try {
    opsOf(fetches);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("not uint8; place it on a CPU"));
  }
}

// Otherwise its memory would grow with the number of iterations.
TEST_F(InlinedFunctionsTest, ASumIsTakenTermByTerm) {
  graph::Builder::WhileArguments loop = loopOf(3);
  loop.body = madeFunction({kScalarSpec}, [](graph::Builder& b, ParametersOf p) {
    return OutputList{b.tanh(p[0]), b.scale(p[0], 2)};
  });
  loop.summed = 1;
  EXPECT_THAT(opsOf({b_.whileLoop(loop).summed[0]}),
              ElementsAre("Tanh", "Scale", "Tanh", "Scale", "AddN", "Tanh", "Scale", "AddN"));
}

// Iterations without an operation count, too.
TEST_F(InlinedFunctionsTest, EveryIterationCounts) {
  graph::Builder::WhileArguments loop = loopOf(kUnrolledOperationsMax + 1);
  loop.body =
      madeFunction({kScalarSpec}, [](graph::Builder&, ParametersOf p) { return OutputList{p[0]}; });
  const OutputList fetches = {b_.whileLoop(loop).carried[0]};
  EXPECT_THROW(opsOf(fetches), Error);
}

TEST_F(InlinedFunctionsTest, TheConstantsOfABodyAreThereOnce) {
  graph::Builder::WhileArguments loop = loopOf(50);
  loop.body = madeFunction({kScalarSpec}, [](graph::Builder& b, ParametersOf p) {
    return OutputList{b.add(p[0], b.constant({}, 3))};
  });
  opsOf({b_.whileLoop(loop).carried[0]});
  EXPECT_EQ(step_.operations.size(), 50u);
  EXPECT_LE(step_.constants.size(), 2u);  // and the number of iterations
}

TEST_F(InlinedFunctionsTest, TooManyIterationsAreRefusedInWords) {
  const OutputList fetches = {b_.whileLoop(loopOf(kUnrolledOperationsMax + 1)).carried[0]};
  try {
    opsOf(fetches);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
    EXPECT_THAT(error.message(), HasSubstr("place the loop on a CPU"));
  }
}

}  // namespace
}  // namespace dtf::runtime::testing
