#include "common/runtime/pooling.h"

#include <string>

#include "common/base/check.h"
#include "common/runtime/pooling_isa.h"

namespace dtf::runtime {

Pooling Pooling::of(const Shape& x, const Shape& y, const graph::Attributes& attributes) {
  DTF_CHECK(x.rank() == 4 && y.rank() == 4);
  DTF_CHECK(x.dim(0) == y.dim(0) && x.dim(3) == y.dim(3));
  const graph::Window window = graph::poolingWindow(attributes);
  DTF_CHECK(window.height.positions(x.dim(1)) == y.dim(1));
  DTF_CHECK(window.width.positions(x.dim(2)) == y.dim(2));
  Pooling p;
  p.batch = x.dim(0), p.height = x.dim(1), p.width = x.dim(2), p.channels = x.dim(3);
  p.out_height = y.dim(1), p.out_width = y.dim(2);
  p.window_height = window.height.size, p.window_width = window.width.size;
  p.stride_height = window.height.stride, p.stride_width = window.width.stride;
  p.padding_top = window.height.before, p.padding_left = window.width.before;
  return p;
}

const PoolingLoops& poolingLoops(Isa isa) {
  DTF_CHECK_MSG(isa <= bestIsa(), std::string(isaName(isa)));
#if defined(__x86_64__)
  if (isa == Isa::kV4) return v4::kPoolingLoops;
  if (isa == Isa::kV3) return v3::kPoolingLoops;
#endif
  return baseline::kPoolingLoops;
}

}  // namespace dtf::runtime
