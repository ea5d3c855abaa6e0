#pragma once

// The one exception type of dtf. An Error says that an operation failed for a reason outside our
// code: a peer that is gone, a bad file, a bad configuration. Outcomes that a caller branches on (a
// stale gradient) are return values, and broken invariants are DTF_CHECK. Errors are caught only
// where an operation ends: an RPC method, a thread's body, main().

#include <exception>
#include <string>
#include <string_view>

namespace dtf {

// What a caller is expected to do with each is in the comment; exitCode() gives the process's
// answer.
enum class ErrorCode {
  kTrainingFailed,  // the training itself went wrong (NaN loss): look at the model or the data exit
                    // 1
  kUsage,    // the command line is wrong: read --help                                        exit 2
  kBadData,  // an input file is missing, truncated or lies about itself: replace it          exit
             // 65
  kUnavailable,  // a host or peer can't be reached, or was lost: look at that task exit 69
  kInternal,  // a bug of ours: report it                                                      exit
              // 70
  kCannotWrite,  // a file or folder can't be written: make room or choose another place exit 73
  kPermission,   // not allowed exit 77
  kBadConfig,  // the YAML, or what it describes, is wrong: edit the file                       exit
               // 78
  kDeadline,   // something awaited did not happen in time; the message names it                exit
               // 124
};

// The process exit code of an error, as README.md documents them.
int exitCode(ErrorCode code);

// "bad_config" and so on; the word used in logs and in JSON.
std::string_view errorCodeName(ErrorCode code);

// Value type. `message` is a complete sentence for a person: what happened, where, and what to do
// next.
class Error : public std::exception {
 public:
  Error(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}
  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  ErrorCode code_;
  std::string message_;
};

// "No such file or directory (2)" for an errno value. Thread-safe.
std::string errnoText(int errno_value);

}  // namespace dtf
