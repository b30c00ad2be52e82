#include "engine/autograd/graph.h"

#include <algorithm>
#include <atomic>

#include "engine/ops/call.h"

namespace gradwire {
namespace {

std::atomic<uint64_t> next_run{1};

absl::StatusOr<Tensor> root_gradient(const Tensor& root, const Tensor& given) {
  if (!given) {
    if (root->numel() != 1) {
      return runtime_error("grad can be implicitly created only for scalar outputs; got ",
                           root->text(), ", so pass a gradient of that shape");
    }
    return full(root->sizes, 1, root->dtype);
  }
  if (given->poison) return given;
  if (given->sizes != root->sizes) {
    return runtime_error("Mismatch in shape: grad_output has a shape of ", shape_text(given->sizes),
                         " and output has a shape of ", shape_text(root->sizes), ".");
  }
  return cast(given, root->dtype);
}

}  // namespace

absl::StatusOr<std::unique_ptr<BackwardRun>> BackwardRun::start(const Tensors& roots,
                                                                const Tensors& grads,
                                                                const Tensors& inputs,
                                                                const Options& options) {
  std::unique_ptr<BackwardRun> run(new BackwardRun());
  run->options_ = options;
  run->id_ = next_run.fetch_add(1);
  std::vector<Edge> edges;
  Tensors seeds;
  for (size_t i = 0; i < roots.size(); ++i) {
    const Tensor& root = roots[i];
    if (!root->requires_grad()) {
      return runtime_error("element ", i,
                           " of tensors does not require grad and does not have a grad_fn");
    }
    auto seed = root_gradient(root, i < grads.size() ? grads[i] : nullptr);
    if (!seed.ok()) return seed.status();
    edges.push_back(gradient_edge(root));
    seeds.push_back(*std::move(seed));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i]->requires_grad()) {
      return runtime_error("One of the differentiated Tensors does not require grad (number ", i,
                           ", ", inputs[i]->text(), ")");
    }
    Edge edge = gradient_edge(inputs[i]);
    run->targets_.push_back({edge.node, edge.index, inputs[i], nullptr});
  }
  GW_RETURN_IF_ERROR(run->discover(edges));
  for (size_t i = 0; i < edges.size(); ++i) run->deliver(edges[i], seeds[i]);
  for (const Edge& edge : edges) {
    Node& node = *edge.node;
    if (node.dependencies == 0 && node.needed) {
      node.dependencies = UINT32_MAX;  // queued once, however many roots it has
      run->ready_.push(edge.node);
    }
  }
  return run;
}

absl::Status BackwardRun::discover(const std::vector<Edge>& roots) {
  // Inputs before outputs. Sequence numbers do not tell: the node of a view whose base was written
  // in place is made when first asked for, later than the node that asks.
  std::vector<Node*> order;
  std::vector<std::pair<Node*, size_t>> stack;  // a node and its next edge to follow
  auto visit = [&](Node* node) {
    if (node->run == id_) return;
    node->run = id_;
    node->dependencies = 0;
    node->needed = targets_.empty();
    node->buffer.clear();
    stack.emplace_back(node, 0);
  };
  for (const Edge& edge : roots) {
    visit(edge.node.get());
    while (!stack.empty()) {
      Node* node = stack.back().first;
      size_t next = stack.back().second++;
      if (next == node->edges.size()) {
        order.push_back(node);
        stack.pop_back();
      } else if (Node* input = node->edges[next].node.get()) {
        visit(input);
      }
    }
  }
  for (Node* node : order) {
    for (const Edge& edge : node->edges) {
      if (edge.node) ++edge.node->dependencies;
    }
  }
  auto check_freed = [&]() -> absl::Status {
    for (Node* node : order) {
      bool runs = targets_.empty();
      for (const Edge& edge : node->edges) runs = runs || (edge.node && edge.node->needed);
      if (runs && node->released()) return freed_error(node->name());
    }
    return absl::OkStatus();
  };
  if (targets_.empty()) return check_freed();
  // Only nodes from which a target can be reached run: propagate against the edges.
  for (const Target& target : targets_) {
    if (target.node && target.node->run == id_) target.node->needed = true;
  }
  for (Node* node : order) {
    for (const Edge& edge : node->edges) {
      if (edge.node && edge.node->needed) node->needed = true;
    }
  }
  return check_freed();
}

void BackwardRun::deliver(const Edge& edge, Tensor grad) {
  Node& node = *edge.node;
  if (node.buffer.size() < node.outputs) node.buffer.resize(node.outputs);
  if (!grad) return;
  Tensor& place = node.buffer[edge.index];
  if (!place) {
    place = std::move(grad);
  } else if (!place->poison) {
    place = grad->poison ? grad : add(place, grad);
  }
}

bool BackwardRun::step() {
  if (ready_.empty()) return false;
  Ref<Node> node = ready_.top();
  ready_.pop();
  Slot& slot = Slot::current();
  GradMode mode(options_.create_graph);
  Ref<const Site> site = slot.site;
  Tensors grads = std::move(node->buffer);
  node->buffer.clear();
  grads.resize(node->outputs);

  for (auto& [output, holder] : node->retained) {
    if (auto tensor = holder.lock(); tensor && grads[output] && options_.accumulate) {
      *tensor = *tensor && !(*tensor)->poison ? add(*tensor, grads[output]) : grads[output];
    }
  }
  bool target = false, beyond = targets_.empty();
  for (Target& t : targets_) {
    if (t.node == node) {
      target = true;
      t.grad = grads[t.index];
    }
  }
  for (const Edge& edge : node->edges) beyond = beyond || (edge.node && edge.node->needed);
  bool leaf = node->edges.empty();
  Tensors results;
  bool runs = leaf ? options_.accumulate && (targets_.empty() || target) : beyond;
  if (runs) {
    bool any = false;
    for (const Tensor& g : grads) any = any || g;
    if (any) {
      results = node->apply(std::move(grads));
    }
    if (!options_.retain_graph) node->release();
  }
  results.resize(node->edges.size());
  for (size_t i = 0; i < node->edges.size(); ++i) {
    const Edge& edge = node->edges[i];
    if (!edge.node) continue;
    deliver(edge, std::move(results[i]));
    if (--edge.node->dependencies == 0 && edge.node->needed) {
      edge.node->dependencies = UINT32_MAX;
      ready_.push(edge.node);
    } else if (edge.node->dependencies == 0) {
      edge.node->buffer.clear();
    }
  }
  slot.site = site;
  return !ready_.empty();
}

absl::StatusOr<Tensors> BackwardRun::results() {
  Tensors out;
  for (Target& target : targets_) {
    if (!target.grad && !options_.allow_unused) {
      return runtime_error(
          "One of the differentiated Tensors appears to not have been used in the graph. Set "
          "allow_unused=True if this is the desired behavior. (",
          target.tensor->text(), ")");
    }
    out.push_back(target.grad);
  }
  return out;
}

}  // namespace gradwire
