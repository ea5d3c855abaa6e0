// Applies a model trained by dtf-launch to one example, in this process or on a `workerd --serve`.
// Usage: apply_model CLUSTER.yaml FILE [WORKER]    FILE: the bytes of one example, as the model
//                                                  reads them

#include <dtf/model.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>

int main(int argc, char** argv) try {
  if (argc < 3 || argc > 4)
    throw dtf::Error(DTF_USAGE, "usage: apply_model CLUSTER.yaml FILE [dtf://WORKER]");
  const dtf::Model model(argv[1]);
  dtf::Graph graph;
  const dtf::Signature predict = model.addTo(graph, 1);
  const dtf::Output features = predict.inputs.at("features");
  std::ifstream file(argv[2], std::ios::binary);
  const std::vector<uint8_t> bytes(std::istreambuf_iterator<char>(file), {});
  const dtf::Tensor example = dtf::Tensor::of<uint8_t>(graph.dims(features), bytes);

  dtf::Session session(graph, {argv + 3, argv + argc});  // no target: in this process
  model.restore(predict, session);
  const auto values =
      session.run({{graph.name(features), example}}, {graph.name(predict.outputs.at("outputs"))});
  const auto outputs = values[0].as<float>();
  const auto best = std::max_element(outputs.begin(), outputs.end());
  std::printf("%d %.6f\n", static_cast<int>(best - outputs.begin()), *best);
} catch (const dtf::Error& error) {
  std::fprintf(stderr, "apply_model: error: %s\n", error.what());
  return error.code();
}
