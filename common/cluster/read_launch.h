#pragma once

// How the tasks are started: `launch:` of a CLUSTER.yaml.

#include <filesystem>
#include <string_view>

#include "common/cluster/spec.h"
#include "common/yaml/map_reader.h"

namespace dtf::cluster {

// Of a map without a mistake; what is wrong is reported.
LaunchSpec readLaunch(const yaml::YamlNode& node, const ClusterSpec& cluster, yaml::Report& report);

// A file or folder that the file names, relative to itself.
void readFileName(const yaml::MapReader& reader, std::string_view key, std::filesystem::path& file);

}  // namespace dtf::cluster
