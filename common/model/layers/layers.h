#pragma once

// The rows of the layer table: one function for each file of this folder. For layer_table.cc.

#include <vector>

#include "common/model/layer.h"

namespace dtf::model {

std::vector<LayerType> activationLayers();
std::vector<LayerType> branchLayers();
LayerType batchNormLayer();
LayerType conv2dLayer();
LayerType denseLayer();
LayerType depthwiseConv2dLayer();
LayerType dropoutLayer();
LayerType embeddingLayer();
LayerType flattenLayer();
LayerType graphLayer();
LayerType layerNormLayer();
LayerType lstmLayer();
LayerType normalizeLayer();
std::vector<LayerType> poolingLayers();
LayerType reshapeLayer();

}  // namespace dtf::model
