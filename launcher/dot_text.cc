#include "launcher/dot_text.h"

#include <fmt/format.h>

namespace dtf::launcher {

std::string dotQuoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

std::string dotNode(std::string_view name, std::string_view label) {
  return fmt::format("    {} [label={}];\n", dotQuoted(name), dotQuoted(label));
}

std::string dotEdge(std::string_view from, std::string_view to, std::string_view attributes) {
  return attributes.empty()
             ? fmt::format("  {} -> {};\n", dotQuoted(from), dotQuoted(to))
             : fmt::format("  {} -> {} [{}];\n", dotQuoted(from), dotQuoted(to), attributes);
}

std::string dotBoxes(const std::map<std::string, std::string>& boxes) {
  std::string text;
  for (const auto& [device, nodes] : boxes)
    text += fmt::format("  subgraph {} {{\n    label={};\n{}  }}\n", dotQuoted("cluster " + device),
                        dotQuoted(device), nodes);
  return text;
}

std::string dotEdgesTo(const graph::Graph& graph, const graph::Node& node,
                       const std::function<bool(const graph::Node&)>& is_drawn) {
  std::string edges;
  for (const graph::Output& input : node.inputs)
    if (const graph::Node& from = graph.node(input.node); is_drawn(from))
      edges += dotEdge(from.name, node.name, "");
  for (const graph::NodeId before : node.control_inputs)
    if (const graph::Node& from = graph.node(before); is_drawn(from))
      edges += dotEdge(from.name, node.name, "style=dashed");
  return edges;
}

}  // namespace dtf::launcher
