#pragma once

// The signature of the training data in a checkpoint. Checkpoints of dtf 0.1.0 hold the names of
// the classes alone.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/checkpoint/manifest.h"
#include "common/data/data_signature.h"

namespace dtf::train {

using ClassNames = std::vector<std::string>;

// Returns a JSON array on one line of ASCII. Invalid UTF-8 in names becomes U+FFFD.
std::string encodeClassNames(const ClassNames& names);

// Decodes the result of encodeClassNames(); returns an empty list for any other text.
ClassNames decodeClassNames(std::string_view text);

// Returns the signature in the checkpoint; nullopt for one of dtf 0.1.0.
// Errors: kBadData.
std::optional<data::DataSignature> signatureOf(const checkpoint::Manifest& manifest);

// Returns the class names in the checkpoint; empty if it has none.
// Errors: kBadData.
ClassNames classNamesOf(const checkpoint::Manifest& manifest);

// Returns how `other` differs from the data of the checkpoint, for display, as
// data::signatureDifference(). For a checkpoint of dtf 0.1.0 it compares the class names, if both
// sides have some.
// Errors: kBadData.
std::string meaningDifference(const checkpoint::Manifest& manifest,
                              const data::DataSignature& other, const std::string& data);

}  // namespace dtf::train
