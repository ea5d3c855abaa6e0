#pragma once

// What the processor of this host is called: what was measured on one says nothing of another.

#include <string>
#include <string_view>

namespace dtf {

// The first "model name" of /proc/cpuinfo, "AMD EPYC 9B45"; "unknown CPU" where there is none.
// Blocks: on /proc, shortly.
std::string processorName();

// The same, of that file's text.
std::string processorNameIn(std::string_view cpuinfo);

}  // namespace dtf
