#include <gtest/gtest.h>

#include "tests/unit/checkpoint/manifest_fixture.h"

namespace dtf::checkpoint {
namespace {

// Forged texts with a right checksum: form and meaning are checked all the same.
TEST(ManifestJson, HostileTextsAreRefusedWithTheReason) {
  const std::string good = encodeManifest(goodManifest());
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  struct Case {
    std::string json;
    std::string reason;
  };
  const std::vector<Case> cases = {
      {"[]", "'schema' is missing"},
      {"nonsense", "parse error"},
      {std::string(100'000, '['), "nested deeper than 6"},
      {replaced("\"schema\": 1", "\"schema\": 2"), "this dtf reads 1"},
      {replaced("\"schema\": 1", "\"schema\": -1"), "'schema' must be a number"},
      {replaced("\"seed\": 7", "\"seed\": 7.0"), "'seed' must be a number"},
      {replaced("\"seed\": 7", "\"seed\": 7, \"seed\": 8"), "'seed' appears twice"},
      {replaced("\"job\": \"test\"", "\"job\": \"\xff\""), "parse error"},
      {replaced("\"job\": \"test\"", "\"job\": 5"), "'job' must be a text"},
      {replaced("\"0x1.3333333333333p-2\"", "\"0.3\""), "hexadecimal floating point"},
      {replaced("\"0x1.3333333333333p-2\"", "\"inf\""), "hexadecimal floating point"},
      {replaced("shard-0-of-2.safetensors", "../../etc/passwd"), "is not called shard-0-of-2"},
      {replaced("shard-0-of-2", "shard-1-of-2"), "is not called shard-0-of-2"},
      {replaced("\"name\": \"b\"", "\"name\": \"a b\""), "not a valid name of a variable"},
      {replaced("\"name\": \"b\"", "\"name\": \"w\""), "w is listed twice"},
      {replaced("\"checksum\": \"0000000000000001\"", "\"checksum\": \"1\""), "16 hex digits"},
  };
  for (const Case& each : cases)
    EXPECT_NE(
        refusal([&] { decodeManifestJson(each.json, "m"); }, ErrorCode::kBadData).find(each.reason),
        std::string::npos)
        << each.reason
        << "\nsaid: " << refusal([&] { decodeManifestJson(each.json, "m"); }, ErrorCode::kBadData);
}

}  // namespace
}  // namespace dtf::checkpoint
