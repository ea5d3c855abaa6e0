#include "common/model/former_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/model/layer_table.h"
#include "common/model/loss.h"
#include "common/model/metrics.h"
#include "common/model/model_graph.h"
#include "common/model/model_text.h"
#include "common/model/read_model.h"
#include "tests/support/temporary_files.h"

namespace dtf::model {
namespace {

using testing::badConfigOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A model in job.yaml, with the reader's warnings and error.
struct ReadFile {
  ModelSpec model;
  std::string warnings;
  std::string mistake;
};

ReadFile fileOf(const std::string& text) {
  yaml::Report report;
  const std::optional<yaml::YamlNode> root =
      yaml::parseYaml(text, report.addFile("job.yaml", text), report);
  ReadFile read{readModel(*root, report), {}, {}};
  read.mistake = badConfigOf([&] { report.throwIfAny(); });
  read.warnings = report.warnings();
  return read;
}

std::string modelWith(const std::string& layers) {
  return "input: {shape: [8, 8, 2]}\nlayers: [" + layers +
         "]\nloss: sparse_categorical_crossentropy\n";
}

std::vector<std::string> namesOf(const std::string& layers) {
  std::vector<std::string> names;
  for (const LayerSpec& layer : fileOf(modelWith(layers)).model.layers) names.push_back(layer.name);
  return names;
}

// A model of every layer that was renamed, under its old names and under today's.
constexpr const char* kOldLayers =
    "normalize: {mean: [0.5], std: [2]}, "
    "conv2d: {filters: 4, kernel: 3, stride: 1, dilation: 2, padding: same}, batch_norm, "
    "depthwise_conv2d: {kernel: 3, multiplier: 2, stride: 1, dilation: 1, padding: same, "
    "kernel_initializer: he_normal}, batch_norm: {scale: false}, "
    "max_pool: {size: 2, stride: 1, padding: same}, avg_pool: {size: 2}, leaky_relu: {alpha: 0.3}, "
    "layer_norm, residual: {layers: [conv2d: {filters: 8, kernel: 3, padding: same}, batch_norm]}, "
    "relu: {name: kept}, global_avg_pool, global_max_pool: {from: kept}, "
    "concat: {with: [global_avg_pool]}, reshape: {shape: [16]}, dense: {units: 3}";
constexpr const char* kTodaysLayers =
    "normalization: {mean: [0.5], variance: [4]}, "
    "conv2d: {filters: 4, kernel_size: 3, strides: 1, dilation_rate: 2, padding: same}, "
    "batch_normalization, depthwise_conv2d: {kernel_size: 3, depth_multiplier: 2, strides: 1, "
    "dilation_rate: 1, padding: same, depthwise_initializer: he_normal}, "
    "batch_normalization: {scale: false}, max_pooling2d: {pool_size: 2, strides: 1, padding: "
    "same}, "
    "average_pooling2d: {pool_size: 2}, leaky_relu: {negative_slope: 0.3}, layer_normalization, "
    "residual: {layers: [conv2d: {filters: 8, kernel_size: 3, padding: same}, "
    "batch_normalization]}, relu: {name: kept}, global_average_pooling2d, "
    "global_max_pooling2d: {from: kept}, concatenate: {with: [global_average_pooling2d]}, "
    "reshape: {target_shape: [16]}, dense: {units: 3}";

std::vector<std::string> variablesOf(const ModelSpec& model) {
  std::vector<std::string> names;
  const ModelGraph graph = buildEvaluationGraph(model, 2);
  for (const ModelVariable& variable : graph.variables)
    names.push_back(graph.graph.node(variable.value.node).name);
  return names;
}

TEST(FormerNames, EachLeadsToANameThatThereIs) {
  for (const FormerName& row : formerNames()) {
    switch (row.kind) {
      case FormerName::Kind::kLayer:
        EXPECT_NE(layerTable().find(row.now), nullptr) << row.now;
        EXPECT_EQ(layerTable().find(row.was), nullptr) << row.was;
        break;
      case FormerName::Kind::kKey: {
        const yaml::Table& keys = *layerType(row.layer).keys;
        EXPECT_NE(keys.find(row.now), nullptr) << row.layer << " " << row.now;
        EXPECT_EQ(keys.find(row.was), nullptr) << row.layer << " " << row.was;
        if (!row.implied_key.empty()) {
          EXPECT_NE(keys.find(row.implied_key), nullptr) << row.implied_key;
        }
        break;
      }
      case FormerName::Kind::kLoss:
        EXPECT_NE(lossTables().front()->find(row.now), nullptr) << row.now;
        break;
      case FormerName::Kind::kMetric:
        EXPECT_TRUE(row.was == "top_K" || metricNamed(row.was) == metricNamed(row.now)) << row.was;
        break;
    }
  }
}

TEST(FormerNames, AreReadWithAWarningThatHasTheNameOfToday) {
  const ReadFile read = fileOf(
      "input: {shape: [4]}\n"
      "layers:\n"
      "  - batch_norm:\n"
      "  - dense: {units: 9}\n"
      "loss: {softmax_cross_entropy: {label_smoothing: 0.1}}\n"
      "metrics: [accuracy, top_5]\n");
  EXPECT_EQ(read.mistake, "no error");
  EXPECT_EQ(read.warnings,
            "job.yaml:3:5: warning: 'batch_norm' is called 'batch_normalization' now\n"
            "  3 |   - batch_norm:\n    |     ^~~~~~~~~~\n"
            "job.yaml:5:8: warning: 'softmax_cross_entropy' is called "
            "'sparse_categorical_crossentropy' now\n"
            "  5 | loss: {softmax_cross_entropy: {label_smoothing: 0.1}}\n"
            "    |        ^~~~~~~~~~~~~~~~~~~~~\n"
            "job.yaml:6:21: warning: 'top_5' is called 'sparse_top_5_categorical_accuracy' now\n"
            "  6 | metrics: [accuracy, top_5]\n    |                     ^~~~~\n");
  EXPECT_EQ(read.model.layers[0].type, "batch_normalization");
  EXPECT_EQ(read.model.loss.label_smoothing, 0.1);
  EXPECT_EQ(nameOf(read.model.metrics.at(0)), "top_5") << "results keep the name that the file has";
}

TEST(FormerNames, WarnOnceForEachNameOfAFile) {
  const std::string warnings =
      fileOf(modelWith("conv2d: {filters: 2, kernel: 3}, batch_norm, conv2d: {filters: 2, kernel: "
                       "1}, batch_norm, flatten, dense: {units: 2}"))
          .warnings;
  for (const char* name : {"'kernel'", "'batch_norm'"}) {
    const size_t first = warnings.find(name);
    ASSERT_NE(first, std::string::npos) << warnings;
    EXPECT_EQ(warnings.find(name, first + 1), std::string::npos) << warnings;
  }
}

TEST(FormerNames, NamesOfTodayAndThoseThatKerasHasTooWarnOfNothing) {
  EXPECT_EQ(fileOf(modelWith(kTodaysLayers)).warnings, "");
  EXPECT_EQ(fileOf("input: {shape: [4]}\nlayers: [dense: {units: 1}]\nloss: mse\nmetrics: [mae]\n")
                .warnings,
            "");
}

TEST(FormerNames, AKeyUnderBothNamesIsAMistake) {
  EXPECT_THAT(fileOf(modelWith("conv2d: {filters: 2, kernel_size: 3, kernel: 3}")).mistake,
              HasSubstr("job.yaml:2:47: error: 'kernel' is called 'kernel_size' now, and the layer "
                        "has both: leave one out"));
}

TEST(FormerNames, AnOldKeyIsNoKeyOfAnotherLayer) {
  EXPECT_THAT(fileOf(modelWith("dense: {units: 2, kernel: 3}")).mistake,
              HasSubstr("unknown key 'kernel' in 'dense'"));
  EXPECT_THAT(fileOf(modelWith("max_pooling2d: {kernel: 2}")).mistake,
              HasSubstr("unknown key 'kernel' in 'max_pooling2d'"));
}

TEST(FormerNames, NameTheLayersOfABlockToo) {
  const ReadFile read = fileOf(
      "input: {shape: [8, 8, 2]}\n"
      "blocks:\n"
      "  unit: {parameters: {norm: , stride: 1}, layers: [conv2d: {filters: 2, kernel: 1, stride: "
      "$stride}, $norm]}\n"
      "layers: [unit: {norm: batch_norm, stride: 2}, flatten, dense: {units: 2}]\n"
      "loss: mean_squared_error\n");
  EXPECT_EQ(read.mistake, "no error");
  EXPECT_THAT(read.warnings, HasSubstr("job.yaml:4:23: warning: 'batch_norm' is called "));
  EXPECT_THAT(modelText(read.model), HasSubstr("strides=2x2"));
  EXPECT_THAT(fileOf("input: {shape: [4]}\nblocks: {max_pool: {layers: [relu]}}\n"
                     "layers: [max_pool]\nloss: mean_squared_error\n")
                  .mistake,
              HasSubstr("'max_pool' is a layer: give the block another name"));
}

TEST(FormerNames, TheVariablesOfAnOldFileKeepTheirNames) {
  EXPECT_THAT(namesOf("batch_norm, batch_norm, flatten"),
              ElementsAre("batch_norm", "batch_norm_1", "flatten"));
  EXPECT_THAT(namesOf("batch_normalization, batch_normalization"),
              ElementsAre("batch_normalization", "batch_normalization_1"));
  EXPECT_THAT(namesOf("batch_norm, batch_norm: {name: batch_normalization}"),
              ElementsAre("batch_norm", "batch_normalization"));
}

// Each layer is the same before and after its type is renamed in the file.
TEST(FormerNames, BothSpellingsOfATypeCountTogether) {
  EXPECT_THAT(namesOf("batch_normalization, batch_norm, batch_normalization"),
              ElementsAre("batch_normalization", "batch_norm_1", "batch_normalization_2"));
}

TEST(FormerNames, AModelMeansTheSameUnderBoth) {
  const ReadFile old = fileOf(modelWith(kOldLayers)), now = fileOf(modelWith(kTodaysLayers));
  EXPECT_EQ(old.mistake, "no error");
  EXPECT_EQ(now.mistake, "no error");
  EXPECT_NE(modelText(old.model), modelText(now.model)) << "their layers have other names";
  EXPECT_EQ(modelTextDifference(modelText(old.model), modelText(now.model)), "");
  EXPECT_EQ(modelTextDifference(modelText(now.model), modelText(old.model)), "");
  std::vector<std::string> theirs = variablesOf(old.model);
  EXPECT_NE(theirs, variablesOf(now.model));
  for (std::string& name : theirs) name = todaysVariable(name);
  EXPECT_EQ(theirs, variablesOf(now.model));
}

// The text as version 0.1.0 wrote it.
TEST(FormerNames, ATextOfTheVersionBeforeMeansTheSame) {
  const std::string saved =
      "input float32 [8, 8, 2]\n"
      "normalize normalize: mean=[0.5] std=[2]\n"
      "conv2d conv2d: filters=4 kernel=3x3 stride=1x1 dilation=2x2 padding=same activation=none "
      "use_bias=true\n"
      "batch_norm batch_norm: momentum=0.99 epsilon=0.001 scale=true center=true\n"
      "depthwise_conv2d depthwise_conv2d: multiplier=2 kernel=3x3 stride=1x1 padding=same "
      "activation=none use_bias=true\n"
      "batch_norm batch_norm_1: momentum=0.99 epsilon=0.001 scale=false center=true\n"
      "max_pool kernel=2x2 stride=1x1 padding=same\n"
      "avg_pool kernel=2x2 stride=2x2 padding=valid\n"
      "leaky_relu alpha=0.3\n"
      "layer_norm layer_norm: epsilon=0.001\n"
      "residual residual: activation=none\n"
      "  conv2d conv2d: filters=8 kernel=3x3 stride=1x1 padding=same activation=none "
      "use_bias=true\n"
      "  batch_norm batch_norm: momentum=0.99 epsilon=0.001 scale=true center=true\n"
      "relu name=kept\n"
      "global_avg_pool\n"
      "global_max_pool from=kept\n"
      "concat with=global_avg_pool\n"
      "reshape shape=[16]\n"
      "dense dense: units=3 activation=none use_bias=true\n"
      "loss softmax_cross_entropy";
  for (const char* layers : {kOldLayers, kTodaysLayers}) {
    ModelSpec model = fileOf(modelWith(layers)).model;
    model.input_dtype = DType::kFloat32;
    EXPECT_EQ(modelTextDifference(saved, modelText(model)), "");
  }
  ModelSpec other = fileOf(modelWith(kTodaysLayers)).model;
  other.input_dtype = DType::kFloat32;
  other.loss.kind = Loss::kMse;
  EXPECT_EQ(modelTextDifference(saved, modelText(other)),
            "  the checkpoint has 'loss sparse_categorical_crossentropy'\n"
            "  this job has 'loss mean_squared_error'");
}

// Version 0.1.0 left out names that begin with the layer type's word of that version.
TEST(FormerNames, ANameThatBeginsWithEitherWordIsNoPartOfTheMeaning) {
  const auto textOf = [](const std::string& layers) {
    return modelText(fileOf(modelWith(layers)).model);
  };
  const std::string joined = "relu: {name: a}, relu: {name: b}, concat: {with: [a], name: ";
  EXPECT_EQ(modelTextDifference("input [8, 8, 2]\nrelu name=a\nrelu name=b\nconcat with=a\n"
                                "loss softmax_cross_entropy",
                                textOf(joined + "concat_all}")),
            "");
  EXPECT_EQ(modelTextDifference("input [8, 8, 2]\nrelu name=a\nrelu name=b\n"
                                "concat with=a name=all\nloss softmax_cross_entropy",
                                textOf(joined + "all}")),
            "");
}

TEST(FormerNames, AnOldNameKeepsItsDefault) {
  const auto initializerOf = [](const std::string& settings) {
    const ReadFile read = fileOf("input: {shape: [3]}\nlayers: [embedding: {" + settings +
                                 "}, flatten, dense: {units: 2}]\nloss: mean_squared_error\n");
    EXPECT_EQ(read.mistake, "no error");
    const std::string text = layerText(read.model.layers.at(0));
    return text.substr(text.rfind('=') + 1);
  };
  EXPECT_EQ(initializerOf("vocabulary: 5, dimension: 2"), "glorot_uniform");
  EXPECT_EQ(initializerOf("input_dim: 5, output_dim: 2"), "random_uniform");
  EXPECT_EQ(initializerOf("vocabulary: 5, dimension: 2, initializer: zeros"), "zeros");
  EXPECT_EQ(initializerOf("vocabulary: 5, output_dim: 2, embeddings_initializer: ones"), "ones");
  EXPECT_THAT(
      fileOf(modelWith("embedding: {vocabulary: 5, dimension: 2}")).warnings,
      HasSubstr("'vocabulary' is called 'input_dim' now, with which 'embeddings_initializer' has "
                "another default: add 'embeddings_initializer: glorot_uniform' for the same "
                "initial values\n"));
}

TEST(FormerNames, TheReferenceHasThem) {
  EXPECT_EQ(formerlyText("train.model.layers.N", "max_pooling2d"), "formerly max_pool");
  EXPECT_EQ(formerlyText("train.model.layers.N.max_pooling2d, .average_pooling2d", "pool_size"),
            "formerly size");
  EXPECT_EQ(formerlyText("train.model.layers.N.conv2d", "strides"), "formerly stride");
  EXPECT_EQ(formerlyText("train.model.loss", "mean_squared_error"), "also mse");
  EXPECT_EQ(formerlyText("train.model", "metrics"), "also mae, mse; formerly top_K, rmse, r2");
  EXPECT_EQ(formerlyText("train.model.layers.N.dense", "units"), "");
}

TEST(FormerNames, DefaultNamesInAVariablesNameAreReplaced) {
  EXPECT_EQ(todaysVariable("batch_norm/gamma"), "batch_normalization/gamma");
  EXPECT_EQ(todaysVariable("stage/0/batch_norm_12/beta"), "stage/0/batch_normalization_12/beta");
  for (const char* name : {"batch_norm_a/gamma", "my_batch_norm/gamma", "batch_normalization/beta",
                           "batch_norm.1/gamma", "mse/weights", ""})
    EXPECT_EQ(todaysVariable(name), name);
}

}  // namespace
}  // namespace dtf::model
