#include "common/train/graph_saver.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>

#include "common/api/guarded.h"
#include "common/api/handles.h"
#include "common/base/error.h"

struct dtf_saver {
  dtf::train::GraphSaver saver;
};

using dtf::api::guarded;

namespace {

dtf::train::GraphSaverOptions saverOptions(const dtf_saver_options* options) {
  dtf::train::GraphSaverOptions wanted;
  const dtf_saver_options given = dtf::api::optionsOf(options, "dtf_saver_options");
  if (given.job != nullptr) wanted.job = given.job;
  if (given.global_step != nullptr) wanted.global_step = given.global_step;
  if (given.max_to_keep < -1 || given.max_to_keep > UINT32_MAX)
    throw dtf::Error(dtf::ErrorCode::kUsage,
                     "max_to_keep is " + std::to_string(given.max_to_keep) +
                         ", but must be a number of checkpoints, 0 for 5, or -1 for all");
  if (given.max_to_keep != 0)
    wanted.max_to_keep = given.max_to_keep < 0 ? 0 : static_cast<uint32_t>(given.max_to_keep);
  if (wanted.job.empty() || wanted.global_step.empty())
    throw dtf::Error(dtf::ErrorCode::kUsage, "a saver's job and global_step have names");
  return wanted;
}

std::filesystem::path pathOf(const char* text) {
  if (*text == 0)
    throw dtf::Error(dtf::ErrorCode::kBadConfig,
                     "the path of the checkpoints is empty: name their folder, or '.' for the "
                     "working directory");
  return text;
}

}  // namespace

dtf_code dtf_saver_new(const dtf_saver_options* options, dtf_saver** made) {
  return guarded([&] {
    auto saver = std::make_unique<dtf_saver>(
        dtf_saver{dtf::train::GraphSaver(dtf::realFileSystem(), saverOptions(options))});
    *made = saver.release();
  });
}

void dtf_saver_free(dtf_saver* saver) {
  delete saver;
}

dtf_code dtf_saver_save(dtf_saver* saver, dtf_session* session, const char* folder, uint64_t step,
                        char* path, size_t room, size_t* bytes) {
  return guarded([&] {
    const std::filesystem::path saved =
        saver->saver.save(dtf::api::sessionOf(*session), pathOf(folder), step);
    DTF_CHECK(!saved.empty());
    dtf::api::giveText(saved.string(), path, room, bytes);
  });
}

dtf_code dtf_saver_restore(dtf_saver* saver, dtf_session* session, const char* path,
                           uint64_t* step) {
  return guarded([&] {
    const uint64_t restored = saver->saver.restore(dtf::api::sessionOf(*session), pathOf(path));
    if (step != nullptr) *step = restored;
  });
}

dtf_code dtf_saver_latest(dtf_saver* saver, const char* folder, char* path, size_t room,
                          size_t* bytes) {
  return guarded([&] {
    const std::optional<std::filesystem::path> latest = saver->saver.latest(pathOf(folder));
    dtf::api::giveText(latest ? latest->string() : std::string(), path, room, bytes);
  });
}
