// No value in a file crashes the reader of ops: every attribute of the table of ops is tried at its
// ends and with values of other kinds, with inputs of several shapes and types.

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/graph/op_def.h"
#include "common/model/graph_file_schema.h"
#include "common/model/graph_reader.h"
#include "common/yaml/keys.h"
#include "common/yaml/yaml_tree.h"
#include "tests/support/repetitions.h"

namespace dtf::model {
namespace {

constexpr yaml::Key kOpFileKeys[] = {yaml::list("ops", ""), yaml::list("functions", "")};
constinit const yaml::Table kOpFileTable{"ops", kOpFileKeys};

// A file is read or rejected with a message; any other outcome ends this process.
void read(const std::string& text) {
  yaml::Report report;
  const auto node = yaml::parseYaml(text, report.addFile("net.yaml", text), report);
  ASSERT_TRUE(node.has_value()) << text;
  GraphReader reader(report, 3);
  reader.addInput("f", {DType::kFloat32, Shape{3, 4}});
  reader.addInput("g", {DType::kFloat32, Shape{2, 5, 5, 3}});
  reader.addInput("i", {DType::kInt32, Shape{3}});
  reader.addInput("l", {DType::kInt64, Shape()});
  reader.addInput("b", {DType::kUInt8, Shape{3, 4}});
  reader.read(yaml::MapReader(*node, kOpFileTable, "", report));
  try {
    report.throwIfAny();
  } catch (const Error& error) {
    EXPECT_TRUE(error.code() == ErrorCode::kBadConfig || error.code() == ErrorCode::kBadData)
        << text << error.message();
  }
}

const std::vector<std::string>& valuesOf(const graph::AttributeDef& attribute) {
  using Type = graph::AttributeDef::Type;
  static const std::vector<std::string> bools = {"true", "false", "maybe", "[]"};
  static const std::vector<std::string> whole = {
      "0", "1", "-1", "9223372036854775807", "-9223372036854775808", "3", "x", "[1]"};
  static const std::vector<std::string> numbers = {"0",     "-1",   "1e38", "-1e38",
                                                   "1e-45", ".nan", "x"};
  static const std::vector<std::string> texts = {"''", "x", "NHWC", "SAME", "[x]", "zeros"};
  static const std::vector<std::string> types = {"float32", "uint8", "int32", "int64", "bfloat16"};
  static const std::vector<std::string> shapes = {
      "[]",           "[0]",      "[1, 1]",       "[2147483648, 2147483648, 2147483648]",
      "[2147483648]", "[-1, -1]", "[3, 4]",       "[0, 0, 0, 0]",
      "[4, 3, 2, 1]", "[1, 0]",   "[1, 1, 1, 1]", "x"};
  static const std::vector<std::string> functions = {"k", "none", "[]"};
  switch (attribute.type) {
    case Type::kBool:
      return bools;
    case Type::kInt:
      return whole;
    case Type::kDouble:
      return numbers;
    case Type::kString:
      return texts;
    case Type::kDType:
      return types;
    case Type::kShape:
      return shapes;
    case Type::kFunction:
      return functions;
  }
  return texts;
}

// A file with this op; attribute `index` has `value`, the others have their first or second value.
std::string fileOf(std::string_view op, const graph::OpDef& def, const std::string& inputs,
                   size_t index, const std::string& value, size_t others) {
  std::string text =
      "functions: [{name: k, parameters: [{name: p, shape: [3, 4]}], ops: [Tanh: {name: q, inputs: "
      "[p]}], results: [q]}]\nops:\n  - " +
      std::string(op) + ": {name: n, inputs: [" + inputs + "]";
  for (size_t i = 0; i < def.attributes.size(); ++i) {
    const std::vector<std::string>& values = valuesOf(def.attributes[i]);
    text += ", " + def.attributes[i].name + ": " + (i == index ? value : values[others]);
  }
  return text + "}\n";
}

TEST(OpsAtTheirEnds, EachAttributeOfEachOpIsReadOrRefused) {
  const std::vector<std::string> inputs = {
      "",  "f", "f, f", "f, i",    "g, g",          "g",
      "i", "b", "l",    "f, f, f", "g, f, f, f, f", "f, f, f, f"};
  constexpr int kEvery = dtf::testing::kIsSanitized ? 10 : 1;
  int files = 0;
  for (const std::string_view op : graph::standardOps().names()) {
    if (op[0] == '_') continue;  // added by dtf itself
    const graph::OpDef& def = *graph::standardOps().find(op);
    for (const std::string& fed : inputs) {
      read(fileOf(op, def, fed, def.attributes.size(), "", 0));
      for (size_t i = 0; i < def.attributes.size(); ++i)
        for (const std::string& value : valuesOf(def.attributes[i]))
          for (const size_t others : {0, 1, 2}) {
            if (files++ % kEvery == 0) read(fileOf(op, def, fed, i, value, others));
          }
    }
  }
  EXPECT_GT(files, 5000);
}

// A key of every op would hide an attribute of that name.
TEST(OpsAtTheirEnds, NoAttributeIsCalledLikeAKeyOfEveryOp) {
  for (const std::string_view op : graph::standardOps().names()) {
    const graph::OpDef& def = *graph::standardOps().find(op);
    for (const graph::AttributeDef& attribute : def.attributes)
      for (const std::string_view key : {std::string_view("name"), std::string_view("inputs"),
                                         std::string_view("device"), waitsForKey(def)})
        EXPECT_NE(attribute.name, key) << op;
  }
}

TEST(OpsAtTheirEnds, PadHasTheAttributeAfter) {
  const graph::OpDef& pad = *graph::standardOps().find("Pad");
  EXPECT_EQ(waitsForKey(pad), "control_inputs");
  EXPECT_EQ(waitsForKey(*graph::standardOps().find("MatMul")), "after");
  const std::string text =
      "ops:\n  - NoOp: {name: first}\n"
      "  - Pad: {name: n, inputs: [f], before: [0, 1], after: [2, 0], control_inputs: [first]}\n";
  yaml::Report report;
  const auto node = yaml::parseYaml(text, report.addFile("net.yaml", text), report);
  GraphReader reader(report, 3);
  reader.addInput("f", {DType::kFloat32, Shape{3, 4}});
  reader.read(yaml::MapReader(*node, kOpFileTable, "", report));
  report.throwIfAny();
  EXPECT_EQ(reader.graph().find("n")->outputs[0].shape, (Shape{5, 5}));
  EXPECT_EQ(reader.graph().find("n")->control_inputs.size(), 1u);
}

}  // namespace
}  // namespace dtf::model
