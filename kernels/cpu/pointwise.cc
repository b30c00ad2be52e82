#include "kernels/cpu/pointwise.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>

#include "absl/container/inlined_vector.h"
#include "kernels/cpu/pointwise_geometry.h"
#include "kernels/cpu/pointwise_plan.h"
#include "kernels/cpu/pointwise_scalar.h"
#include "kernels/cpu/pointwise_transpose.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/scratch.h"
#include "kernels/error.h"

namespace gradwire::cpu {
namespace {

using Layout = TileOperand::Layout;

constexpr int kSmall = 8;            // operands and steps without heap memory
constexpr double kSerialNs = 20000;  // less work than this is not worth a second core
constexpr double kRangeNs = 10000;   // work of one range
constexpr int64_t kStreamBytes = int64_t{32} << 20;    // outputs that no cache will keep
constexpr int64_t kMostPeriod = 1024;                  // elements kept of a repeating operand
constexpr int64_t kStraightFrom = 16 << 10;            // elements
constexpr int64_t kMostStraight = int64_t{512} << 20;  // bytes
constexpr int64_t kStackBytes = 32 << 10;

struct Launch {
  const Plan* plan;
  const Step* prologue;
  const Step* steps;
  IndexSpace space;
  absl::InlinedVector<TileOperand, kSmall> operands;  // loads, then stores
  absl::InlinedVector<int64_t, kSmall> periods;       // of loads; 0 for what does not repeat
  absl::InlinedVector<uint64_t, kSmall> uniforms;     // bits, in the plan's order
  bool stream = false;
  std::atomic<bool>* found = nullptr;  // divisors' run: set when the stored bool is true somewhere
};

int64_t round_up(int64_t n) {
  return (n + kTileBlock - 1) & ~int64_t{kTileBlock - 1};
}

// Buffers of one range: the pointer of each, and memory for all.
class Buffers {
 public:
  Buffers(const Launch& launch, char* memory) : launch_(launch) {
    const Plan& plan = *launch.plan;
    pointers_.resize(plan.buffers());
    tile_memory_.resize(plan.loads + plan.stores);
    for (int i = 0; i < plan.slots; ++i) {
      pointers_[plan.loads + plan.stores + i] = memory;
      memory += plan.slot_bytes;
    }
    for (int i = 0; i < plan.loads + plan.stores; ++i) {
      tile_memory_[i] = memory;
      memory += elements_of(launch, i) * launch.operands[i].size;
    }
  }

  static int64_t bytes(const Launch& launch) {
    int64_t total = int64_t{launch.plan->slots} * launch.plan->slot_bytes;
    for (size_t i = 0; i < launch.operands.size(); ++i) {
      total += elements_of(launch, static_cast<int>(i)) * launch.operands[i].size;
    }
    return total;
  }

  void run(const Step* steps, size_t count, int64_t n) {
    for (size_t i = 0; i < count; ++i) {
      const Step& s = steps[i];
      s.fn(pointers_[s.dst], pointers_[s.a], pointers_[s.b], pointers_[s.c], n);
    }
  }

  // What is the same in every tile.
  void fill(int64_t n) {
    const Plan& plan = *launch_.plan;
    for (size_t i = 0; i < plan.uniforms.size(); ++i) {
      const Plan::Uniform& u = plan.uniforms[i];
      splat(pointers_[u.buffer], &launch_.uniforms[i], static_cast<int>(dtype_size(u.type)), n);
    }
    for (int i = 0; i < plan.loads; ++i) {
      const TileOperand& o = launch_.operands[i];
      if (launch_.periods[i] > 0) {
        Cursor origin;
        origin.seek(launch_.space, 0);
        gather(launch_.space, o, origin, elements_of(launch_, i), tile_memory_[i]);
      }
      if (o.layout != Layout::kFixed) continue;
      splat(tile_memory_[i], o.data, o.size, n);
      pointers_[i] = tile_memory_[i];
    }
    run(launch_.prologue, plan.prologue.size(), n);
  }

