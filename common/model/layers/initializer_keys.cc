#include "common/model/layers/initializer_keys.h"

#include <fmt/format.h>

#include "common/base/check.h"
#include "common/graph/initializer.h"

namespace dtf::model {

namespace {

constexpr std::string_view kConstant = "constant";
constexpr yaml::Key kInitializerKeys[] = {
    yaml::map("glorot_uniform", "variance 2 / (inputs + outputs)"),
    yaml::map("glorot_normal", "likewise"),
    yaml::map("he_uniform", "variance 2 / inputs"),
    yaml::map("he_normal", "likewise"),
    yaml::map("lecun_uniform", "variance 1 / inputs"),
    yaml::map("lecun_normal", "likewise"),
    yaml::map("random_uniform", "from -0.05 to 0.05"),
    yaml::map("truncated_normal", "deviation 1 / sqrt(inputs), drawn again beyond two of them"),
    yaml::map("orthogonal", "orthonormal columns, or rows"),
    yaml::map("zeros", "all 0"),
    yaml::map("ones", "all 1"),
    yaml::number(kConstant, {-1e6, 1e6, false, false}, "this number everywhere"),
};
constinit const yaml::Table kNoSettings{"train.model.layers.N.TYPE.kernel_initializer.NAME", {}};

}  // namespace

constinit const yaml::Table kInitializerTable{
    "train.model.layers.N.TYPE.kernel_initializer, .bias_initializer and the like",
    kInitializerKeys};

void readInitializer(const yaml::MapReader& settings, std::string_view key,
                     std::string& initializer) {
  const yaml::YamlNode* const node = settings.find(key);
  if (node == nullptr) return;
  yaml::Report& report = settings.report();
  const auto chosen = yaml::readAlternative(*node, kInitializerTable, "initializer", report);
  if (!chosen) return;
  if (chosen->key->name != kConstant) {
    const yaml::MapReader nothing(chosen->settings, kNoSettings, chosen->key->name, report);
    initializer = chosen->key->name;
    return;
  }
  if (chosen->settings.isNull())
    report.error(chosen->settings.where(), "a constant needs its value: {constant: 0.1}");
  else if (const auto value = yaml::readNumber(chosen->settings, *chosen->key, report))
    initializer = fmt::format("{}{}", graph::kConstantInitializer, *value);
  DTF_CHECK_MSG(
      !initializer.starts_with(graph::kConstantInitializer) || graph::constantOf(initializer),
      initializer);
}

}  // namespace dtf::model
