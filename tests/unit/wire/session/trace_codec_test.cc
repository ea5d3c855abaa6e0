#include "common/wire/session/trace_codec.h"

#include <capnp/message.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "common/base/error.h"
#include "tests/unit/graph/error_text.h"

namespace dtf::wire {
namespace {

using graph::testing::errorText;
using ::testing::AllOf;
using ::testing::HasSubstr;
using trace::StepSpan;
using trace::TaskTrace;

constexpr TaskId kTracedTask{JobKind::kWorker, 2};

TimePoint at(int64_t ns) {
  return TimePoint(Duration(ns));
}

TaskTrace makeTrace() {
  return {.task = kTracedTask,
          .begin = at(1000),
          .end = at(9000),
          .tracks = {"worker/2 cpu:0", "rendezvous"},
          .spans = {{.kind = StepSpan::Kind::kOp,
                     .name = "layer/product",
                     .detail = {},
                     .track = 0,
                     .begin = at(3000),
                     .end = at(3000)},
                    {.kind = StepSpan::Kind::kReceive,
                     .name = "_Recv w:0",
                     .detail = "12 bytes: k",
                     .track = 1,
                     .begin = at(1500),
                     .end = at(2999)}},
          .dropped = 5,
          .anchor = at(9001),
          .unix_us = 1'700'000'000'000'000};
}

// Returns the decoded trace after `change`, which stands for a peer's deviation.
TaskTrace changed(const std::function<void(schema::PartTrace::Builder)>& change) {
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<schema::PartTrace>();
  encodeTrace(makeTrace(), root);
  change(root);
  return decodeTrace(kTracedTask, true, root.asReader());
}

TEST(TraceCodec, ATraceComesAsItWent) {
  const TaskTrace sent = makeTrace(), got = changed([](auto) {});
  EXPECT_TRUE(got.is_given);
  EXPECT_EQ(got.task, kTracedTask);
  EXPECT_EQ(got.begin, sent.begin);
  EXPECT_EQ(got.end, sent.end);
  EXPECT_EQ(got.tracks, sent.tracks);
  EXPECT_EQ(got.dropped, 5u);
  EXPECT_EQ(got.anchor, sent.anchor);
  EXPECT_EQ(got.unix_us, sent.unix_us);
  ASSERT_EQ(got.spans.size(), sent.spans.size());
  for (size_t i = 0; i < sent.spans.size(); ++i) {
    EXPECT_EQ(got.spans[i].kind, sent.spans[i].kind);
    EXPECT_EQ(got.spans[i].name, sent.spans[i].name);
    EXPECT_EQ(got.spans[i].detail, sent.spans[i].detail);
    EXPECT_EQ(got.spans[i].track, sent.spans[i].track);
    EXPECT_EQ(got.spans[i].begin, sent.spans[i].begin);
    EXPECT_EQ(got.spans[i].end, sent.spans[i].end);
  }
}

TEST(TraceCodec, AnAnswerWithoutATraceIsOfAnEarlierVersion) {
  const TaskTrace got = decodeTrace(kTracedTask, false, {});
  EXPECT_FALSE(got.is_given);
  EXPECT_EQ(got.task, kTracedTask);
}

TEST(TraceCodec, AKindOfALaterVersionIsLeftOut) {
  const TaskTrace got = changed([](auto trace) { trace.getSpans()[0].setKind(200); });
  ASSERT_EQ(got.spans.size(), 1u);
  EXPECT_EQ(got.spans[0].name, "_Recv w:0");
}

TEST(TraceCodec, WhatNoTaskSaysIsRefusedByName) {
  const auto refused = [](const std::function<void(schema::PartTrace::Builder)>& change) {
    return errorText([&] { changed(change); });
  };
  EXPECT_THAT(refused([](auto trace) { trace.getSpans()[1].setTrack(2); }),
              AllOf(HasSubstr("worker/2's trace"), HasSubstr("track 2 of 2")));
  EXPECT_THAT(refused([](auto trace) { trace.getSpans()[1].setEndNs(1499); }),
              HasSubstr("the time 1499 ns"))
      << "before it began";
  EXPECT_THAT(refused([](auto trace) { trace.setBeginNs(-1); }), HasSubstr("the time -1 ns"));
  EXPECT_THAT(refused([](auto trace) { trace.setEndNs(INT64_MAX); }), HasSubstr("the time"));
  EXPECT_THAT(refused([](auto trace) { trace.initSpans(trace::kStepSpansMax + 1); }),
              HasSubstr("has 4097 spans"));
  EXPECT_THAT(refused([](auto trace) { trace.initTracks(5000); }), HasSubstr("in 5000 tracks"));
  EXPECT_THAT(refused([](auto trace) {
                trace.getSpans()[0].setName(std::string(trace::kStepTextBytesMax + (1 << 16), 'x'));
              }),
              HasSubstr("bytes of text"));
}

}  // namespace
}  // namespace dtf::wire
