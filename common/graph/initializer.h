#pragma once

// What a variable may hold before the first step, by the words that its op and the file use. The
// formulae are in train/initial_values.h.

#include <string_view>

namespace dtf::graph {

inline constexpr std::string_view kInitializerNames =
    "glorot_uniform|glorot_normal|he_uniform|he_normal|lecun_uniform|lecun_normal|"
    "truncated_normal|orthogonal|zeros|ones";

}  // namespace dtf::graph
