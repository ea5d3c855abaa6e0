// JSON files of a run's folder (launch.json, summary.json, status.json) and JSON answers of tasks.
// Accepted JSON can be copied, written and read again.

#include "common/base/json.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/heap_bound.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using dtf::Json;
  const dtf::fuzz::HeapBound bound(size);
  const Json parsed = Json::parseOrNull(dtf::fuzz::textOf(data, size));
  const Json copy = parsed;
  const std::string text = copy.dump();
  const Json again = Json::parseOrNull(text);
  FUZZ_CHECK(again.dump() == text);
  dtf::fuzz::use(copy.size());
  return 0;
}
