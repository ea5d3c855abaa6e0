#include "launcher/ssh/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "launcher/ssh/frames.h"

namespace dtf::launcher {
namespace {

using ::testing::HasSubstr;

template <class T>
T sent(const T& order) {
  return std::get<T>(parseOrder(orderJson(order)));
}

template <class T>
T told(const T& report) {
  return std::get<T>(parseReport(reportJson(report)));
}

TEST(AgentMessages, AnOpenOrderArrivesWhole) {
  OpenOrder order;
  order.job = "mnist";
  order.launch = "0a1b";
  order.run_dir = "/var/runs/mnist";
  order.is_first = false;
  order.reachable = true;
  order.lease_seconds = 12.5;
  order.files = {{"/home/me/c.yaml", "a: \"\xC3\xA9\n\t\"\n"}};
  order.mark = ".launched-x";
  order.kept = {{"events/a", uint64_t{1} << 40}};
  order.tasks[{JobKind::kPs, 3}].address = {"gpu1", 2222};
  order.tasks[{JobKind::kWorker, 0}].address = {"::1", 0};
  const OpenOrder read = sent(order);
  EXPECT_EQ(read.job, "mnist");
  EXPECT_EQ(read.launch, "0a1b");
  EXPECT_EQ(read.run_dir, "/var/runs/mnist");
  EXPECT_FALSE(read.is_first);
  EXPECT_TRUE(read.reachable);
  EXPECT_EQ(read.lease_seconds, 12.5);
  EXPECT_EQ(read.files, order.files);
  EXPECT_EQ(read.mark, order.mark);
  EXPECT_EQ(read.kept, order.kept);
  ASSERT_EQ(read.tasks.size(), 2u);
  EXPECT_EQ(read.tasks.at({JobKind::kPs, 3}).address.str(), "gpu1:2222");
  EXPECT_EQ(read.tasks.at({JobKind::kWorker, 0}).address.str(), "[::1]:auto");
}

TEST(AgentMessages, AnOfferArrivesWhole) {
  const std::string digest(64, 'a');
  OfferOrder order{"my/copies", uint64_t{1} << 40, {}, {"/images/cats"}, false};
  order.files = {{digest, 5, "psd", ""}, {digest, 0, "", "/home/me/t.csv"}};
  const OfferOrder read = sent(order);
  EXPECT_EQ(read.dir, "my/copies");
  EXPECT_EQ(read.bytes_max, uint64_t{1} << 40);
  ASSERT_EQ(read.files.size(), 2u);
  EXPECT_EQ(read.files[0].digest, digest);
  EXPECT_EQ(read.files[0].program, "psd");
  EXPECT_EQ(read.files[0].bytes, 5u);
  EXPECT_EQ(read.files[1].path, "/home/me/t.csv");
  EXPECT_EQ(read.folders, order.folders);
  EXPECT_FALSE(read.is_last);
  EXPECT_EQ(told(LackingReport{{0, 3}}).files, (std::vector<size_t>{0, 3}));
  EXPECT_EQ(told(StoredReport{uint64_t{1} << 40}).bytes, uint64_t{1} << 40);
}

TEST(AgentMessages, AnOfferThatLeadsElsewhereIsRefused) {
  const std::string offer =
      R"({"order":"offer","dir":"","bytes_max":1,"is_last":true,"folders":["/f"],"files":[)"
      R"({"digest":")" +
      std::string(64, 'a') + R"(","bytes":1,"path":"/p"}]})";
  EXPECT_NO_THROW(parseOrder(offer));
  const auto with = [&offer](const std::string& old, const std::string& now) {
    std::string text = offer;
    return text.replace(text.find(old), old.size(), now);
  };
  for (const std::string& text :
       {with("aa", "/"), with("\"/p\"", "\"p\""), with("\"/p\"", "\"/../p\""),
        with("\"/f\"", "\"f\""), with("\"path\":\"/p\"", "\"program\":\"../psd\""),
        with("\"path\":\"/p\"", "\"x\":1"), with("\"bytes\":1", "\"bytes\":-1"),
        with("\"bytes\":1", "\"bytes\":9000000000000000000")})
    EXPECT_THROW(parseOrder(text), Error) << text;
  for (const char* text :
       {R"({"report":"lacking","files":[1,1]})", R"({"report":"lacking","files":[2,1]})",
        R"({"report":"lacking","files":[-1]})", R"({"report":"stored"})"})
    EXPECT_THROW(parseReport(text), Error) << text;
}

