#include "launcher/network/network_report.h"
#include "common/base/json.h"

#include <gtest/gtest.h>

namespace dtf::launcher {
namespace {

const std::vector<NetworkRow> kRows = {
    {"gpu1", "gpu2", "10.0.0.2", "eth0", true, {1, 117.53e6, 83.4, {}}},
    {"gpu1", "gpu2", "10.1.0.2", "eth1", false, {2, 1.18e9, 21.0, {}}},
    {"gpu2", "gpu1", "172.17.0.1", "docker0", false, {3, 0, 0, "no answer"}},
};

TEST(NetworkReport, IsATableForPeople) {
  EXPECT_EQ(networkTable(kRows),
            "from  to    address     interface                  MB/s  round trip us\n"
            "gpu1  gpu2  10.0.0.2    eth0                        118             83\n"
            "gpu1  gpu2  10.1.0.2    eth1 (not in the file)     1180             21\n"
            "gpu2  gpu1  172.17.0.1  docker0 (not in the file)     -              -\n"
            "gpu2 does not reach 172.17.0.1 of gpu1: no answer\n");
}

TEST(NetworkReport, IsJsonForPrograms) {
  const Json json = networkJson(kRows, {"slow"});
  EXPECT_EQ(json["warnings"], Json::array({"slow"}));
  ASSERT_EQ(json["pairs"].size(), 3u);
  EXPECT_EQ(json["pairs"][0], Json({{"from", "gpu1"},
                                    {"to", "gpu2"},
                                    {"address", "10.0.0.2"},
                                    {"interface", "eth0"},
                                    {"in_file", true},
                                    {"bytes_per_second", 117.53e6},
                                    {"round_trip_us", 83.4}}));
  EXPECT_EQ(json["pairs"][2]["problem"], "no answer");
  EXPECT_FALSE(json["pairs"][2].contains("bytes_per_second"));
}

TEST(NetworkReport, RatesHaveThreeDigitsOrSo) {
  EXPECT_EQ(rateText(123'456), "0.12");
  EXPECT_EQ(rateText(12.34e6), "12.3");
  EXPECT_EQ(rateText(4321e6), "4321");
}

}  // namespace
}  // namespace dtf::launcher
