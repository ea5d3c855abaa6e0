#include "common/wire/optimizer_codec.h"

#include <cmath>
#include <string>

#include "common/base/error.h"

namespace dtf::wire {

namespace {

using ScheduleKind = cluster::LearningRateSchedule::Kind;

void encodeSchedule(const cluster::LearningRateSchedule& schedule,
                    schema::LearningRateSchedule::Builder builder) {
  builder.setKind(static_cast<uint8_t>(schedule.kind));
  builder.setWarmupSteps(schedule.warmup_steps);
  builder.setDecaySteps(schedule.decay_steps);
  builder.setDecayRate(schedule.decay_rate);
  builder.setStaircase(schedule.staircase);
  builder.setEndLearningRate(schedule.end_learning_rate);
  builder.setPower(schedule.power);
  builder.setCycle(schedule.cycle);
  builder.setAlpha(schedule.alpha);
}

cluster::LearningRateSchedule decodeSchedule(schema::LearningRateSchedule::Reader reader) {
  cluster::LearningRateSchedule schedule;
  if (reader.getKind() < static_cast<uint8_t>(ScheduleKind::kConstant) ||
      reader.getKind() > static_cast<uint8_t>(ScheduleKind::kCosine))
    refuseModel("learning-rate schedule kind " + std::to_string(reader.getKind()));
  schedule.kind = static_cast<ScheduleKind>(reader.getKind());
  schedule.warmup_steps = reader.getWarmupSteps();
  schedule.decay_steps = reader.getDecaySteps();
  schedule.decay_rate = reader.getDecayRate();
  schedule.staircase = reader.getStaircase();
  schedule.end_learning_rate = reader.getEndLearningRate();
  schedule.power = reader.getPower();
  schedule.cycle = reader.getCycle();
  schedule.alpha = reader.getAlpha();
  return schedule;
}

}  // namespace

void refuseModel(const std::string& what) {
  throw Error(ErrorCode::kBadConfig, "the declared model is not valid: " + what);
}

void encodeOptimizer(const cluster::OptimizerSpec& optimizer, schema::Optimizer::Builder builder) {
  builder.setKind(static_cast<uint8_t>(optimizer.kind));
  builder.setLearningRate(optimizer.learning_rate);
  builder.setInitialAccumulatorValue(optimizer.initial_accumulator_value);
  builder.setBeta1(optimizer.beta1);
  builder.setBeta2(optimizer.beta2);
  builder.setEpsilon(optimizer.epsilon);
  builder.setMomentum(optimizer.momentum);
  builder.setUseNesterov(optimizer.use_nesterov);
  builder.setRho(optimizer.rho);
  builder.setDecay(optimizer.decay);
  builder.setCentered(optimizer.centered);
  builder.setLearningRatePower(optimizer.learning_rate_power);
  builder.setL1RegularizationStrength(optimizer.l1_regularization_strength);
  builder.setL2RegularizationStrength(optimizer.l2_regularization_strength);
  builder.setL2ShrinkageRegularizationStrength(optimizer.l2_shrinkage_regularization_strength);
  builder.setEeta(optimizer.eeta);
  builder.setWeightDecay(optimizer.weight_decay);
  builder.setClipByValue(optimizer.clip_by_value);
  builder.setClipByGlobalNorm(optimizer.clip_by_global_norm);
  builder.setMovingAverageDecay(optimizer.moving_average_decay);
  encodeSchedule(optimizer.schedule, builder.initSchedule());
}

cluster::OptimizerSpec decodeOptimizer(schema::Optimizer::Reader reader) {
  cluster::OptimizerSpec optimizer;
  if (!cluster::isOptimizerKind(reader.getKind()))
    refuseModel("optimizer kind " + std::to_string(reader.getKind()));
  optimizer.kind = static_cast<cluster::OptimizerSpec::Kind>(reader.getKind());
  optimizer.learning_rate = reader.getLearningRate();
  optimizer.initial_accumulator_value = reader.getInitialAccumulatorValue();
  optimizer.beta1 = reader.getBeta1();
  optimizer.beta2 = reader.getBeta2();
  optimizer.epsilon = reader.getEpsilon();
  optimizer.momentum = reader.getMomentum();
  optimizer.use_nesterov = reader.getUseNesterov();
  optimizer.rho = reader.getRho();
  optimizer.decay = reader.getDecay();
  optimizer.centered = reader.getCentered();
  optimizer.learning_rate_power = reader.getLearningRatePower();
  optimizer.l1_regularization_strength = reader.getL1RegularizationStrength();
  optimizer.l2_regularization_strength = reader.getL2RegularizationStrength();
  optimizer.l2_shrinkage_regularization_strength = reader.getL2ShrinkageRegularizationStrength();
  optimizer.eeta = reader.getEeta();
  optimizer.weight_decay = reader.getWeightDecay();
  optimizer.clip_by_value = reader.getClipByValue();
  optimizer.clip_by_global_norm = reader.getClipByGlobalNorm();
  optimizer.moving_average_decay = reader.getMovingAverageDecay();
  optimizer.schedule = decodeSchedule(reader.getSchedule());
  visitSettings(optimizer, [](std::string_view name, const auto& value) {
    if (!std::isfinite(static_cast<double>(value)))
      refuseModel("the optimizer's " + std::string(name) + " is not finite");
  });
  return optimizer;
}

}  // namespace dtf::wire
