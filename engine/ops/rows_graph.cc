// Rows 6, 7 and 25 to 44: backward, and the client's code within it.
#include <nlohmann/json.hpp>

#include "engine/ops/call.h"
#include "engine/ops/commands.h"
#include "engine/ops/paused_run.h"

namespace gradwire {
namespace {

// --- runs ----------------------------------------------------------------------------------------

void answer(Slot& slot, uint64_t number, ErrorRef error) {
  error->reported = true;
  slot.sink.reply(number, ErrorReply{std::move(error)});
}

// Ends the command with a Callback; the run waits.
void hand_over(Slot& slot, const std::shared_ptr<PausedRun>& paused, uint64_t number) {
  const Question& question = paused->run->question();
  CallbackReply reply;
  reply.callback = ++slot.last_callback;
  reply.code = question.code->id;
  reply.kind = question.kind;
  reply.split = question.split;
  for (const Tensor& t : question.tensors) {
    uint64_t id = 0;
    if (t) {
      id = slot.new_id();
      slot.session.tensors.insert_or_assign(id, t);
    }
    reply.tensors.push_back(id);
    reply.metas.push_back(t ? meta_of(t) : TensorMeta{});
  }
  slot.paused.insert_or_assign(reply.callback, paused);
  slot.sink.reply(number, std::move(reply));
}

Progress read_flags(Slot& slot, const std::shared_ptr<PausedRun>& paused, uint64_t number) {
  auto values = std::make_shared<std::vector<Task::ReadBlock>>();
  auto task = std::make_unique<Task>();
  task->kind = TaskKind::kRead;
  for (const Tensor& flag : paused->run->flags()) {
    if (flag->poison) {
      paused->fail(number, flag->poison);
      return Progress::kDone;
    }
    task->inputs.push_back(operand_of(flag));
  }
  task->on_values = [values, wake = slot.wake](std::vector<Task::ReadBlock> blocks) {
    *values = std::move(blocks);
    wake();
  };
  slot.continuation = [&slot, paused, number, values] {
    std::vector<bool> nan;
    for (const Task::ReadBlock& block : *values) {
      if (block.error) {
        paused->fail(number, block.error);
        return Progress::kDone;
      }
      nan.push_back(block.data->at(0) != 0);
    }
    if (absl::Status status = paused->run->seen(nan); !status.ok()) {
      paused->fail(number, slot.fail(status));
      return Progress::kDone;
    }
    return go_on(slot, paused, number);
  };
  slot.push(std::move(task));
  return Progress::kSuspended;
}

}  // namespace

Progress go_on(Slot& slot, std::shared_ptr<PausedRun> paused, uint64_t number) {
  for (;;) {
    auto state = paused->run->step();
    if (!state.ok()) {
      paused->fail(number, slot.fail(state.status()));
      return Progress::kDone;
    }
    switch (*state) {
      case BackwardRun::State::kMore:
        if (!slot.session.queue->full()) continue;
        slot.continuation = [&slot, paused, number] { return go_on(slot, paused, number); };
        slot.session.queue->on_space(slot.wake);
        return Progress::kSuspended;
      case BackwardRun::State::kAsk:
        if (!paused->answers) {
          paused->fail(number,
                       slot.fail(runtime_error("this graph reaches client code (hooks, Functions, "
                                               "checkpoints): use session.backward_watched")));
          return Progress::kDone;
        }
        hand_over(slot, paused, number);
        return Progress::kDone;
      case BackwardRun::State::kRead:
        return read_flags(slot, paused, number);
      case BackwardRun::State::kDone:
        paused->finish(number);
        return Progress::kDone;
    }
  }
}

namespace {

BackwardRun::Options backward_options(const Call& call) {
  BackwardRun::Options options;
  options.create_graph = call.attr(1).as_bool();
  options.retain_graph = call.attr(0).none() ? options.create_graph : call.attr(0).as_bool();
  return options;
}

// The call's inputs by its three lists.
struct Lists {
  explicit Lists(const Call& call) {
    auto begin = call.inputs.begin();
    auto second = begin + call.list_sizes[0], third = second + call.list_sizes[1];
    a.assign(begin, second);
    b.assign(second, third);
    c.assign(third, call.inputs.end());
  }
  Tensors a, b, c;
};

Progress start_backward(Slot& slot, const Call& call, const Command& command, bool answers) {
  Lists lists(call);
  ErrorRef bad = first_poison(lists.a);
  if (!bad) bad = first_poison(lists.c);
  auto fail = [&slot, answers](uint64_t number, ErrorRef error) {
    if (answers) return answer(slot, number, std::move(error));
    slot.sink.reply(0, RefusedEvent{std::move(error)});
  };
  if (!bad) {
    auto run = BackwardRun::start(lists.a, lists.b, lists.c, backward_options(call));
    if (run.ok()) {
      auto paused = std::make_shared<PausedRun>();
      paused->run = *std::move(run);
      paused->answers = answers;
      paused->fail = fail;
      paused->finish = [&slot, answers](uint64_t number) {
        if (answers) slot.sink.reply(number, MetasReply{});
      };
      return go_on(slot, std::move(paused), command.number);
    }
    bad = slot.fail(run.status());
  }
  fail(command.number, bad);
  return Progress::kDone;
}

Progress backward(Slot& slot, const Call& call, const Command& command) {
  return start_backward(slot, call, command, false);
}

Progress backward_watched(Slot& slot, const Call& call, const Command& command) {
  return start_backward(slot, call, command, true);
}

Progress autograd_grad(Slot& slot, const Call& call, const Command& command) {
  Lists lists(call);
  std::vector<uint64_t> ids(command.outputs.begin(), command.outputs.end());
  auto fail = [&slot, ids](uint64_t number, ErrorRef error) {
    for (uint64_t id : ids) {
      if (id) slot.define(id, poisoned(error)).IgnoreError();
    }
    answer(slot, number, std::move(error));
  };
  ErrorRef bad = first_poison(lists.a);
  if (!bad) bad = first_poison(lists.b);
  if (bad) {
    fail(command.number, bad);
    return Progress::kDone;
  }
  BackwardRun::Options options = backward_options(call);
  options.accumulate = false;
  options.allow_unused = call.attr(2).as_bool();
  auto started = BackwardRun::start(lists.a, lists.c, lists.b, options);
  if (!started.ok()) {
    fail(command.number, slot.fail(started.status()));
    return Progress::kDone;
  }
  auto paused = std::make_shared<PausedRun>();
  paused->run = *std::move(started);
  paused->answers = true;
  paused->fail = fail;
  paused->finish = [&slot, ids, fail, run = paused->run.get()](uint64_t number) {
    auto results = run->results();
    if (!results.ok()) return fail(number, slot.fail(results.status()));
    MetasReply reply;
    for (size_t i = 0; i < results->size(); ++i) {
      Tensor g = (*results)[i];
      reply.metas.push_back(g ? meta_of(g) : TensorMeta{});
      if (g && i < ids.size()) slot.define(ids[i], g).IgnoreError();
    }
    slot.sink.reply(number, std::move(reply));
  };
  return go_on(slot, std::move(paused), command.number);
}

std::shared_ptr<PausedRun> take_paused(Slot& slot, const Attribute& callback) {
  auto it = slot.paused.find(static_cast<uint64_t>(callback.as_int()));
  if (it == slot.paused.end()) return nullptr;
  std::shared_ptr<PausedRun> paused = std::move(it->second);
  slot.paused.erase(it);
  return paused;
}

absl::Status no_callback(const Call& call) {
  return value_error("[", call.op->name, "] no backward waits for callback ",
                     call.attr(0).as_int());
}

Progress callback_return(Slot& slot, const Call& call, const Command& command) {
  std::shared_ptr<PausedRun> paused = take_paused(slot, call.attr(0));
  if (!paused) return answer_error(slot, command, slot.fail(no_callback(call)));
  if (ErrorRef bad = first_poison(call.inputs)) {
    paused->fail(command.number, bad);
    return Progress::kDone;
  }
  if (absl::Status status = paused->run->answer(call.inputs); !status.ok()) {
    paused->fail(command.number, slot.fail(status));
    return Progress::kDone;
  }
  return go_on(slot, std::move(paused), command.number);
}

Progress callback_abort(Slot& slot, const Call& call, const Command&) {
  take_paused(slot, call.attr(0));
  return Progress::kDone;
}

// --- Functions and hooks -------------------------------------------------------------------------

CodeRef new_code(Slot& slot, int64_t id) {
  auto code = std::make_shared<ClientCode>(static_cast<uint64_t>(id), slot.number, slot.forgotten);
  slot.code.insert_or_assign(code->id, code);
  return code;
}

Progress function(Slot& slot, const Call& call, const Command& command) {
  Lists lists(call);
  const auto& [inputs, outputs, saved] = lists;
  for (const Tensors* list : {&inputs, &outputs, &saved}) {
    if (ErrorRef bad = first_poison(*list)) return refuse(slot, command, bad);
  }
  auto* node = new ClientNode();
  Ref<Node> ref(node);
  node->code = new_code(slot, call.attr(0).as_int());
  node->title = call.attr(1).as_string();
  const IntList& differentiable = call.attr(2).as_ints();
  const IntList& dirty = call.attr(3).as_ints();
  node->materialize = call.attr(4).as_bool();
  node->site = slot.site;
  auto listed = [](const IntList& list, size_t i) {
    return std::find(list.begin(), list.end(), static_cast<int64_t>(i)) != list.end();
  };
  for (const Tensor& t : inputs) {
    bool wants = t && t->requires_grad() && is_floating(t->dtype);
    node->edges.push_back(wants ? gradient_edge(t) : Edge{});
    node->input_specs.push_back(t ? TensorSpec{t->dtype, t->sizes, {}} : TensorSpec{});
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& t = outputs[i];
    if (!listed(dirty, i)) continue;
    absl::Status status = check_in_place(t, node->title);
    if (status.ok() && t->autograd && t->autograd->base && t->requires_grad()) {
      status = not_implemented_error("[", node->title, "] output ", i,
                                     " is a view that the Function wrote into; clone() it first");
    }
    if (!status.ok()) return refuse(slot, command, status);
  }
  node->outputs = static_cast<uint32_t>(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& t = outputs[i];
    node->output_specs.push_back({t->dtype, t->sizes, {}});
    if (!listed(differentiable, i) || !is_floating(t->dtype)) continue;
    set_history(t, ref, static_cast<uint32_t>(i));
    t->autograd->base = nullptr;
  }
  for (const Tensor& t : saved) {
    bool own = t && t->autograd && t->autograd->grad_fn == ref;
    node->saved_none.push_back(!t);
    node->saved.push_back(t ? SavedTensor(t, own ? node : nullptr) : SavedTensor());
  }
  return Progress::kDone;
}

Progress tensor_hook(Slot& slot, const Call& call, const Command& command) {
  const Tensor& t = call.in(0);
  if (t->poison) return refuse(slot, command, t->poison);
  if (!t->requires_grad()) {
    return refuse(
        slot, command,
        runtime_error("cannot register a hook on a tensor that doesn't require gradient"));
  }
  bool accumulated = call.attr(1).as_bool();
  if (accumulated && !t->is_leaf()) {
    return refuse(
        slot, command,
        runtime_error("post accumulate grad hooks cannot be registered on non-leaf tensors"));
  }
  Hook hook{new_code(slot, call.attr(0).as_int()),
            accumulated ? HookPlace::kAccumulated : HookPlace::kTensor, 0};
  if (Ref<Node> node = grad_fn_of(t)) {
    hook.output = t->autograd->output_nr;
    node->hooks().push_back(std::move(hook));
  } else {
    t->meta().hooks.push_back(std::move(hook));
  }
  return Progress::kDone;
}

Progress remove_hook(Slot& slot, const Call& call, const Command&) {
  auto it = slot.code.find(static_cast<uint64_t>(call.attr(0).as_int()));
  if (it == slot.code.end()) return Progress::kDone;
  if (CodeRef code = it->second.lock()) code->removed = true;
  return Progress::kDone;
}

// --- nodes ---------------------------------------------------------------------------------------

// [id, key, name, output number]: the key is the same whenever the node is.
nlohmann::json describe(Slot& slot, const Edge& edge) {
  if (!edge.node) return nullptr;
  uint64_t id = slot.new_id();
  slot.session.nodes.insert_or_assign(id, edge.node);
  return {id, reinterpret_cast<uintptr_t>(edge.node.get()), edge.node->name(), edge.index};
}

absl::StatusOr<Ref<Node>> find_node(Slot& slot, const Call& call) {
  auto it = slot.session.nodes.find(call.object_ids[0]);
  if (it != slot.session.nodes.end()) return it->second;
  return runtime_error("[", call.op->name, "] node id ", call.object_ids[0],
                       " was released or never existed");
}

Progress node(Slot& slot, const Call& call, const Command& command) {
  const Tensor& t = call.in(0);
  if (t->poison) return refuse(slot, command, t->poison);
  uint64_t id = command.outputs.empty() ? 0 : command.outputs[0];
  if ((id >> 48) != slot.number || (id & Slot::kServerBit)) {
    return refuse(slot, command,
                  runtime_error("[session.node] output id ", id, " is not this slot's"));
  }
  if (Ref<Node> found = grad_fn_of(t)) slot.session.nodes.insert_or_assign(id, std::move(found));
  return Progress::kDone;
}

Progress node_edges(Slot& slot, const Call& call, const Command& command) {
  auto found = find_node(slot, call);
  if (!found.ok()) return answer_error(slot, command, slot.fail(found.status()));
  nlohmann::json list = nlohmann::json::array();
  for (const Edge& edge : (*found)->edges) list.push_back(describe(slot, edge));
  slot.sink.reply(command.number, TextReply{list.dump()});
  return Progress::kDone;
}

Progress node_variable(Slot& slot, const Call& call, const Command& command) {
  auto found = find_node(slot, call);
  if (!found.ok()) return answer_error(slot, command, slot.fail(found.status()));
  MetasReply reply;
  if (auto* leaf = dynamic_cast<AccumulateGrad*>(found->get())) {
    reply.metas.push_back(meta_of(leaf->leaf()));
    if (!command.outputs.empty()) slot.define(command.outputs[0], leaf->leaf()).IgnoreError();
  } else {
    reply.metas.push_back({});
  }
  slot.sink.reply(command.number, std::move(reply));
  return Progress::kDone;
}

Progress node_hook(Slot& slot, const Call& call, const Command& command) {
  auto found = find_node(slot, call);
  if (!found.ok()) return refuse(slot, command, found.status());
  HookPlace place = call.attr(1).as_bool() ? HookPlace::kBefore : HookPlace::kAfter;
  (*found)->hooks().push_back({new_code(slot, call.attr(0).as_int()), place, 0});
  return Progress::kDone;
}

// --- checkpoints, random states, anomaly ---------------------------------------------------------

Progress checkpoint_begin(Slot& slot, const Call& call, const Command&) {
  auto checkpoint = make_ref<Checkpoint>(new_code(slot, call.attr(0).as_int()));
  checkpoint->keep_random = call.attr(1).as_bool();
  checkpoint->generator = slot.generator;
  slot.checkpoints.push_back({std::move(checkpoint), false, {}});
  return Progress::kDone;
}

Progress checkpoint_again(Slot& slot, const Call& call, const Command& command) {
  auto it = slot.paused.find(static_cast<uint64_t>(call.attr(0).as_int()));
  if (it == slot.paused.end() || !it->second->run->question().checkpoint) {
    return refuse(slot, command, no_callback(call));
  }
  Ref<Checkpoint> checkpoint = it->second->run->question().checkpoint;
  checkpoint->start_again();
  slot.checkpoints.push_back({checkpoint, true, slot.generator});
  if (checkpoint->keep_random) slot.generator = checkpoint->generator;
  return Progress::kDone;
}

Progress checkpoint_end(Slot& slot, const Call& call, const Command& command) {
  if (slot.checkpoints.empty()) {
    return refuse(slot, command, runtime_error("[", call.op->name, "] no region is open"));
  }
  Slot::Region region = std::move(slot.checkpoints.back());
  slot.checkpoints.pop_back();
  if (!region.again) return Progress::kDone;
  if (region.checkpoint->keep_random) slot.generator = region.before;
  region.checkpoint->finish_again().IgnoreError();  // the answer to the Callback tells
  return Progress::kDone;
}

Progress random_save(Slot& slot, const Call& call, const Command&) {
  slot.generator_marks.insert_or_assign(static_cast<uint64_t>(call.attr(0).as_int()),
                                        slot.generator);
  return Progress::kDone;
}

Progress random_restore(Slot& slot, const Call& call, const Command& command) {
  auto it = slot.generator_marks.find(static_cast<uint64_t>(call.attr(0).as_int()));
  if (it == slot.generator_marks.end()) {
    return refuse(slot, command, runtime_error("[", call.op->name, "] no such mark"));
  }
  slot.generator = it->second;
  return Progress::kDone;
}

Progress random_state(Slot& slot, const Call&, const Command& command) {
  constexpr int64_t kBytes = 2 * sizeof(uint64_t);
  Tensor t = new_tensor({DType::kUInt8, Dims{kBytes}, {}});
  auto task = std::make_unique<Task>();
  task->kind = TaskKind::kCopyIn;
  const uint64_t words[] = {slot.generator.seed, slot.generator.offset};
  task->host.assign(reinterpret_cast<const char*>(words), sizeof words);
  task->outputs.push_back(operand_of(t));
  slot.push(std::move(task));
  if (command.outputs.empty()) return Progress::kDone;
  absl::Status status = slot.define(command.outputs[0], std::move(t));
  return status.ok() ? Progress::kDone : refuse(slot, command, status);
}

Progress set_random_state(Slot& slot, const Call& call, const Command&) {
  slot.generator = {static_cast<uint64_t>(call.attr(0).as_int()),
                    static_cast<uint64_t>(call.attr(1).as_int())};
  return Progress::kDone;
}

Progress detach_in_place(Slot& slot, const Call& call, const Command& command) {
  const Tensor& t = call.in(0);
  if (t->poison) return refuse(slot, command, t->poison);
  if (!t->autograd) return Progress::kDone;
  if (t->autograd->base && t->autograd->base->requires_grad()) {
    return refuse(slot, command,
                  runtime_error("Can't detach views in-place. Use detach() instead. If you are "
                                "using DistributedDataParallel (DDP) for training, and "
                                "gradient_as_bucket_view is set as True, gradients are views of "
                                "DDP buckets, and hence detach_() cannot be called on these "
                                "gradients. To fix this error, please refer to the "
                                "Optimizer.zero_grad() function in torch/optim/optimizer.py as a "
                                "solution."));
  }
  t->autograd->requires_grad = false;
  t->autograd->grad_fn = nullptr;
  t->autograd->output_nr = 0;
  return Progress::kDone;
}

Progress set_anomaly(Slot& slot, const Call& call, const Command&) {
  slot.anomaly = call.attr(0).as_bool();
  slot.anomaly_nan = call.attr(1).as_bool();
  return Progress::kDone;
}

}  // namespace

void add_graph_rows(Catalog& catalog) {
  auto row = [&](uint16_t number, std::string_view signature, std::string_view doc, CommandFn fn) {
    catalog.add(number, OpKind::kCommand, signature, doc).command = fn;
  };
  row(6,
      "session.backward(Tensor[] tensors, Tensor?[] grad_tensors, Tensor[] inputs, *, "
      "bool? retain_graph=None, bool create_graph=False) -> ()",
      "Adds the gradients of the sum of tensors to the leaves' .grad; inputs limits which.",
      backward);
  row(7,
      "session.autograd_grad(Tensor[] outputs, Tensor[] inputs, Tensor?[] grad_outputs, *, "
      "bool? retain_graph=None, bool create_graph=False, bool allow_unused=False) -> Tensor[]",
      "The gradients of outputs by inputs; answers with their metas, `defined` false where an "
      "input was not used, or with a Callback.",
      autograd_grad);
  row(25,
      "session.backward_watched(Tensor[] tensors, Tensor?[] grad_tensors, Tensor[] inputs, *, "
      "bool? retain_graph=None, bool create_graph=False) -> ()",
      "session.backward for graphs that reach client code: answers with nothing when it has been "
      "dispatched, or with a Callback.",
      backward_watched);
  row(26, "session.callback_return(Tensor?[] results, int callback) -> ()",
      "Answers a Callback. The backward goes on; this command gets its next Callback or its end.",
      callback_return);
  row(27, "session.callback_abort(int callback) -> ()",
      "Ends a backward that waits for this Callback; what it has accumulated stays.",
      callback_abort);
  row(28,
      "session.function(Tensor?[] inputs, Tensor[] outputs, Tensor?[] saved, int code, str name, "
      "int[] differentiable, int[] dirty=[], bool materialize_grads=True) -> ()",
      "Makes a node of client code the maker of those of the outputs that `differentiable` lists; "
      "`dirty` lists outputs that are inputs it wrote into.",
      function);
  row(29, "session.tensor_hook(Tensor input, int code, bool accumulated=False) -> ()",
      "Client code to run on the gradient of a tensor, or after a leaf's .grad was written.",
      tensor_hook);
  row(30, "session.remove_hook(int code) -> ()", "Takes a hook back.", remove_hook);
  row(31, "session.node(Tensor input) -> Object", "A handle for the node that made the tensor.",
      node);
  row(32, "session.node_edges(Object node) -> ()",
      "Answers with JSON: for each node that this one sends its gradients to [handle, key, name, "
      "output number], or null; a node's key is the same each time.",
      node_edges);
  row(33, "session.node_variable(Object node) -> Tensor",
      "The leaf of an AccumulateGrad node; answers with its meta.", node_variable);
  row(34, "session.node_hook(Object node, int code, bool before=False) -> ()",
      "Client code to run on the gradients that a node gives, or before on those that it takes.",
      node_hook);
  row(35, "session.checkpoint_begin(int code, bool preserve_rng_state=True) -> ()",
      "Starts a region whose saved tensors are computed again, by that client code, when backward "
      "needs them.",
      checkpoint_begin);
  row(36, "session.checkpoint_again(int callback) -> ()",
      "Starts a region's second pass, within its Callback.", checkpoint_again);
  row(37, "session.checkpoint_end() -> ()", "Ends the innermost region.", checkpoint_end);
  row(38, "session.random_save(int mark) -> ()",
      "Keeps the generator's state under a number of the client's.", random_save);
  row(39, "session.random_restore(int mark) -> ()", "Goes back to a kept state.", random_restore);
  row(40, "session.random_state() -> Tensor", "The generator's state: 16 bytes.", random_state);
  row(41, "session.set_random_state(int seed, int offset) -> ()",
      "Sets the generator's state: two words, as session.random_state's bytes.", set_random_state);
  row(42, "session.set_anomaly(bool enabled, bool check_nan=True) -> ()",
      "Whether a backward ends with an error where a gradient becomes nan.", set_anomaly);
  row(43, "session.detach_(Tensor input) -> ()", "Takes a tensor out of its graph.",
      detach_in_place);
}

}  // namespace gradwire
