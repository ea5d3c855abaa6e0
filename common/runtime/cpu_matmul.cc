// MatMul by oneDNN's matmul primitive, made once for its shapes. Transposes are strides, so nothing
// is copied to turn a matrix. The scratchpad is ours: the library's own is bound to the thread that
// made the primitive, and would allocate. Compiles against oneDNN 2.x and 3.x.

#include <oneapi/dnnl/dnnl.hpp>
#include <string>

#include "common/base/error.h"
#include "common/runtime/cpu_kernels_internal.h"

namespace dtf::runtime {
namespace {

using Desc = dnnl::memory::desc;

// The matrix [rows, columns], stored as [columns, rows] when `transposed`.
Desc matrix(int64_t rows, int64_t columns, bool transposed) {
  const dnnl::memory::dims strides =
      transposed ? dnnl::memory::dims{1, rows} : dnnl::memory::dims{columns, 1};
  return Desc({rows, columns}, dnnl::memory::data_type::f32, strides);
}

// Owns: the primitive and the descriptions of its arguments.  Threads: thread-compatible; may run
// in another thread than the one that made it.
class MatMulKernel final : public Kernel {
 public:
  explicit MatMulKernel(const Operation& o)
      : name_(o.name), engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
    const bool ta = o.attributeOr<bool>("transpose_a", false);
    const bool tb = o.attributeOr<bool>("transpose_b", false);
    const Shape& a = o.input_specs[0].shape;
    const int64_t m = a.dim(ta ? 1 : 0), k = a.dim(ta ? 0 : 1);
    const int64_t n = o.output_specs[0].shape.dim(1);
    const Desc a_desc = matrix(m, k, ta), b_desc = matrix(k, n, tb), c_desc = matrix(m, n, false);
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
#if DNNL_VERSION_MAJOR >= 3
    const dnnl::matmul::primitive_desc desc(engine_, a_desc, b_desc, c_desc, attributes);
#else
    const dnnl::matmul::primitive_desc desc(dnnl::matmul::desc(a_desc, b_desc, c_desc), attributes,
                                            engine_);
#endif
    primitive_ = dnnl::matmul(desc);
    workspace_bytes_ = desc.scratchpad_desc().get_size();
    memories_[0] = dnnl::memory(a_desc, engine_, nullptr);
    memories_[1] = dnnl::memory(b_desc, engine_, nullptr);
    memories_[2] = dnnl::memory(c_desc, engine_, nullptr);
    memories_[3] = dnnl::memory(desc.scratchpad_desc(), engine_, nullptr);
    const int kinds[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_SCRATCHPAD};
    for (size_t i = 0; i < 4; ++i) arguments_[i] = {kinds[i], memories_[i].get()};
  }

  size_t workspaceBytes() const override {
    return workspace_bytes_;
  }

  void run(const KernelArguments& a) override {
    const void* const data[] = {a.inputs[0], a.inputs[1], a.outputs[0], a.workspace};
    for (size_t i = 0; i < 4; ++i) {
      check(dnnl_memory_set_data_handle(memories_[i].get(), const_cast<void*>(data[i])));
    }
    check(dnnl_primitive_execute(primitive_.get(), stream_.get(), 4, arguments_));
  }

 private:
  // A refused call changes nothing and says nothing but its status: never ignore one.
  void check(dnnl_status_t status) const {
    if (status == dnnl_success) return;
    throw Error(ErrorCode::kInternal, "MatMul '" + name_ +
                                          "': oneDNN refused the call with status " +
                                          std::to_string(status) + "; please report it.");
  }

  std::string name_;
  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::matmul primitive_;
  size_t workspace_bytes_ = 0;
  dnnl::memory memories_[4];
  dnnl_exec_arg_t arguments_[4];
};

std::unique_ptr<Kernel> makeMatMul(const Operation& o) {
  const int64_t elements = o.output_specs[0].shape.elements();
  if (elements == 0 || o.input_specs[0].shape.elements() == 0) {
    // oneDNN leaves the output of an empty sum as it was.
    const auto zero = [elements](const KernelArguments& a) {
      std::fill_n(out(a, 0), elements, 0.0f);
    };
    return makeKernel(zero, kOverwritesNothing);
  }
  try {
    return std::make_unique<MatMulKernel>(o);
  } catch (const dnnl::error& error) {
    throw Error(ErrorCode::kInternal, "MatMul '" + o.name + "' " + o.input_specs[0].shape.str() +
                                          " x " + o.input_specs[1].shape.str() +
                                          ": oneDNN can't prepare it: " + error.what() + ".");
  }
}

}  // namespace

void addMatMulKernel(KernelTable& table) {
  table.add("MatMul", DeviceType::kCpu, makeMatMul);
}

}  // namespace dtf::runtime
