// A checkpoint's manifest: the file, and its JSON behind the checksum, which a fuzzer can't guess
// but a stranger can compute. An accepted manifest stays the same when it is written and read
// again.

#include "common/base/error.h"
#include "common/checkpoint/manifest.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/heap_bound.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const dtf::fuzz::HeapBound bound(size);
  using namespace dtf::checkpoint;
  const std::string_view text = dtf::fuzz::textOf(data, size);
  try {
    decodeManifest(text, "input");
  } catch (const dtf::Error&) {
  }
  Manifest manifest;
  try {
    manifest = decodeManifestJson(text, "input");
  } catch (const dtf::Error&) {
    return 0;
  }
  FUZZ_CHECK(manifestProblem(manifest).empty());
  const std::string again = encodeManifest(manifest);
  FUZZ_CHECK(encodeManifest(decodeManifest(again, "again")) == again);
  FUZZ_CHECK(manifestDifference(manifest, manifest).empty());
  return 0;
}
