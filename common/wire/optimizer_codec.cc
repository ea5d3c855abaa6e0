#include "common/wire/optimizer_codec.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/cluster/optimizer_settings.h"

namespace dtf::wire {

namespace {

using cluster::OptimizerSetting;
using ScheduleKind = cluster::LearningRateSchedule::Kind;

std::string_view viewOf(capnp::Text::Reader text) {
  return {text.begin(), text.size()};
}

double decodeSetting(capnp::List<schema::OptimizerSetting>::Reader sent,
                     const OptimizerSetting& setting) {
  for (const auto item : sent) {
    if (viewOf(item.getName()) != setting.name) continue;
    if (!cluster::holds(*setting.key, item.getValue()))
      refuseModel(fmt::format("the optimizer's {} cannot be {}", setting.name, item.getValue()));
    return item.getValue();
  }
  refuseModel(fmt::format("the optimizer's {} is missing", setting.name));
}

}  // namespace

void refuseModel(const std::string& what) {
  throw Error(ErrorCode::kBadConfig, "the declared model is not valid: " + what);
}

void encodeOptimizer(const cluster::OptimizerSpec& optimizer, schema::Optimizer::Builder builder) {
  builder.setKind(static_cast<uint8_t>(optimizer.kind));
  builder.setSchedule(static_cast<uint8_t>(optimizer.schedule.kind));
  const std::vector<OptimizerSetting> settings = cluster::optimizerSettings(optimizer);
  auto list = builder.initSettings(static_cast<uint32_t>(settings.size()));
  for (uint32_t i = 0; i < list.size(); ++i) {
    list[i].setName(kj::StringPtr(settings[i].name.data(), settings[i].name.size()));
    list[i].setValue(cluster::settingValue(optimizer, *settings[i].key));
  }
}

cluster::OptimizerSpec decodeOptimizer(schema::Optimizer::Reader reader) {
  if (!cluster::isOptimizerKind(reader.getKind()))
    refuseModel(fmt::format("optimizer kind {}", reader.getKind()));
  const auto schedule = static_cast<ScheduleKind>(reader.getSchedule());
  if (schedule < ScheduleKind::kConstant || schedule > ScheduleKind::kCosine)
    refuseModel(fmt::format("learning-rate schedule kind {}", reader.getSchedule()));
  cluster::OptimizerSpec optimizer =
      cluster::defaultOptimizer(static_cast<cluster::OptimizerSpec::Kind>(reader.getKind()));
  optimizer.schedule.kind = schedule;
  const std::vector<OptimizerSetting> expected = cluster::optimizerSettings(optimizer);
  const auto sent = reader.getSettings();
  if (sent.size() != expected.size())
    refuseModel(fmt::format("{} settings for an optimizer with {}", sent.size(), expected.size()));
  for (const OptimizerSetting& setting : expected)
    cluster::setSetting(optimizer, *setting.key, decodeSetting(sent, setting));
  return optimizer;
}

}  // namespace dtf::wire
