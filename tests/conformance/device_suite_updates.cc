// Variables that a device holds: each optimizer's updates have the bits of a ps.

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "common/optimizer/gradient_math.h"
#include "common/optimizer/moving_average.h"
#include "common/optimizer/parameter_store.h"
#include "common/runtime/variable_ops.h"
#include "common/train/device_variables.h"
#include "tests/conformance/device_case.h"

namespace dtf::runtime::testing {
namespace {

using cluster::OptimizerSpec;
using Kind = OptimizerSpec::Kind;

// Odd sizes, so that there is padding; two statistics with momenta of their own.
arena::VariableParts variable(const std::string& name, Shape shape,
                              std::optional<double> momentum) {
  const auto count = static_cast<uint64_t>(shape.elements());
  return {name, std::move(shape), {{0, 0, count}}, momentum};
}
arena::ParameterLayout someVariables() {
  return arena::makeLayout({variable("w", {37, 53}, std::nullopt), variable("mean", {53}, 0.9),
                            variable("b", {5}, std::nullopt), variable("variance", {17}, 0.99),
                            variable("last", {1}, std::nullopt)},
                           1);
}

std::vector<OptimizerSpec> optimizersOfDevices() {
  std::vector<OptimizerSpec> all;
  for (const Kind kind : {Kind::kGradientDescent, Kind::kMomentum, Kind::kAdagrad, Kind::kAdadelta,
                          Kind::kAdam, Kind::kAdamW, Kind::kRmsProp, Kind::kFtrl}) {
    OptimizerSpec spec;
    spec.kind = kind;
    spec.epsilon = 1e-4;
    all.push_back(spec);
    spec.use_nesterov = kind == Kind::kMomentum;
    spec.centered = kind == Kind::kRmsProp;
    spec.weight_decay = 1e-2;
    spec.l1_regularization_strength = spec.l2_regularization_strength = 1e-3;
    spec.l2_shrinkage_regularization_strength = 1e-3;
    spec.clip_by_value = 0.5;
    spec.moving_average_decay = 0.9;
    spec.schedule.kind = cluster::LearningRateSchedule::Kind::kExponential;
    all.push_back(spec);
  }
  return all;
}

// A shard of this process with its initial values.
struct Shards {
  explicit Shards(const OptimizerSpec& optimizer, arena::ParameterLayout of = someVariables())
      : optimizer(optimizer), layout(std::move(of)) {
    const uint64_t elements = layout.shards[0].elements;
    values.resize(elements);
    gradient.resize(elements);
    here.emplace(optimizer, elements, std::vector<arena::Slice>{},
                 optimizer::movingRanges(layout, 0));
  }
  // Padding stays 0.
  void draw(std::vector<float>& to, Random& random, float low, float high) const {
    for (const arena::Slice& slice : layout.shards[0].slices) {
      const Values drawn = randomValues(random, static_cast<int64_t>(slice.count), low, high);
      std::ranges::transform(drawn, to.begin() + static_cast<ptrdiff_t>(slice.offset),
                             [](double x) { return static_cast<float>(x); });
    }
  }

