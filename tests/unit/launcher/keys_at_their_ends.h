#pragma once

// For each table of keys in a cluster file: files with a place for the table's map, and valid
// entries of that map.

#include <string>
#include <utility>
#include <vector>

#include "common/yaml/key_table.h"

namespace dtf::launcher {

struct KeyPlace {
  const yaml::Table* table;
  std::string file;  // '@' marks the place of the map
  // The map's keys, with values that a job runs with.
  std::vector<std::pair<std::string, std::string>> entries;
};

// At least one for each of cluster::allTables(). The files that they name are in the working
// directory: writeKeyFiles().
std::vector<KeyPlace> keyPlaces();

// table.csv, words.csv, x.npy, y.npy, a.npz, images.idx, labels.idx, cifar.bin,
// cifar100.bin, folder/{a,b}/0.png.
void writeKeyFiles();

// Returns values for `key` as YAML: its smallest and largest, one beyond each, and values of every
// other kind.
std::vector<std::string> endsOf(const yaml::Key& key);

}  // namespace dtf::launcher
