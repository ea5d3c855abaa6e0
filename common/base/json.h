#pragma once

// JSON values: the files, notices and messages that dtf writes and reads. nlohmann's parser reads
// the text and its serializer writes numbers and escapes, in json_text.cc alone: a file that
// includes this header compiles neither.
//   const Json line = {{"event", "progress"}, {"step", 120}, {"ps", Json::array({1, 2})}};
//   Json::parse(text).at("tasks")[0].stringAt("name")
// Braces make objects, Json::array() makes arrays. Objects keep their members in the order of
// insertion and find them by a linear search: they are records, not dictionaries.
//
// Json is a value type: it owns all below it, and a copy is deep.
// Threads: thread-compatible.  Blocks: never.
// Errors: kBadData. parse() gives line and column of a syntax error. A getter names the actual
// type, and the key if there is one. Integers are never truncated; asDouble() rounds an integer
// above 2^53.
// Adding a member invalidates references to the others: do not write `a["new"] = a.at("old")`.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace dtf {

inline constexpr int kJsonDepthMax = 64;  // arrays and objects inside each other

class JsonVisitor;

// The types that convert to Json, besides strings: numbers and bool; vectors, arrays and spans;
// maps with string keys.
template <class Type>
concept JsonNumber = std::is_arithmetic_v<Type>;
template <class Type>
concept JsonMap = std::same_as<typename Type::key_type, std::string> &&
    std::is_object_v<typename Type::mapped_type>;
template <class Type>
concept JsonList = std::is_object_v<typename Type::value_type> &&
                   std::is_object_v<typename Type::iterator> && !JsonMap<Type> &&
                   !std::convertible_to<const Type&, std::string>;

class Json {
 public:
  struct Member;
  struct Field;

  Json() noexcept;  // null
  Json(std::nullptr_t) noexcept;
  Json(const char* text);
  Json(std::string text);
  Json(std::string_view text);
  // An object; of equal keys the last value counts.
  Json(std::initializer_list<Field> fields);

  template <JsonNumber Number>
  Json(Number value) : Json(Scalar(), static_cast<Wide<Number>>(value)) {}
  template <JsonList List>  // an array
  Json(const List& items) : Json(array()) {
    for (const auto& item : items) push_back(item);
  }
  template <JsonMap Map>  // an object
  Json(const Map& map) : Json(object()) {
    for (const auto& [key, value] : map) append(key, value);
  }

  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(const Json& other);
  Json& operator=(Json&& other) noexcept;
  ~Json();

  static Json array(std::initializer_list<Json> items = {});
  static Json object();  // an empty one

  // Reads one JSON text. Duplicate keys and nesting deeper than `depth_max` are errors. The caller
  // bounds the bytes. `visitor` sees the values while they are read.
  static Json parse(std::string_view text, int depth_max = kJsonDepthMax,
                    JsonVisitor* visitor = nullptr);
  // Returns null instead of an error.
  static Json parseOrNull(std::string_view text, int depth_max = kJsonDepthMax);

  // Returns the text: on one line, or with `indent` spaces for each level. Doubles get the fewest
  // digits that read back as the same double; NaN and infinities become null. Bytes that aren't
  // UTF-8 become U+FFFD.
  std::string dump(int indent = -1) const;
  // Writes all characters beyond ASCII as \u escapes.
  std::string dumpAscii() const;
  // Errors: kBadData for a text or a key that isn't UTF-8.
  std::string dumpStrict(int indent = -1) const;

  bool isNull() const { return type_ == Type::kNull; }
  bool isBool() const { return type_ == Type::kBool; }
  bool isNumber() const { return isInteger() || type_ == Type::kDouble; }
  // A number without fraction or exponent that fits in 64 bits.
  bool isInteger() const { return type_ == Type::kNegative || type_ == Type::kUnsigned; }
  bool isUnsigned() const { return type_ == Type::kUnsigned; }  // a non-negative integer
  bool isString() const { return type_ == Type::kString; }
  bool isArray() const { return type_ == Type::kArray; }
  bool isObject() const { return type_ == Type::kObject; }

  int asInt() const;
  int64_t asInt64() const;
  uint64_t asUint64() const;
  double asDouble() const;  // any number
  const std::string& asString() const;
  std::vector<std::string> asStrings() const;  // an array of strings

