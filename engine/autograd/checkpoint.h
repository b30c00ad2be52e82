// A region whose saved tensors are not kept but computed again when backward needs them.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "engine/autograd/client_code.h"
#include "engine/core/tensor.h"
#include "engine/ops/op_def.h"
#include "engine/ops/slot.h"

namespace gradwire {

// What one pass through the region would have saved, in order. The first pass counts; a later one,
// run by the client because backward asked, fills. On the session's strand.
class Checkpoint : public RefCounted {
 public:
  explicit Checkpoint(CodeRef code) : code(std::move(code)) {}

  // The next tensor that the pass in progress saves; returns its number.
  uint32_t save(const Tensor& tensor);
  // Whether the tensors are here.
  bool filled() const { return filled_; }
  const Tensor& get(uint32_t number) const { return tensors_[number]; }
  void start_again();
  // Ends the second pass. Error: it did not save what the first one did.
  absl::Status finish_again();
  // How the last second pass ended.
  const absl::Status& outcome() const { return outcome_; }
  // Forgets the tensors.
  void clear();

  const CodeRef code;
  Generator generator;      // the slot's at the start of the first pass
  bool keep_random = true;  // a later pass starts from it

 private:
  absl::Status compare() const;

  std::vector<TensorSpec> specs_;
  std::vector<Tensor> tensors_;
  std::vector<TensorSpec> again_;
  bool refilling_ = false;
  bool filled_ = false;
  absl::Status outcome_;
};

}  // namespace gradwire
