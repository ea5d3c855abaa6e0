#pragma once

// For each table of keys that a cluster file is read with: files with a place for its map, and what
// stands in that map when nothing is at its end.

#include <string>
#include <utility>
#include <vector>

#include "common/yaml/key_table.h"

namespace dtf::launcher {

struct KeyPlace {
  const yaml::Table* table;
  std::string file;  // '@' is where the map stands
  // Its keys with values that a job runs with.
  std::vector<std::pair<std::string, std::string>> entries;
};

// At least one for each of cluster::allTables(). The files that they name lie in the working
// directory: writeKeyFiles().
std::vector<KeyPlace> keyPlaces();

// table.csv, words.csv, x.npy, y.npy, a.npz, images.idx, labels.idx, cifar.bin, folder/{a,b}/0.png.
void writeKeyFiles();

// Values for `key` as YAML: its smallest and largest, one beyond, and values of every other kind.
std::vector<std::string> endsOf(const yaml::Key& key);

}  // namespace dtf::launcher
