#include "common/checkpoint/manifest.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "tests/unit/checkpoint/manifest_fixture.h"

namespace dtf::checkpoint {
namespace {

TEST(Manifest, IsReadBackExactly) {
  Manifest manifest = goodManifest();
  manifest.seed = ~uint64_t{0};
  manifest.run_seconds = 0.1 + 0.2;
  manifest.job = "quotes \" and \\ and \u00fc";
  manifest.clocks = {{~uint64_t{0}, 0.1, std::numeric_limits<double>::denorm_min()}, {0, 1, -0.0}};
  const std::string bytes = encodeManifest(manifest);
  EXPECT_EQ(decodeManifest(bytes, "m"), manifest);
  EXPECT_EQ(encodeManifest(decodeManifest(bytes, "m")), bytes) << "one manifest, one text";
}

// CHECKPOINT.md promises this end of the file.
TEST(Manifest, EndsWithTheChecksumOfAllBeforeIt) {
  const std::string bytes = encodeManifest(goodManifest());
  ASSERT_GT(bytes.size(), 19u);
  const std::string before = bytes.substr(0, bytes.size() - 19);
  EXPECT_TRUE(before.ends_with(",\n \"manifest_checksum\": \""));
  EXPECT_EQ(bytes.substr(before.size()), hexOf(checksumOf(before)) + "\"}\n");
}

TEST(Manifest, TheErrorSaysWhereAndWhat) {
  EXPECT_EQ(refusal([] { decodeManifest("", "/x/manifest.json"); }, ErrorCode::kBadData),
            "/x/manifest.json: it does not end with a manifest's checksum: it is damaged or "
            "truncated");
  std::string bytes = encodeManifest(goodManifest());
  bytes[5] ^= 1;
  EXPECT_EQ(refusal([&] { decodeManifest(bytes, "m"); }, ErrorCode::kBadData),
            "m: its checksum is wrong: it is damaged");
}

TEST(Manifest, ThePartsMustTileEveryVariableAndFile) {
  ASSERT_EQ(manifestProblem(goodManifest()), "");
  struct Case {
    std::function<void(Manifest&)> damage;
    std::string reason;
  };
  const std::vector<Case> cases = {
      {[](Manifest& m) { m.shards.clear(); }, "0 shards"},
      {[](Manifest& m) { m.clocks.pop_back(); }, "1 optimizer clocks for 2 shards"},
      {[](Manifest& m) { m.clocks[0].beta1_power = 1.0 / 0.0; }, "not finite"},
      {[](Manifest& m) { m.run_seconds = -1; }, "run_seconds"},
      {[](Manifest& m) { m.shards[1].parts[2].name = "c"; }, "'c', which is not a variable"},
      {[](Manifest& m) { m.shards[1].parts[0].begin = 7; }, "holds elements outside of"},
      {[](Manifest& m) { m.shards[0].parts[0].begin = ~uint64_t{0}; }, "holds elements outside of"},
      {[](Manifest& m) { m.shards[1].parts[0].begin = 5; }, "element 5 of w is stored twice"},
      {[](Manifest& m) { m.shards[0].parts[0].begin = 1; }, "element 0 of w is stored nowhere"},
      {[](Manifest& m) { m.variables[0].shape = Shape{11}; }, "element 10 of w is stored nowhere"},
      {[](Manifest& m) { m.shards[0].parts[1].offset += 4; }, "overlaps another tensor"},
      {[](Manifest& m) { m.shards[0].bytes -= 4; }, "overlaps another tensor"},
      {[](Manifest& m) { m.shards[0].bytes += 4; }, "bytes after its last tensor"},
      {[](Manifest& m) { m.shards[0].parts[0].offset = 0; }, "no room for a header"},
      {[](Manifest& m) {
         m.variables[0].slots = {"Adagrad", "Adagrad"};
       },
       "is listed twice"},
      {[](Manifest& m) {
         m.variables.push_back({"w/Adagrad", Shape{}, {}});
       },
       "is listed twice"},
      {[](Manifest& m) {
         m.variables.push_back({"x", Shape{1 << 30, 1 << 30, 2}, {}});
       },
       "too many elements"},
  };
  for (const Case& each : cases) {
    Manifest manifest = goodManifest();
    each.damage(manifest);
    EXPECT_NE(manifestProblem(manifest).find(each.reason), std::string::npos)
        << each.reason << "\nsaid: " << manifestProblem(manifest);
    EXPECT_NE(refusal([&] { encodeManifest(manifest); }, ErrorCode::kBadConfig), "");
  }
  Manifest manifest = goodManifest();
  manifest.data = "\xff";
  EXPECT_NE(refusal([&] { encodeManifest(manifest); }, ErrorCode::kBadConfig).find("UTF-8"),
            std::string::npos);
}

TEST(Manifest, AVariableWithoutElementsNeedsNoPart) {
  Manifest manifest = goodManifest();
  manifest.variables.push_back({"none", Shape{0, 4}, {}});
  EXPECT_EQ(manifestProblem(manifest), "");
}

}  // namespace
}  // namespace dtf::checkpoint
