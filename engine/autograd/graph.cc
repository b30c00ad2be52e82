#include "engine/autograd/graph.h"

#include <algorithm>

#include "engine/ops/call.h"

namespace gradwire {
namespace {

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
    Visit& visit = run->visits_[edge.node.get()];
    if (visit.dependencies == 0 && visit.needed) {
      visit.dependencies = UINT32_MAX;  // queued once, however many roots it has
      run->ready_.push(edge.node);
    }
  }
  return run;
}

BackwardRun::~BackwardRun() {
  for (const Ref<Checkpoint>& checkpoint : checkpoints_) checkpoint->clear();
}

absl::Status BackwardRun::discover(const std::vector<Edge>& roots) {
  // Inputs before outputs. Sequence numbers do not tell: the node of a view whose base was written
  // in place is made when first asked for, later than the node that asks.
  std::vector<Node*> order;
  std::vector<std::pair<Node*, size_t>> stack;  // a node and its next edge to follow
  auto visit = [&](Node* node) {
    auto [it, fresh] = visits_.try_emplace(node);
    if (!fresh) return;
    it->second.needed = targets_.empty();
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
      if (edge.node) ++visits_[edge.node.get()].dependencies;
    }
  }
  auto check_freed = [&]() -> absl::Status {
    for (Node* node : order) {
      bool runs = targets_.empty();
      for (const Edge& edge : node->edges) runs = runs || reached(edge);
      if (runs && node->released()) return freed_error(node->name());
    }
    return absl::OkStatus();
  };
  if (targets_.empty()) return check_freed();
  // Only nodes from which a target can be reached run: propagate against the edges.
  for (const Target& target : targets_) {
    if (auto it = visits_.find(target.node.get()); it != visits_.end()) it->second.needed = true;
  }
  for (Node* node : order) {
    for (const Edge& edge : node->edges) {
      if (reached(edge)) visits_[node].needed = true;
    }
  }
  return check_freed();
}

bool BackwardRun::reached(const Edge& edge) const {
  if (!edge.node) return false;
  auto it = visits_.find(edge.node.get());
  return it != visits_.end() && it->second.needed;
}

void BackwardRun::deliver(const Edge& edge, Tensor grad) {
  Node& node = *edge.node;
  Tensors& buffer = visits_[&node].buffer;
  if (buffer.size() < node.outputs) buffer.resize(node.outputs);
  if (!grad) return;
  Tensor& place = buffer[edge.index];
  if (!place) {
    place = std::move(grad);
  } else if (!place->poison) {
    place = grad->poison ? grad : add(place, grad);
  }
}

void BackwardRun::take_next() {
  at_ = {};
  at_.node = ready_.top();
  ready_.pop();
  at_.grads = std::move(visits_[at_.node.get()].buffer);
  at_.grads.resize(at_.node->outputs);
}

// Hands out the node's gradients to those who keep them, and decides whether it runs.
void BackwardRun::capture() {
  for (auto& [output, holder] : at_.node->retained) {
    if (auto tensor = holder.lock(); tensor && at_.grads[output] && options_.accumulate) {
      *tensor = *tensor && !(*tensor)->poison ? add(*tensor, at_.grads[output]) : at_.grads[output];
    }
  }
  bool leaf = at_.node->edges.empty() && !at_.node->client();
  bool target = false, beyond = targets_.empty();
  for (Target& t : targets_) {
    if (!(t.node == at_.node)) continue;
    target = true;
    t.grad = at_.grads[t.index];
    if (!leaf && options_.accumulate && t.grad) accumulate_grad(t.tensor, t.grad);
  }
  for (const Edge& edge : at_.node->edges) beyond = beyond || reached(edge);
  bool any = false;
  for (const Tensor& g : at_.grads) any = any || g;
  at_.runs = any && (leaf ? options_.accumulate && (targets_.empty() || target) : beyond);
  if (!any && beyond && !options_.retain_graph) at_.node->release();
}

