#pragma once

// The one exception type of dtf. An Error says that an operation failed for a reason outside our
// code: a peer that is gone, a bad file, a bad configuration. Outcomes that a caller branches on (a
// stale gradient) are return values, and broken invariants are DTF_CHECK. Errors are caught only
// where an operation ends: an RPC method, a thread's body, main().

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

namespace dtf {

// The caller's expected reaction to each error, and the exit code of a process that ends with it.
enum class ErrorCode {
  kTrainingFailed,  //   1  the training itself went wrong (NaN loss): look at the model or the data
  kUsage,           //   2  the command line is wrong: read --help
  kBadData,         //  65  an input file is missing, truncated or lies about itself: replace it
  kOutOfRange,      //  66  a queue is closed: nothing more comes out of it, or goes in
  kUnavailable,     //  69  a host or peer can't be reached, or was lost: look at that task
  kInternal,        //  70  a bug of ours: report it
  kCannotWrite,     //  73  a file or folder can't be written: make room or choose another place
  kPermission,      //  77  not allowed
  kBadConfig,       //  78  the YAML, or what it describes, is wrong: edit the file
  kDeadline,        // 124  a deadline has passed; the message names the event that is missing
};

// Returns the exit code of an error, as launcher/USING.md documents it.
int exitCode(ErrorCode code);

// Returns "bad_config" and so on, the word in logs and in JSON.
std::string_view errorCodeName(ErrorCode code);

// Facts about an error that callers branch on, besides its code. They cross RPC with the code.
enum class ErrorTrait : uint8_t {
  // The message starts with the place of the mistake, as compilers print it:
  // "job.yaml:9:7: error: ...".
  kHasPlace = 1,
  // Another task failed and ended the job. That task reports the cause.
  kJobEnded = 2,
  // A step missed its deadline: the message also names the nodes that waited at queues.
  kNamesWaits = 4,
  // The process at the other end leaves the job, which goes on: another process may take its place.
  kProcessLeft = 8,
};

// Value type. `message` is a complete sentence for a person: the failure, its place, and the next
// action. No code branches on its text.
class Error : public std::exception {
 public:
  Error(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}
  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }
  const char* what() const noexcept override { return message_.c_str(); }

  bool has(ErrorTrait trait) const { return (traits_ & static_cast<uint8_t>(trait)) != 0; }
  void add(ErrorTrait trait) { traits_ |= static_cast<uint8_t>(trait); }

 private:
  ErrorCode code_;
  uint8_t traits_ = 0;  // bits of ErrorTrait
  std::string message_;
};

// Returns the same error with `trait`.
inline Error with(ErrorTrait trait, Error error) {
  error.add(trait);
  return error;
}

// Returns "No such file or directory (2)" for an errno value. Thread-safe.
std::string errnoText(int errno_value);

}  // namespace dtf
