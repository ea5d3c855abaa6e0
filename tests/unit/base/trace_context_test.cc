#include "common/base/trace_context.h"

#include <gtest/gtest.h>

namespace dtf::trace {
namespace {

// The example of W3C's recommendation.
constexpr const char* kText = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

TEST(TraceContext, IsWrittenAndReadAsW3cHasIt) {
  const auto context = parseTraceparent(kText);
  ASSERT_TRUE(context);
  EXPECT_EQ(hexOf(context->trace), "0af7651916cd43dd8448eb211c80319c");
  EXPECT_EQ(hexOf(context->span), "b7ad6b7169203331");
  EXPECT_EQ(traceparentOf(*context), kText);
}

TEST(TraceContext, AChildIsAnotherSpanOfTheSameTrace) {
  const SpanContext root = SpanContext::newTrace(), child = root.newChild();
  EXPECT_TRUE(root.valid() && child.valid());
  EXPECT_EQ(child.trace, root.trace);
  EXPECT_NE(child.span, root.span);
  EXPECT_NE(SpanContext::newTrace().trace, root.trace);
  EXPECT_FALSE(SpanContext{}.valid());
}

TEST(TraceContext, ALaterVersionIsReadAsFarAsThisOneGoes) {
  std::string later = kText;
  later[1] = '1';
  EXPECT_TRUE(parseTraceparent(later));
  EXPECT_TRUE(parseTraceparent(later + "-more"));
  EXPECT_FALSE(parseTraceparent(later + "more"));
  EXPECT_FALSE(parseTraceparent(std::string(kText) + "-more")) << "of this one there is no more";
}

TEST(TraceContext, WhatCantBeReadIsNone) {
  const std::string good = kText;
  const auto with = [&good](size_t at, const std::string& text) {
    return std::string(good).replace(at, text.size(), text);
  };
  for (const std::string& bad :
       {std::string(), std::string("00"), good.substr(0, 54), with(0, "ff"), with(0, "0g"),
        with(2, "_"), with(3, "0AF7"), with(3, std::string(32, '0')), with(35, "_"),
        with(36, std::string(16, '0')), with(52, "_"), with(53, "0x")})
    EXPECT_FALSE(parseTraceparent(bad)) << bad;
  EXPECT_FALSE(parseTraceparent(with(53, "00"))) << "it is not sampled";
  EXPECT_TRUE(parseTraceparent(with(53, "03")));
}

}  // namespace
}  // namespace dtf::trace
