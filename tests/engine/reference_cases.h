// PyTorch's recorded results (tests/data/goldens) as calls of catalog rows.
#pragma once

#include <string>
#include <vector>

#include "tests/engine/gradient_check.h"

namespace gradwire::testing {

struct ReferenceCase {
  std::string entry;  // "softmax@with_dtype #3", for reports
  std::string name;   // "softmax"
  const OpDef* row = nullptr;
  Sample sample;  // an argument for each parameter of the row
  std::vector<Value> outputs;
  std::vector<int> roots;  // outputs that get `cotangents`
  std::vector<Value> cotangents;
  std::vector<Value> gradients;  // of the differentiable arguments, in order
};

struct ReferenceCases {
  std::vector<ReferenceCase> cases;
  // Of entries whose row takes other arguments than torch's function: their forms are matched by
  // the clients' overloads, and checked there.
  size_t unbound = 0;
};

// `suite` is a file of the data: "opinfo" or "dtypes".
ReferenceCases reference_cases(const std::string& suite);

}  // namespace gradwire::testing
