// Calling ops from inside the engine: from compositions, gradients and commands. Errors travel as
// poisoned tensors, so that formulas stay formulas.
#pragma once

#include <atomic>
#include <initializer_list>
#include <string_view>

#include "engine/autograd/node.h"
#include "engine/ops/catalog.h"
#include "engine/ops/slot.h"

namespace gradwire {

// Runs a bound call for the current slot: poison, in-place and out forms, autograd. Returns the
// outputs; after an error all of them are poisoned. In-place forms return the written tensor.
Tensors invoke(Call call);

// A row named once and looked up at first use. `static const OpRef mul("mul");`
class OpRef {
 public:
  explicit OpRef(const char* name) : name_(name) {}
  const OpDef* get() const {
    const OpDef* op = op_.load(std::memory_order_relaxed);
    if (!op) {
      op = Catalog::get().find(name_);
      op_.store(op, std::memory_order_relaxed);
    }
    return op;
  }

 private:
  const char* name_;
  mutable std::atomic<const OpDef*> op_{nullptr};  // strands of several sessions fill it in
};

// Calls with attributes by slot; missing trailing ones get their defaults.
Tensor call(const OpRef& op, std::initializer_list<Tensor> inputs, AttributeList attributes = {});
// A pointwise row of two operands with a number as the second; `alpha` for rows that have one.
Tensor with_number(const OpRef& op, const Tensor& a, Attribute number, Attribute alpha = {});
Tensors call_many(const OpRef& op, std::initializer_list<Tensor> inputs,
                  AttributeList attributes = {});
Tensors call_list(const OpRef& op, Tensors inputs, AttributeList attributes = {});
Tensor call_in_place(const OpRef& op, std::initializer_list<Tensor> inputs,
                     AttributeList attributes = {});

// A node whose backward says that `name` has no derivative. The caller adds edges.
Ref<Node> missing_derivative(const std::string& name);

// A tensor that carries the failure of the command in hand.
Tensor poisoned(const absl::Status& status);
Tensor poisoned(ErrorRef error);

// wrap_dim with the row's name before its error.
absl::StatusOr<int64_t> dim_of(const Call& call, int64_t dim, int64_t rank);
// An InferFn: one output like the first input, row-major.
absl::Status infer_like_first(const Call& call, TensorSpecs* outputs);

// Raw makers: no autograd.
Tensor new_tensor(const TensorSpec& spec);
Tensor new_view(const Tensor& base, const ViewSpec& spec);
// The same storage and geometry without history; shares the version counter.
Tensor detached(const Tensor& tensor);
Operand operand_of(const Tensor& tensor);
Operand operand_of(const Tensor& tensor, const ViewSpec& spec);

// Pointwise calls with operands given one by one.
struct PointwiseOperand {
  Tensor tensor;  // or null:
  ScalarValue scalar;
  bool weak = false;  // a setting (alpha, slope): takes no part in promotion
};
struct PointwiseTypes {
  DType compute = DType::kNone;
  DType output = DType::kNone;
};
// Types by the def's rule unless given. `self`: the tensor written by an in-place form, which is
// operand 0.
Tensor invoke_pointwise(const PointwiseDef& def, absl::InlinedVector<PointwiseOperand, 4> operands,
                        PointwiseTypes types = {}, const Tensor& self = nullptr);

// The op vocabulary of compositions and gradients.
Tensor add(const Tensor& a, const Tensor& b);
Tensor sub(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, double b);
Tensor div(const Tensor& a, const Tensor& b);
Tensor div(const Tensor& a, double b);
Tensor neg(const Tensor& a);
Tensor reshape(const Tensor& a, std::span<const int64_t> sizes);
Tensor transpose(const Tensor& a, int64_t dim0, int64_t dim1);
Tensor permute(const Tensor& a, IntList dims);
Tensor unsqueeze(const Tensor& a, int64_t dim);
Tensor squeeze(const Tensor& a, int64_t dim);
Tensor expand(const Tensor& a, std::span<const int64_t> sizes);
Tensor sum(const Tensor& a, IntList dims, bool keepdim);  // no dims: all
Tensor cast(const Tensor& a, DType dtype);
Tensor contiguous(const Tensor& a);
Tensor clone(const Tensor& a);
Tensor zeros(std::span<const int64_t> sizes, DType dtype);
Tensor full(std::span<const int64_t> sizes, double value, DType dtype);
Tensor matmul(const Tensor& a, const Tensor& b);
// Sums a gradient down to the sizes that were broadcast up.
Tensor sum_to(const Tensor& grad, std::span<const int64_t> sizes);

}  // namespace gradwire
