#include "tests/conformance/device_suite.h"

#include <gmock/gmock.h>

#include <cmath>
#include <set>

#include "common/base/error.h"
#include "common/graph/autodiff.h"
#include "common/runtime/fusion.h"
#include "tests/conformance/device_case.h"
#include "tests/unit/graph/random_graph.h"
#include "tests/unit/runtime/models.h"

namespace dtf::runtime::testing {
namespace {

using graph::testing::evaluate;

TEST_P(DeviceSuite, HasAKernelForEveryOpThatComputes) {
  for (const std::string_view op : graph::standardOps().names()) {
    // The compiler resolves these without a kernel.
    const bool resolved =
        std::set<std::string_view>{"Placeholder", "Const", "Variable",      "ReadVariable",
                                   "ZerosLike",   "NoOp",  "ApplyGradient", "ApplySparseGradient"}
            .contains(op);
    if (resolved || op.starts_with('_') || op == "FIFOQueue" || op.starts_with("Queue")) continue;
    if (op.ends_with("Optimizer") || op.ends_with("Variable") || op == "IsVariableInitialized" ||
        op == "ClipByGlobalNorm" || op == "ApplyAccumulated" || op.starts_with("SyncReplicas") ||
        op.ends_with("AccumulatorApplyGradient"))
      continue;  // the engine computes these
    EXPECT_NE(device_.kernels.has(op, device_.device->type()), device_.lacks.contains(op)) << op;
  }
}

TEST_P(DeviceSuite, ComputesByElement) {
  for (const int64_t rows : kSizes) {
    for (const int64_t columns : kSizes) {
      Case c;
      const Output x = c.floats({rows, columns}), y = c.floats({rows, columns});
      const Output t = c.floats({rows, columns}, 0, 1);
      c.expect(
          device_,
          {c.b.add(x, y), c.b.sub(x, y), c.b.mul(x, y), c.b.squaredDifference(x, y),
           c.b.scale(x, -0.37), c.b.addN({x}), c.b.addN({x, y, t, x}), c.b.relu(x), c.b.sigmoid(x),
           c.b.tanh(x), c.b.reluGrad(x, y), c.b.sigmoidGrad(x, t), c.b.tanhGrad(x, t),
           c.b.sigmoidCrossEntropy(x, t), c.b.sigmoidCrossEntropyGrad(y, x, t),
           Output{c.b.node("Identity", {x})}, Output{c.b.node("ZerosLike", {x})},
           c.b.normalise(c.integers(DType::kUInt8, {rows, columns}, 256), 1.0 / 255)},
          kElementwise);
    }
  }
}

TEST_P(DeviceSuite, KeepsItsPrecisionFarFromZeroAndNearIt) {
  Case c;
  const Output far = c.floats({1000}, -80, 80), near = c.floats({1000}, -1e-3f, 1e-3f);
  const Output t = c.floats({1000}, 0, 1);
  c.expect(device_,
           {c.b.sigmoid(far), c.b.tanh(far), c.b.sigmoidCrossEntropy(far, t), c.b.sigmoid(near),
            c.b.scale(c.b.tanh(near), 1e3), c.b.sigmoidCrossEntropy(near, t)},
           kElementwise);
}

TEST_P(DeviceSuite, ComputesByRow) {
  for (const int64_t rows : kSizes) {
    for (const int64_t columns : kSizes) {
      Case c;
      const Output x = c.floats({rows, columns}), y = c.floats({rows, columns}, 0, 1);
      const Output factors = c.floats({rows}), bias = c.floats({columns});
      c.expect(device_,
               {c.b.biasAdd(x, bias), c.b.biasAddGrad(y), c.b.mulRows(factors, x), c.b.mean(x),
                c.b.meanGrad(c.b.mean(x), {rows, columns}), c.b.softmax(x),
                c.b.softmaxGrad(y, c.b.softmax(x))},
               kSums);
    }
  }
}

// A diverged loss must show as NaN, whichever kernel computes the relu.
TEST_P(DeviceSuite, AReluBehindAProductKeepsNan) {
  for (const int64_t batch : kSizes) {
    for (const int64_t units : kSizes) {
      Case c;
      const Output a = c.floats({batch, 33}), w = c.floats({33, units}), bias = c.floats({units});
      c.feeds[a][0] = std::nan("");
      const std::vector<Output> fetches = {c.b.relu(c.b.biasAdd(c.b.matMul(a, w), bias))};
      for (const Precision precision : {Precision::kFloat32, Precision::kTf32}) {
        StepRunner runner(*device_.device, device_.kernels, c.graph, c.feeds, fetches,
                          {.precision = precision});
        runner.run();
        const Values made = runner.fetch(0);
        for (int64_t i = 0; i < batch * units; ++i)
          ASSERT_EQ(std::isnan(made[static_cast<size_t>(i)]), i < units) << i;
      }
    }
  }
}

// A device may compute both at once, whatever the layout of the factors.
TEST_P(DeviceSuite, AddsABiasToProducts) {
  for (const int64_t batch : kSizes) {
    for (const int64_t units : kSizes) {
      Case c;
      const Output a = c.floats({batch, 33}, -1, 1), at = c.floats({33, batch}, -1, 1);
      const Output w = c.floats({33, units}, -1, 1), wt = c.floats({units, 33}, -1, 1);
      const Output bias = c.floats({units});
      std::vector<Output> fetches = {c.b.biasAdd(c.b.matMul(a, w), bias),
                                     c.b.relu(c.b.biasAdd(c.b.matMul(a, w), bias)),
                                     c.b.relu(c.b.biasAdd(c.b.matMul(at, w, true), bias)),
                                     c.b.relu(c.b.biasAdd(c.b.matMul(a, wt, false, true), bias)),
                                     c.b.biasAdd(c.b.matMul(at, wt, true, true), bias)};
      const Output y = c.b.relu(c.b.biasAdd(c.b.matMul(a, w), bias));
      const std::vector<Output> gradients =
          graph::addGradients(c.graph, c.b.mean(c.b.tanh(y)), std::vector{a, w, bias});
      fetches.insert(fetches.end(), gradients.begin(), gradients.end());
      c.expect(device_, fetches, kSums);
      if (!device_.kernels.has(kFusedMatMulOp, device_.device->type())) continue;
      for (const bool fuse : {true, false}) {
        const StepPlan plan =
            planStep(c.graph, fetches, device_.device->type(), device_.kernels, {.fuse = fuse});
        // The layer that is trained, and the five others.
        EXPECT_EQ(std::ranges::count(plan.kernels, kFusedMatMulOp, &StepPlan::Row::op),
                  fuse ? 6 : 0);
        EXPECT_EQ(std::ranges::count(plan.kernels, "Relu", &StepPlan::Row::op), fuse ? 0 : 4);
      }
    }
  }
}

TEST_P(DeviceSuite, MultipliesMatricesInEveryOrientation) {
  for (const int64_t m : kSizes) {
    for (const int64_t n : kSizes) {
      for (const int64_t k : {int64_t{1}, int64_t{17}, int64_t{100}}) {
        Case c;
        const Output a = c.floats({m, k}, -1, 1), at = c.floats({k, m}, -1, 1);
        const Output b = c.floats({k, n}, -1, 1), bt = c.floats({n, k}, -1, 1);
        c.expect(device_,
                 {c.b.matMul(a, b), c.b.matMul(at, b, true), c.b.matMul(a, bt, false, true),
                  c.b.matMul(at, bt, true, true)},
                 kSums);
      }
    }
  }
}

TEST_P(DeviceSuite, TakesLabelsOfEveryType) {
  for (const DType dtype : {DType::kUInt8, DType::kInt32, DType::kInt64}) {
    for (const int64_t rows : kSizes) {
      for (const int64_t classes : {1, 2, 10, 17, 100}) {
        Case c;
        const Output logits = c.floats({rows, classes}, -20, 20);
        const Output labels = c.integers(dtype, {rows}, classes);
        const auto entropy = c.b.sparseSoftmaxCrossEntropy(logits, labels);
        c.expect(device_,
                 {entropy.loss, entropy.backprop, c.b.oneHot(labels, classes),
                  c.b.accuracy(logits, labels)},
                 kSums);
      }
    }
  }
}

Output dropoutKey(Case& c, double seed, double batch) {
  const Output key = c.b.placeholder(c.graph.uniqueName("key"), DType::kInt64, {2});
  c.feeds[key] = {seed, batch};
  return key;
}

TEST_P(DeviceSuite, DropsOutWhatTheKeySays) {
  constexpr double kSeed = 0x1p45 + 3, kBatch = 0x1p33 + 5;  // more than 32 bits of each count
  for (const int64_t rows : kSizes) {
    for (const int64_t columns : kSizes) {
      Case c;
      const Output x = c.floats({rows, columns}), key = dropoutKey(c, kSeed, kBatch);
      c.expect(device_,
               {c.b.dropout(x, key, 0, 0), c.b.dropout(x, key, 0.1, 0), c.b.dropout(x, key, 0.5, 1),
                c.b.dropout(c.b.relu(x), key, 0.5, 999), c.b.dropout(x, key, 0.99, 0)},
               kElementwise);
    }
  }
}

TEST_P(DeviceSuite, DropoutAndItsGradientHaveOneMaskForEachKey) {
  constexpr int64_t kElements = 100'000;
  constexpr float kRate = 0.3f;
  Case c;
  const Output x = c.floats({kElements}, 1, 2);
  const Output key = dropoutKey(c, 1, 2);
  const Output y = c.b.dropout(x, key, kRate, 0);
  const Output dx = graph::addGradients(c.graph, c.b.mean(y), std::array{x})[0];
  const std::vector<Output> fetches = {y,
                                       dx,
                                       c.b.dropout(x, dropoutKey(c, 1, 2), kRate, 0),
                                       c.b.dropout(x, dropoutKey(c, 1, 3), kRate, 0),
                                       c.b.dropout(x, dropoutKey(c, 2, 2), kRate, 0),
                                       c.b.dropout(x, key, kRate, 1)};
  StepRunner runner(*device_.device, device_.kernels, c.graph, c.feeds, fetches);
  runner.run();
  const Values forward = runner.fetch(0), backward = runner.fetch(1);
  int64_t kept = 0;
  for (size_t i = 0; i < kElements; ++i) {
    ASSERT_EQ(forward[i] != 0, backward[i] != 0) << i;
    if (forward[i] == 0) continue;
    ++kept;
    ASSERT_NEAR(forward[i], c.feeds[x][i] / (1 - kRate), 1e-6) << i;
    ASSERT_NEAR(backward[i] * kElements, 1 / (1 - kRate), 1e-6) << i;
  }
  // Five standard deviations of a fair draw.
  EXPECT_NEAR(kept, kElements * (1 - kRate), 5 * std::sqrt(kElements * kRate * (1 - kRate)));
  EXPECT_EQ(runner.fetch(2), forward);
  for (const int other : {3, 4, 5}) {
    const Values values = runner.fetch(other);
    int64_t both = 0;
    for (size_t i = 0; i < kElements; ++i) both += forward[i] != 0 && values[i] != 0 ? 1 : 0;
    const double expected = (1 - kRate) * (1 - kRate);  // of independent masks
    EXPECT_NEAR(both, kElements * expected, 5 * std::sqrt(kElements * expected * (1 - expected)))
        << other;
  }
}

TEST_P(DeviceSuite, RefusesALabelWithoutAClass) {
  for (const bool fuse : {true, false}) {
    for (const double label : {-1.0, 10.0}) {
      Random random(21);
      Classifier model = makeClassifier(
          random, {.batch = 4, .inputs = 5, .classes = 10, .label_type = DType::kInt32});
      for (auto& [output, values] : model.feeds) {
        if (model.graph.node(output.node).name == "labels") values[2] = label;
      }
      const std::vector<Output> fetches = {model.loss};
      StepRunner runner(*device_.device, device_.kernels, model.graph, model.feeds, fetches,
                        {.fuse = fuse});
      try {
        runner.run();
        ADD_FAILURE() << "label " << label << " was taken";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kBadData);
        EXPECT_THAT(error.message(), ::testing::HasSubstr("row 2"));
      }
    }
  }
}

TEST_P(DeviceSuite, LetsNanReachTheLoss) {
  Random random(22);
  for (const bool fuse : {true, false}) {
    Classifier model = makeClassifier(
        random, {.batch = 4, .inputs = 5, .hidden = {7}, .image_type = DType::kFloat32});
    for (auto& [output, values] : model.feeds) {
      if (model.graph.node(output.node).name == "images") values[7] = std::nan("");
    }
    const std::vector<Output> fetches = {model.loss};
    StepRunner runner(*device_.device, device_.kernels, model.graph, model.feeds, fetches,
                      {.fuse = fuse});
    runner.run();
    EXPECT_TRUE(std::isnan(runner.fetch(0)[0]));
  }
}

TEST_P(DeviceSuite, TrainsClassifiersFusedAndNot) {
  uint64_t seed = 100;
  for (const int64_t batch : kSizes) {
    for (const int64_t classes : {2, 10, 16, 17}) {
      for (const DType images : {DType::kUInt8, DType::kFloat32}) {
        SCOPED_TRACE(seed);
        Random random(seed++);
        const Classifier model =
            makeClassifier(random, {.batch = batch,
                                    .inputs = 45,
                                    .hidden = {static_cast<int64_t>(seed % 40)},
                                    .classes = classes,
                                    .image_type = images});
        for (const bool fuse : {true, false}) {
          const std::vector<Output> fetches = {model.loss, model.accuracy};
          StepRunner runner(*device_.device, device_.kernels, model.graph, model.feeds, fetches,
                            {.fuse = fuse});
          runner.run();
          expectNear(runner.fetch(0), evaluate(model.graph, model.feeds, model.loss), kSums);
          expectNear(runner.fetch(1), evaluate(model.graph, model.feeds, model.accuracy), kSums);
          for (size_t i = 0; i < model.gradients.size(); ++i) {
            expectNear(runner.gradient(model.variables[i]),
                       evaluate(model.graph, model.feeds, model.gradients[i]), kSums);
          }
        }
      }
    }
  }
}

TEST_P(DeviceSuite, GivesTheSameBitsInEveryRun) {
  Random random(23);
  const Classifier model = makeClassifier(random, {.batch = 33, .inputs = 100, .hidden = {50}});
  const std::vector<Output> fetches = {model.loss};
  StepRunner one(*device_.device, device_.kernels, model.graph, model.feeds, fetches);
  one.run();
  std::vector<const KernelTable*> others = {&device_.kernels};
  for (const KernelTable& alike : device_.alike) others.push_back(&alike);
  for (const KernelTable* kernels : others) {
    StepRunner other(*device_.device, *kernels, model.graph, model.feeds, fetches);
    for (int repeat = 0; repeat < 3; ++repeat) {
      other.run();
      EXPECT_EQ(one.fetch(0), other.fetch(0));
      for (const std::string& name : model.variables) {
        EXPECT_EQ(one.gradient(name), other.gradient(name)) << name;
      }
    }
  }
}

TEST_P(DeviceSuite, ComputesRandomGraphs) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const auto made = graph::testing::makeRandomGraph(random, 60);
    std::vector<Output> fetches;
    for (int i = 0; i < 4; ++i) fetches.push_back(made.tensors[random.below(made.tensors.size())]);
    std::erase_if(fetches, [&](Output o) { return made.graph.spec(o).dtype != DType::kFloat32; });
    expectLikeReference(*device_.device, device_.kernels, made.graph, made.feeds, fetches, 1e-4);
    for (const KernelTable& other : device_.alike)
      expectSameBits(*device_.device, device_.kernels, other, made.graph, made.feeds, fetches);
  }
}

}  // namespace
}  // namespace dtf::runtime::testing
