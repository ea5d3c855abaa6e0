#pragma once

// Whether a program that was copied to this host can run on it.

#include <filesystem>

namespace dtf::launcher {

// Runs it with --version. System libraries are not copied: what dtf needs of them must be here.
// Blocks: until it has ended, 10 s at most.
// Errors: kBadConfig with what the loader says, or kPermission where it can't be run at all;
// kDeadline; those of Spawner::run().
void checkProgramRuns(const std::filesystem::path& program);

}  // namespace dtf::launcher
