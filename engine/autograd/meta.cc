// Autograd states, and how those of a session end.
#include "engine/autograd/node.h"
#include "engine/ops/slot.h"

namespace gradwire {
namespace {

// Gradients whose last holder went while another holder was being destroyed.
thread_local std::vector<Tensor>* pending_release = nullptr;

// The outermost call drops what the inner ones put aside.
void release(Tensor tensor) {
  if (pending_release) {
    pending_release->push_back(std::move(tensor));
    return;
  }
  std::vector<Tensor> list;
  pending_release = &list;
  list.push_back(std::move(tensor));
  while (!list.empty()) {
    Tensor last = std::move(list.back());
    list.pop_back();
    last.reset();
  }
  pending_release = nullptr;
}

}  // namespace

AutogradMeta::AutogradMeta(AutogradMetas& all) : next_(all.first_), link_(&all.first_) {
  if (next_) next_->link_ = &next_;
  all.first_ = this;
}

AutogradMeta::~AutogradMeta() {
  unlink();
  if (grad) release(std::move(grad));
  if (retained && retained.use_count() == 1 && *retained) release(std::move(*retained));
}

void AutogradMeta::unlink() {
  if (!link_) return;
  *link_ = next_;
  if (next_) next_->link_ = link_;
  next_ = nullptr;
  link_ = nullptr;
}

void AutogradMetas::clear() {
  while (first_) {
    AutogradMeta& meta = *first_;
    meta.unlink();
    // Dropped at the end of the turn, and `meta` perhaps with them.
    Ref<Node> grad_fn = std::move(meta.grad_fn);
    Tensor grad = std::move(meta.grad);
    Tensor base = std::move(meta.base);
    std::shared_ptr<Tensor> retained = std::move(meta.retained);
  }
}

void TensorImpl::make_meta() {
  autograd = std::make_unique<AutogradMeta>(Slot::current().session.autograd);
}

}  // namespace gradwire