// Prepares the question of the next hook of that place; false when there is none.
bool BackwardRun::ask_hook(HookPlace place) {
  std::vector<Hook>& hooks = at_.node->hooks();
  for (; at_.hook < hooks.size(); ++at_.hook) {
    const Hook& hook = hooks[at_.hook];
    if (hook.place != place || hook.code->removed) continue;
    question_ = {};
    question_.code = hook.code;
    switch (place) {
      case HookPlace::kTensor:
        if (hook.output >= at_.grads.size() || !at_.grads[hook.output]) continue;
        question_.kind = CallbackReply::Kind::kTensorHook;
        question_.tensors = {at_.grads[hook.output]};
        break;
      case HookPlace::kBefore:
        question_.kind = CallbackReply::Kind::kBeforeNode;
        question_.tensors = at_.grads;
        break;
      case HookPlace::kAfter:
        question_.kind = CallbackReply::Kind::kAfterNode;
        question_.tensors = at_.results;
        break;
      case HookPlace::kAccumulated:
        question_.kind = CallbackReply::Kind::kAccumulated;
        question_.tensors = {static_cast<AccumulateGrad&>(*at_.node).leaf()};
        break;
    }
    question_.split = static_cast<uint32_t>(question_.tensors.size());
    if (place == HookPlace::kAfter) {
      for (const Tensor& g : at_.grads) question_.tensors.push_back(g);
    }
    return true;
  }
  at_.hook = 0;
  return false;
}

bool BackwardRun::ask_function(ClientNode& node) {
  question_ = {};
  question_.kind = CallbackReply::Kind::kFunction;
  question_.code = node.code;
  for (size_t i = 0; i < at_.grads.size(); ++i) {
    Tensor g = at_.grads[i];
    const TensorSpec& spec = node.output_specs[i];
    if (!g && node.materialize) g = zeros(spec.sizes, spec.dtype);
    question_.tensors.push_back(std::move(g));
  }
  question_.split = static_cast<uint32_t>(question_.tensors.size());
  for (size_t i = 0; i < node.saved.size(); ++i) {
    if (node.saved_none[i]) {
      question_.tensors.push_back(nullptr);
      continue;
    }
    auto saved = node.saved[i].get(at_.node);
    question_.tensors.push_back(saved.ok() ? *saved : poisoned(saved.status()));
  }
  return true;
}

absl::StatusOr<BackwardRun::State> BackwardRun::ask() {
  for (const Tensor& t : question_.tensors) {
    if (!t || !t->poison) continue;
    t->poison->reported = true;
    return make_error(t->poison->kind, t->poison->message);
  }
  if (question_.code->slot != Slot::current().number) {
    return runtime_error("backward has come to code of another client (slot ", question_.code->slot,
                         "): ", at_.node->name());
  }
  return State::kAsk;
}

absl::StatusOr<BackwardRun::State> BackwardRun::step() {
  Slot& slot = Slot::current();
  if (!at_.node) {
    if (ready_.empty()) return State::kDone;
    take_next();
  }
  GradMode mode(options_.create_graph);
  switch (at_.phase) {
    case Phase::kTensorHooks:
      if (ask_hook(HookPlace::kTensor)) return ask();
      capture();
      at_.phase = at_.runs ? Phase::kBefore : Phase::kLast;
      return State::kMore;
    case Phase::kBefore:
      if (ask_hook(HookPlace::kBefore)) return ask();
      at_.phase = Phase::kCheckpoint;
      [[fallthrough]];
    case Phase::kCheckpoint:
      if (Checkpoint* checkpoint = at_.node->missing()) {
        question_ = {};
        question_.kind = CallbackReply::Kind::kCheckpoint;
        question_.code = checkpoint->code;
        question_.checkpoint = Ref<Checkpoint>(checkpoint);
        return ask();
      }
      at_.phase = Phase::kApply;
      [[fallthrough]];
    case Phase::kApply:
      if (ClientNode* client = at_.node->client()) {
        if (!at_.asked && ask_function(*client)) return ask();
      } else {
        bool kept = !at_.node->hooks().empty();
        slot.saved_failure = nullptr;
        at_.results = at_.node->apply(kept ? at_.grads : std::move(at_.grads));
        if (ErrorRef bad = std::exchange(slot.saved_failure, nullptr)) {
          return make_error(bad->kind, bad->message);
        }
      }
      at_.results.resize(at_.node->edges.size());
      if (!options_.retain_graph) at_.node->release();
      at_.phase = Phase::kCheck;
      [[fallthrough]];
    case Phase::kCheck:
      at_.phase = Phase::kAfter;
      if (slot.anomaly && slot.anomaly_nan) {
        static const OpRef isnan("isnan"), any("any");
        flags_.clear();
        flagged_.clear();
        for (size_t i = 0; i < at_.results.size(); ++i) {
          const Tensor& result = at_.results[i];
          if (!result || result->poison || !is_floating(result->dtype)) continue;
          GradMode off(false);
          flags_.push_back(call(any, {call(isnan, {result})}));
          flagged_.push_back(i);
        }
        if (!flags_.empty()) return State::kRead;
      }
      [[fallthrough]];
    case Phase::kAfter:
      if (ask_hook(HookPlace::kAfter)) return ask();
      at_.phase = Phase::kLast;
      [[fallthrough]];
    case Phase::kLast:
      if (at_.runs && ask_hook(HookPlace::kAccumulated)) return ask();
      leave();
      break;
  }
  return ready_.empty() ? State::kDone : State::kMore;
}

