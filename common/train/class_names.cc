#include "common/train/class_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/base/check.h"

namespace dtf::train {

std::string encodeClassNames(const ClassNames& names) {
  constexpr auto kReplaced = nlohmann::json::error_handler_t::replace;
  return nlohmann::json(names).dump(-1, ' ', true, kReplaced);
}

ClassNames decodeClassNames(std::string_view text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  const auto is_text = [](const nlohmann::json& name) { return name.is_string(); };
  if (!json.is_array() || !std::all_of(json.begin(), json.end(), is_text)) return {};
  return json.get<ClassNames>();
}

std::string classDifference(const ClassNames& of_model, const ClassNames& of_data,
                            const std::string& data) {
  DTF_CHECK(!data.empty());
  // Both as they were written.
  const ClassNames now = decodeClassNames(encodeClassNames(of_data));
  if (of_model.empty() || now.empty() || of_model == now) return {};
  const auto differ = std::mismatch(of_model.begin(), of_model.end(), now.begin(), now.end());
  const auto name = [](const ClassNames& names, ClassNames::const_iterator at) {
    return at == names.end() ? std::string("none") : "'" + *at + "'";
  };
  return fmt::format(
      "  class {} is {} of the {} that the model was trained on, and {} of the {} of {}: say their "
      "order with class_names, or take the folder away that is new",
      differ.first - of_model.begin(), name(of_model, differ.first), of_model.size(),
      name(now, differ.second), now.size(), data);
}

}  // namespace dtf::train
