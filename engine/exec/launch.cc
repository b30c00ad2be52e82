#include "engine/exec/launch.h"

#include <condition_variable>
#include <mutex>
#include <optional>

#include "engine/io/upload.h"
#include "engine/ops/op_def.h"
#include "engine/ops/reply.h"

namespace gradwire {
namespace {

void* address_of(const Operand& operand) {
  auto* base = static_cast<char*>(operand.storage->data());
  return base ? base + operand.offset * static_cast<int64_t>(dtype_size(operand.dtype)) : nullptr;
}

TensorView view_of(const Operand& operand) {
  TensorView view;
  if (operand.dtype == DType::kNone) return view;
  view.dtype = operand.dtype;
  view.rank = static_cast<int>(operand.sizes.size());
  for (int i = 0; i < view.rank; ++i) {
    view.sizes[i] = operand.sizes[i];
    view.strides[i] = operand.strides[i];
  }
  view.data = address_of(operand);
  return view;
}

// The operand seen through the sizes of a pointwise output.
TensorView broadcast_view(const Operand& operand, const Operand& out) {
  TensorView view;
  view.dtype = operand.dtype;
  view.rank = static_cast<int>(out.sizes.size());
  int lead = view.rank - static_cast<int>(operand.sizes.size());
  for (int i = 0; i < view.rank; ++i) {
    view.sizes[i] = out.sizes[i];
    bool own = i >= lead && operand.sizes[i - lead] != 1;
    view.strides[i] = own ? operand.strides[i - lead] : 0;
  }
  view.data = address_of(operand);
  return view;
}

ErrorRef poison_of(const Task& task) {
  for (const Operand& in : task.inputs) {
    if (in.storage && in.storage->poison) return in.storage->poison;
  }
  for (const StorageRef& guard : task.guards) {
    if (guard->poison) return guard->poison;
  }
  if (task.in_place || task.commits) {
    // A poisoned tensor stays poisoned: there is nothing to update.
    for (const Operand& out : task.outputs) {
      if (out.storage && out.storage->poison) return out.storage->poison;
    }
  }
  return nullptr;
}

absl::Status materialise_outputs(Task& task) {
  for (Operand& out : task.outputs) {
    if (out.storage) GW_RETURN_IF_ERROR(out.storage->materialise());
  }
  return absl::OkStatus();
}

absl::Status launch_pointwise(Backend& backend, Task& task) {
  thread_local KernelCall call;
  call.kernel = backend.find_kernel("pointwise");
  call.inputs.clear();
  call.outputs.clear();
  call.scalars.assign(task.scalars.begin(), task.scalars.end());
  call.program = task.program;
  const Operand& out = task.outputs[0];
  for (const Operand& in : task.inputs) call.inputs.push_back(broadcast_view(in, out));
  call.outputs.push_back(view_of(out));
  return backend.launch(call, nullptr);
}

// Waits for a checking kernel's verdict: what follows must know it.
absl::Status launch_checked(Backend& backend, const KernelCall& call) {
  struct State {
    std::mutex mutex;
    std::condition_variable ready;
    std::optional<absl::Status> status;
  } state;
  absl::Status launched = backend.launch(call, [&state](absl::Status status) {
    std::lock_guard lock(state.mutex);
    state.status = std::move(status);
    state.ready.notify_one();
  });
  if (!launched.ok()) return launched;
  std::unique_lock lock(state.mutex);
  state.ready.wait(lock, [&] { return state.status.has_value(); });
  return *state.status;
}

absl::Status launch_kernel(Backend& backend, Task& task) {
  KernelCall call;
  call.kernel = task.kernel;
  for (const Operand& in : task.inputs) call.inputs.push_back(view_of(in));
  for (const Operand& out : task.outputs) call.outputs.push_back(view_of(out));
  call.scalars.assign(task.scalars.begin(), task.scalars.end());
  call.attributes = std::move(task.attributes);
  call.seed = task.seed;
  call.offset = task.offset;
  return task.checks ? launch_checked(backend, call) : backend.launch(call, nullptr);
}

absl::Status copy_in(Backend& backend, Task& task) {
  // The host block lives until the copy has run; a short string would move its bytes with it.
  struct Source {
    Source(std::string bytes, std::shared_ptr<Upload> upload)
        : bytes(std::move(bytes)), upload(std::move(upload)) {}
    std::string bytes;
    std::shared_ptr<Upload> upload;
  };
  if (task.upload) GW_RETURN_IF_ERROR(task.upload->status());
  auto source = std::make_shared<Source>(std::move(task.host), std::move(task.upload));
  const std::string& bytes = source->upload ? source->upload->data() : source->bytes;
  const Operand& out = task.outputs[0];
  if (bytes.size() != out.storage->bytes) {
    return value_error("[upload] expected ", out.storage->bytes, " bytes for ",
                       std::string(dtype_name(out.dtype)), shape_text(out.sizes), ", got ",
                       bytes.size());
  }
  if (bytes.empty()) return absl::OkStatus();
  // The device block may still be read by kernels queued before it was freed.
  backend.wait(StreamKind::kUpload, backend.record(StreamKind::kCompute));
  GW_RETURN_IF_ERROR(
      backend.copy_in(StreamKind::kUpload, out.storage->data(), bytes.data(), bytes.size()));
  Event copied = backend.record(StreamKind::kUpload);
  backend.wait(StreamKind::kCompute, copied);
  backend.on_complete(copied, [source] {});
  return absl::OkStatus();
}

void read(Backend& backend, Task& task) {
  auto blocks = std::make_shared<std::vector<Task::ReadBlock>>(task.inputs.size());
  bool copied = false;
  std::vector<StorageRef> sources;
  for (size_t i = 0; i < task.inputs.size(); ++i) {
    Operand& in = task.inputs[i];
    Task::ReadBlock& block = (*blocks)[i];
    if (in.storage->poison) {
      block.error = in.storage->poison;
      continue;
    }
    if (in.storage->refused) {
      ErrorRef refused = std::move(in.storage->refused);
      in.storage->refused = nullptr;
      if (!refused->reported.load()) {
        block.error = std::move(refused);
        continue;
      }
    }
    auto data = std::make_shared<std::string>();
    size_t bytes = static_cast<size_t>(numel_of(in.sizes)) * dtype_size(in.dtype);
    if (bytes) {
      if (!copied) backend.wait(StreamKind::kDownload, backend.record(StreamKind::kCompute));
      copied = true;
      data->resize(bytes);
      absl::Status status =
          backend.copy_out(StreamKind::kDownload, data->data(), address_of(in), bytes);
      if (!status.ok()) {
        block.error = error_of(task, status);
        continue;
      }
      sources.push_back(in.storage);
    }
    block.data = std::move(data);
  }
  auto answer = [blocks, on_values = std::move(task.on_values), sources = std::move(sources)] {
    on_values(std::move(*blocks));
  };
  if (!copied) {
    answer();
    return;
  }
  Event event = backend.record(StreamKind::kDownload);
  backend.wait(StreamKind::kCompute, event);
  backend.on_complete(event, std::move(answer));
}

}  // namespace

ErrorRef error_of(const Task& task, const absl::Status& status) {
  auto record = new ErrorRecord();
  record->kind = error_kind(status);
  record->message = std::string(status.message());
  if (task.op) record->op = task.op->name;
  record->number = task.number;
  record->slot = task.slot;
  if (task.site) record->site = task.site->text;
  return ErrorRef(record);
}

void skip_task(Task& task, ErrorRef error) {
  if (task.kind == TaskKind::kRead) {
    std::vector<Task::ReadBlock> blocks(task.inputs.size());
    for (auto& block : blocks) block.error = error;
    task.on_values(std::move(blocks));
    return;
  }
  if (task.commits || task.in_place) {
    if (task.in_place) {
      for (Operand& out : task.outputs) {
        if (out.storage && !out.storage->poison) out.storage->refused = error;
      }
    }
    if (task.sink) task.sink->reply(0, RefusedEvent{error});
  } else {
    size_t fresh = task.outputs.size() - task.state_outputs;
    for (size_t i = 0; i < fresh; ++i) {
      if (task.outputs[i].storage) task.outputs[i].storage->poison = error;
    }
  }
  if (task.on_done) task.on_done(std::move(error));
}

LaunchResult run_task(Backend& backend, Task& task) {
  if (task.kind == TaskKind::kRead) {
    read(backend, task);
    return {};
  }
  if (task.kind == TaskKind::kHost) {
    if (task.on_done) task.on_done(poison_of(task));
    return {};
  }
  if (task.kind == TaskKind::kSync) {
    // Copies too: the compute stream waits for each of them.
    backend.on_complete(backend.record(StreamKind::kCompute),
                        [on_done = std::move(task.on_done)] { on_done(nullptr); });
    return {};
  }
  if (ErrorRef poison = poison_of(task)) {
    skip_task(task, std::move(poison));
    return {};
  }
  absl::Status status = materialise_outputs(task);
  if (status.ok()) {
    if (task.prepare) task.prepare(task);
    switch (task.kind) {
      case TaskKind::kPointwise:
        status = launch_pointwise(backend, task);
        break;
      case TaskKind::kKernel:
        status = launch_kernel(backend, task);
        break;
      case TaskKind::kCopyIn:
        status = copy_in(backend, task);
        break;
      default:
        break;
    }
  }
  if (!status.ok()) {
    ErrorRef error = error_of(task, status);
    skip_task(task, error);
    return {1, error};
  }
  if (task.on_done) task.on_done(nullptr);
  return {1, nullptr};
}

LaunchResult run_group(Backend& backend, const FusionGroup& group,
                       std::span<const std::unique_ptr<Task>*> tasks) {
  if (!group.program) return {};  // every value of the group is dead
  Task* reduction = group.reduction ? tasks.back()->get() : nullptr;
  absl::Status status;
  if (reduction) {
    status = materialise_outputs(*reduction);
  } else {
    for (const Operand* out : group.outputs) {
      if (status.ok()) status = out->storage->materialise();
    }
  }
  if (status.ok()) {
    thread_local KernelCall call;
    call.inputs.clear();
    call.outputs.clear();
    call.attributes.clear();
    call.scalars.assign(group.scalars.begin(), group.scalars.end());
    call.program = group.program;
    const Operand& shape = (*tasks[0])->outputs[0];
    if (reduction) {
      call.kernel = group.kernel;
      call.attributes = reduction->attributes;
      call.inputs.push_back(view_of(reduction->inputs[0]));
      for (const Operand& out : reduction->outputs) call.outputs.push_back(view_of(out));
    } else {
      call.kernel = backend.find_kernel("pointwise");
      for (const Operand* out : group.outputs) call.outputs.push_back(view_of(*out));
    }
    for (const Operand* in : group.inputs) call.inputs.push_back(broadcast_view(*in, shape));
    status = backend.launch(call, nullptr);
    if (status.ok()) return {1, nullptr};
  }
  // One by one, so that only what really fails is poisoned.
  LaunchResult result;
  for (auto* task : tasks) {
    LaunchResult one = run_task(backend, **task);
    result.kernels += one.kernels;
    if (one.failure) result.failure = one.failure;
  }
  return result;
}

}  // namespace gradwire
