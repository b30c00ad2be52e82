// Random programs of ops, the same for the same seed on every engine.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "engine/ops/op_def.h"
#include "tests/engine/session_client.h"

namespace gradwire::testing {

// One program: 20 to 60 commands of pointwise ops in mixed dtypes with broadcasting and scalars,
// views, in-place writes (through views too), copies, reductions, products and releases. Choices
// depend on the seed and on shapes alone, never on values.
class SequenceGenerator {
 public:
  SequenceGenerator(SessionClient& client, uint64_t seed);

  // Sends everything while the session's queue is held back, so that the executor sees long
  // windows; then lets it run and returns all that can be read, as bytes.
  std::string run();
  // The commands sent and which value of run()'s result came from where, for a failure's report.
  const std::string& trace() const { return trace_; }

 private:
  struct Value {
    Id id;
    DType dtype;
    Dims sizes;
  };

  uint64_t pick(uint64_t n) { return random_() % n; }
  bool chance(int percent) { return pick(100) < static_cast<uint64_t>(percent); }
  const Value& any() { return values_[pick(values_.size())]; }
  Attribute number();
  void hold();
  void let_go();
  void add_constant();
  void keep(Id id);
  Id traced(std::string_view op, std::vector<Id> inputs, AttributeList attributes);
  void traced_in_place(std::string_view op, std::vector<Id> inputs, AttributeList attributes);
  void note(std::string_view op, const std::vector<Id>& inputs, const AttributeList& attributes);
  void pointwise();
  void view();
  void other();
  void reduction();
  void release();
  void step();

  SessionClient& client_;
  std::mt19937_64 random_;
  std::vector<const OpDef*> rows_;
  std::vector<Value> values_;
  std::vector<IntList> shapes_;
  std::string log_;
  std::string trace_;
};

}  // namespace gradwire::testing
