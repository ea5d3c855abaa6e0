#pragma once

// Arrays of NumPy as a model may use them: which one holds the examples, which one the labels, and
// whether these are classes or numbers.

#include <filesystem>
#include <optional>
#include <string>

#include "launcher/init/dataset_profile.h"

namespace dtf::launcher {

// Reads an archive (.npz). `target`, `features`: the names of arrays; nullopt: those of a usual
// name (x, y), or of the only two.
// Blocks: on the disk.
// Errors: those of data::ZipArchive and data::readNpyDataset(); kUsage for an array that isn't
// there, or that only a person can choose, with the list of all.
ArraysProfile profileArchive(const std::filesystem::path& file,
                             const std::optional<std::string>& target,
                             const std::optional<std::string>& features);

// Reads an array of examples (.npy) and the array of their labels, the file `target`; nullopt: the
// file beside it of a usual name (x.npy, y.npy).
// Blocks, errors: likewise.
ArraysProfile profileArray(const std::filesystem::path& file,
                           const std::optional<std::string>& target);

}  // namespace dtf::launcher
