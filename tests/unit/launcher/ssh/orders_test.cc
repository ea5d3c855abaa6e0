// Orders to an agent: valid ones arrive unchanged, others are rejected.

#include <gtest/gtest.h>

#include <csignal>

#include "tests/unit/launcher/ssh/round_trip.h"

namespace dtf::launcher {
namespace {

TEST(Orders, AnOpenOrderArrivesWhole) {
  OpenOrder order;
  order.job = "mnist";
  order.launch = "0a1b";
  order.run_dir = "/var/runs/mnist";
  order.drops_snapshots = false;
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
  EXPECT_FALSE(read.drops_snapshots);
  EXPECT_TRUE(read.reachable);
  EXPECT_EQ(read.lease_seconds, 12.5);
  EXPECT_EQ(read.files, order.files);
  EXPECT_EQ(read.mark, order.mark);
  EXPECT_EQ(read.kept, order.kept);
  ASSERT_EQ(read.tasks.size(), 2u);
  EXPECT_EQ(read.tasks.at({JobKind::kPs, 3}).address.str(), "gpu1:2222");
  EXPECT_EQ(read.tasks.at({JobKind::kWorker, 0}).address.str(), "[::1]:auto");
}

TEST(Orders, AnOfferThatLeadsElsewhereIsRefused) {
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

TEST(Orders, TheOtherOrdersDoToo) {
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
  for (const bool drops : {false, true}) EXPECT_EQ(sent(EndOrder{drops}).drops_snapshots, drops);
}

}  // namespace
}  // namespace dtf::launcher
