#pragma once

// What the classes of a trained model are called, from class 0 on, where its data said it. They stand
// beside its weights: a folder that gained a class since would give all later ones another number.

#include <string>
#include <string_view>
#include <vector>

namespace dtf::train {

using ClassNames = std::vector<std::string>;

// As one line of ASCII, a JSON array; names that are no UTF-8 are written with U+FFFD.
std::string encodeClassNames(const ClassNames& names);

// Empty for a text that is none of encodeClassNames().
ClassNames decodeClassNames(std::string_view text);

// How the names of a model differ from those of its data now, for a person; empty: not at all, or one
// of them has none. `data`: what these are called.
std::string classDifference(const ClassNames& of_model, const ClassNames& of_data,
                            const std::string& data);

}  // namespace dtf::train
