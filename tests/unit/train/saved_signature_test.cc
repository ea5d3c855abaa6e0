#include "common/train/saved_signature.h"

#include <gtest/gtest.h>

#include "common/base/error.h"
#include "common/train/checkpointer.h"

namespace dtf::train {
namespace {

data::DataSignature withClasses(const ClassNames& names) {
  data::DataSignature signature;
  signature.kind = "images";
  signature.inputs = {{"features", {}}};
  signature.targets = {{"labels", {}, {{{"op", "vocabulary"}, {"words", names}}}}};
  return signature;
}

// A manifest of dtf 0.1.0.
checkpoint::Manifest ofClassesAlone(const ClassNames& names) {
  checkpoint::Manifest manifest;
  if (!names.empty()) manifest.extra[kClassesKey] = encodeClassNames(names);
  return manifest;
}

TEST(ClassNames, AreReadBackAsTheyWereWritten) {
  const ClassNames names = {"cat", "a \"dog\"", "line\nend", "\xc3\xa9t\xc3\xa9"};
  EXPECT_EQ(decodeClassNames(encodeClassNames(names)), names);
  EXPECT_EQ(encodeClassNames({"\xc3\xa9"}), R"(["\u00e9"])");
  EXPECT_EQ(encodeClassNames({"\xff"}), R"(["\ufffd"])") << "a folder's name may be any bytes";
  for (const char* const other : {"", "{", "{}", "[1]", "cat"})
    EXPECT_EQ(decodeClassNames(other), ClassNames()) << other;
}

TEST(SavedSignature, IsThatOfTheManifest) {
  checkpoint::Manifest manifest;
  EXPECT_EQ(signatureOf(manifest), std::nullopt);
  manifest.extra[kSignatureKey] = data::encodeSignature(withClasses({"bee", "cow"}));
  EXPECT_EQ(signatureOf(manifest), withClasses({"bee", "cow"}));
  EXPECT_EQ(classNamesOf(manifest), (ClassNames{"bee", "cow"}));
  manifest.extra[kSignatureKey] = "{";
  EXPECT_THROW(signatureOf(manifest), Error);
}

TEST(SavedSignature, DataThatMeanSomethingElseAreTold) {
  checkpoint::Manifest manifest;
  manifest.extra[kSignatureKey] = data::encodeSignature(withClasses({"bee", "cow"}));
  EXPECT_EQ(meaningDifference(manifest, withClasses({"bee", "cow"}), "f"), "");
  EXPECT_NE(meaningDifference(manifest, withClasses({"cow", "bee"}), "f"), "");
}

TEST(SavedSignature, OfAnOldCheckpointTheClassesAreCompared) {
  const auto difference = [](const ClassNames& of_model, const ClassNames& of_data) {
    return meaningDifference(ofClassesAlone(of_model), withClasses(of_data), "f");
  };
  EXPECT_EQ(difference({"bee", "cow"}, {"bee", "cow"}), "");
  EXPECT_EQ(difference({"bee", "cow"}, {"ant", "bee", "cow"}),
            "  class 0 is 'bee' of the 2 that the model was trained on, and 'ant' of the 3 of f: "
            "say their order with class_names, or take the folder away that is new");
  EXPECT_EQ(difference({}, {"bee"}), "") << "it has none";
  EXPECT_EQ(difference({"bee"}, {}), "") << "nor has an array";
}

}  // namespace
}  // namespace dtf::train
