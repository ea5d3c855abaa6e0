#pragma once

// Reads the tensors of a file of weights that another program wrote, to start from.
//
// Files are untrusted: sizes are compared with the file's size before memory is allocated. The file
// or the caller states the layout of the weights; it is never guessed.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/model_files/onnx_place.h"
#include "common/model_files/weight_layout.h"
#include "common/tensor/tensor.h"

namespace dtf::model_files {

// Value type; move-only.
struct FoundTensor {
  std::string name;
  Tensor value;  // float32
  WeightLayout layout = WeightLayout::kDtf;
  bool turned = false;       // it lay in another order in the file
  std::string renamed = {};  // by weight_names.h; empty: it has its own name
  const std::string& matchedName() const { return renamed.empty() ? name : renamed; }
};

// A tensor that isn't read. Value type.
struct SkippedTensor {
  std::string name;
  std::string why;  // "its type is I64, and F16, BF16, F32 and F64 are read"
  std::string renamed = {};
  const std::string& matchedName() const { return renamed.empty() ? name : renamed; }
};

struct FoundWeights {
  std::vector<FoundTensor> tensors;
  std::vector<SkippedTensor> skipped;   // can't be read: an error if a variable has the name
  std::vector<SkippedTensor> excluded;  // not wanted by the caller
  std::vector<int64_t> input;           // ONNX: the sizes of an example if it has three
  std::string signature;                // TrainedModel::signature of a file that dtf wrote
};

// Reads a file by its ending: .safetensors, .npz or .onnx. `stated` is kDtf or kPyTorch
// (DTF_CHECK); files of dtf need none, and ONNX files permit none.
// Blocks: on the disk.
// Errors: kUsage for another ending, for matrices and filters if neither the file nor `stated`
// gives their layout, and if `stated` contradicts the file; kBadData naming the file, and the
// tensor if it is at fault; kPermission.
FoundWeights readWeights(const std::filesystem::path& file,
                         std::optional<WeightLayout> stated = std::nullopt);

// Returns the initializers of an ONNX model, and the values of Constant nodes that have dimensions.
// `elsewhere` reads tensors in other files, which are skipped if it is empty. The filters of a Conv
// are turned to [height, width, channels, filters], the matrix of a Gemm with transB to [inputs,
// outputs]. A matrix that exporters call "onnx::MatMul_7" is named after its bias: "fc.weight" for
// "fc.bias". `name` is the file, for messages. Errors: kBadData.
FoundWeights parseOnnxWeights(std::string_view bytes, const std::string& name,
                              const ReadElsewhere& elsewhere = {});

}  // namespace dtf::model_files
