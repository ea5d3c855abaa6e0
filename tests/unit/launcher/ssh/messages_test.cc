#include "launcher/ssh/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/launcher/ssh/round_trip.h"

namespace dtf::launcher {
namespace {

using ::testing::HasSubstr;

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

TEST(AgentMessages, AnOrderIsSentAsItIsOrNotAtAll) {
  StartOrder start{7, {}};
  start.command.argv = {"workerd", "--set", "a=\xFF"};
  EXPECT_THROW(orderJson(start), Error);
  EXPECT_EQ(told(FailedReport{{}, ErrorCode::kUnavailable, "a\xFF"}).message, "a\xEF\xBF\xBD");
}

TEST(AgentMessages, AGreetingOfAnotherVersionNamesBoth) {
  EXPECT_EQ(wrongGreeting(agentGreeting()), "");
  EXPECT_THAT(wrongGreeting("dtf-agent 1 9.9.9"),
              HasSubstr("it has dtf 9.9.9, and this host has dtf " DTF_VERSION));
  EXPECT_THAT(wrongGreeting("dtf-agent 1 " DTF_VERSION), HasSubstr("it has another build of dtf"));
  EXPECT_THAT(wrongGreeting("Welcome\x1b[31m to gpu1"),
              HasSubstr("it prints 'Welcome?[31m to gpu1' before dtf-agent starts"));
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