  void load(int64_t index, const Cursor& cursor, int64_t n) {
    bool whole = n % kTileBlock == 0;
    for (int i = 0; i < launch_.plan->loads; ++i) {
      const TileOperand& o = launch_.operands[i];
      if (o.layout == Layout::kFixed) continue;
      if (int64_t period = launch_.periods[i]; period > 0) {
        pointers_[i] = tile_memory_[i] + index % period * o.size;
        continue;
      }
      char* run = o.layout == Layout::kDense ? o.data + index * o.size
                                             : run_at(launch_.space, o, cursor, n);
      if (run != nullptr && whole) {
        pointers_[i] = run;
        continue;
      }
      if (run != nullptr) {
        std::memcpy(tile_memory_[i], run, n * o.size);
      } else {
        gather(launch_.space, o, cursor, n, tile_memory_[i]);
      }
      std::memset(tile_memory_[i] + n * o.size, 0, (round_up(n) - n) * o.size);
      pointers_[i] = tile_memory_[i];
    }
  }

  void aim_stores(int64_t index, const Cursor& cursor, int64_t n) {
    const Plan& plan = *launch_.plan;
    bool in_place = n % kTileBlock == 0 && !launch_.stream && launch_.found == nullptr;
    for (int i = plan.loads; i < plan.loads + plan.stores; ++i) {
      const TileOperand& o = launch_.operands[i];
      char* run = nullptr;
      if (in_place) {
        run = o.layout == Layout::kDense ? o.data + index * o.size
                                         : run_at(launch_.space, o, cursor, n);
      }
      pointers_[i] = run != nullptr ? run : tile_memory_[i];
    }
  }

  void store(int64_t index, const Cursor& cursor, int64_t n) {
    const Plan& plan = *launch_.plan;
    for (int i = plan.loads; i < plan.loads + plan.stores; ++i) {
      if (pointers_[i] != tile_memory_[i]) continue;
      const TileOperand& o = launch_.operands[i];
      if (launch_.found != nullptr) {
        if (std::memchr(tile_memory_[i], 1, n) != nullptr) launch_.found->store(true);
      } else if (o.layout == Layout::kStrided) {
        scatter(launch_.space, o, cursor, n, tile_memory_[i]);
      } else if (launch_.stream && n % kTileBlock == 0) {
        plan.ops->stream[o.size](o.data + index * o.size, tile_memory_[i], nullptr, nullptr, n);
      } else {
        std::memcpy(o.data + index * o.size, tile_memory_[i], n * o.size);
      }
    }
  }

 private:
  // A repeating operand is kept with the start of its next round, so that a tile is one piece.
  static int64_t elements_of(const Launch& launch, int i) {
    bool repeats = i < launch.plan->loads && launch.periods[i] > 0;
    return repeats ? (launch.periods[i] + kTile + 63) / 64 * 64 : kTile;
  }

