// Non-tensor arguments of a command, typed as the caller wrote them: int, float and bool are kept
// apart because torch's promotion depends on it.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "kernels/dtype.h"

namespace gradwire {

struct Attribute;
using IntList = std::vector<int64_t>;
using FloatList = std::vector<double>;
using AttributeList = std::vector<Attribute>;

struct Attribute {
  // monostate is None: "absent", also what an omitted trailing attribute is before its default.
  std::variant<std::monostate, bool, int64_t, double, DType, std::string, IntList, FloatList,
               AttributeList>
      value;

  Attribute() = default;
  Attribute(bool v) : value(v) {}                       // NOLINT
  Attribute(int v) : value(static_cast<int64_t>(v)) {}  // NOLINT
  Attribute(int64_t v) : value(v) {}                    // NOLINT
  Attribute(double v) : value(v) {}                     // NOLINT
  Attribute(DType v) : value(v) {}                      // NOLINT
  Attribute(std::string v) : value(std::move(v)) {}     // NOLINT
  Attribute(const char* v) : value(std::string(v)) {}   // NOLINT
  Attribute(IntList v) : value(std::move(v)) {}         // NOLINT
  Attribute(FloatList v) : value(std::move(v)) {}       // NOLINT
  Attribute(AttributeList v) : value(std::move(v)) {}   // NOLINT

  bool none() const { return std::holds_alternative<std::monostate>(value); }
  bool is_bool() const { return std::holds_alternative<bool>(value); }
  bool is_int() const { return std::holds_alternative<int64_t>(value); }
  bool is_float() const { return std::holds_alternative<double>(value); }
  bool is_number() const { return is_bool() || is_int() || is_float(); }
  bool is_string() const { return std::holds_alternative<std::string>(value); }

  // Number conversions; 0 when the attribute is not a number (signatures are checked at dispatch).
  double as_double() const {
    if (auto* f = std::get_if<double>(&value)) return *f;
    if (auto* i = std::get_if<int64_t>(&value)) return static_cast<double>(*i);
    if (auto* b = std::get_if<bool>(&value)) return *b ? 1.0 : 0.0;
    return 0.0;
  }
  int64_t as_int() const {
    if (auto* i = std::get_if<int64_t>(&value)) return *i;
    if (auto* b = std::get_if<bool>(&value)) return *b ? 1 : 0;
    if (auto* f = std::get_if<double>(&value)) return static_cast<int64_t>(*f);
    return 0;
  }
  bool as_bool() const {
    if (auto* b = std::get_if<bool>(&value)) return *b;
    if (auto* i = std::get_if<int64_t>(&value)) return *i != 0;
    if (auto* f = std::get_if<double>(&value)) return *f != 0;
    return false;
  }
  DType as_dtype() const {
    auto* d = std::get_if<DType>(&value);
    return d ? *d : DType::kNone;
  }
  const std::string& as_string() const {
    static const std::string empty;
    auto* s = std::get_if<std::string>(&value);
    return s ? *s : empty;
  }
  // The integers of an int list; empty for anything else.
  const IntList& as_ints() const {
    static const IntList empty;
    auto* l = std::get_if<IntList>(&value);
    return l ? *l : empty;
  }
  const FloatList& as_floats() const {
    static const FloatList empty;
    auto* l = std::get_if<FloatList>(&value);
    return l ? *l : empty;
  }
  const AttributeList& as_list() const {
    static const AttributeList empty;
    auto* l = std::get_if<AttributeList>(&value);
    return l ? *l : empty;
  }
};

}  // namespace gradwire
