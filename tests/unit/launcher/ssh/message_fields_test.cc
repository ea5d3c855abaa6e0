// Fields of messages with impossible values.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/ssh/messages.h"

namespace dtf::launcher {
namespace {

using ::testing::HasSubstr;

TEST(MessageFields, WhatMakesNoSenseIsRefused) {
  const std::string open =
      R"({"order":"open","job":"j","launch":"a1","run_dir":"/r","drops_snapshots":true,"reachable":false,)"
      R"("lease_seconds":10,"files":{},"tasks":{}})";
  EXPECT_NO_THROW(parseOrder(open));
  const auto with = [&open](const std::string& old, const std::string& now) {
    std::string text = open;
    return text.replace(text.find(old), old.size(), now);
  };
  for (const std::string& text :
       {with("\"/r\"", "\"r\""), with("\"/r\"", "\"/a/../../r\""), with("\"/r\"", "5"),
        with(":10", ":0"), with(":10", ":1e9"), with("\"tasks\":{}", "\"tasks\":{\"x/1\":\"a:1\"}"),
        with("\"tasks\":{}", "\"tasks\":{\"ps/1\":\"-a:1\"}"),
        with("\"files\":{}", "\"files\":{\"../etc/x\":\"\"}"), with("\"open\"", "\"opn\""),
        with("a1", "../a"), with("a1", "")})
    EXPECT_THROW(parseOrder(text), Error) << text;
  for (const char* text :
       {"", "{", "[]", "null", "{}", R"({"order":"signal","task":1,"signal":0})",
        R"({"order":"signal","task":1,"signal":999})", R"({"order":"signal","task":-1,"signal":9})",
        R"({"order":"signal","task":99999,"signal":9})",
        R"({"order":"replace","files":{"k/ps-0.pem":"x"}})", R"({"order":"replace"})",
        R"({"order":"start","task":1,"name":"ps/1","argv":[],"env":{},"folder":"/"})"})
    EXPECT_THROW(parseOrder(text), Error) << text;
  for (const char* text :
       {R"({"report":"exited","task":1,"code":1,"signal":9})",
        R"({"report":"exited","task":1,"code":1,"signal":9,"memory_ran_out":false})",
        R"({"report":"listening","programs":"","ports":{"ps/0":0}})",
        R"({"report":"listening","programs":"","ports":{"ps/0":70000}})", R"({"report":"x"})"})
    EXPECT_THROW(parseReport(text), Error) << text;
}

TEST(MessageFields, DepthIsRefusedWhereItBegins) {
  try {
    parseOrder(std::string(size_t{8} << 20, '['));
    ADD_FAILURE() << "it was read";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("deeper than 4 levels"));
  }
}

}  // namespace
}  // namespace dtf::launcher
