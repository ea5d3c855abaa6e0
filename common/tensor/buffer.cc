#include "common/tensor/buffer.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include "common/base/huge_pages.h"

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

void Buffer::Free::operator()(std::byte* p) const {
  std::free(p);
}

}  // namespace dtf
