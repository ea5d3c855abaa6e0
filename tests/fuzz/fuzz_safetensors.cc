// A whole safetensors file from a stranger. Accepted tensors tile the data, and stay the same when
// they are written and read again.

#include <cstring>

#include "common/base/error.h"
#include "common/checkpoint/safetensors.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/heap_bound.h"

namespace {

class MemoryFile final : public dtf::ReadableFile {
 public:
  explicit MemoryFile(std::string_view bytes) : bytes_(bytes) {}
  uint64_t size() const override { return bytes_.size(); }
  void read(uint64_t offset, void* out, size_t bytes) const override {
    FUZZ_CHECK(offset <= bytes_.size() && bytes <= bytes_.size() - offset);
    if (bytes > 0) std::memcpy(out, bytes_.data() + offset, bytes);
  }

 private:
  std::string_view bytes_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const dtf::fuzz::HeapBound bound(size);
  using namespace dtf::checkpoint;
  SafetensorsHeader header;
  try {
    header = readSafetensorsHeader(MemoryFile(dtf::fuzz::textOf(data, size)), "input");
  } catch (const dtf::Error&) {
    return 0;
  }
  uint64_t at = 0;
  for (const SafetensorsEntry& entry : header.entries) {
    FUZZ_CHECK(entry.begin == at && entry.end >= at);
    at = entry.end;
  }
  FUZZ_CHECK(header.data_begin + at == size);
  const std::string again = encodeSafetensorsHeader(header.entries, header.metadata);
  const SafetensorsHeader second = parseSafetensorsHeader(again.substr(8), at);
  FUZZ_CHECK(second.entries == header.entries && second.metadata == header.metadata);
  return 0;
}
