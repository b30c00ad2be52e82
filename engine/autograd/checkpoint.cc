#include "engine/autograd/checkpoint.h"

#include "engine/ops/call.h"

namespace gradwire {
namespace {

std::string text_of(const TensorSpec& spec) {
  return absl::StrCat(std::string(dtype_name(spec.dtype)), shape_text(spec.sizes));
}

}  // namespace

uint32_t Checkpoint::save(const Tensor& tensor) {
  TensorSpec spec{tensor->dtype, tensor->sizes, {}};
  if (!refilling_) {
    specs_.push_back(std::move(spec));
    return static_cast<uint32_t>(specs_.size() - 1);
  }
  again_.push_back(std::move(spec));
  tensors_.push_back(detached(tensor));
  return static_cast<uint32_t>(again_.size() - 1);
}

void Checkpoint::start_again() {
  clear();
  refilling_ = true;
  outcome_ = runtime_error("the checkpointed region was not run again");
}

absl::Status Checkpoint::finish_again() {
  refilling_ = false;
  outcome_ = compare();
  filled_ = outcome_.ok();
  return outcome_;
}

absl::Status Checkpoint::compare() const {
  if (again_.size() != specs_.size()) {
    return runtime_error(
        "torch.utils.checkpoint: A different number of tensors was saved during the original "
        "forward and recomputation.\nNumber of tensors saved during forward: ",
        specs_.size(), "\nNumber of tensors saved during recomputation: ", again_.size(), ".");
  }
  for (size_t i = 0; i < specs_.size(); ++i) {
    if (specs_[i].dtype == again_[i].dtype && specs_[i].sizes == again_[i].sizes) continue;
    return runtime_error(
        "torch.utils.checkpoint: Recomputed values for the following tensors have different "
        "metadata than during the forward pass.\ntensor at position ",
        i, ":\nsaved metadata: ", text_of(specs_[i]),
        "\nrecomputed metadata: ", text_of(again_[i]));
  }
  return absl::OkStatus();
}

void Checkpoint::clear() {
  tensors_.clear();
  again_.clear();
  filled_ = false;
}

}  // namespace gradwire
