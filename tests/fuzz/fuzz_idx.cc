// IDX files, plain and packed. An accepted file has the bytes that its dimensions promise, and the
// reader of headers accepts every file of images that the whole reader accepts.

#include "common/base/error.h"
#include "common/data/idx_reader.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/heap_bound.h"
#include "tests/fuzz/memory_path.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const dtf::fuzz::HeapBound bound(size);
  using namespace dtf;
  constexpr uint64_t kBytesMax = 1 << 20;
  const fuzz::MemoryPath file(data, size);
  int64_t images = 0;
  try {
    const data::IdxImages header = data::readIdxImagesHeader(file.path());
    images = header.count;
    FUZZ_CHECK(images > 0 && header.example_shape.elements() > 0);
  } catch (const Error& error) {
    FUZZ_CHECK(error.code() == ErrorCode::kBadData);
  }
  try {
    const data::IdxArray array = data::readIdx(file.path(), 1, 4, kBytesMax);
    FUZZ_CHECK(!array.dims.empty() && array.dims.size() <= 4);
    uint64_t elements = 1;
    for (const uint32_t dim : array.dims) elements *= dim;
    FUZZ_CHECK(elements == array.bytes.size() && elements <= kBytesMax);
    const bool are_images = array.dims.size() >= 3 && elements > 0;
    FUZZ_CHECK(!are_images || images == array.dims[0]);
  } catch (const Error& error) {
    FUZZ_CHECK(error.code() == ErrorCode::kBadData);
  }
  return 0;
}
