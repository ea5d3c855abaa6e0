#include "common/engine/part_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/unit/engine/devices.h"
#include "tests/unit/graph/error_text.h"

namespace dtf::engine {
namespace {

using graph::Output;
using graph::testing::errorText;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Bytes bytesOf(std::span<const float> values) {
  return std::as_bytes(values);
}
std::vector<float> floatsOf(Bytes bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

class PartProgramTest : public ::testing::Test {
 protected:
  static graph::Attributes edge(const std::string& key) {
    return {{"key", key}, {"dtype", DType::kFloat32}, {"shape", Shape{2}}};
  }
  PartProgram compiled(const std::vector<Output>& fetches, const EdgeNumbers& edges = {}) {
    return {graph_, fetches, *devices_.all()[0].device, devices_.kernels(), edges};
  }

  graph::Graph graph_{graph::standardOps()};
  graph::Builder b_{graph_};
  testing::Devices devices_{testing::cpusOfWorker0(1)};
};

TEST_F(PartProgramTest, WhatLeavesIsCutOffSoThatItLeavesFirst) {
  const Output in{b_.node("_Recv", {}, edge("in"), "in")};
  const Output out = b_.relu(in);
  b_.node("_Send", {out}, edge("out"), "out");
  const PartProgram program = compiled({b_.add(in, out)}, {{"in", 0}, {"out", 1}});
  ASSERT_THAT(program.pieces(), SizeIs(2));
  EXPECT_THAT(program.pieces()[0].receives, SizeIs(1));
  EXPECT_THAT(program.pieces()[1].after, SizeIs(1));
  ASSERT_THAT(program.receives(), SizeIs(1));
  EXPECT_EQ(program.receives()[0].bytes, 8u);
  EXPECT_EQ(program.sendKey(1), "out");
}

TEST_F(PartProgramTest, ItsPiecesComputeWhatIsFetchedAndSent) {
  const Output x = b_.placeholder("x", DType::kFloat32, {2});
  const Output out = b_.relu(x);
  b_.node("_Send", {out}, edge("out"), "out");
  PartProgram program = compiled({b_.scale(x, 3), x}, {{"out", 4}});
  ASSERT_THAT(program.feeds(), SizeIs(1));
  EXPECT_EQ(program.feeds()[0].name, "x");
  const std::vector<float> fed = {-1, 5};
  PartInputs inputs;
  inputs.feeds = {bytesOf(fed)};
  std::vector<std::pair<uint32_t, std::vector<float>>> sent;
  for (size_t piece = 0; piece < program.pieces().size(); ++piece)
    for (const PartProgram::Send& send : program.run(piece, inputs))
      sent.emplace_back(send.edge, floatsOf(send.bytes));
  EXPECT_THAT(sent, ElementsAre(std::pair<uint32_t, std::vector<float>>(4, {0, 5})));
  EXPECT_THAT(floatsOf(program.fetch(0, inputs)), ElementsAre(-3, 15));
  EXPECT_THAT(floatsOf(program.fetch(1, inputs)), ElementsAre(-1, 5)) << "what is fed";
}

TEST_F(PartProgramTest, ConstantsNeedNothing) {
  PartProgram program = compiled({b_.relu(b_.constant({3}, 4))});
  EXPECT_THAT(program.feeds(), IsEmpty());
  EXPECT_THAT(program.receives(), IsEmpty());
  PartInputs inputs;
  for (int step = 0; step < 2; ++step) {
    for (size_t piece = 0; piece < program.pieces().size(); ++piece) program.run(piece, inputs);
    EXPECT_THAT(floatsOf(program.fetch(0, inputs)), ElementsAre(4, 4, 4)) << step;
  }
}

TEST_F(PartProgramTest, ItsVariablesAreKnownByTheirKeys) {
  const Output w = b_.variable("w", {2});
  const Output twice = b_.scale(w, 2);
  const PartProgram program = compiled({twice, b_.relu(w)});
  ASSERT_THAT(program.variables(), SizeIs(1)) << "however often it is read";
  EXPECT_EQ(program.variables()[0].node, "w");
  EXPECT_EQ(program.variables()[0].spec, (graph::TensorSpec{DType::kFloat32, {2}}));
}

TEST_F(PartProgramTest, AnOpThatASessionCannotRunIsNamed) {
  const Output w = b_.variable("w", {2});
  b_.applyGradient(w, b_.constant({2}, 1));
  EXPECT_THAT(errorText([&] { compiled({w}); }), HasSubstr("ApplyGradient"));
}

}  // namespace
}  // namespace dtf::engine