TEST(AgentMessages, TheOtherOrdersDoToo) {
  StartOrder start{7, {}};
  start.command.id = {JobKind::kWorker, 5};
  start.command.argv = {"workerd", "--set", "a=$(b) 'c'"};
  start.command.env = {{"A", "x y"}};
  start.command.folder = "/tmp";
  const StartOrder read = sent(start);
  EXPECT_EQ(read.task, 7u);
  EXPECT_EQ(read.command.id.name(), "worker/5");
  EXPECT_EQ(read.command.argv, start.command.argv);
  EXPECT_EQ(read.command.env, start.command.env);
  EXPECT_EQ(read.command.folder, "/tmp");
  EXPECT_EQ(sent(SendSignalOrder{2, SIGTERM}).signal, SIGTERM);
  EXPECT_EQ(sent(ReleaseOrder{2, {JobKind::kPs, 1}}).id.name(), "ps/1");
  const SentFiles keys = {{"/k/ps-0.pem", "key\n"}};
  EXPECT_EQ(sent(ReplaceOrder{keys}).files, keys);
  EXPECT_EQ(sent(FetchOrder{"checkpoints/step-1/manifest.json"}).name,
            "checkpoints/step-1/manifest.json");
  EXPECT_THROW(parseOrder(R"({"order":"fetch","name":"../secret"})"), Error);
  sent(PingOrder{});
  sent(EndOrder{});
}

TEST(AgentMessages, ReportsArriveWhole) {
  const TaskId ps{JobKind::kPs, 1};
  EXPECT_EQ(told(ListeningReport{{{ps, 40123}}, "ab"}).ports.at(ps), 40123);
  const FailedReport failed = told(FailedReport{3, ErrorCode::kPermission, "no"});
  EXPECT_EQ(failed.task, 3u);
  EXPECT_EQ(failed.code, ErrorCode::kPermission);
  EXPECT_EQ(failed.message, "no");
  EXPECT_EQ(told(FailedReport{}).task, std::nullopt);
  EXPECT_EQ(told(StartedReport{9}).task, 9u);
  EXPECT_EQ(told(ExitedReport{9, {0, SIGKILL, true}}).status, (ExitStatus{0, SIGKILL, true}));
  EXPECT_EQ(told(ExitedReport{9, {65, 0}}).status, (ExitStatus{65, 0}));
  const FetchedReport fetched = told(FetchedReport{FetchedReport::Found::kSame, 7});
  EXPECT_EQ(fetched.found, FetchedReport::Found::kSame);
  EXPECT_EQ(fetched.bytes, 7u);
  EXPECT_THROW(parseReport(R"({"report":"fetched","found":"perhaps","bytes":1})"), Error);
  EXPECT_EQ(told(AliveReport{{1, 4}}).suspended, (std::vector<size_t>{1, 4}));
}

TEST(AgentMessages, OrdersToMeasureAndWhatComesOfThemArriveWhole) {
  const ProbeOrder probe{"mnist", "gpu1", "a1b2", true, "/k", "ps/0", {{"/k/ca.pem", "pem"}}};
  const ProbeOrder read = sent(probe);
  EXPECT_EQ(read.job, "mnist");
  EXPECT_EQ(read.host, "gpu1");
  EXPECT_EQ(read.identity, "a1b2");
  EXPECT_TRUE(read.reachable);
  EXPECT_EQ(read.keys, "/k");
  EXPECT_EQ(read.task, "ps/0");
  EXPECT_EQ(read.files, probe.files);
  const Measure measure = sent(MeasureOrder{{9, {"gpu2", 4000}, "c3", "worker/1"}}).measure;
  EXPECT_EQ(measure.number, 9u);
  EXPECT_EQ(measure.to.str(), "gpu2:4000");
  EXPECT_EQ(measure.identity, "c3");
  EXPECT_EQ(measure.task, "worker/1");
  const auto addresses = told(ProbingReport{{{"10.0.0.2", "eth0", 4000}}}).addresses;
  ASSERT_EQ(addresses.size(), 1u);
  EXPECT_EQ(addresses[0].address, "10.0.0.2");
  EXPECT_EQ(addresses[0].interface, "eth0");
  EXPECT_EQ(addresses[0].port, 4000);
  const Measured measured = told(MeasuredReport{{9, 1.5e9, 30.5, "none"}}).measured;
  EXPECT_EQ(measured.number, 9u);
  EXPECT_EQ(measured.bytes_per_second, 1.5e9);
  EXPECT_EQ(measured.round_trip_us, 30.5);
  EXPECT_EQ(measured.problem, "none");
}