  const Launch& launch_;
  absl::InlinedVector<char*, 2 * kSmall> pointers_;
  absl::InlinedVector<char*, kSmall> tile_memory_;  // of loads, then stores
};

void run_tiles(const Launch& launch, int64_t begin, int64_t end, char* memory) {
  Buffers buffers(launch, memory);
  buffers.fill(std::min<int64_t>(kTile, round_up(end - begin)));
  Cursor cursor;
  cursor.seek(launch.space, begin);
  for (int64_t index = begin; index < end; index += kTile) {
    int64_t n = std::min<int64_t>(kTile, end - index);
    buffers.load(index, cursor, n);
    buffers.aim_stores(index, cursor, n);
    buffers.run(launch.steps, launch.plan->steps.size(), round_up(n));
    buffers.store(index, cursor, n);
    cursor.advance(launch.space, n);
    if (launch.found != nullptr && launch.found->load(std::memory_order_relaxed)) break;
  }
  if (launch.stream) launch.plan->ops->stream_fence();
}

absl::Status run_range(const Launch& launch, int64_t begin, int64_t end) {
  int64_t bytes = Buffers::bytes(launch);
  if (bytes <= kStackBytes) {
    alignas(64) char memory[kStackBytes];
    run_tiles(launch, begin, end, memory);
    return absl::OkStatus();
  }
  Scratch scratch(bytes);
  if (scratch.data() == nullptr) {
    return make_error(ErrorKind::kOutOfMemory, "[pointwise] out of host memory for tiles");
  }
  run_tiles(launch, begin, end, scratch.as<char>());
  return absl::OkStatus();
}

absl::Status run_launch(const Launch& launch, Context& context) {
  int64_t n = launch.space.numel;
  double cost = launch.plan->cost;
  if (static_cast<double>(n) * cost <= kSerialNs) return run_range(launch, 0, n);
  int64_t grain = static_cast<int64_t>(kRangeNs / cost) / kTile * kTile;
  grain = std::clamp<int64_t>(grain, kTile, int64_t{64} << 10);
  if (context.pool.threads() == 1) return run_range(launch, 0, n);
  std::atomic<bool> failed{false};
  context.pool.parallel_ranges(n, grain, [&](int64_t begin, int64_t end) {
    if (!run_range(launch, begin, end).ok()) failed.store(true);
  });
  if (!failed.load()) return absl::OkStatus();
  return make_error(ErrorKind::kOutOfMemory, "[pointwise] out of host memory for tiles");
}

// One load to one dense output, bytes as they are.
void copy_dense(const Launch& launch, Context& context) {
  const TileOperand& from = launch.operands[0];
  const TileOperand& to = launch.operands[1];
  if (from.data == to.data) return;
  int64_t bytes = launch.space.numel * to.size;
  context.pool.parallel_ranges(bytes, int64_t{1} << 20, [&](int64_t begin, int64_t end) {
    std::memcpy(to.data + begin, from.data + begin, end - begin);
  });
}

absl::Status check_view(const TensorView& view, DType stored, const TensorView& like) {
  if (view.dtype != stored) {
    return internal_error("[pointwise] got a tensor of ", std::string(dtype_name(view.dtype)),
                          " where the program has ", std::string(dtype_name(stored)));
  }
  bool same = view.rank == like.rank;
  for (int d = 0; same && d < view.rank; ++d) same = view.sizes[d] == like.sizes[d];
  return same ? absl::OkStatus() : internal_error("[pointwise] operands differ in shape");
}

// Fills everything of a launch but `found`. With `divisors` the stores go nowhere.
absl::Status prepare(const KernelCall& call, const Plan& plan, bool divisors, Launch& launch) {
  const expr::Program& program = *plan.program;
  launch.plan = &plan;
  launch.prologue = plan.prologue.data();
  launch.steps = plan.steps.data();
  absl::InlinedVector<const TensorView*, kSmall> views;
  launch.operands.resize(plan.loads + plan.stores);
  // The output leads: it decides the order in which memory is walked.
  for (const expr::StoreSlot& s : program.stores) views.push_back(&call.outputs[s.output]);
  for (const expr::LoadSlot& s : program.loads) views.push_back(&call.inputs[s.input]);
  absl::InlinedVector<TileOperand, kSmall> ordered(views.size());
  for (size_t i = 0; i < views.size(); ++i) {
    bool output = i < program.stores.size();
    DType stored =
        output ? program.stores[i].stored : program.loads[i - program.stores.size()].stored;
    if (!(output && divisors)) GW_RETURN_IF_ERROR(check_view(*views[i], stored, *views[0]));
    ordered[i].data = views[i]->as<char>();
    ordered[i].size = static_cast<int>(dtype_size(stored));
  }
  make_space(views.data(), static_cast<int>(views.size()), launch.space, ordered.data());
  for (int i = 0; i < plan.loads; ++i) launch.operands[i] = ordered[plan.stores + i];
  for (int i = 0; i < plan.stores; ++i) launch.operands[plan.loads + i] = ordered[i];
  launch.periods.resize(plan.loads);
  for (int i = 0; i < plan.loads; ++i) {
    const TileOperand& o = launch.operands[i];
    bool may_repeat = o.layout == Layout::kStrided && launch.space.numel >= 4 * kMostPeriod;
    launch.periods[i] = may_repeat ? period_of(launch.space, o, kMostPeriod) : 0;
  }
  launch.uniforms.resize(plan.uniforms.size());
  for (size_t i = 0; i < plan.uniforms.size(); ++i) {
    const Plan::Uniform& u = plan.uniforms[i];
    launch.uniforms[i] =
        u.scalar < 0 ? constant_bits(u.value, u.type) : scalar_bits(call.scalars[u.scalar], u.type);
  }
  return absl::OkStatus();
}

// Bytes for dense copies of the transposed inputs, which a tile at a time would miss the caches
// for every element; 0 when there are none, or too much of them.
int64_t straight_bytes(const Launch& launch) {
  if (launch.space.rank < 2 || launch.space.numel < kStraightFrom) return 0;
  int64_t bytes = 0;
  for (int i = 0; i < launch.plan->loads; ++i) {
    const TileOperand& o = launch.operands[i];
    if (o.layout != Layout::kStrided || launch.periods[i] > 0) continue;
    if (transposed(launch.space, o)) bytes += (launch.space.numel * o.size + 63) / 64 * 64;
  }
  return bytes <= kMostStraight ? bytes : 0;
}

void straighten(Launch& launch, char* memory, ThreadPool& pool) {
  for (int i = 0; i < launch.plan->loads; ++i) {
    TileOperand& o = launch.operands[i];
    if (o.layout != Layout::kStrided || launch.periods[i] > 0) continue;
    TileOperand dense = o;
    dense.data = memory;
    dense.layout = Layout::kDense;
    int64_t stride = 1;
    for (int d = launch.space.rank - 1; d >= 0; --d) {
      dense.strides[d] = stride;
      stride *= launch.space.sizes[d];
    }
    if (!transpose_copy(launch.space, o, dense, pool)) continue;
    o = dense;
    memory += (launch.space.numel * o.size + 63) / 64 * 64;
  }
}

bool worth_streaming(const Launch& launch) {
  const Plan& plan = *launch.plan;
  int64_t bytes = 0;
  for (int i = plan.loads; i < plan.loads + plan.stores; ++i) {
    const TileOperand& out = launch.operands[i];
    if (out.layout != Layout::kDense || reinterpret_cast<uintptr_t>(out.data) % 64 != 0) {
      return false;
    }
    for (int k = 0; k < plan.loads; ++k) {
      if (launch.operands[k].data == out.data) return false;
    }
    bytes += launch.space.numel * out.size;
  }
  return bytes >= kStreamBytes;
}

// Steps whose function depends on the value of a scalar exponent.
void choose_powers(const KernelCall& call, const Plan& plan, std::vector<Step>& prologue,
                   std::vector<Step>& steps) {
  prologue = plan.prologue;
  steps = plan.steps;
  for (const Plan::ScalarPower& p : plan.powers) {
    TileFn fn = power_function(*plan.ops, p.type, call.scalars[p.scalar].as_double());
    if (fn != nullptr) (p.in_prologue ? prologue : steps)[p.step].fn = fn;
  }
}

absl::Status check_divisors(const KernelCall& call, const Plan& plan, Context& context) {
  Launch launch;
  GW_RETURN_IF_ERROR(prepare(call, plan, true, launch));
  std::atomic<bool> found{false};
  launch.found = &found;
  bool fixed = true;
  for (int i = 0; i < plan.loads; ++i) fixed &= launch.operands[i].layout == Layout::kFixed;
  if (fixed) {
    GW_RETURN_IF_ERROR(run_range(launch, 0, 1));
  } else {
    GW_RETURN_IF_ERROR(run_launch(launch, context));
  }
  if (!found.load()) return absl::OkStatus();
  return make_error(ErrorKind::kZeroDivision, "ZeroDivisionError: integer division by zero");
}

// The checks of a launch that need no memory; `plan` is set when all is well.
absl::Status check_call(const KernelCall& call, const Plan** plan) {
  if (call.program == nullptr) return internal_error("[pointwise] launched without a program");
  const expr::Program& program = *call.program;
  if (static_cast<int>(call.inputs.size()) < program.inputs ||
      static_cast<int>(call.outputs.size()) < program.outputs ||
      static_cast<int>(call.scalars.size()) < program.scalar_inputs || program.stores.empty()) {
    return internal_error("[pointwise] the program wants ", program.inputs, " inputs, ",
                          program.outputs, " outputs and ", program.scalar_inputs, " scalars, got ",
                          call.inputs.size(), ", ", call.outputs.size(), " and ",
                          call.scalars.size());
  }
  *plan = plan_of(program);
  if (*plan == nullptr) {
    return internal_error("[pointwise] a primitive lacks its type in ", to_string(program));
  }
  return absl::OkStatus();
}

class ProgramSource : public ElementSource {
 public:
  explicit ProgramSource(const Launch& launch) : launch_(launch) {}

