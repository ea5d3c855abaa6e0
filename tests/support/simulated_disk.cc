#include "tests/support/simulated_disk.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>

#include "common/base/error.h"
#include "common/base/random.h"

namespace dtf::testing {

namespace {

constexpr size_t kPageBytes = 64;  // small, so that small files tear in interesting ways

[[noreturn]] void failWrite(const char* what, const std::filesystem::path& path, int error) {
  throw Error(ErrorCode::kCannotWrite,
              "cannot " + std::string(what) + " " + path.string() + ": " + errnoText(error));
}

[[noreturn]] void failRead(const std::filesystem::path& path, const std::string& why) {
  throw Error(ErrorCode::kBadData, "cannot read " + path.string() + ": " + why);
}

}  // namespace

// A name is added (from empty), removed (to empty) or changed.
struct SimulatedDisk::EntryChange {
  std::string from;
  std::string to;
  std::shared_ptr<Node> node;
};

struct SimulatedDisk::Node {
  using Entries = std::map<std::string, std::shared_ptr<Node>>;

  bool is_folder = false;
  std::string data;     // of a file: as a reader sees it
  std::string durable;  // certain to survive a power cut
  bool lost = false;    // a sync failed: unsynced data never reaches the disk
  Entries entries;      // of a folder, likewise
  Entries durable_entries;
  std::vector<EntryChange> pending;

  static void apply(Entries& entries, const EntryChange& change) {
    if (!change.from.empty()) entries.erase(change.from);
    if (!change.to.empty()) entries[change.to] = change.node;
  }

  // `keep`: the chance in percent that an unsynced change is kept.
  void losePower(Random& random, uint64_t keep) {
    if (!is_folder) {
      loseBytes(random, keep);
      return;
    }
    for (const EntryChange& change : pending)
      if (random.below(100) < keep) apply(durable_entries, change);
    pending.clear();
    entries = durable_entries;
    for (const auto& [name, node] : entries) node->losePower(random, keep);
  }

  void loseBytes(Random& random, uint64_t keep) {
    if (!lost && data != durable) {
      const size_t old_size = durable.size();
      const size_t added = data.size() - std::min(data.size(), old_size);
      size_t size = old_size + (random.below(100) < keep ? added : random.below(added + 1));
      if (keep == 0) size = old_size;
      std::string left = data.substr(0, size);
      // Lost pages read as zeros.
      for (size_t page = old_size; page < size; page += kPageBytes)
        if (random.below(100) >= keep)
          std::memset(left.data() + page, 0, std::min(kPageBytes, size - page));
      durable = left;
    }
    data = durable;
    lost = false;
  }
};

class SimulatedDisk::OpenForWriting final : public WritableFile {
 public:
  OpenForWriting(SimulatedDisk& disk, std::shared_ptr<Node> node, Path path)
      : disk_(disk), node_(std::move(node)), path_(std::move(path)) {}

  void write(const void* data, size_t bytes) override {
    const auto* text = static_cast<const char*>(data);
    int error = 0;
    try {
      error = disk_.begin(Op::kWrite);
    } catch (const SimulatedCrash&) {
      node_->data.append(text, bytes / 2);
      throw;
    }
    node_->data.append(text, error == 0 ? bytes : bytes / 2);
    if (error != 0) failWrite("write", path_, error);
  }

  void sync() override {
    if (const int error = disk_.begin(Op::kSync)) {
      node_->lost = true;
      failWrite("fsync", path_, error);
    }
    if (!node_->lost) node_->durable = node_->data;
  }

  void close() override {
    if (const int error = disk_.begin(Op::kClose)) failWrite("close", path_, error);
  }

 private:
  SimulatedDisk& disk_;
  std::shared_ptr<Node> node_;
  Path path_;
};

class SimulatedDisk::OpenForReading final : public ReadableFile {
 public:
  OpenForReading(std::shared_ptr<Node> node, Path path)
      : node_(std::move(node)), path_(std::move(path)), size_(node_->data.size()) {}

  uint64_t size() const override { return size_; }
  void read(uint64_t offset, void* out, size_t bytes) const override {
    if (offset > node_->data.size() || bytes > node_->data.size() - offset)
      failRead(path_, "it ends at byte " + std::to_string(node_->data.size()));
    if (bytes > 0) std::memcpy(out, node_->data.data() + offset, bytes);
  }

