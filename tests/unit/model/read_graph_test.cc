#include "common/model/read_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/graph/function.h"

#include "tests/support/temporary_files.h"

namespace dtf::model {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class ReadGraphTest : public ::testing::Test {
 protected:
  GraphSpec read(const std::string& text) {
    files_.write("graph.yaml", text);
    yaml::Report report;
    return readGraphFile("graph.yaml", report);
  }
  std::string error(const std::string& text) {
    return dtf::testing::badConfigOf([&] { read(text); });
  }
  dtf::testing::TemporaryFiles files_;
};

TEST_F(ReadGraphTest, OpsWithInputsAttributesDevicesAndWhatTheyWaitFor) {
  const GraphSpec spec = read(R"(
ops:
  - Placeholder: {name: x, dtype: int32, shape: [2]}
  - Variable: {name: w, shape: [3, 4], initializer: ones, device: /job:ps/task:1}
  - MatMul: {name: y, inputs: [w, w], transpose_b: true, after: [x]}
  - NoOp: {name: all, after: [y]}
run: {targets: [all], fetches: ["y:0", y], steps: 7, seed: 3}
)");
  const graph::Node& y = *spec.graph.find("y");
  EXPECT_EQ(y.outputs[0].shape, (Shape{3, 3}));
  EXPECT_TRUE(y.attribute<bool>("transpose_b"));
  EXPECT_THAT(y.control_inputs, ElementsAre(spec.graph.find("x")->id));
  EXPECT_EQ(spec.graph.find("x")->outputs[0].dtype, DType::kInt32);
  EXPECT_EQ(spec.graph.find("w")->device, "/job:ps/task:1");
  EXPECT_EQ(spec.marks.at("y").line, 5);
  EXPECT_THAT(spec.targets, ElementsAre("all"));
  EXPECT_THAT(spec.fetches, ElementsAre("y:0", "y"));
  EXPECT_EQ(spec.steps, 7);
  EXPECT_EQ(spec.seed, 3u);
}

TEST_F(ReadGraphTest, AnOpCallsAFunctionOfTheFile) {
  const GraphSpec spec = read(R"(
functions:
  - name: twice
    parameters: [{name: y}]
    ops:
      - Scale: {name: next, inputs: [y], factor: 2}
    results: [next]
  - name: four_times
    parameters: [{name: y}]
    ops:
      - While: {name: both, inputs: [y], body: twice, carried: 1, max_iterations: 2}
    results: ["both:0"]
ops:
  - Const: {name: x, dtype: float32, shape: [], value: 3}
  - If: {name: made, inputs: [x, x], then_branch: four_times, else_branch: twice}
run: {fetches: [made]}
)");
  const graph::Node& made = *spec.graph.find("made");
  const auto& then = made.attribute<graph::FunctionRef>("then_branch");
  EXPECT_NE(then->graph().find("both"), nullptr);
  EXPECT_EQ(then->parameterSpecs(),
            made.attribute<graph::FunctionRef>("else_branch")->parameterSpecs());
  EXPECT_EQ(made.outputs.size(), 1u);
}

TEST_F(ReadGraphTest, AParameterHasATypeAndAShape) {
  const GraphSpec spec = read(R"(
functions:
  - name: same
    parameters: [{name: y, dtype: int64, shape: [2, 3]}]
    ops: [Identity: {name: z, inputs: [y]}]
    results: [z]
ops:
  - Const: {name: x, dtype: int64, shape: [2, 3], value: 3}
  - While: {name: loop, inputs: [x], body: same, carried: 1, max_iterations: 1}
)");
  EXPECT_EQ(spec.graph.find("loop")->outputs[0], (graph::TensorSpec{DType::kInt64, Shape{2, 3}}));
}

TEST_F(ReadGraphTest, MistakesInFunctionsAreToldAtTheirLines) {
  const std::string call = R"(
ops:
  - Const: {name: x, dtype: float32, shape: [], value: 3}
  - While: {name: loop, inputs: [x], body: step, carried: 1, max_iterations: 2}
)";
  EXPECT_THAT(
      error("functions:\n  - {name: steps, parameters: [{name: y}], ops: [Identity: {name: z, "
            "inputs: [y]}], results: [z]}" +
            call),
      AllOf(HasSubstr("graph.yaml:5:"), HasSubstr("no function 'step' - did you mean 'steps'?")));
  EXPECT_THAT(
      error("functions:\n  - name: step\n    parameters: [{name: y}]\n    ops:\n"
            "      - Variable: {name: w, shape: [2], initializer: zeros}\n    results: [w]" +
            call),
      HasSubstr("graph.yaml:2:"));
  // The callers of a function with an error get no second error.
  EXPECT_THAT(error("functions:\n  - name: step\n    parameters: [{name: y}]\n    ops:\n"
                    "      - Tanh: {name: w, inputs: [z]}\n    results: [w]" +
                    call),
              AllOf(HasSubstr("graph.yaml:5:"), Not(HasSubstr("no function"))));
  EXPECT_THAT(
      error("functions:\n  - {name: step, ops: [Const: {name: z, dtype: float32, shape: [], "
            "value: 1}], results: [z]}" +
            call),
      HasSubstr("graph.yaml:5:"));
  const std::string twice =
      "  - {name: step, parameters: [{name: y}], ops: [Identity: {name: z, "
      "inputs: [y]}], results: [z]}\n";
  EXPECT_THAT(error("functions:\n" + twice + twice + call),
              HasSubstr("there are two functions 'step'"));
}

