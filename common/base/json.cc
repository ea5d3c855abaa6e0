#include "common/base/json.h"

#include <algorithm>
#include <bit>
#include <ostream>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/json_node.h"

namespace dtf {

void json_node::fail(const std::string& why) {
  throw Error(ErrorCode::kBadData, why);
}

std::string json_node::inQuotes(std::string_view key) {
  return "'" + std::string(key.substr(0, kQuotedBytesMax)) + "'";
}

// ---- making values

Json::Json() noexcept = default;
Json::Json(std::nullptr_t) noexcept {}
Json::Json(const char* text) : Json(std::string(text)) {}
Json::Json(std::string_view text) : Json(std::string(text)) {}
Json::Json(std::string text) {
  become(Type::kString);
  node_->text = std::move(text);
}

Json::Json(std::initializer_list<Field> fields) {
  become(Type::kObject);
  for (const Field& field : fields) (*this)[field.key] = std::move(field.value);
}

Json::Json(Scalar, bool value) : type_(Type::kBool), bits_(value ? 1 : 0) {}
Json::Json(Scalar, int64_t value)
    : type_(value < 0 ? Type::kNegative : Type::kUnsigned), bits_(static_cast<uint64_t>(value)) {}
Json::Json(Scalar, uint64_t value) : type_(Type::kUnsigned), bits_(value) {}
Json::Json(Scalar, double value) : type_(Type::kDouble), bits_(std::bit_cast<uint64_t>(value)) {}

Json::Json(const Json& other)
    : type_(other.type_),
      bits_(other.bits_),
      node_(other.node_ ? std::make_unique<Node>(*other.node_) : nullptr) {}

Json::Json(Json&& other) noexcept
    : type_(std::exchange(other.type_, Type::kNull)),
      bits_(other.bits_),
      node_(std::move(other.node_)) {}

Json& Json::operator=(const Json& other) {
  return *this = Json(other);
}

Json& Json::operator=(Json&& other) noexcept {
  // Moved out first: it may lie inside this value.
  Json taken(std::move(other));
  type_ = std::exchange(taken.type_, Type::kNull);
  bits_ = taken.bits_;
  node_.swap(taken.node_);
  return *this;
}

Json::~Json() = default;

Json Json::array(std::initializer_list<Json> items) {
  Json array;
  array.become(Type::kArray);
  array.node_->items = items;
  return array;
}

Json Json::object() {
  Json object;
  object.become(Type::kObject);
  return object;
}

void Json::become(Type type) {
  DTF_CHECK(type_ == Type::kNull);
  type_ = type;
  node_ = std::make_unique<Node>();
}

void Json::append(std::string key, Json value) {
  node_->members.push_back({std::move(key), std::move(value)});
}

// ---- types

std::string_view Json::typeName() const {
  switch (type_) {
    case Type::kNull:
      return "null";
    case Type::kBool:
      return "true or false";
    case Type::kNegative:
      return "a negative number";
    case Type::kUnsigned:
      return "a number";
    case Type::kDouble:
      return "a number with a fraction";
    case Type::kString:
      return "a text";
    case Type::kArray:
      return "a list";
    case Type::kObject:
      break;
  }
  return "an object";
}

void Json::refuse(const std::string_view* key, std::string_view wanted) const {
  json_node::fail((key != nullptr ? json_node::inQuotes(*key) : "a value") + " must be " +
                  std::string(wanted) + ", but is " + std::string(typeName()));
}

double Json::number() const {
  if (type_ == Type::kNegative) return static_cast<double>(static_cast<int64_t>(bits_));
  return type_ == Type::kUnsigned ? static_cast<double>(bits_) : std::bit_cast<double>(bits_);
}

int Json::toInt(const std::string_view* key) const {
  const auto value = static_cast<int64_t>(bits_);
  if (!isInteger() || (isUnsigned() && value < 0) || value != static_cast<int>(value))
    refuse(key, "an integer of 32 bits");
  return static_cast<int>(value);
}

uint64_t Json::toUint64(const std::string_view* key) const {
  if (!isUnsigned()) refuse(key, "a number from 0 to 2^64 - 1");
  return bits_;
}

double Json::toDouble(const std::string_view* key) const {
  if (!isNumber()) refuse(key, "a number");
  return number();
}

const std::string& Json::toString(const std::string_view* key) const {
  if (!isString()) refuse(key, "a text");
  return node_->text;
}

int Json::asInt() const {
  return toInt(nullptr);
}
uint64_t Json::asUint64() const {
  return toUint64(nullptr);
}
double Json::asDouble() const {
  return toDouble(nullptr);
}
const std::string& Json::asString() const {
  return toString(nullptr);
}

int64_t Json::asInt64() const {
  const auto value = static_cast<int64_t>(bits_);
  if (!isInteger() || (isUnsigned() && value < 0)) refuse(nullptr, "an integer of 64 bits");
  return value;
}

std::vector<std::string> Json::asStrings() const {
  std::vector<std::string> texts;
  for (const Json& item : *this) texts.push_back(item.asString());
  return texts;
}

// ---- arrays

size_t Json::size() const {
  return isArray() ? node_->items.size() : isObject() ? node_->members.size() : 0;
}

const Json* Json::begin() const {
  if (!isArray()) refuse(nullptr, "a list");
  return node_->items.data();
}

const Json* Json::end() const {
  return begin() + node_->items.size();
}

Json* Json::begin() {
  return const_cast<Json*>(std::as_const(*this).begin());
}

Json* Json::end() {
  return const_cast<Json*>(std::as_const(*this).end());
}

const Json& Json::operator[](size_t index) const {
  const Json* const items = begin();
  if (index >= size())
    json_node::fail("there is no item " + std::to_string(index) + " in a list of " +
                    std::to_string(size()));
  return items[index];
}

Json& Json::operator[](size_t index) {
  return const_cast<Json&>(std::as_const(*this)[index]);
}

void Json::push_back(Json item) {
  if (isNull()) become(Type::kArray);
  if (!isArray()) refuse(nullptr, "a list");
  node_->items.push_back(std::move(item));
}

// ---- objects

const Json* Json::find(std::string_view key) const {
  if (!isObject()) return nullptr;
  for (const Member& member : node_->members)
    if (member.key == key) return &member.value;
  return nullptr;
}

Json* Json::find(std::string_view key) {
  return const_cast<Json*>(std::as_const(*this).find(key));
}

const Json& Json::at(std::string_view key) const {
  if (const Json* const value = find(key)) return *value;
  if (isObject()) json_node::fail(json_node::inQuotes(key) + " is missing");
  json_node::fail(json_node::inQuotes(key) + " is missing: an object must hold it, but here is " +
                  std::string(typeName()));
}

Json& Json::operator[](std::string_view key) {
  if (isNull()) become(Type::kObject);
  if (!isObject()) refuse(nullptr, "an object");
  if (Json* const value = find(key)) return *value;
  append(std::string(key), Json());
  return node_->members.back().value;
}

bool Json::erase(std::string_view key) {
  if (!isObject()) return false;
  return std::erase_if(node_->members, [key](const Member& each) { return each.key == key; }) > 0;
}

void Json::update(const Json& object) {
  for (const auto& [key, value] : object.members()) (*this)[key] = value;
}

const std::vector<Json::Member>& Json::members() const {
  if (!isObject()) refuse(nullptr, "an object");
  return node_->members;
}

bool Json::boolAt(std::string_view key) const {
  const Json& value = at(key);
  if (!value.isBool()) value.refuse(&key, "true or false");
  return value.bits_ != 0;
}
int Json::intAt(std::string_view key) const {
  return at(key).toInt(&key);
}
uint64_t Json::uint64At(std::string_view key) const {
  return at(key).toUint64(&key);
}
double Json::doubleAt(std::string_view key) const {
  return at(key).toDouble(&key);
}
const std::string& Json::stringAt(std::string_view key) const {
  return at(key).toString(&key);
}

const Json& Json::arrayAt(std::string_view key) const {
  const Json& value = at(key);
  if (!value.isArray()) value.refuse(&key, "a list");
  return value;
}

const Json& Json::objectAt(std::string_view key) const {
  const Json& value = at(key);
  if (!value.isObject()) value.refuse(&key, "an object");
  return value;
}

int Json::intOr(std::string_view key, int otherwise) const {
  const Json* const value = find(key);
  return value != nullptr ? value->toInt(&key) : otherwise;
}
double Json::doubleOr(std::string_view key, double otherwise) const {
  const Json* const value = find(key);
  return value != nullptr ? value->toDouble(&key) : otherwise;
}
std::string Json::stringOr(std::string_view key, std::string_view otherwise) const {
  const Json* const value = find(key);
  return value != nullptr ? value->toString(&key) : std::string(otherwise);
}

// ---- comparing

bool operator==(const Json& a, const Json& b) {
  using Type = Json::Type;
  if (a.isNumber() && b.isNumber())
    return a.isInteger() && b.isInteger() ? a.type_ == b.type_ && a.bits_ == b.bits_
                                          : a.number() == b.number();
  if (a.type_ != b.type_ || a.size() != b.size()) return false;
  if (a.type_ == Type::kString) return a.node_->text == b.node_->text;
  if (a.type_ == Type::kArray) return a.node_->items == b.node_->items;
  if (a.type_ != Type::kObject) return a.bits_ == b.bits_;
  return std::all_of(a.node_->members.begin(), a.node_->members.end(), [&b](const auto& member) {
    const Json* const other = b.find(member.key);
    return other != nullptr && *other == member.value;
  });
}

std::ostream& operator<<(std::ostream& stream, const Json& value) {
  return stream << value.dump();
}

}  // namespace dtf