 private:
  std::shared_ptr<Node> node_;
  Path path_;
  uint64_t size_;
};

SimulatedDisk::SimulatedDisk() : root_(std::make_shared<Node>()) {
  root_->is_folder = true;
}

SimulatedDisk::~SimulatedDisk() = default;

std::shared_ptr<SimulatedDisk::Node> SimulatedDisk::find(const Path& path) const {
  std::shared_ptr<Node> node = root_;
  for (const Path& part : path.relative_path()) {
    const auto found = node->entries.find(part.string());
    if (found == node->entries.end()) return nullptr;
    node = found->second;
  }
  return node;
}

std::shared_ptr<SimulatedDisk::Node> SimulatedDisk::folderOf(const Path& path,
                                                             const char* what) const {
  auto folder = find(path.parent_path());
  if (!folder || !folder->is_folder) failWrite(what, path, ENOENT);
  return folder;
}

int SimulatedDisk::begin(Op op) {
  if (crashed_) throw SimulatedCrash{};
  const size_t index = operations_.size();
  operations_.push_back(op);
  if (crash_at_ == index) {
    crashed_ = true;
    throw SimulatedCrash{};
  }
  if (const auto found = fail_at_.find(index); found != fail_at_.end()) return found->second;
  const auto found = failing_.find(op);
  return found == failing_.end() ? 0 : found->second;
}

void SimulatedDisk::change(const std::shared_ptr<Node>& folder, EntryChange change) {
  Node::apply(folder->entries, change);
  folder->pending.push_back(std::move(change));
}

std::unique_ptr<WritableFile> SimulatedDisk::create(const Path& file) {
  if (const int error = begin(Op::kCreate)) failWrite("create", file, error);
  const auto folder = folderOf(file, "create");
  if (find(file)) failWrite("create", file, EEXIST);
  auto node = std::make_shared<Node>();
  change(folder, {"", file.filename().string(), node});
  return std::make_unique<OpenForWriting>(*this, std::move(node), file);
}

std::unique_ptr<ReadableFile> SimulatedDisk::open(const Path& file) {
  auto node = find(file);
  if (!node) failRead(file, errnoText(ENOENT));
  if (node->is_folder) failRead(file, "it isn't a regular file");
  return std::make_unique<OpenForReading>(std::move(node), file);
}

std::vector<FolderEntry> SimulatedDisk::list(const Path& folder) {
  const auto node = find(folder);
  if (!node) failRead(folder, errnoText(ENOENT));
  if (!node->is_folder) failRead(folder, errnoText(ENOTDIR));
  std::vector<FolderEntry> entries;
  for (const auto& [name, entry] : node->entries) entries.push_back({name, entry->is_folder});
  return entries;
}

bool SimulatedDisk::exists(const Path& path) {
  return find(path) != nullptr;
}

void SimulatedDisk::makeFolder(const Path& folder) {
  if (const int error = begin(Op::kMakeFolder)) failWrite("create the folder", folder, error);
  const auto parent = folderOf(folder, "create the folder");
  if (find(folder)) failWrite("create the folder", folder, EEXIST);
  auto node = std::make_shared<Node>();
  node->is_folder = true;
  change(parent, {"", folder.filename().string(), std::move(node)});
}

void SimulatedDisk::rename(const Path& from, const Path& to) {
  if (const int error = begin(Op::kRename)) failWrite("rename to", to, error);
  const auto node = find(from);
  if (!node) failWrite("rename", from, ENOENT);
  // Enough for dtf, and a rename stays one change.
  if (from.parent_path() != to.parent_path()) failWrite("rename to another folder", to, EXDEV);
  const auto there = find(to);
  if (there && there->is_folder != node->is_folder) failWrite("rename to", to, EISDIR);
  if (there && !there->entries.empty()) failWrite("rename to", to, ENOTEMPTY);
  change(folderOf(to, "rename to"), {from.filename().string(), to.filename().string(), node});
}

void SimulatedDisk::removeFile(const Path& file) {
  if (const int error = begin(Op::kRemove)) failWrite("remove", file, error);
  const auto node = find(file);
  if (!node) failWrite("remove", file, ENOENT);
  if (node->is_folder) failWrite("remove", file, EISDIR);
  change(folderOf(file, "remove"), {file.filename().string(), "", node});
}

void SimulatedDisk::removeFolder(const Path& folder) {
  if (const int error = begin(Op::kRemove)) failWrite("remove the folder", folder, error);
  const auto node = find(folder);
  if (!node) failWrite("remove the folder", folder, ENOENT);
  if (!node->is_folder) failWrite("remove the folder", folder, ENOTDIR);
  if (!node->entries.empty()) failWrite("remove the folder", folder, ENOTEMPTY);
  change(folderOf(folder, "remove the folder"), {folder.filename().string(), "", node});
}

void SimulatedDisk::syncFolder(const Path& folder) {
  if (const int error = begin(Op::kSyncFolder)) failWrite("fsync the folder", folder, error);
  const auto node = find(folder);
  if (!node || !node->is_folder) failWrite("fsync the folder", folder, ENOENT);
  node->durable_entries = node->entries;
  node->pending.clear();
}

void SimulatedDisk::failAt(size_t index, int errno_value) {
  fail_at_[index] = errno_value;
}

void SimulatedDisk::heal() {
  crash_at_.reset();
  fail_at_.clear();
  failing_.clear();
}

void SimulatedDisk::restart() {
  crashed_ = false;
  heal();
}

void SimulatedDisk::powerCut(uint64_t seed) {
  Random random(seed, 77);
  // Seeds 0 and 1 are the extremes; the others lie between them.
  const uint64_t keep = seed == 0 ? 0 : seed == 1 ? 100 : 1 + random.below(99);
  root_->losePower(random, keep);
  crashed_ = false;
  heal();
}

std::vector<SimulatedDisk::Path> SimulatedDisk::files() const {
  std::vector<Path> found;
  const std::function<void(const Node&, const Path&)> walk = [&](const Node& node,
                                                                 const Path& path) {
    if (!node.is_folder) found.push_back(path);
    for (const auto& [name, entry] : node.entries) walk(*entry, path / name);
  };
  walk(*root_, "/");
  return found;
}

std::string SimulatedDisk::contents(const Path& file) const {
  const auto node = find(file);
  if (!node) failRead(file, errnoText(ENOENT));
  return node->data;
}

void SimulatedDisk::setContents(const Path& file, std::string bytes) {
  const auto node = find(file);
  if (!node) failRead(file, errnoText(ENOENT));
  node->data = node->durable = std::move(bytes);
}

}  // namespace dtf::testing