TEST_F(ReadGraphTest, DevicesOfScopesOpsAndPinsMergeFieldByField) {
  const GraphSpec spec = read(R"(
ops:
  - scope:
      name: tower
      device: /job:worker/task:0
      ops:
        - Const: {name: a, dtype: float32, shape: [2], value: 1.5}
        - Relu: {name: b, inputs: [tower/a], device: /task:1/cpu:0}
        - Relu: {inputs: [tower/b]}
  - Relu: {name: c, inputs: [tower/Relu], device: /job:ps}
pins: {tower/b: "/task:2", c: "/task:3"}
soft_placement: true
)");
  EXPECT_EQ(spec.graph.find("tower/a")->device, "/job:worker/task:0");
  EXPECT_EQ(spec.graph.find("tower/b")->device, "/job:worker/task:2/device:CPU:0");
  EXPECT_EQ(spec.graph.find("tower/Relu")->device, "/job:worker/task:0");
  EXPECT_EQ(spec.graph.find("c")->device, "/job:ps/task:3");
  EXPECT_TRUE(spec.soft_placement);
}

TEST_F(ReadGraphTest, GradientsHaveNames) {
  const GraphSpec spec = read(R"(
ops:
  - Variable: {name: w, shape: [2, 1], initializer: zeros}
  - Variable: {name: b, shape: [2, 1], initializer: zeros}
  - Add: {name: sum, inputs: [w, b]}
  - Mean: {name: loss, inputs: [sum]}
  - gradients: {loss: loss, of: [w, b], name: grad}
  - AssignSub: {name: step, inputs: [w, grad/w], after: [grad/b]}
)");
  EXPECT_EQ(spec.graph.find("grad/b")->outputs[0].shape, (Shape{2, 1}));
  EXPECT_EQ(spec.marks.at("grad/w").line, 7);
}

TEST_F(ReadGraphTest, AQueueIsAnOpLikeOthers) {
  const std::string queue = R"(
ops:
  - FIFOQueue: {name: jobs, component_types: "float32, int32", shapes: "[2, 3], []", capacity: 8}
)";
  const GraphSpec spec = read(queue + "  - QueueDequeueMany: {name: take, inputs: [jobs], n: 4}\n");
  EXPECT_EQ(spec.graph.find("take")->outputs[0].shape, (Shape{4, 2, 3}));
  EXPECT_EQ(spec.graph.find("take")->outputs[1].dtype, DType::kInt32);
  EXPECT_THAT(error(queue + "  - QueueDequeueMany: {name: take, inputs: [jobs], n: 9}\n"),
              AllOf(HasSubstr("graph.yaml:4:"), HasSubstr("never has more than 8")));
  EXPECT_THAT(error(queue + "  - Identity: {inputs: [jobs]}\n"),
              AllOf(HasSubstr("graph.yaml:4:"), HasSubstr("is the queue 'jobs'")));
}

