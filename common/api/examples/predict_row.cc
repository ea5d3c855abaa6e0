// Applies a model of a table to one row. Columns are given by name, in any order; the checkpoint
// holds the names of the training data.
// Usage: predict_row CLUSTER.yaml COLUMN=NUMBER...

#include <dtf/model.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

namespace {

std::map<std::string, float> rowOf(int argc, char** argv) {
  std::map<std::string, float> row;
  for (int i = 2; i < argc; ++i) {
    const std::string field = argv[i];
    const size_t equals = field.find('=');
    const std::string text = equals == std::string::npos ? "" : field.substr(equals + 1);
    char* end = nullptr;
    const float number = std::strtof(text.c_str(), &end);
    if (text.empty() || end != text.c_str() + text.size())
      throw dtf::Error(DTF_USAGE, "'" + field + "' is not COLUMN=NUMBER");
    if (!row.emplace(field.substr(0, equals), number).second)
      throw dtf::Error(DTF_USAGE, field + ": the column is given twice");
  }
  return row;
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// Returns the features in the order of the training data.
std::vector<float> featuresOf(const std::map<std::string, float>& row,
                              const std::vector<std::string>& columns) {
  std::vector<float> features;
  for (const std::string& column : columns) {
    const auto found = row.find(column);
    if (found == row.end())
      throw dtf::Error(DTF_USAGE, "the row lacks the column " + column +
                                      "; the model was trained on " + listed(columns));
    features.push_back(found->second);
  }
  if (features.size() != row.size())
    throw dtf::Error(
        DTF_USAGE,
        "the row has columns that the model doesn't know; it was trained on " + listed(columns));
  return features;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 3) throw dtf::Error(DTF_USAGE, "usage: predict_row CLUSTER.yaml COLUMN=NUMBER...");
  const dtf::Model model(argv[1]);
  const std::vector<std::string> columns = model.columns("features"), classes = model.classes();
  if (columns.empty()) throw dtf::Error(DTF_BAD_CONFIG, "the model wasn't trained on a table");
  const std::vector<float> row = featuresOf(rowOf(argc, argv), columns);

  dtf::Graph graph;
  const dtf::Signature predict = model.addTo(graph, 1);
  const dtf::Output features = predict.inputs.at("features");
  dtf::Session session(graph, {});
  model.restore(predict, session);
  const auto values =
      session.run({{graph.name(features), dtf::Tensor::of<float>(graph.dims(features), row)}},
                  {graph.name(predict.outputs.at("outputs"))});
  const auto outputs = values[0].as<float>();
  const size_t best =
      static_cast<size_t>(std::max_element(outputs.begin(), outputs.end()) - outputs.begin());
  if (best >= classes.size())  // a number, or classes without names
    std::printf("%.6f\n", outputs[best]);
  else
    std::printf("%s %.6f\n", classes.at(best).c_str(), outputs[best]);
} catch (const dtf::Error& error) {
  std::fprintf(stderr, "predict_row: error: %s\n", error.what());
  return error.code();
}