  absl::Status produce(int64_t begin, int64_t end, void* to) const override {
    Launch part = launch_;
    TileOperand& out = part.operands[part.plan->loads];
    out.data = static_cast<char*>(to) - begin * out.size;
    out.layout = Layout::kDense;
    return run_range(part, begin, end);
  }

 private:
  const Launch& launch_;
};

}  // namespace

absl::Status with_program_source(const KernelCall& call, Context& context,
                                 absl::FunctionRef<absl::Status(const ElementSource&)> body) {
  KernelCall inner;
  inner.program = call.program;
  inner.inputs.assign(call.inputs.begin() + 1, call.inputs.end());
  inner.outputs.push_back(call.inputs[0]);
  inner.scalars = call.scalars;
  const Plan* plan = nullptr;
  GW_RETURN_IF_ERROR(check_call(inner, &plan));
  if (plan->divisors != nullptr || plan->stores != 1) {
    return internal_error("[pointwise] not a program for a source: ", to_string(*call.program));
  }
  Launch launch;
  GW_RETURN_IF_ERROR(prepare(inner, *plan, false, launch));
  std::optional<Scratch> straight;
  if (int64_t bytes = straight_bytes(launch); bytes > 0) {
    straight.emplace(bytes);
    if (straight->data() != nullptr) straighten(launch, straight->as<char>(), context.pool);
  }
  std::vector<Step> prologue, steps;
  choose_powers(inner, *plan, prologue, steps);
  launch.prologue = prologue.data();
  launch.steps = steps.data();
  return body(ProgramSource(launch));
}

absl::Status pointwise(const KernelCall& call, Context& context) {
  const Plan* plan = nullptr;
  GW_RETURN_IF_ERROR(check_call(call, &plan));
  const expr::Program& program = *call.program;
  if (call.outputs[program.stores[0].output].numel() == 0) return absl::OkStatus();
  Launch launch;
  GW_RETURN_IF_ERROR(prepare(call, *plan, false, launch));
  if (plan->divisors != nullptr) {
    GW_RETURN_IF_ERROR(check_divisors(call, *plan->divisors, context));
  }
  if (plan->plain_copy) {
    const TileOperand &from = launch.operands[0], &to = launch.operands[1];
    if (from.layout == Layout::kDense && to.layout == Layout::kDense) {
      copy_dense(launch, context);
      return absl::OkStatus();
    }
    if (from.data != to.data && transpose_copy(launch.space, from, to, context.pool)) {
      return absl::OkStatus();
    }
  }
  std::optional<Scratch> straight;
  if (int64_t bytes = straight_bytes(launch); bytes > 0) {
    straight.emplace(bytes);
    if (straight->data() != nullptr) straighten(launch, straight->as<char>(), context.pool);
  }
  launch.stream = worth_streaming(launch);
  if (plan->powers.empty()) return run_launch(launch, context);
  std::vector<Step> prologue, steps;
  choose_powers(call, *plan, prologue, steps);
  launch.prologue = prologue.data();
  launch.steps = steps.data();
  return run_launch(launch, context);
}

GW_CPU_KERNEL("pointwise", pointwise);

}  // namespace gradwire::cpu
