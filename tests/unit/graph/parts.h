#pragma once

// Helpers for tests of the partitioners, which look into parts and compute them together.

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/graph/reference_interpreter.h"

namespace dtf::graph::testing {

inline std::vector<const Node*> nodesOf(const Graph& graph, std::string_view op) {
  std::vector<const Node*> found;
  for (const Node& node : graph.nodes()) {
    if (node.op == op) found.push_back(&node);
  }
  return found;
}

// Computes parts together: a _Recv gets the value of its _Send, a _Pull the variable's.
// Borrows: the parts and the values of their sources, by name.
template <class Key>
class Together {
 public:
  Together(const std::map<Key, Graph>& parts, const std::map<std::string, Values>& sources)
      : parts_(parts), sources_(sources) {}

  Values value(const std::string& node_name) {
    for (const auto& [key, graph] : parts_) {
      const Node* node = graph.find(node_name);
      if (node != nullptr && node->op != "_Pull") return valueIn(graph, {node->id});
    }
    ADD_FAILURE() << node_name << " is in no part";
    return {};
  }

 private:
  Values valueIn(const Graph& graph, Output output) {
    Feeds feeds;
    for (const Node& node : graph.nodes()) {
      if (node.id > output.node) break;
      if (node.op == "_Recv") feeds[{node.id}] = received(node.attribute<std::string>("key"));
      if (node.op == "_Pull")
        feeds[{node.id}] = sources_.at(node.attribute<std::string>("variable"));
      if (sources_.contains(node.name) && node.op != "_Pull")
        feeds[{node.id}] = sources_.at(node.name);
    }
    return evaluate(graph, feeds, output);
  }

  Values received(const std::string& key) {
    if (const auto known = arrived_.find(key); known != arrived_.end()) return known->second;
    for (const auto& [part, graph] : parts_) {
      for (const Node* send : nodesOf(graph, "_Send")) {
        if (send->attribute<std::string>("key") != key) continue;
        return arrived_[key] = valueIn(graph, send->inputs[0]);
      }
    }
    ADD_FAILURE() << "nobody sends " << key;
    return {};
  }

  const std::map<Key, Graph>& parts_;
  const std::map<std::string, Values>& sources_;
  std::map<std::string, Values> arrived_;
};

}  // namespace dtf::graph::testing
