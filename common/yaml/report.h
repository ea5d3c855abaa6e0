#pragma once

// Collects every mistake of the files and flags that make up one job, and shows them as a compiler
// would:
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
  int source = 0;  // an index that Report::addFile or addFlag returned
  int line = 0;    // from 1; 0: the source as a whole
  int column = 0;  // from 1, in bytes
};

// Owns: the text of the sources, for the quoted lines.
// Borrows: the tables.
// Threads: thread-compatible.  Never blocks.
class Report {
 public:
  static constexpr size_t kShownMax = 20;  // mistakes in one message; the rest is counted

  // All tables that the sources are read with: messages say where a misplaced key belongs. None
  // until this is called.
  void setTables(Tables tables) { tables_ = tables; }
  Tables tables() const { return tables_; }

  // `text` is the file's content; `path` is how messages name it, and where its relative paths
  // start.
  int addFile(const std::filesystem::path& path, std::string text);
  // All of them: absolute path -> content.
  std::map<std::filesystem::path, std::string> files() const;
  // A piece of the command line, "--set train.steps=5". Its relative paths start at the working
  // directory.
  int addFlag(std::string_view words);

  void error(const Place& place, std::string message, ErrorCode code = ErrorCode::kBadConfig);
  // Something that is allowed, and probably not meant. Never thrown.
  void warning(const Place& place, std::string message);
  bool empty() const { return mistakes_.empty(); }
  size_t mistakes() const { return mistakes_.size(); }

  // Throws one dtf::Error with all mistakes, by source and line, when there are any. Its code is
  // kBadConfig when one of them has it: the file is to be edited before anything else is looked at.
  // Otherwise the code of the first.
  void throwIfAny() const;
  // Throws the first of them as an ErrorAt.
  void throwFirst() const;
  // The same files and tables, without mistakes and warnings: for what is read once more, later.
  Report withoutMistakes() const;
  // The warnings in the same form, by source and line. Of equal ones of one source the first.
  std::vector<std::string> warningTexts() const;
  // All of them, each with its newline; empty: none.
  std::string warnings() const;

  bool isFlag(const Place& place) const { return !sourceOf(place).is_file; }
  // The folder that relative paths written at `place` are relative to; empty: the working
  // directory.
  std::filesystem::path folderOf(const Place& place) const;
  Mark markOf(const Place& place) const;
  // The way back, for mistakes that are found once the file is read. DTF_CHECKs that markOf() of
  // this report made it.
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
    ErrorCode code = ErrorCode::kBadConfig;  // of a mistake, not of a warning
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

// `text` between single quotes for a message: control characters escaped, long text cut.
std::string inQuotes(std::string_view text);

}  // namespace dtf::yaml