  const OptimizerSpec optimizer;
  const arena::ParameterLayout layout;
  std::vector<float> values, gradient;
  std::optional<optimizer::ParameterStore> here;
};

void sendGradient(Device& device, const train::DeviceVariables& kept, const Shards& shards,
                  size_t tower = 0) {
  const DeviceLock lock(device);
  for (const arena::Slice& slice : shards.layout.shards[0].slices) {
    const std::string& name = shards.layout.variables[slice.variable].name;
    device.copyToDevice(reinterpret_cast<std::byte*>(kept.kept()[tower]->at(name).gradient),
                        reinterpret_cast<const std::byte*>(shards.gradient.data() + slice.offset),
                        slice.count * sizeof(float));
  }
  device.synchronise();
}

bool sameBits(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

bool keepsVariables(const DeviceUnderTest& device) {
  return device.kernels.has(kApplyOptimizerOp, device.device->type());
}

TEST_P(DeviceSuite, UpdatesWithTheBitsOfAPs) {
  const std::array on = {train::ComputeDevice{device_.device.get(), &device_.kernels}};
  ASSERT_EQ(keepsVariables(device_), !device_.device->usesHostMemory());
  if (!keepsVariables(device_)) {
    EXPECT_THAT(train::DeviceVariables::refusal(someVariables(), {}, on),
                ::testing::HasSubstr("no kernel"));
    return;
  }
  Random random(7);
  for (const OptimizerSpec& optimizer : optimizersOfDevices()) {
    SCOPED_TRACE(std::string(cluster::optimizerName(optimizer.kind)) +
                 (optimizer.clip_by_value > 0 ? ", all settings" : ""));
    Shards shards(optimizer);
    ASSERT_EQ(train::DeviceVariables::refusal(shards.layout, optimizer, on), "");
    const auto kept = std::make_shared<train::DeviceVariables>(shards.layout, optimizer, on);
    const uint64_t elements = shards.layout.shards[0].elements;
    optimizer::ParameterStore there(optimizer, elements, {},
                                    optimizer::movingRanges(shards.layout, 0), {}, kept);
    shards.draw(shards.values, random, -1, 1);
    shards.here->initialise(shards.values);
    there.initialise(shards.values);
    const auto padding = [&](uint64_t at) {
      return std::ranges::none_of(shards.layout.shards[0].slices, [at](const arena::Slice& slice) {
        return slice.offset <= at && at < slice.offset + slice.count;
      });
    };
    const auto expect_same = [&](const char* what, const float* here, const float* device) {
      for (uint64_t i = 0; i < elements; ++i)
        ASSERT_TRUE(padding(i) || sameBits(here[i], device[i]))
            << what << " " << i << ": " << here[i] << " on a ps, " << device[i] << " on the device";
    };
    for (int update = 0; update < 5; ++update) {
      shards.draw(shards.gradient, random, -2, 2);
      sendGradient(*device_.device, *kept, shards);
      shards.here->apply({{shards.gradient, nullptr}});
      there.apply({{shards.gradient, nullptr}});
      ASSERT_EQ(there.version(), shards.here->version());
      if (update % 2 == 0) continue;  // two updates, one read
      expect_same("parameter", shards.here->current()->data(), there.readable()->data());
      std::vector<float> slot(elements);
      for (uint32_t i = 0; i < there.slotCount(); ++i) {
        kept->readSlot(i, slot.data());
        // A ps doesn't touch the slots of statistics, and neither does the device.
        expect_same("slot", shards.here->slot(i).data(), slot.data());
      }
    }
  }
}

// As many towers as the device has handles, also on one GPU. The mean has the bits of
// tower_group.h, and each tower updates its share; with fewer lines than towers some have none.
TEST_P(DeviceSuite, TowersUpdateWithTheBitsOfAPs) {
  if (!keepsVariables(device_)) GTEST_SKIP() << "it keeps none, as UpdatesWithTheBitsOfAPs shows";
  OptimizerSpec optimizer;
  optimizer.kind = Kind::kAdam;
  Random random(9);
  const arena::ParameterLayout few =
      arena::makeLayout({variable("w", {3}, std::nullopt), variable("mean", {3}, 0.9)}, 1);
  struct Trial {
    size_t towers;
    arena::ParameterLayout layout;
  };
  for (const auto& [towers, layout] : {Trial{2, someVariables()}, Trial{3, someVariables()},
                                       Trial{16, someVariables()}, Trial{5, few}}) {
    SCOPED_TRACE(std::to_string(towers) + " towers");
    std::vector<DeviceUnderTest> devices;
    std::vector<train::ComputeDevice> on;
    for (size_t i = 0; i < towers; ++i) devices.push_back(GetParam().make());
    for (DeviceUnderTest& device : devices) on.push_back({device.device.get(), &device.kernels});
    Shards shards(optimizer, layout);
    const auto kept = std::make_shared<train::DeviceVariables>(shards.layout, optimizer, on);
    optimizer::ParameterStore there(optimizer, shards.layout.shards[0].elements, {},
                                    optimizer::movingRanges(shards.layout, 0), {}, kept);
    shards.draw(shards.values, random, -1, 1);
    shards.here->initialise(shards.values);
    there.initialise(shards.values);
    for (int update = 0; update < 3; ++update) {
      std::vector<float> mean(shards.gradient.size());
      for (size_t tower = 0; tower < towers; ++tower) {
        shards.draw(shards.gradient, random, -2, 2);
        sendGradient(*on[tower].device, *kept, shards, tower);
        optimizer::addInto(mean.data(), shards.gradient.data(), mean.size());
      }
      optimizer::scale(mean.data(), 1 / static_cast<float>(towers), mean.size());
      EXPECT_TRUE(kept->prepareUpdate().statistics_are_finite);
      std::vector<float> mean_there(mean.size());
      kept->readGradients(mean_there.data());
      EXPECT_EQ(mean_there, mean);
      shards.here->apply({{mean, nullptr}});
      there.apply({{mean, nullptr}});
      const float* const here = shards.here->current()->data();
      ASSERT_TRUE(std::equal(here, here + mean.size(), there.readable()->data(), sameBits));
      std::vector<float> slot(mean.size());
      for (uint32_t i = 0; i < there.slotCount(); ++i) {
        kept->readSlot(i, slot.data());
        EXPECT_TRUE(std::ranges::equal(shards.here->slot(i), slot)) << i;
      }
    }
  }
}

TEST_P(DeviceSuite, ClipsByTheGlobalNormOfWhatIsTrained) {
  if (!keepsVariables(device_)) GTEST_SKIP() << "it keeps none, as UpdatesWithTheBitsOfAPs shows";
  OptimizerSpec optimizer;
  optimizer.clip_by_global_norm = 3;
  Shards shards(optimizer);
  const std::array on = {train::ComputeDevice{device_.device.get(), &device_.kernels}};
  train::DeviceVariables kept(shards.layout, optimizer, on);
  Random random(8);
  for (const float size : {1e-3f, 4.0f}) {
    shards.draw(shards.gradient, random, -size, size);
    sendGradient(*device_.device, kept, shards);
    double sum = 0;
    for (const arena::Slice& slice : shards.layout.shards[0].slices)
      if (!shards.layout.variables[slice.variable].momentum)
        sum += optimizer::sumOfSquares({shards.gradient.data() + slice.offset, slice.count});
    const double norm = std::sqrt(sum);
    const train::DeviceArena::Findings findings = kept.prepareUpdate();
    EXPECT_TRUE(findings.statistics_are_finite);
    EXPECT_NEAR(findings.norm, norm, 1e-6 * norm);
    std::vector<float> clipped(shards.gradient.size());
    kept.readGradients(clipped.data());
    for (const arena::Slice& slice : shards.layout.shards[0].slices) {
      const bool trained = !shards.layout.variables[slice.variable].momentum;
      const auto factor = trained && norm > 3 ? static_cast<float>(3 / findings.norm) : 1.0f;
      for (uint64_t i = slice.offset; i < slice.offset + slice.count; ++i)
        ASSERT_EQ(clipped[i], shards.gradient[i] * factor) << i;
    }
  }
  const arena::Slice& trained = *std::ranges::find_if(
      shards.layout.shards[0].slices,
      [&](const arena::Slice& slice) { return !shards.layout.variables[slice.variable].momentum; });
  shards.gradient[trained.offset + trained.count - 1] = std::numeric_limits<float>::infinity();
  sendGradient(*device_.device, kept, shards);
  EXPECT_FALSE(std::isfinite(kept.prepareUpdate().norm));
}

TEST_P(DeviceSuite, FindsStatisticsThatAreNoNumbers) {
  if (!keepsVariables(device_)) GTEST_SKIP() << "it keeps none, as UpdatesWithTheBitsOfAPs shows";
  Shards shards({});
  const std::array on = {train::ComputeDevice{device_.device.get(), &device_.kernels}};
  train::DeviceVariables kept(shards.layout, {}, on);
  for (const arena::Slice& slice : shards.layout.shards[0].slices) {
    const bool statistic = shards.layout.variables[slice.variable].momentum.has_value();
    for (const float wrong : {std::nanf(""), -std::numeric_limits<float>::infinity()}) {
      const uint64_t at = slice.offset + slice.count - 1;
      shards.gradient[at] = wrong;
      sendGradient(*device_.device, kept, shards);
      EXPECT_EQ(kept.prepareUpdate().statistics_are_finite, !statistic) << slice.variable;
      shards.gradient[at] = 0;
    }
  }
  sendGradient(*device_.device, kept, shards);
  EXPECT_TRUE(kept.prepareUpdate().statistics_are_finite);
}

TEST_P(DeviceSuite, RefusesTensorsOfOtherLines) {
  if (!keepsVariables(device_)) GTEST_SKIP() << "it keeps none, as UpdatesWithTheBitsOfAPs shows";
  const auto make = [&](std::string_view op, graph::Attributes attributes,
                        const std::vector<std::pair<DType, int64_t>>& inputs, int64_t output) {
    Operation operation;
    operation.name = "lines";
    operation.op = op;
    operation.attributes = std::move(attributes);
    for (const auto& [dtype, elements] : inputs) {
      operation.inputs.push_back({0, static_cast<int32_t>(operation.inputs.size())});
      operation.input_specs.push_back({dtype, {elements}});
    }
    operation.outputs.push_back({0, 100});
    operation.output_specs.push_back({DType::kFloat32, {output}});
    return device_.kernels.make(operation, device_.device->type());
  };
  constexpr auto kF = DType::kFloat32;
  constexpr auto kU = DType::kUInt8;
  const graph::Attributes half = {{"share", 0.5}};
  EXPECT_NO_THROW(make(kMeanOfTowersOp, half, {{kF, 64}, {kF, 64}}, 64));
  EXPECT_THROW(make(kMeanOfTowersOp, half, {{kF, 64}, {kF, 48}}, 64), Error);
  EXPECT_NO_THROW(make(kNormOfTrainedOp, {}, {{kU, 4}, {kF, 4 * kArenaLine}}, 1));
  EXPECT_THROW(make(kNormOfTrainedOp, {}, {{kU, 3}, {kF, 4 * kArenaLine}}, 1), Error);
  EXPECT_THROW(make(kScaleTrainedOp, {}, {{kF, 1}, {kU, 4}, {kF, 5 * kArenaLine}}, 5 * kArenaLine),
               Error);
}

}  // namespace
}  // namespace dtf::runtime::testing
