#pragma once

// Graphviz' language, as far as graphs of ops need it. Names may hold anything: they are quoted.

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "common/graph/graph.h"

namespace dtf::launcher {

std::string dotQuoted(std::string_view text);
std::string dotNode(std::string_view name, std::string_view label);
// `attributes` as Graphviz has them: "style=dashed"; may be empty.
std::string dotEdge(std::string_view from, std::string_view to, std::string_view attributes);
// By device: what dotNode() gave of its nodes, in a box with its name.
std::string dotBoxes(const std::map<std::string, std::string>& boxes);

// From what `node` reads, and dashed from what it waits for, as far as that is drawn.
std::string dotEdgesTo(const graph::Graph& graph, const graph::Node& node,
                       const std::function<bool(const graph::Node&)>& is_drawn);

}  // namespace dtf::launcher