TEST_F(ReadGraphTest, AllMistakesAreToldAtTheirLines) {
  const std::string told = error(R"(
ops:
  - Variable: {name: w, shape: [3, 4], initializer: zeroes}
  - MatMull: {inputs: [w, w]}
  - MatMul: {name: y, inputs: [w, w], transpose_c: true}
  - Const: {name: c, dtype: float33, shape: [2, -1], value: much}
  - Relu: {inputs: [nobody]}
  - Const: {name: d, dtype: float32, shape: [2], value: 1, device: "/job:ps/jub:1"}
  - _Send: {inputs: [d]}
  - Const: {name: vast, dtype: float32, shape: [100000, 100000], value: 1}
)");
  EXPECT_THAT(told, AllOf(HasSubstr("graph.yaml:3:"), HasSubstr("did you mean 'zeros'")));
  EXPECT_THAT(told, AllOf(HasSubstr("graph.yaml:4:"), HasSubstr("did you mean 'MatMul'")));
  EXPECT_THAT(told, AllOf(HasSubstr("graph.yaml:5:"), HasSubstr("transpose_c")));
  EXPECT_THAT(told, AllOf(HasSubstr("graph.yaml:6:"), HasSubstr("float33"), HasSubstr("much")));
  EXPECT_THAT(told, AllOf(HasSubstr("graph.yaml:8:"), HasSubstr("jub")));
  EXPECT_THAT(told, AllOf(HasSubstr("graph.yaml:9:"), HasSubstr("_Send")));
  EXPECT_THAT(told, AllOf(HasSubstr("graph.yaml:10:"), HasSubstr("elements")));
  EXPECT_THAT(told, Not(HasSubstr("nobody"))) << "it may be the op that isn't understood";
}

TEST_F(ReadGraphTest, TensorFlowsOpenSizesAreToldWhatToWrite) {
  const std::string told = error(R"(
ops:
  - Placeholder: {name: a, dtype: float32, shape: [None, 4]}
  - Placeholder: {name: b, dtype: float32, shape: [-1, 4]}
  - Placeholder: {name: c, dtype: float32, shape: [null, 4]}
  - Const: {name: d, dtype: float32, shape: [2, 2], value: 1}
  - Sum: {name: e, inputs: [d], axes: [-1]}
  - ArgMax: {name: f, inputs: [d], axis: -1}
)");
  EXPECT_THAT(told, HasSubstr("graph.yaml:3:52: error: 'shape' can't have 'None'; shapes have no "
                              "open size: write the number itself"));
  EXPECT_THAT(told, HasSubstr("graph.yaml:4:52: error: 'shape' can't have '-1'"));
  EXPECT_THAT(told, HasSubstr("graph.yaml:5:"));
  EXPECT_THAT(told, HasSubstr("graph.yaml:7:40: error: 'axes' can't have '-1'; axes count from 0"));
  EXPECT_THAT(told, HasSubstr("axis -1 is none of float32[2, 2]: axes count from 0, so write 1"));
}

// Lines 1 to 5 of a file that counts its steps in a variable of its own.
constexpr char kCounted[] = R"(ops:
  - Variable: {name: global_step, dtype: int64, shape: [], initializer: zeros}
  - Variable: {name: w, shape: [2], initializer: ones}
  - Mean: {name: loss, inputs: [w]}
run:
)";

