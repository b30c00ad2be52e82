#include <mutex>

#include "engine/ops/op_def.h"

namespace gradwire {

struct PointwiseDef::Derivatives {
  std::mutex mutex;
  std::vector<std::unique_ptr<PointwiseDef>> made;
  std::vector<std::pair<int, expr::Graph>> stated;
};

PointwiseDef::PointwiseDef(std::string name, expr::Graph graph, TypeRule rule)
    : name(std::move(name)),
      graph(std::move(graph)),
      rule(rule),
      reads(expr::reads(this->graph)),
      derivatives_(std::make_shared<Derivatives>()) {
  reads.resize(this->graph.operands);
  booleans.resize(this->graph.operands);
  for (const expr::Node& node : this->graph.nodes) {
    if (node.prim == expr::Prim::kOperand && node.is_bool) booleans[node.index] = true;
  }
  derivatives_->made.resize(this->graph.operands);
}

void PointwiseDef::set_gradient(int i, expr::Graph graph) {
  derivatives_->stated.emplace_back(i, std::move(graph));
}

const PointwiseDef& PointwiseDef::derivative(int i) const {
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
  }
  return *slot;
}

}  // namespace gradwire
