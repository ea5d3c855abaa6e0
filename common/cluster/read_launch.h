#pragma once

// Reads `launch:` of a CLUSTER.yaml: how dtf-launch starts the tasks.

#include <filesystem>
#include <string_view>

#include "common/cluster/spec.h"
#include "common/yaml/map_reader.h"

namespace dtf::cluster {

// Adds mistakes to the report; the result is only meaningful when there are none.
LaunchSpec readLaunch(const yaml::YamlNode& node, const ClusterSpec& cluster, yaml::Report& report);

// Reads the path of a file or folder, relative to the file that names it.
void readFileName(const yaml::MapReader& reader, std::string_view key, std::filesystem::path& file);

}  // namespace dtf::cluster