TEST_F(ReadGraphTest, CheckpointsAndSummaries) {
  const GraphSpec spec = read(kCounted + std::string(R"(
  log_dir: logs/run
  checkpoint: {every_steps: 50, keep: 2}
  summaries: {scalars: [loss]}
)"));
  EXPECT_TRUE(spec.log_dir.string().ends_with("logs/run")) << spec.log_dir;
  EXPECT_TRUE(spec.log_dir.is_absolute()) << "the same from every working directory";
  EXPECT_EQ(spec.checkpoint->when.every_steps, 50);
  EXPECT_EQ(spec.checkpoint->when.every_seconds, 0) << "every_steps is a decision";
  EXPECT_EQ(spec.checkpoint->keep, 2u);
  EXPECT_THAT(spec.summaries->scalars, ElementsAre("loss"));
  EXPECT_EQ(spec.summaries->when.every_seconds, 120);
  const GraphSpec defaults = read(kCounted + std::string("  log_dir: l\n  checkpoint: {}\n"));
  EXPECT_EQ(defaults.checkpoint->when.every_seconds, 600);
  EXPECT_EQ(defaults.checkpoint->keep, 5u);
  EXPECT_FALSE(defaults.summaries);
  EXPECT_FALSE(read(kCounted + std::string("  steps: 2\n")).checkpoint);
}

TEST_F(ReadGraphTest, WhatACheckpointNeedsIsNamed) {
  const auto run = [&](const std::string& keys) { return error(kCounted + keys); };
  EXPECT_THAT(run("  checkpoint: {}\n"),
              HasSubstr("graph.yaml:6:3: error: 'log_dir' is missing: name the folder"));
  EXPECT_THAT(run("  log_dir: l\n"), HasSubstr("graph.yaml:6:3: error: 'log_dir' is the folder of "
                                               "checkpoints, and the file asks for none"));
  EXPECT_THAT(run("  summaries: {scalars: [loss]}\n"), HasSubstr("add 'checkpoint: {}' and"));
  EXPECT_THAT(run("  log_dir: l\n  checkpoint: {}\n  summaries: {scalars: [w]}\n"),
              HasSubstr("graph.yaml:8:25: error: 'w' is float32[2], and a scalar is one float32: "
                        "name its Mean"));
  EXPECT_THAT(run("  checkpoint: {every: 5}\n"), HasSubstr("unknown key 'every'"));
  EXPECT_THAT(error("ops:\n  - Variable: {name: w, shape: [2], initializer: ones}\n"
                    "run:\n  log_dir: l\n  checkpoint: {}\n"),
              HasSubstr("graph.yaml:5:3: error: checkpoints are named by the steps that the "
                        "variable 'global_step' has counted, and there is none: add 'minimize'"));
}

TEST_F(ReadGraphTest, WhatIsNotThereIsNamedWithTheNearest) {
  const std::string told = error(R"(
ops:
  - Const: {name: weights, dtype: float32, shape: [2], value: 1}
  - Relu: {name: y, inputs: [weight]}
)");
  EXPECT_THAT(told, AllOf(HasSubstr("graph.yaml:4:"), HasSubstr("did you mean 'weights'")));
  EXPECT_THAT(error("ops:\n  - Const: {name: a, dtype: float32, shape: [1], value: 1}\n"
                    "run: {fetches: [a:1]}\n"),
              AllOf(HasSubstr("graph.yaml:3:"), HasSubstr("1 output")));
  EXPECT_THAT(error("ops:\n  - Const: {name: a, dtype: float32, shape: [1], value: 1}\n"
                    "  - Const: {name: a, dtype: float32, shape: [1], value: 1}\n"),
              AllOf(HasSubstr("graph.yaml:3:"), HasSubstr("taken")));
  EXPECT_THAT(error("ops:\n  - Const: {name: a, dtype: float32, shape: [1], value: 1}\n"
                    "pins: {b: /job:ps}\n"),
              AllOf(HasSubstr("graph.yaml:3:"), HasSubstr("no op 'b' to pin")));
  EXPECT_THAT(error("run: {}\n"), HasSubstr("'ops'"));
  const std::string held = "ops:\n  - NoOp: {name: all}\n";
  EXPECT_THAT(error(held + "  - Relu: {inputs: [all]}\n"),
              AllOf(HasSubstr("graph.yaml:3:"), HasSubstr("has 0 output(s)")));
  EXPECT_THAT(error(held + "run: {fetches: [all]}\n"), HasSubstr("has 0 output(s)"));
  EXPECT_THAT(error(held + "run: {targets: [\"all:0\"]}\n"), HasSubstr("no node 'all:0'"));
}

}  // namespace
}  // namespace dtf::model