// Sends the node's results on.
void BackwardRun::leave() {
  Ref<Node> node = std::move(at_.node);
  at_.results.resize(node->edges.size());
  for (size_t i = 0; i < node->edges.size(); ++i) {
    const Edge& edge = node->edges[i];
    if (!edge.node) continue;
    deliver(edge, std::move(at_.results[i]));
    Visit& visit = visits_[edge.node.get()];
    if (--visit.dependencies != 0) continue;
    if (visit.needed) {
      visit.dependencies = UINT32_MAX;
      ready_.push(edge.node);
    } else {
      visit.buffer.clear();
    }
  }
  at_ = {};
}

absl::Status BackwardRun::take_function(Tensors results) {
  ClientNode& node = *at_.node->client();
  if (results.size() != node.edges.size()) {
    return runtime_error("function ", node.title,
                         " returned an incorrect number of gradients (expected ", node.edges.size(),
                         ", got ", results.size(), ")");
  }
  for (size_t i = 0; i < results.size(); ++i) {
    Tensor& g = results[i];
    if (!node.edges[i].node) g = nullptr;
    if (!g || g->poison) continue;
    const TensorSpec& spec = node.input_specs[i];
    auto merged = broadcast_shapes(g->sizes, spec.sizes);
    if (!merged.ok() || *merged != g->sizes) {
      return runtime_error("Function ", node.title, " returned an invalid gradient at index ", i,
                           " - got ", shape_text(g->sizes), " but expected shape compatible with ",
                           shape_text(spec.sizes));
    }
    g = sum_to(cast(g, spec.dtype), spec.sizes);
  }
  at_.results = std::move(results);
  at_.asked = true;
  return absl::OkStatus();
}

absl::Status BackwardRun::answer(Tensors results) {
  GradMode mode(options_.create_graph);
  Question question = std::move(question_);
  question_ = {};
  if (question.kind == CallbackReply::Kind::kFunction) return take_function(std::move(results));
  if (question.kind == CallbackReply::Kind::kCheckpoint) {
    if (!question.checkpoint->filled()) {
      const absl::Status& outcome = question.checkpoint->outcome();
      return outcome.ok() ? runtime_error("the checkpointed region was not run again") : outcome;
    }
    checkpoints_.push_back(std::move(question.checkpoint));
    return absl::OkStatus();
  }
  ++at_.hook;
  if (results.empty() || question.kind == CallbackReply::Kind::kAccumulated) {
    return absl::OkStatus();
  }
  if (results.size() != question.split) {
    return runtime_error("hook has returned an incorrect number of values (got ", results.size(),
                         ", but expected ", question.split, ")");
  }
  for (size_t i = 0; i < results.size(); ++i) {
    const Tensor &now = results[i], &before = question.tensors[i];
    if (!now || !before || now->poison) continue;
    if (now->dtype != before->dtype) {
      return runtime_error("hook has changed the type of value (was ", before->text(), " got ",
                           now->text(), ")");
    }
    if (now->sizes != before->sizes) return runtime_error("hook has changed the size of value");
  }
  switch (question.kind) {
    case CallbackReply::Kind::kTensorHook:
      at_.grads[at_.node->hooks()[at_.hook - 1].output] = results[0];
      break;
    case CallbackReply::Kind::kBeforeNode:
      at_.grads = std::move(results);
      break;
    default:
      at_.results = std::move(results);
      break;
  }
  return absl::OkStatus();
}

absl::Status BackwardRun::seen(const std::vector<bool>& nan) {
  for (size_t i = 0; i < nan.size() && i < flagged_.size(); ++i) {
    if (!nan[i]) continue;
    const Node& node = *at_.node;
    return runtime_error(
        "Function '", node.name(), "' returned nan values in its ", flagged_[i], "th output.",
        node.site ? absl::StrCat(" The forward call was at ", node.site->text) : std::string());
  }
  return absl::OkStatus();
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
