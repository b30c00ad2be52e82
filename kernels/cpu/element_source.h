// A tensor that is computed where and when it is read.
#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace gradwire::cpu {

class ElementSource {
 public:
  virtual ~ElementSource() = default;
  // Writes the elements [begin, end), counted in the order of the tensor's memory, to `to`. Any
  // thread. Error: out of host memory.
  virtual absl::Status produce(int64_t begin, int64_t end, void* to) const = 0;
};

}  // namespace gradwire::cpu
