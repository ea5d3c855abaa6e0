#include <gmock/gmock.h>

#include "common/model_files/weight_reader.h"
#include "tests/unit/launcher/trained_fixture.h"

namespace dtf::launcher {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ExportCommand : public TrainedTest {};

TEST_F(ExportCommand, TheEndingChoosesTheFormatAndTheValuesAreTheCheckpoints) {
  imported();
  for (const char* const ending : {".safetensors", ".npz", ".onnx"}) {
    options_.to = folder_.path() + "/model" + ending;
    EXPECT_THAT(printed([this] { return exportModel(job_, options_); }),
                AllOf(HasSubstr("tiny: step 0: 2 variables in " + options_.to->string()),
                      HasSubstr("scaling     features / 255")));
    bool found = false;
    for (const model_files::FoundTensor& tensor : model_files::readWeights(*options_.to).tensors) {
      if (tensor.name != "softmax/biases") continue;
      found = true;
      EXPECT_EQ(tensor.value.as<float>()[3], 10) << ending;
    }
    EXPECT_TRUE(found) << ending;
  }
}

TEST_F(ExportCommand, AnEndingThatIsNoFormatIsRefusedBeforeAnythingIsRead) {
  EXPECT_THAT(refusal(ErrorCode::kUsage, [this] { return exportModel(job_, options_); }),
              HasSubstr("--to is missing: "));
  options_.to = folder_.path() + "/model.pt";
  EXPECT_THAT(refusal(ErrorCode::kUsage, [this] { return exportModel(job_, options_); }),
              HasSubstr("unknown format; end the name with .safetensors, .npz or .onnx"));
}

}  // namespace
}  // namespace dtf::launcher
