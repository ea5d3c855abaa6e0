#pragma once

// The tensors in a file of weights that another program wrote, to start from.
//
// Files are untrusted: sizes are compared with what the file holds before memory is taken for them.
// How the weights lie is stated by the file or by the caller, and never guessed.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/model_files/weight_layout.h"
#include "common/tensor/tensor.h"

namespace dtf::model_files {

// Value type; move-only.
struct FoundTensor {
  std::string name;
  Tensor value;  // float32
  WeightLayout layout = WeightLayout::kDtf;
  bool turned = false;  // it lay in another order in the file
};

// One that isn't read. Value type.
struct SkippedTensor {
  std::string name;
  std::string why;  // "its type is I64, and F16, BF16, F32 and F64 are read"
};

struct FoundWeights {
  std::vector<FoundTensor> tensors;
  std::vector<SkippedTensor> skipped;
  std::vector<int64_t> input;  // of ONNX: the sizes of an example, where it has three
  std::string signature;       // TrainedModel::signature of a file that dtf wrote
};

// By the ending: .safetensors, .npz or .onnx. `stated` is kDtf or kPyTorch (DTF_CHECK); what dtf
// exported and ONNX need no statement.
// Blocks: on the disk.
// Errors: kUsage for another ending, for matrices and filters of which neither the file nor
// `stated` says how they lie, and where both say different things; kBadData naming the file, and
// the tensor where it is one's fault; kPermission.
FoundWeights readWeights(const std::filesystem::path& file,
                         std::optional<WeightLayout> stated = std::nullopt);

// The initializers of an ONNX model. The filters of a Conv are turned to [height, width, channels,
// filters], the matrix of a Gemm with transB to [inputs, outputs]. The matrix that exporters call
// "onnx::MatMul_7" has the name that goes with its bias: "fc.weight" for "fc.bias". `name` is what
// messages call the file.
// Errors: kBadData.
FoundWeights parseOnnxWeights(std::string_view bytes, const std::string& name);

}  // namespace dtf::model_files
