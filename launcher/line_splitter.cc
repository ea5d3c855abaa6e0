#include "launcher/line_splitter.h"

#include <algorithm>

#include "common/base/check.h"

namespace dtf::launcher {

void LineSplitter::feed(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    if (end == std::string_view::npos) return append(bytes);
    append(bytes.substr(0, end));
    emit();
    bytes.remove_prefix(end + 1);
  }
}

void LineSplitter::flush() {
  if (!partial_.empty()) emit();
}

void LineSplitter::append(std::string_view part) {
  DTF_CHECK(partial_.size() <= bytes_max_);
  const size_t room = bytes_max_ - partial_.size();
  cut_ = cut_ || part.size() > room;
  partial_.append(part.substr(0, std::min(room, part.size())));
}

void LineSplitter::emit() {
  if (!partial_.empty() && partial_.back() == '\r') partial_.pop_back();
  on_line_(partial_, cut_);
  partial_.clear();
  cut_ = false;
}

}  // namespace dtf::launcher
