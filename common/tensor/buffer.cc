#include "common/tensor/buffer.h"

#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "common/base/huge_pages.h"
#include "common/base/shared_memory.h"

namespace dtf {

Buffer::Buffer(size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  const size_t alignment = hugePageAlignment(bytes, kBufferAlignment);
  const size_t padded = (bytes + alignment - 1) / alignment * alignment;
  data_.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, padded)));
  if (!data_) throw std::bad_alloc();
  preferHugePages(data_.get(), padded);
  std::memset(data_.get(), 0, padded);  // also faults the pages in, before any step is timed
}

Buffer Buffer::shared(size_t bytes) {
  Buffer buffer;
  if (bytes == 0) return buffer;
  const size_t padded = (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
  auto memory = std::make_shared<const SharedMemory>(padded);
  buffer.data_ = {memory->data(), Free{.is_shared = true}};
  buffer.shared_ = std::move(memory);
  buffer.bytes_ = bytes;
  return buffer;
}

void Buffer::Free::operator()(std::byte* p) const {
  if (!is_shared) std::free(p);
}

}  // namespace dtf