TEST(AgentMessages, MeasurementsThatCantBeAreRefused) {
  std::string addresses;
  for (int i = 0; i < 9; ++i)
    addresses += std::string(i == 0 ? "" : ",") + R"({"address":"a","interface":"","port":1})";
  for (const std::string& text :
       {std::string(R"({"report":"probing","addresses":[]})"),
        R"({"report":"probing","addresses":[)" + addresses + "]}",
        std::string(
            R"({"report":"probing","addresses":[{"address":"a","interface":"","port":0}]})"),
        std::string(R"({"report":"measured","number":1,"bytes_per_second":-1,"round_trip_us":1,)"
                    R"("problem":""})"),
        std::string(R"({"report":"measured","number":1,"bytes_per_second":1e999,)"
                    R"("round_trip_us":1,"problem":""})")})
    EXPECT_THROW(parseReport(text), Error) << text;
  for (const char* text :
       {R"({"order":"measure","number":1,"host":"a","port":0,"identity":"a","task":""})",
        R"({"order":"probe","job":"j","host":"a","identity":"../a","reachable":true,"keys":"",)"
        R"("task":"","files":{}})",
        R"({"order":"probe","job":"j","host":"a","identity":"a","reachable":true,"keys":"k",)"
        R"("task":"","files":{}})"})
    EXPECT_THROW(parseOrder(text), Error) << text;
}

TEST(AgentMessages, WhatMakesNoSenseIsRefused) {
  const std::string open =
      R"({"order":"open","job":"j","launch":"a1","run_dir":"/r","is_first":true,"reachable":false,)"
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

TEST(AgentMessages, DepthIsRefusedWhereItBegins) {
  try {
    parseOrder(std::string(size_t{8} << 20, '['));
    ADD_FAILURE() << "it was read";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("more than 4 levels"));
  }
}

TEST(AgentMessages, AnOrderIsSentAsItIsOrNotAtAll) {
  StartOrder start{7, {}};
  start.command.argv = {"workerd", "--set", "a=\xFF"};
  EXPECT_THROW(orderJson(start), Error);
  EXPECT_EQ(told(FailedReport{{}, ErrorCode::kUnavailable, "a\xFF"}).message, "a\xEF\xBF\xBD");
}

TEST(AgentMessages, ALongReasonIsCutForAFrameToHoldIt) {
  EXPECT_LE(
      reportJson(FailedReport{{}, ErrorCode::kUnavailable, std::string(1 << 20, '\x01')}).size(),
      kReportBytesMax - 1);
}

TEST(AgentMessages, AGreetingOfAnotherVersionNamesBoth) {
  EXPECT_EQ(wrongGreeting(agentGreeting()), "");
  EXPECT_THAT(wrongGreeting("dtf-agent 1 9.9.9"),
              HasSubstr("it has dtf 9.9.9, and here is dtf " DTF_VERSION));
  EXPECT_THAT(wrongGreeting("dtf-agent 1 " DTF_VERSION), HasSubstr("it has another build of dtf"));
  EXPECT_THAT(wrongGreeting("Welcome\x1b[31m to gpu1"),
              HasSubstr("it says 'Welcome?[31m to gpu1' before dtf-agent says anything"));
}

TEST(AgentMessages, QuestionsAboutUnitsAndTheirAnswersKeepNumbersAndWords) {
  const auto order = std::get<UnitsOrder>(parseOrder(orderJson(UnitsOrder{7, "{\"ask\":1}"})));
  EXPECT_EQ(order.number, 7u);
  EXPECT_EQ(order.question, "{\"ask\":1}");
  const auto report = std::get<UnitsReport>(parseReport(reportJson(UnitsReport{7, "[\"\xff\"]"})));
  EXPECT_EQ(report.number, 7u);
  EXPECT_EQ(report.answer, "[\"\uFFFD\"]") << "it is UTF-8 again";
  EXPECT_THROW(parseOrder("{\"order\":\"units\",\"number\":1,\"question\":7}"), Error);
}

}  // namespace
}  // namespace dtf::launcher
