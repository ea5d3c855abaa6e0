#pragma once

// Fields of the JSON objects that dtf-launch reads. Another process wrote them: a field of another
// type counts as missing, and so do all fields of a value that is no object.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/json.h"

namespace dtf::launcher {

// The text under `key`; "" where there is none.
std::string textOf(const Json& object, std::string_view key);

// The finite number under `key`.
std::optional<double> numberOf(const Json& object, std::string_view key);

// The whole number from 0 on under `key`.
std::optional<uint64_t> countOf(const Json& object, std::string_view key);

// The metrics of an evaluation beside loss and accuracy, by name; other members are passed over.
std::vector<std::pair<std::string, double>> metricsOf(const Json& evaluation);

}  // namespace dtf::launcher
