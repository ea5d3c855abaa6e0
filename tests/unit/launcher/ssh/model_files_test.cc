#include "launcher/ssh/model_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "common/base/error.h"
#include "tests/support/temporary_files.h"

namespace dtf::launcher {

TEST(ModelFiles, OnlyFilesOfAModelHaveSuchNames) {
  for (const std::string& name :
       {manifestName(120), shardName(0, "shard-0-of-2.safetensors"), kernelsName(),
        stayingShardName("step-120-1f3a.7", "shard-1-of-2.safetensors")})
    EXPECT_TRUE(isModelFile(name)) << name;
  EXPECT_TRUE(isManifest("checkpoints/step-120/manifest.json"));
  EXPECT_FALSE(isManifest(kernelsName()));
  for (const char* name :
       {"", "/etc/passwd", "checkpoints", "checkpoints/step-1", "checkpoints/step-1/../../x",
        "checkpoints/step-1/..", "checkpoints/step-/a", "checkpoints/step-1x/a", "checkpoints/../a",
        "shards/../a", "shards/.x/a", "shards/x/.a", "shards/x/y/z", "logs/x/a", "launch.json"})
    EXPECT_FALSE(isModelFile(name)) << name;
}

TEST(ModelFiles, AFileIsGivenInPieces) {
  const testing::TemporaryFiles files;
  const std::filesystem::path here = std::filesystem::current_path();
  std::filesystem::create_directories("checkpoints/step-1");
  files.write("checkpoints/step-1/a", "12345");
  auto file = ModelFileReader::open(realFileSystem(), here, "checkpoints/step-1/a");
  ASSERT_TRUE(file);
  EXPECT_EQ(file->bytes(), 5u);
  EXPECT_EQ(file->next(3), "123");
  EXPECT_EQ(file->next(3), "45");
  EXPECT_EQ(file->next(3), "");
}

TEST(ModelFiles, WhatIsNotThereIsNoErrorAndWhatIsNoneIsOne) {
  const testing::TemporaryFiles files;
  const std::filesystem::path here = std::filesystem::current_path();
  EXPECT_FALSE(ModelFileReader::open(realFileSystem(), here, "kernels.json"));
  EXPECT_THROW(ModelFileReader::open(realFileSystem(), here, "../x"), Error);
  ASSERT_EQ(::symlink("/etc/passwd", "kernels.json"), 0);
  EXPECT_THROW(ModelFileReader::open(realFileSystem(), here, "kernels.json"), Error);
  std::filesystem::create_directories("checkpoints/step-1");
  files.write("checkpoints/step-1/a", "12345");
  const auto shrinking = ModelFileReader::open(realFileSystem(), here, "checkpoints/step-1/a");
  std::filesystem::resize_file("checkpoints/step-1/a", 2);
  EXPECT_THROW(shrinking->next(5), Error);
}

}  // namespace dtf::launcher
