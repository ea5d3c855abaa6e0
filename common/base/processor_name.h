#pragma once

// The name of this host's processor: measurements of one say nothing about another.

#include <string>
#include <string_view>

namespace dtf {

// The first "model name" of /proc/cpuinfo, "AMD EPYC 9B45"; "unknown CPU" where there is none.
// Blocks: on /proc, shortly.
std::string processorName();

// The same for the text of that file.
std::string processorNameIn(std::string_view cpuinfo);

}  // namespace dtf
