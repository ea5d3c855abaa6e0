#pragma once

// Collects all mistakes in the files and flags of one job, and shows them as a compiler would:
//
//   local.yaml:14:3: error: unknown key 'wrokers' in 'cluster' - did you mean 'worker'?
//     14 |   wrokers: [localhost:2223]
//        |   ^~~~~~~

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/yaml/key_table.h"
#include "common/yaml/mark.h"

namespace dtf::yaml {

// A position in one of a Report's sources.
struct Place {
  int source = 0;  // an index returned by Report::addFile() or addFlag()
  int line = 0;    // from 1; 0: the source as a whole
  int column = 0;  // from 1, in bytes
};

// Owns: the text of the sources, for the quoted lines.
// Borrows: the tables.
// Threads: thread-compatible.  Never blocks.
class Report {
 public:
  static constexpr size_t kShownMax = 20;  // mistakes shown in one message; the rest is counted

  // Sets all tables used to read the sources: messages give the right place of a misplaced key.
  // None until this is called.
  void setTables(Tables tables) { tables_ = tables; }
  Tables tables() const { return tables_; }

  // Adds a file. `text` is its content; messages name it `path`, and its relative paths start at
  // the folder of `path`.
  int addFile(const std::filesystem::path& path, std::string text);
  // Returns all files: absolute path -> content.
  std::map<std::filesystem::path, std::string> files() const;
  // Adds a part of the command line, "--set train.steps=5". Its relative paths start at the working
  // directory.
  int addFlag(std::string_view words);

  void error(const Place& place, std::string message, ErrorCode code = ErrorCode::kBadConfig);
  // Reports something that is allowed but probably not intended. Never thrown.
  void warning(const Place& place, std::string message);
  bool empty() const { return mistakes_.empty(); }
  size_t mistakes() const { return mistakes_.size(); }

  // If there are mistakes, throws one dtf::Error with all of them, by source and line. Its code is
  // kBadConfig if any mistake has that code: the file must be edited first. Otherwise it is the
  // code of the first mistake.
  void throwIfAny() const;
  // Throws the first mistake as an ErrorAt.
  void throwFirst() const;
  // Returns a report of the same files and tables without mistakes and warnings, for reading
  // something again later.
  Report withoutMistakes() const;
  // Returns the warnings in the same form, by source and line; of equal ones of a source the first.
  std::vector<std::string> warningTexts() const;
  // Returns all warnings, each with its newline; empty if none.
  std::string warnings() const;

  bool isFlag(const Place& place) const { return !sourceOf(place).is_file; }
  // Returns the folder that relative paths at `place` start from; empty: the working directory.
  std::filesystem::path folderOf(const Place& place) const;
  Mark markOf(const Place& place) const;
  // The reverse of markOf(), for mistakes found after reading. DTF_CHECKs that markOf() of this
  // report made `mark`.
  Place placeOf(const Mark& mark) const;

 private:
  struct Source {
    std::string name;
    bool is_file = false;
    std::string text;
  };
  struct Mistake {
    Place place;
    std::string message;
    ErrorCode code = ErrorCode::kBadConfig;  // for mistakes, not for warnings
  };

  int addSource(Source source);
  const Source& sourceOf(const Place& place) const;
  std::string show(const Mistake& mistake, std::string_view severity) const;
  static void sortByPlace(std::vector<Mistake>& mistakes);

  Tables tables_;
  std::vector<Source> sources_;
  std::vector<Mistake> mistakes_;
  std::vector<Mistake> warnings_;
};

// Returns `text` in single quotes for a message: control characters escaped, long text cut.
std::string inQuotes(std::string_view text);

}  // namespace dtf::yaml
