#include "launcher/init/job_file.h"

#include <gmock/gmock.h>

#include "common/data/png_encoder.h"
#include "tests/unit/data/npy_files.h"
#include "tests/unit/launcher/init/init_fixture.h"

namespace dtf::launcher {
namespace {

using ::testing::HasSubstr;

class JobFileTest : public InitTest {
 protected:
  std::string refused(const std::string& bytes, ErrorCode code = ErrorCode::kBadData,
                      const std::optional<std::string>& features = std::nullopt) {
    folder_.write("data", bytes);
    return mistakeOf(code, [&] { profileData(path("data"), std::nullopt, features); });
  }
};

TEST_F(JobFileTest, DataAreToldApartByTheirContents) {
  const std::string numbers = data::npyOf<float>("<f4", "(2, 1)", {1, 2});
  const std::string classes = data::npyOf<int32_t>("<i4", "(2,)", {0, 1});
  folder_.write("d", data::zipOf({{"x.npy", numbers}, {"y.npy", classes}}));
  folder_.write("x.npy", numbers);
  folder_.write("y.npy", classes);
  folder_.write("t", "a,b\n1,x\n2,y\n1,x\n2,y\n");
  for (const char* name : {"a", "b"}) {
    std::filesystem::create_directories(path("images") / name);
    folder_.write(std::string("images/") + name + "/1.png",
                  data::encodePng(8, 8, 1, std::vector<uint8_t>(64, 1)));
  }
  using Format = cluster::DatasetSpec::Format;
  const std::pair<const char*, Format> all[] = {{"d", Format::kNpz},
                                                {"x.npy", Format::kNpy},
                                                {"t", Format::kCsv},
                                                {"images", Format::kImages}};
  for (const auto& [name, format] : all) EXPECT_EQ(jobOf(name).train->data.train.format, format);
}

TEST_F(JobFileTest, OtherDataAreRefusedWithWhatIsRead) {
  EXPECT_THAT(refused(""), HasSubstr("data: error: the file is empty"));
  EXPECT_THAT(refused("PAR1\x15\x04\x15"),
              HasSubstr("this looks like a Parquet file. init reads tables in text"));
  EXPECT_THAT(refused(std::string("ab\0\x01\x02\x03", 6)), HasSubstr("init reads"));
  EXPECT_THAT(refused(data::encodePng(2, 2, 1, std::vector<uint8_t>(4))),
              HasSubstr("this is one image: name the folder"));
  EXPECT_THAT(refused("PK\x03\x04 no archive"), HasSubstr("data: "));
  EXPECT_THAT(refused("a,b\n1,x\n", ErrorCode::kUsage, "x"),
              HasSubstr("--features is for archives of NumPy"));
  EXPECT_THAT(mistakeOf(ErrorCode::kBadData,
                        [&] { profileData(path("none"), std::nullopt, std::nullopt); }),
              HasSubstr("cannot open it: No such file"));
  EXPECT_THAT(
      mistakeOf(ErrorCode::kUsage, [&] { profileData(folder_.path(), "kind", std::nullopt); }),
      HasSubstr("--target is for tables and arrays"));
}

TEST_F(JobFileTest, TheSameDataAreTheSameFile) {
  folder_.write("t", "a,b\n1,x\n2,y\n1,x\n2,y\n");
  jobOf("t");
  const std::string text = file_.text;
  jobOf("t");
  EXPECT_EQ(file_.text, text);
  EXPECT_THAT(file_.commands, ::testing::ElementsAre(HasSubstr("dtf-launch /"),
                                                     HasSubstr("predict"), HasSubstr("explain")));
}

}  // namespace
}  // namespace dtf::launcher
