#include "engine/ops/command.h"

#include <cstring>

#include "kernels/error.h"

namespace gradwire {
namespace {

// Lists of one-byte values would otherwise grow forty times on their way into memory.
constexpr uint32_t kTapeValues = 1 << 16;

struct Walk {
  const uint8_t* at;
  const uint8_t* end;
  uint32_t values = 0;

  size_t left() const { return static_cast<size_t>(end - at); }
};

enum class Fault : uint8_t { kNone, kShort, kDeep, kTag, kMany };

Fault skip_value(Walk& walk, int depth);

// Steps over a uint32 count and that many elements of `size` bytes.
Fault skip_counted(Walk& walk, size_t size) {
  if (walk.left() < 4) return Fault::kShort;
  uint32_t count;
  std::memcpy(&count, walk.at, 4);
  walk.at += 4;
  if (count > walk.left() / size) return Fault::kShort;
  walk.at += count * size;
  return Fault::kNone;
}

Fault skip_list(Walk& walk, int depth) {
  if (depth >= kTapeDepth) return Fault::kDeep;
  if (walk.left() < 4) return Fault::kShort;
  uint32_t count;
  std::memcpy(&count, walk.at, 4);
  walk.at += 4;
  if (count > walk.left()) return Fault::kShort;
  if (count > kTapeValues - walk.values) return Fault::kMany;
  walk.values += count;
  for (uint32_t i = 0; i < count; ++i) {
    if (Fault fault = skip_value(walk, depth + 1); fault != Fault::kNone) return fault;
  }
  return Fault::kNone;
}

Fault skip_value(Walk& walk, int depth) {
  if (walk.at == walk.end) return Fault::kShort;
  switch (static_cast<TapeTag>(*walk.at++)) {
    case TapeTag::kNone:
    case TapeTag::kFalse:
    case TapeTag::kTrue:
      return Fault::kNone;
    case TapeTag::kInt:
    case TapeTag::kFloat:
      if (walk.left() < 8) return Fault::kShort;
      walk.at += 8;
      return Fault::kNone;
    case TapeTag::kString:
    case TapeTag::kBytes:
      return skip_counted(walk, 1);
    case TapeTag::kInts:
    case TapeTag::kFloats:
      return skip_counted(walk, 8);
    case TapeTag::kList:
      return skip_list(walk, depth);
    case TapeTag::kDType:
      if (walk.at == walk.end) return Fault::kShort;
      ++walk.at;
      return Fault::kNone;
  }
  return Fault::kTag;
}

template <class T>
T take(const uint8_t*& at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  at += sizeof value;
  return value;
}

template <class T>
std::vector<T> take_array(const uint8_t*& at) {
  std::vector<T> values(take<uint32_t>(at));
  if (!values.empty()) std::memcpy(values.data(), at, values.size() * sizeof(T));
  at += values.size() * sizeof(T);
  return values;
}

Attribute take_value(const uint8_t*& at) {
  switch (static_cast<TapeTag>(*at++)) {
    case TapeTag::kNone:
      return {};
    case TapeTag::kFalse:
      return false;
    case TapeTag::kTrue:
      return true;
    case TapeTag::kInt:
      return take<int64_t>(at);
    case TapeTag::kFloat:
      return take<double>(at);
    case TapeTag::kString:
    case TapeTag::kBytes: {
      const uint32_t size = take<uint32_t>(at);
      std::string text(reinterpret_cast<const char*>(at), size);
      at += size;
      return text;
    }
    case TapeTag::kInts:
      return take_array<int64_t>(at);
    case TapeTag::kFloats:
      return take_array<double>(at);
    case TapeTag::kDType:
      return static_cast<DType>(*at++);
    case TapeTag::kList: {
      AttributeList list(take<uint32_t>(at));
      for (Attribute& value : list) value = take_value(at);
      return list;
    }
  }
  return {};
}

template <class T>
void put(std::string* tape, T value) {
  tape->append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put_tag(std::string* tape, TapeTag tag) {
  tape->push_back(static_cast<char>(tag));
}

template <class T>
void put_array(std::string* tape, TapeTag tag, const T& values) {
  put_tag(tape, tag);
  put(tape, static_cast<uint32_t>(values.size()));
  tape->append(reinterpret_cast<const char*>(values.data()),
               values.size() * sizeof(typename T::value_type));
}

}  // namespace

absl::StatusOr<size_t> tape_length(std::span<const uint8_t> tape) {
  if (tape.empty()) return value_error("attributes are cut short: no count");
  Walk walk{tape.data() + 1, tape.data() + tape.size()};
  Fault fault = Fault::kNone;
  for (int i = 0; i < tape[0] && fault == Fault::kNone; ++i) fault = skip_value(walk, 0);
  switch (fault) {
    case Fault::kNone:
      return static_cast<size_t>(walk.at - tape.data());
    case Fault::kShort:
      return value_error("attributes are cut short after ", walk.at - tape.data(), " bytes");
    case Fault::kDeep:
      return value_error("attribute lists nest more than ", kTapeDepth, " deep");
    case Fault::kTag:
      return value_error("attribute tag ", static_cast<int>(walk.at[-1]), " is unknown");
    case Fault::kMany:
      return value_error("attribute lists hold more than ", kTapeValues, " values");
  }
  return internal_error("attributes cannot be read");
}

AttributeList read_tape(std::span<const uint8_t> tape) {
  AttributeList values;
  if (tape.empty()) return values;
  const uint8_t* at = tape.data();
  values.resize(*at++);
  for (Attribute& value : values) value = take_value(at);
  return values;
}

void write_tape(const Attribute& value, std::string* tape) {
  struct Writer {
    std::string* tape;
    void operator()(std::monostate) const { put_tag(tape, TapeTag::kNone); }
    void operator()(bool v) const { put_tag(tape, v ? TapeTag::kTrue : TapeTag::kFalse); }
    void operator()(int64_t v) const {
      put_tag(tape, TapeTag::kInt);
      put(tape, v);
    }
    void operator()(double v) const {
      put_tag(tape, TapeTag::kFloat);
      put(tape, v);
    }
    void operator()(DType v) const {
      put_tag(tape, TapeTag::kDType);
      put(tape, static_cast<uint8_t>(v));
    }
    void operator()(const std::string& v) const { put_array(tape, TapeTag::kString, v); }
    void operator()(const IntList& v) const { put_array(tape, TapeTag::kInts, v); }
    void operator()(const FloatList& v) const { put_array(tape, TapeTag::kFloats, v); }
    void operator()(const AttributeList& v) const {
      put_tag(tape, TapeTag::kList);
      put(tape, static_cast<uint32_t>(v.size()));
      for (const Attribute& item : v) write_tape(item, tape);
    }
  };
  std::visit(Writer{tape}, value.value);
}

}  // namespace gradwire
