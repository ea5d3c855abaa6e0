// MatMul by cuBLASLt, optionally with a bias and relu. Its matrices are column-major: the row-major
// product c = a * b is c^T = b^T * a^T there.

#include <cublasLt.h>

#include <limits>
#include <optional>
#include <string>

#include "gpu/kernel.h"
#include "gpu/libraries.h"
#include "gpu/product.h"
#include "gpu/rounding.h"
#include "gpu/trial.h"

namespace dtf::gpu {
namespace {

// 32 MiB is cuBLASLt's own default for Hopper.
constexpr size_t kMatMulWorkspaceBytes = size_t{32} << 20;

struct LayoutDestroy {
  void operator()(cublasLtMatrixLayout_t layout) const { cublasLtMatrixLayoutDestroy(layout); }
};
using Layout = std::unique_ptr<std::remove_pointer_t<cublasLtMatrixLayout_t>, LayoutDestroy>;
struct MatmulDestroy {
  void operator()(cublasLtMatmulDesc_t desc) const { cublasLtMatmulDescDestroy(desc); }
};
using Matmul = std::unique_ptr<std::remove_pointer_t<cublasLtMatmulDesc_t>, MatmulDestroy>;
struct PreferenceDestroy {
  void operator()(cublasLtMatmulPreference_t preference) const {
    cublasLtMatmulPreferenceDestroy(preference);
  }
};
using Preference =
    std::unique_ptr<std::remove_pointer_t<cublasLtMatmulPreference_t>, PreferenceDestroy>;

// `rows` x `columns`, row-major in memory: columns x rows for cuBLASLt.
Layout layoutOf(Type type, int64_t rows, int64_t columns) {
  const cudaDataType_t of = type == Type::kBFloat16 ? CUDA_R_16BF : CUDA_R_32F;
  cublasLtMatrixLayout_t layout = nullptr;
  check(cublasLtMatrixLayoutCreate(&layout, of, static_cast<uint64_t>(columns),
                                   static_cast<uint64_t>(rows), columns),
        "describing a matrix");
  return Layout(layout);
}

void setTranspose(const Matmul& matmul, cublasLtMatmulDescAttributes_t which, bool transpose) {
  const cublasOperation_t operation = transpose ? CUBLAS_OP_T : CUBLAS_OP_N;
  check(cublasLtMatmulDescSetAttribute(matmul.get(), which, &operation, sizeof operation),
        "describing a product");
}

template <class T>
void setPreference(const Preference& preference, cublasLtMatmulPreferenceAttributes_t which,
                   T value) {
  check(cublasLtMatmulPreferenceSetAttribute(preference.get(), which, &value, sizeof value),
        "choosing a product's algorithm");
}

// Requires sums in a fixed order, and the alignment of a step's tensors.
Preference preferenceOf() {
  constexpr uint32_t kAlignment = 16;
  cublasLtMatmulPreference_t made = nullptr;
  check(cublasLtMatmulPreferenceCreate(&made), "choosing a product's algorithm");
  Preference preference(made);
  setPreference(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kMatMulWorkspaceBytes);
  setPreference(
      preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_MASK & ~CUBLASLT_REDUCTION_SCHEME_INPLACE));
  for (const auto which :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    setPreference(preference, which, kAlignment);
  return preference;
}

// The operation on a product before it is written. cuBLASLt's relu, max(x, 0), keeps a NaN, since a
// diverged loss must show (the device suite checks it): so do the instructions of its kernels for
// sm_90.
enum class Epilogue : int64_t { kNone, kBias, kBiasRelu };

Epilogue epilogueOf(const Operation& o) {
  if (o.inputs.size() < 3) return Epilogue::kNone;
  return o.flag("relu") ? Epilogue::kBiasRelu : Epilogue::kBias;
}

class MatMulKernel final : public Kernel {
 public:
  explicit MatMulKernel(const Operation& o)
      : p_(o),
        bytes_(o.outputs[0].bytes()),
        bytes_each_(bytesOf(o.inputs[0].type)),
        epilogue_(epilogueOf(o)) {
    if (empty()) return;
    cublasLtMatmulDesc_t matmul = nullptr;
    const Type factors = o.inputs[0].type;
    const bool tf32 = factors == Type::kFloat32 && roundingOf(o) == Rounding::kTf32;
    const cublasComputeType_t compute = tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    check(cublasLtMatmulDescCreate(&matmul, compute, CUDA_R_32F), "describing a product");
    matmul_.reset(matmul);
    setTranspose(matmul_, CUBLASLT_MATMUL_DESC_TRANSA, p_.transpose_b);
    setTranspose(matmul_, CUBLASLT_MATMUL_DESC_TRANSB, p_.transpose_a);
    a_ = p_.transpose_a ? layoutOf(factors, p_.k, p_.m) : layoutOf(factors, p_.m, p_.k);
    b_ = p_.transpose_b ? layoutOf(factors, p_.n, p_.k) : layoutOf(factors, p_.k, p_.n);
    c_ = layoutOf(o.outputs[0].type, p_.m, p_.n);
    for (const int64_t part :
         {p_.m, p_.k, p_.n, int64_t{p_.transpose_a}, int64_t{p_.transpose_b}, int64_t{tf32},
          static_cast<int64_t>(factors), static_cast<int64_t>(o.outputs[0].type)})
      key_ += std::to_string(part) + " ";
    // Products without an epilogue keep their old keys, so that plans on disk stay valid.
    if (epilogue_ == Epilogue::kNone) return;
    key_ += "epilogue " + std::to_string(static_cast<int64_t>(epilogue_)) + " ";
    setEpilogue(epilogue_ == Epilogue::kBias ? CUBLASLT_EPILOGUE_BIAS
                                             : CUBLASLT_EPILOGUE_RELU_BIAS);
  }

