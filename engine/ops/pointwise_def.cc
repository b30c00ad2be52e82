#include <atomic>
#include <mutex>

#include "engine/ops/op_def.h"

namespace gradwire {

struct PointwiseDef::Derivatives {
  explicit Derivatives(size_t operands) : known(operands), made(operands) {}

  std::vector<std::atomic<const PointwiseDef*>> known;  // what is made, found without the lock
  std::mutex mutex;
  std::vector<std::unique_ptr<PointwiseDef>> made;
  std::vector<std::pair<int, expr::Graph>> stated;
};

PointwiseDef::PointwiseDef(std::string name, expr::Graph graph, TypeRule rule)
    : name(std::move(name)),
      graph(std::move(graph)),
      rule(rule),
      derivatives_(std::make_shared<Derivatives>(this->graph.operands)) {
  std::vector<bool> read = expr::reads(this->graph);
  for (size_t i = 0; i < read.size() && i < reads.size(); ++i) reads[i] = read[i];
  for (const expr::Node& node : this->graph.nodes) {
    if (node.prim == expr::Prim::kOperand && node.is_bool) booleans[node.index] = true;
  }
}

void PointwiseDef::set_gradient(int i, expr::Graph graph) {
  derivatives_->stated.emplace_back(i, std::move(graph));
}

const PointwiseDef& PointwiseDef::derivative(int i) const {
  std::atomic<const PointwiseDef*>& known = derivatives_->known[i];
  if (const PointwiseDef* made = known.load(std::memory_order_acquire)) return *made;
  std::lock_guard lock(derivatives_->mutex);
  auto& slot = derivatives_->made[i];
  if (!slot) {
    expr::Graph made;
    bool stated = false;
    for (auto& [operand, gradient] : derivatives_->stated) {
      if (operand == i) {
        made = gradient;
        stated = true;
      }
    }
    if (!stated) made = expr::derivative(graph, i);
    made.operands = graph.operands + 2;
    slot = std::make_unique<PointwiseDef>(name + "_backward", std::move(made), TypeRule::kPromote);
    known.store(slot.get(), std::memory_order_release);
  }
  return *slot;
}

}  // namespace gradwire
