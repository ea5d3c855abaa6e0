#include "common/tensor/buffer.h"

#include <cstdlib>
#include <cstring>
#include <new>

namespace dtf {

Buffer::Buffer(size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  const size_t padded = (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
  data_.reset(static_cast<std::byte*>(std::aligned_alloc(kBufferAlignment, padded)));
  if (!data_) throw std::bad_alloc();
  std::memset(data_.get(), 0, padded);  // also faults the pages in, before any step is timed
}

void Buffer::Free::operator()(std::byte* p) const {
  std::free(p);
}

}  // namespace dtf
