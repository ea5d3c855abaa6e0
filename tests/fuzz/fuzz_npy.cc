// NumPy's arrays and archives of them: each input is read as both. An accepted array has the bytes
// that its dimensions promise, and the reader of headers accepts it, too.

#include <optional>

#include "common/data/npy_reader.h"
#include "common/data/zip_archive.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/heap_bound.h"
#include "tests/fuzz/memory_path.h"

namespace {

constexpr uint64_t kBytesMax = 1 << 20;

void checkArray(const dtf::data::NpyArray& array) {
  uint64_t bytes = dtf::data::npyTypeBytes(array.header.type);
  for (const int64_t dim : array.header.dims) {
    FUZZ_CHECK(dim >= 0);
    bytes *= static_cast<uint64_t>(dim);
  }
  FUZZ_CHECK(bytes == array.bytes.size() && bytes <= kBytesMax);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const dtf::fuzz::HeapBound bound(size);
  using namespace dtf;
  const fuzz::MemoryPath file(data, size);
  const bool header = fuzz::accepts([&] { data::readNpyHeader(file.path()); });
  const bool whole = fuzz::accepts([&] { checkArray(data::readNpy(file.path(), kBytesMax)); });
  FUZZ_CHECK(header || !whole);
  fuzz::accepts([&] {
    const data::ZipArchive archive(file.path());
    for (const std::string& name : archive.names()) {
      const bool begins = fuzz::accepts([&] {
        const auto first = archive.readBeginning(name, data::kNpyHeaderBytesMax);
        data::parseNpyHeader(first.bytes, first.whole_bytes, name);
      });
      const bool array = fuzz::accepts([&] {
        const data::ByteBlock bytes = archive.read(name, kBytesMax);
        FUZZ_CHECK(bytes.size() <= kBytesMax);
        checkArray(data::parseNpy({bytes.data(), bytes.size()}, name, kBytesMax));
      });
      FUZZ_CHECK(begins || !array);
    }
  });
  return 0;
}
