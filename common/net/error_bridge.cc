#include "common/net/error_bridge.h"

#include <kj/debug.h>

#include <array>
#include <boost/system/system_error.hpp>
#include <exception>
#include <iterator>
#include <optional>

#include "common/base/host_limits.h"
#include "common/base/text.h"

namespace dtf::net {

namespace {

constexpr std::array kAllCodes = {ErrorCode::kTrainingFailed, ErrorCode::kUsage,
                                  ErrorCode::kBadData,        ErrorCode::kOutOfRange,
                                  ErrorCode::kUnavailable,    ErrorCode::kInternal,
                                  ErrorCode::kCannotWrite,    ErrorCode::kPermission,
                                  ErrorCode::kBadConfig,      ErrorCode::kDeadline};
constexpr std::string_view kMark = "dtf(";
constexpr std::string_view kMarkEnd = "): ";

// Trait words stand before the mark, where versions without traits skip them.
struct TraitWord {
  ErrorTrait trait;
  std::string_view word;
};
constexpr TraitWord kTraitWords[] = {{ErrorTrait::kHasPlace, "[has_place] "},
                                     {ErrorTrait::kJobEnded, "[job_ended] "},
                                     {ErrorTrait::kNamesWaits, "[names_waits] "},
                                     {ErrorTrait::kProcessLeft, "[process_left] "}};

std::optional<ErrorCode> parseErrorCode(std::string_view name) {
  for (const ErrorCode code : kAllCodes)
    if (errorCodeName(code) == name) return code;
  return std::nullopt;
}

// Adds the traits at the end of `before`, in the order in which toKj() writes them.
void addTraits(std::string_view before, Error& error) {
  for (size_t i = std::size(kTraitWords); i-- > 0;) {
    const auto& [trait, word] = kTraitWords[i];
    if (!before.ends_with(word)) continue;
    before.remove_suffix(word.size());
    error.add(trait);
  }
}

// Finds "dtf(<code>): message" behind the prefixes of kj and capnp ("remote exception: ").
std::optional<Error> decode(std::string_view text) {
  for (size_t at = text.find(kMark); at != text.npos; at = text.find(kMark, at + 1)) {
    const size_t name_at = at + kMark.size();
    const size_t end = text.find(kMarkEnd, name_at);
    if (end == text.npos) return std::nullopt;
    if (const auto code = parseErrorCode(text.substr(name_at, end - name_at))) {
      Error error(*code, printable(text.substr(end + kMarkEnd.size())));
      addTraits(text.substr(0, at), error);
      return error;
    }
  }
  return std::nullopt;
}

bool peerIsGone(const error_code& ec) {
  namespace error = asio::error;
  if (ec == error::eof || ec == error::host_not_found || ec == error::host_not_found_try_again)
    return true;
  for (const auto code :
       {error::connection_reset, error::broken_pipe, error::connection_aborted,
        error::not_connected, error::timed_out, error::connection_refused, error::host_unreachable,
        error::network_unreachable, error::network_reset, error::network_down, error::shut_down,
        error::operation_aborted, error::bad_descriptor})
    if (ec == code) return true;
  return false;
}

kj::Exception::Type typeOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUnavailable:
      return kj::Exception::Type::DISCONNECTED;
    case ErrorCode::kDeadline:
      return kj::Exception::Type::OVERLOADED;
    default:
      return kj::Exception::Type::FAILED;
  }
}

kj::Exception makeKj(kj::Exception::Type type, const std::string& text) {
  return kj::Exception(type, __FILE__, __LINE__, kj::heapString(text.data(), text.size()));
}

// Converts errors thrown by constructors of Asio's objects. A host that has run out of resources is
// no bug of dtf.
Error systemFailure(const boost::system::system_error& failure) {
  const error_code& ec = failure.code();
  if (ec == boost::system::errc::too_many_files_open ||
      ec == boost::system::errc::too_many_files_open_in_system)
    return Error(ErrorCode::kUnavailable, std::string(failure.what()) + ": " + openFilesLimit());
  if (ec == boost::system::errc::not_enough_memory)
    return Error(ErrorCode::kUnavailable, std::string(failure.what()) + ": " + memoryLimit());
  if (ec == boost::system::errc::resource_unavailable_try_again)
    return Error(ErrorCode::kUnavailable, std::string(failure.what()) + ": " + threadsLimit());
  return Error(ErrorCode::kInternal, failure.what());
}

}  // namespace

kj::Exception toKj(const error_code& ec, std::string_view what) {
  auto type = kj::Exception::Type::FAILED;
  if (peerIsGone(ec)) type = kj::Exception::Type::DISCONNECTED;
  if (ec == asio::error::no_buffer_space || ec == asio::error::no_memory)
    type = kj::Exception::Type::OVERLOADED;
  return makeKj(type, std::string(what) + ": " + ec.message());
}

kj::Exception toKj(const Error& error) {
  std::string text;
  for (const auto& [trait, word] : kTraitWords)
    if (error.has(trait)) text += word;
  text += kMark;
  text += errorCodeName(error.code());
  text += kMarkEnd;
  return makeKj(typeOf(error.code()), text + error.message());
}

bool carriesError(const kj::Exception& exception) {
  const auto description = exception.getDescription();
  return decode({description.begin(), description.size()}).has_value();
}

Error toError(const kj::Exception& exception) {
  const auto description = exception.getDescription();
  const std::string_view text(description.begin(), description.size());
  if (auto error = decode(text)) return *std::move(error);
  switch (exception.getType()) {
    case kj::Exception::Type::DISCONNECTED:
      // capnp's text for a connection closed by the peer, in order or not, names capnp's own parts.
      if (text.find("RpcSystem was destroyed") != text.npos || text == "Peer disconnected.")
        return Error(ErrorCode::kUnavailable, "the connection was lost: the peer closed it");
      return Error(ErrorCode::kUnavailable, "the connection was lost: " + printable(text));
    case kj::Exception::Type::OVERLOADED:
      return Error(ErrorCode::kDeadline, printable(text));
    default:
      return Error(ErrorCode::kInternal, printable(text));
  }
}

Error toError(ErrorCode code, std::string_view what, const error_code& ec) {
  return Error(code,
               std::string(what) + ": " + ec.message() + " (" + std::to_string(ec.value()) + ")");
}

Error toErrorFromErrno(ErrorCode code, std::string_view what, int errno_value) {
  return Error(code, std::string(what) + ": " + errnoText(errno_value));
}

Error currentError() {
  try {
    throw;
  } catch (const Error& error) {
    return error;
  } catch (const boost::system::system_error& failure) {
    return systemFailure(failure);
  } catch (const kj::Exception& exception) {
    return toError(exception);
  } catch (const std::exception& exception) {
    return hostError(exception).value_or(Error(ErrorCode::kInternal, exception.what()));
  } catch (...) {
    return Error(ErrorCode::kInternal, "an exception of unknown type");
  }
}

void throwAsKj(const Error& error) {
  kj::throwFatalException(toKj(error));
  __builtin_unreachable();
}

}  // namespace dtf::net
