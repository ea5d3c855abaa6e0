#pragma once

// Manifest to and from JSON, without the checksum around it.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "common/checkpoint/manifest.h"

namespace dtf::checkpoint {

nlohmann::ordered_json manifestToJson(const Manifest& manifest);

// Checks the form only.
// Errors: kBadData naming the key.
Manifest manifestFromJson(const nlohmann::json& json);

}  // namespace dtf::checkpoint
