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

// How far results may be from the recorded ones (tolerances.json): relative, and absolute per unit
// of the tensor's largest value, at least 1. Zero for dtypes that are no floats.
struct Tolerance {
  double relative = 0, absolute = 0;
};
Tolerance tolerance_of(const std::string& op, DType dtype);
// Results that are defined only up to sign or order: only what they satisfy can be checked.
bool ambiguous(const std::string& op);

// `suite` is a file of the data: "opinfo" or "dtypes".
ReferenceCases reference_cases(const std::string& suite);

}  // namespace gradwire::testing
