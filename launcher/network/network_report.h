#pragma once

// A measured network as people and programs read it. Pure.

#include <string>
#include <vector>

#include "common/base/json.h"
#include "launcher/network/measurement.h"

namespace dtf::launcher {

// "1180", "11.8", "0.12", of bytes a second, in MB/s (10^6).
std::string rateText(double bytes_per_second);

// Columns from, to, address, MB/s, round trip us. Another address of a host than that in the file
// is marked with its interface; one that isn't reached has no numbers, and its problem below the
// table.
std::string networkTable(const std::vector<NetworkRow>& rows);

// {"pairs": [{"from", "to", "address", "interface", "in_file", "bytes_per_second", "round_trip_us"}
// or with "problem"], "warnings": [...]}
Json networkJson(const std::vector<NetworkRow>& rows, const std::vector<std::string>& warnings);

}  // namespace dtf::launcher
