#pragma once

// Converts a manifest to and from JSON, without the checksum around it.

#include <string>

#include "common/base/json.h"
#include "common/checkpoint/manifest.h"

namespace dtf::checkpoint {

Json manifestToJson(const Manifest& manifest);

// Checks the form only.
// Errors: kBadData naming the key.
Manifest manifestFromJson(const Json& json);

}  // namespace dtf::checkpoint
