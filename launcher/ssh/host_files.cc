#include "launcher/ssh/host_files.h"

#include <fmt/format.h>

#include "common/base/error.h"

namespace dtf::launcher {

void HostFiles::take(const std::string& host, const FilePiece& piece) {
  RunFilesWriter::check(piece);
  Host& from = hosts_[host];
  const bool begins = piece.offset == 0;
  if (begins) from.left_out.erase(piece.name);
  if (from.left_out.contains(piece.name)) return;
  const bool is_new = !from.sizes.contains(piece.name);
  if (is_new && from.sizes.size() >= limits_.files_max) {
    // Its name is not kept, either: a later piece of it comes to the same.
    if (from.told < limits_.words_max)
      leaveOut(host, "", fmt::format("it has more than {} files", limits_.files_max));
    from.told = limits_.words_max;
    return;
  }
  if (host_of_.try_emplace(piece.name, host).first->second != host) return;
  uint64_t& size = from.sizes[piece.name];
  // What was copied by a launch before this one counts: it is there.
  const uint64_t now = piece.offset + piece.bytes.size();
  if (now < piece.offset || now > limits_.bytes_max || from.bytes - size > limits_.bytes_max - now)
    return leaveOut(host, piece.name,
                    fmt::format("its files would take more than {} MiB", limits_.bytes_max >> 20));
  try {
    writer_.write(piece);
  } catch (const Error& error) {
    return leaveOut(host, piece.name, error.message());
  }
  from.bytes += now - size;
  size = now;
}

void HostFiles::leaveOut(const std::string& host, const std::string& name, const std::string& why) {
  Host& from = hosts_[host];
  if (!name.empty()) from.left_out.insert(name);
  if (from.told >= limits_.words_max) return;
  ++from.told;
  const bool is_last = from.told == limits_.words_max;
  tell_(fmt::format("warning: {} of {} is not copied to this host: {}{}",
                    name.empty() ? "a file" : name, host, why,
                    is_last ? "; no more is reported of that host's files" : ""));
}

}  // namespace dtf::launcher
