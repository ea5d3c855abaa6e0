#include "common/model/graph_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/yaml/keys.h"

// GraphReader with its caller's inputs and batch size; read_graph_test.cc tests files of ops.

namespace dtf::model {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr yaml::Key kKeys[] = {yaml::list("ops", ""), yaml::list("functions", "")};
constinit const yaml::Table kTable{"ops", kKeys};

class GraphReaderTest : public ::testing::Test {
 protected:
  // Returns the mistakes in `text`; empty: none.
  std::string read(GraphReader& reader, const std::string& text) {
    const auto node = yaml::parseYaml(text, report_.addFile("net.yaml", text), report_);
    EXPECT_TRUE(node.has_value());
    if (node) reader.read(yaml::MapReader(*node, kTable, "", report_));
    try {
      report_.throwIfAny();
    } catch (const Error& error) {
      return error.message();
    }
    return "";
  }
  yaml::Report report_;
};

TEST_F(GraphReaderTest, OpsReadWhatTheGraphIsGiven) {
  GraphReader reader(report_);
  reader.addInput("x", {DType::kInt32, Shape{4, 2}});
  EXPECT_EQ(read(reader, "ops: [Identity: {name: y, inputs: [x]}]"), "");
  EXPECT_EQ(reader.graph().find("y")->outputs[0], (graph::TensorSpec{DType::kInt32, Shape{4, 2}}));
  EXPECT_FALSE(reader.marks().contains("x"));
  EXPECT_EQ(reader.marks().at("y").line, 1);
}

TEST_F(GraphReaderTest, BatchIsANumberWhereItIsKnown) {
  GraphReader reader(report_, 5);
  const std::string text =
      "functions: [{name: f, parameters: [{name: p, shape: [batch, 2]}], "
      "ops: [Tanh: {name: q, inputs: [p]}], results: [q]}]\n"
      "ops:\n  - Const: {name: x, dtype: float32, shape: [batch, 2], value: 1}\n"
      "  - While: {name: loop, inputs: [x], body: f, carried: 1, max_iterations: 2}\n";
  EXPECT_EQ(read(reader, text), "");
  EXPECT_EQ(reader.graph().find("x")->outputs[0].shape, (Shape{5, 2}));
  EXPECT_EQ(reader.graph().find("loop")->outputs[0].shape, (Shape{5, 2}));
  GraphReader unknown(report_);
  EXPECT_THAT(read(unknown, text), AllOf(HasSubstr("net.yaml:1:"), HasSubstr("'batch'")));
}

TEST_F(GraphReaderTest, OneSizeOfAReshapeIsWhatIsLeft) {
  GraphReader reader(report_);
  reader.addInput("x", {DType::kFloat32, Shape{4, 6}});
  EXPECT_EQ(read(reader, "ops: [Reshape: {name: y, inputs: [x], shape: [2, -1, 3]}]"), "");
  EXPECT_EQ(reader.graph().find("y")->outputs[0].shape, (Shape{2, 4, 3}));
  const std::string told = read(reader,
                                "ops:\n"
                                "  - Reshape: {name: a, inputs: [x], shape: [-1, -1]}\n"
                                "  - Reshape: {name: b, inputs: [x], shape: [-1, 7]}\n"
                                "  - Reshape: {name: c, inputs: [x], shape: [-1, 0]}\n"
                                "  - Reshape: {name: d, inputs: [x], shape: [-2, 3]}\n"
                                "  - Const: {name: e, dtype: float32, shape: [-1], value: 1}\n");
  EXPECT_THAT(told, HasSubstr("net.yaml:2:37: error: 'shape' has more than one size of -1"));
  EXPECT_THAT(told, HasSubstr("net.yaml:3:37: error: 'shape' leaves no whole number for -1: the "
                              "input is [4, 6]"));
  EXPECT_THAT(told, HasSubstr("net.yaml:4:37: error: 'shape' leaves no whole number"));
  EXPECT_THAT(told, HasSubstr("net.yaml:5:45: error"));
  EXPECT_THAT(told, HasSubstr("net.yaml:6:"));
}

TEST_F(GraphReaderTest, WhatOthersReadByItsNameHasOne) {
  GraphReader reader(report_);
  const std::string told = read(reader,
                                "ops:\n  - Variable: {shape: [2], initializer: zeros}\n"
                                "  - Placeholder: {shape: [2], dtype: float32}\n"
                                "  - Const: {shape: [2], dtype: float32, value: 1}\n");
  EXPECT_THAT(told, AllOf(HasSubstr("net.yaml:2:5: error: missing key 'name' in 'Variable'"),
                          HasSubstr("net.yaml:3:5: error: missing key 'name' in 'Placeholder'")));
  EXPECT_THAT(told, Not(HasSubstr("net.yaml:4")));
}

}  // namespace
}  // namespace dtf::model
