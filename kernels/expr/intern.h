// Programs by content: equal Programs are one object, which lives for ever.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/expr/expr.h"

namespace gradwire::expr {

// Sets the hash and returns the one Program equal to this. Thread safe.
const Program* intern(Program program);

// A cache from a key of bytes to what was made for it before; null when nothing was. Thread safe.
const Program* find_made(const std::string& key);
void remember_made(std::string key, const Program* program);

// Appends the bytes of a plain value to a key.
template <class T>
void append(std::string& key, const T& value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

}  // namespace gradwire::expr
