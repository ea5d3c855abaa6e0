#include "common/train/saved_signature.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/json.h"
#include "common/train/checkpointer.h"

namespace dtf::train {

std::string encodeClassNames(const ClassNames& names) {
  return Json(names).dumpAscii();
}

ClassNames decodeClassNames(std::string_view text) {
  const Json json = Json::parseOrNull(text);
  const auto is_text = [](const Json& name) { return name.isString(); };
  if (!json.isArray() || !std::all_of(json.begin(), json.end(), is_text)) return {};
  return json.asStrings();
}

std::optional<data::DataSignature> signatureOf(const checkpoint::Manifest& manifest) {
  const auto text = manifest.extra.find(kSignatureKey);
  if (text == manifest.extra.end()) return std::nullopt;
  return data::decodeSignature(text->second, "the checkpoint");
}

ClassNames classNamesOf(const checkpoint::Manifest& manifest) {
  if (const std::optional<data::DataSignature> signature = signatureOf(manifest))
    return data::classWords(*signature);
  const auto names = manifest.extra.find(kClassesKey);
  return names == manifest.extra.end() ? ClassNames() : decodeClassNames(names->second);
}

std::string meaningDifference(const checkpoint::Manifest& manifest,
                              const data::DataSignature& other, const std::string& data) {
  DTF_CHECK(!data.empty());
  if (const std::optional<data::DataSignature> signature = signatureOf(manifest))
    return data::signatureDifference(*signature, other, data);
  const ClassNames of_model = classNamesOf(manifest), of_data = data::classWords(other);
  if (of_model.empty() || of_data.empty()) return {};
  const auto withClasses = [](const ClassNames& names) {
    data::DataSignature signature;
    signature.targets = {{"labels", {}, {{{"op", "vocabulary"}, {"words", names}}}}};
    return signature;
  };
  return data::signatureDifference(withClasses(of_model), withClasses(of_data), data);
}

}  // namespace dtf::train