  void prepare(Device& device) override {
    if (empty()) return;
    const auto [chosen, is_new] = device.libraries().algorithms.try_emplace(key_);
    if (is_new) chosen->second = choose(device);
    choice_ = chosen->second;
    workspace_ = device.workspace(choice_.workspaceSize);
  }

  void launch(Device& device, const Arguments& a) override {
    if (empty()) {  // an empty sum is 0
      if (bytes_ > 0)
        check(cudaMemsetAsync(a.outputs[0], 0, static_cast<size_t>(bytes_), device.stream()),
              "clearing a product");
      return;
    }
    multiply(
        device, choice_,
        {a.inputs[0], a.inputs[1], addsBias() ? a.inputs[2] : nullptr, a.outputs[0], workspace_});
    device.countLaunch();
  }

  const char* way() const override { return "cublasLt"; }

 private:
  struct Memory {
    const std::byte* a;
    const std::byte* b;
    const std::byte* bias;  // may be null
    std::byte* c;
    std::byte* workspace;
  };
  using Choice = cublasLtMatmulHeuristicResult_t;

  bool empty() const { return p_.m * p_.n == 0 || p_.k == 0; }

  void setEpilogue(cublasLtEpilogue_t epilogue) const {
    check(cublasLtMatmulDescSetAttribute(matmul_.get(), CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
                                         sizeof epilogue),
          "describing the epilogue of a product");
  }

  bool addsBias() const { return epilogue_ != Epilogue::kNone; }
  void setBias(const std::byte* bias) const {
    if (bias == nullptr) return;
    check(cublasLtMatmulDescSetAttribute(matmul_.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias,
                                         sizeof bias),
          "describing a bias");
  }

  void multiply(Device& device, const Choice& choice, const Memory& m) const {
    const float one = 1, zero = 0;
    setBias(m.bias);
    check(cublasLtMatmul(device.libraries().blas, matmul_.get(), &one, m.b, b_.get(), m.a, a_.get(),
                         &zero, m.c, c_.get(), m.c, c_.get(), &choice.algo, m.workspace,
                         choice.workspaceSize, device.stream()),
          "multiplying matrices");
  }

  // Returns the algorithm chosen earlier on such a device, or the fastest of cuBLASLt's best
  // candidates.
  Choice choose(Device& device) const {
    const Preference preference = preferenceOf();
    std::optional<Scratch> bias;
    if (addsBias()) setBias(bias.emplace(device, static_cast<size_t>(p_.n) * sizeof(float)).get());
    Choice offered[kTrialsMax] = {};
    int found = 0;
    check(cublasLtMatmulAlgoGetHeuristic(device.libraries().blas, matmul_.get(), b_.get(), a_.get(),
                                         c_.get(), c_.get(), preference.get(), kTrialsMax, offered,
                                         &found),
          "choosing a product's algorithm");
    if (found == 0)
      throw PluginError(DTF_PLUGIN_INTERNAL,
                        "cuBLASLt has no algorithm for a product of " + std::to_string(p_.m) +
                            " x " + std::to_string(p_.k) + " x " + std::to_string(p_.n) +
                            (addsBias() ? " with a bias." : "."));
    PlanCache& kept = *device.libraries().kept;
    const std::string key = "product " + key_;
    const std::optional<size_t> known = kept.find(key);
    if (known && *known < static_cast<size_t>(found)) return offered[*known];
    const auto each = static_cast<size_t>(bytes_each_);
    const Scratch a(device, static_cast<size_t>(p_.m * p_.k) * each);
    const Scratch b(device, static_cast<size_t>(p_.k * p_.n) * each);
    const Scratch c(device, static_cast<size_t>(bytes_)), workspace(device, kMatMulWorkspaceBytes);
    size_t best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < static_cast<size_t>(found); ++i) {
      if (offered[i].state != CUBLAS_STATUS_SUCCESS) continue;
      const double taken = timedRuns(device, [&] {
        multiply(device, offered[i],
                 {a.get(), b.get(), bias ? bias->get() : nullptr, c.get(), workspace.get()});
      });
      if (taken >= least) continue;
      best = i;
      least = taken;
    }
    kept.add(key, best);
    return offered[best];
  }

  const Product p_;
  const int64_t bytes_, bytes_each_;  // of the product, and of an element of the factors
  const Epilogue epilogue_;
  std::string key_;  // the properties that algorithms depend on
  Matmul matmul_;
  Layout a_, b_, c_;
  cublasLtMatmulHeuristicResult_t choice_ = {};
  std::byte* workspace_ = nullptr;
};

}  // namespace

void addMatMulKernel(KernelTable& table) {
  table["MatMul"] = table["_FusedMatMul"] = [](const Operation& o) -> std::unique_ptr<Kernel> {
    return std::make_unique<MatMulKernel>(o);
  };
}

}  // namespace dtf::gpu
