// Gradients of catalog rows against central differences, first and second order.
#pragma once

#include <random>
#include <string>
#include <variant>
#include <vector>

#include "engine/ops/op_def.h"
#include "tests/engine/session_client.h"

namespace gradwire::testing {

// A tensor argument. Values are held as doubles whatever the dtype.
struct Value {
  DType dtype = DType::kFloat64;
  IntList shape;
  std::vector<double> data;
  bool differentiable = false;
  std::string raw = {};  // the bytes, where doubles would not hold the values exactly
};

// An argument of a signature, in its order; None is an empty Attribute.
using Argument = std::variant<Attribute, Value, std::vector<Value>>;

struct Sample {
  std::string op;
  std::vector<Argument> arguments;  // trailing ones may be left to their defaults
  int outputs = 1;
  bool in_place = false;  // writes a copy of the first argument and looks at that
  std::string note = {};
};

// Sends rows with arguments given in signature order and keeps track of the handles.
class RowCaller {
 public:
  explicit RowCaller(SessionClient& client) : client_(client) {}
  ~RowCaller() { client_.release(std::move(made_)); }

  Id tensor(const Value& value);
  // The outputs. `given` replaces the sample's tensors, flattened, where it is not empty.
  std::vector<Id> call(const OpDef& row, const Sample& sample, const std::vector<Id>& given);
  // Row's ids and attributes, as a command carries them.
  void bind(const OpDef& row, const Sample& sample, const std::vector<Id>& given,
            std::vector<Id>* ids, AttributeList* attributes);
  std::vector<Id> send(std::string_view op, std::vector<Id> ids, AttributeList attributes = {},
                       int outputs = 1);
  // Contents as doubles; `error` gets the message when the tensor is poisoned.
  std::vector<double> read(Id id, std::string* error);
  TensorMeta meta(Id id);
  SessionClient& client() { return client_; }

 private:
  SessionClient& client_;
  std::vector<Id> made_;
};

class GradientCheck {
 public:
  explicit GradientCheck(SessionClient& client) : client_(client) {}

  // "" when the row's gradients, and theirs, are those of its values; else what differs. Not even
  // one differentiable argument is an error. All differentiable arguments are float64.
  std::string check(const Sample& sample);

 private:
  // The values of the scalars whose slopes are compared: sum(w * y), and sum(v * d of that / dx).
  struct Evaluation {
    double loss = 0, slope = 0;
    std::vector<std::vector<double>> gradients;  // of loss, by argument
    std::vector<std::vector<double>> second;     // of slope, by argument and then by w
    std::string error;
  };

  Evaluation evaluate(const std::vector<Value*>& tensors, bool differentiate_twice);
  double number() { return std::uniform_real_distribution<double>(0.3, 1.2)(random_); }
  // Compares a gradient with differences of the loss (or slope) by `place`.
  std::string compare(const std::vector<double>& gradient, std::vector<double>* place,
                      const std::vector<Value*>& tensors, bool slope, std::string_view what);

  SessionClient& client_;
  std::mt19937_64 random_{11};
  const OpDef* row_ = nullptr;
  const Sample* sample_ = nullptr;
  std::vector<Value> weights_;                  // w, by output
  std::vector<std::vector<double>> direction_;  // v, by differentiable argument
};

}  // namespace gradwire::testing
