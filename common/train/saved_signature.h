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

// As one line of ASCII, a JSON array; names that are no UTF-8 are written with U+FFFD.
std::string encodeClassNames(const ClassNames& names);

// Empty for a text that is none of encodeClassNames().
ClassNames decodeClassNames(std::string_view text);

// Nullopt: a checkpoint of dtf 0.1.0 has none.
// Errors: kBadData.
std::optional<data::DataSignature> signatureOf(const checkpoint::Manifest& manifest);

// Those of the checkpoint; empty: it has none.
// Errors: kBadData.
ClassNames classNamesOf(const checkpoint::Manifest& manifest);

// How data differ from those of the checkpoint, for a person, as data::signatureDifference(); of
// one of dtf 0.1.0 the classes' names are compared, where both have some.
// Errors: kBadData.
std::string meaningDifference(const checkpoint::Manifest& manifest,
                              const data::DataSignature& other, const std::string& data);

}  // namespace dtf::train