  // ---- arrays and objects
  size_t size() const;  // 0 if neither
  bool empty() const { return size() == 0; }

  // ---- arrays; on any other type these are errors
  const Json* begin() const;
  const Json* end() const;
  Json* begin();
  Json* end();
  const Json& operator[](size_t index) const;
  Json& operator[](size_t index);
  const Json& at(size_t index) const { return (*this)[index]; }
  const Json& back() const { return (*this)[size() - 1]; }
  Json& back() { return (*this)[size() - 1]; }
  void push_back(Json item);  // null becomes an array

  // ---- objects
  // Returns null if there is no such key, or if this is no object.
  const Json* find(std::string_view key) const;
  Json* find(std::string_view key);
  bool contains(std::string_view key) const { return find(key) != nullptr; }
  const Json& at(std::string_view key) const;
  const Json& operator[](std::string_view key) const { return at(key); }
  Json& operator[](std::string_view key);  // adds a null; null becomes an object
  bool erase(std::string_view key);        // returns whether it was there
  void update(const Json& object);         // adds its members, or replaces their values
  // In insertion order. Errors: this is no object.
  const std::vector<Member>& members() const;

  // Returns the value under `key`. Errors: no such key, or another type.
  bool boolAt(std::string_view key) const;
  int intAt(std::string_view key) const;
  uint64_t uint64At(std::string_view key) const;
  double doubleAt(std::string_view key) const;
  const std::string& stringAt(std::string_view key) const;
  const Json& arrayAt(std::string_view key) const;
  const Json& objectAt(std::string_view key) const;

  // Returns the value, or `otherwise` if there is no such key. Errors: a value of another type.
  int intOr(std::string_view key, int otherwise) const;
  double doubleOr(std::string_view key, double otherwise) const;
  std::string stringOr(std::string_view key, std::string_view otherwise) const;

  // Numbers are compared by value; the order of members does not count.
  friend bool operator==(const Json& a, const Json& b);
  friend std::ostream& operator<<(std::ostream& stream, const Json& value);  // for tests

 private:
  enum class Type : uint8_t {
    kNull,
    kBool,
    kNegative,
    kUnsigned,
    kDouble,
    kString,
    kArray,
    kObject
  };
  struct Node;  // the content of a text, an array or an object
  struct Scalar {};
  class Builder;
  class Writer;

  template <class Number>
  using Wide = std::conditional_t<
      std::is_same_v<Number, bool>, bool,
      std::conditional_t<std::is_floating_point_v<Number>, double,
                         std::conditional_t<std::is_signed_v<Number>, int64_t, uint64_t>>>;

  Json(Scalar, bool value);
  Json(Scalar, int64_t value);
  Json(Scalar, uint64_t value);
  Json(Scalar, double value);

  void append(std::string key, Json value);  // `key` must be new
  void become(Type type);
  double number() const;
  std::string_view typeName() const;
  // `key`: named in the message; null for none.
  [[noreturn]] void refuse(const std::string_view* key, std::string_view wanted) const;
  int toInt(const std::string_view* key) const;
  uint64_t toUint64(const std::string_view* key) const;
  double toDouble(const std::string_view* key) const;
  const std::string& toString(const std::string_view* key) const;

  Type type_ = Type::kNull;
  uint64_t bits_ = 0;  // the value of a scalar
  std::unique_ptr<Node> node_;
};

struct Json::Member {
  std::string key;
  Json value;
};

// One member in braces, until the braces become an object.
struct Json::Field {
  std::string_view key;
  mutable Json value;  // mutable, to be moved from
};

// Sees the values of a text in order while it is read, and can drop them: for texts much larger
// than the needed part. `depth`: the number of arrays and objects around a value. Any function may
// throw, which ends the reading.
class JsonVisitor {
 public:
  virtual void onObject(int depth) = 0;
  virtual void onArray(int depth) = 0;
  virtual void onKey(int depth, const std::string& key) = 0;
  virtual void onValue(int depth) = 0;  // neither object nor array
  // Called for a complete array or object. Returns false to drop it.
  virtual bool keeps(int depth, const Json& value) = 0;

 protected:
  ~JsonVisitor() = default;
};

template <class Value>
Json orNull(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

}  // namespace dtf
