// The typed signature of an op, parsed from one line that reads like torch's documentation:
//
//   add(Operand input, Operand other, *, Scalar alpha=1) -> Tensor
//   max_dim(Tensor input, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)
//
// Types: Tensor, Tensor?, Tensor[], Tensor?[], Operand (a Tensor or a number), Scalar, int, float,
// bool, str, dtype, device, bytes, int[], float[], Object (a handle that is no tensor). A trailing
// ? on a type means that None is allowed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/attribute.h"

namespace gradwire {

enum class ParamType : uint8_t {
  kTensor,
  kTensorList,
  kOperand,
  kScalar,
  kInt,
  kFloat,
  kBool,
  kString,
  kDType,
  kDevice,
  kBytes,
  kInts,
  kFloats,
  kObject,
};

struct Param {
  std::string name;
  std::string type_text;  // as written
  ParamType type = ParamType::kTensor;
  bool optional = false;  // None (or, in a list, absent elements) allowed
  bool keyword_only = false;
  bool has_default = false;
  Attribute default_value;
  std::string default_text;
  int attribute = -1;  // slot in Call::attributes; -1 for Tensor, Tensor[] and Object

  bool takes_ids() const {
    return type == ParamType::kTensor || type == ParamType::kTensorList ||
           type == ParamType::kOperand || type == ParamType::kObject;
  }
};

struct Signature {
  std::string text;
  std::string name;
  std::vector<Param> params;
  std::string returns;               // as written
  std::vector<std::string> outputs;  // names of a fixed tuple's elements, else empty
  int fixed_outputs = 1;             // -1: a list whose length the call decides
  int attributes = 0;                // attribute slots
  int lists = 0;                     // params of type Tensor[]
  int single_ids = 0;                // params that take exactly one id

  // Error: our own row is malformed.
  static absl::StatusOr<Signature> parse(std::string_view text);
};

}  // namespace gradwire
