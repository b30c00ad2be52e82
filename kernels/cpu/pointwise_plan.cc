#include "kernels/cpu/pointwise_plan.h"

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>

#include "absl/container/flat_hash_map.h"
#include "kernels/expr/prim.h"

namespace gradwire::cpu {
namespace {

using expr::Instruction;
using expr::Prim;
using expr::Program;

bool narrow_float(DType t) {
  return t == DType::kFloat16 || t == DType::kBFloat16;
}

// Rough costs on one core, for cutting work only.
double cost_of(Prim prim, DType type) {
  double width = static_cast<double>(dtype_size(type)) / 4;
  if (prim == Prim::kErfinv || prim == Prim::kLgamma || prim == Prim::kDigamma ||
      prim == Prim::kPolygamma) {
    return 50;
  }
  if (prim == Prim::kPow || prim == Prim::kAtan2) return is_floating(type) ? 3 * width : 3;
  if (prim >= Prim::kExp && prim <= Prim::kSigmoid) return 1.2 * width;
  if (prim == Prim::kFloorDiv || prim == Prim::kRemainder || prim == Prim::kFmod)
    return 1.5 * width;
  if (prim == Prim::kDiv || prim == Prim::kSqrt || prim == Prim::kRsqrt) return 0.25 * width;
  return 0.07 * width;
}

int pair_prim(Prim prim) {
  switch (prim) {
    case Prim::kAdd:
      return 0;
    case Prim::kSub:
      return 1;
    case Prim::kMul:
      return 2;
    case Prim::kDiv:
      return 3;
    default:
      return -1;
  }
}

class Compiler {
 public:
  Compiler(const Program& program, const TileOps& ops) : p_(program), ops_(ops) {}

  std::unique_ptr<Plan> run() {
    plan_ = std::make_unique<Plan>();
    plan_->program = &p_;
    plan_->ops = &ops_;
    plan_->loads = static_cast<int>(p_.loads.size());
    plan_->stores = static_cast<int>(p_.stores.size());
    values_.assign(p_.registers, Value{});
    widest_ = 1;
    place_loads();
    place_uniforms();
    for (const Instruction& i : p_.code) {
      if (!emit_instruction(i)) return nullptr;
    }
    emit_stores();
    join_pairs();
    find_lifetimes();
    mark_direct_stores();
    assign_slots();
    plan_->slot_bytes = kTile * widest_;
    return std::move(plan_);
  }

 private:
  // Where a value lives: a fixed buffer, or a slot assigned by liveness.
  struct Value {
    int size = 0;     // bytes of an element
    int buffer = -1;  // fixed when >= 0
    int load = -1;    // a 16-bit load not widened yet
    bool uniform = false;
    int uses = 0;
    int def = -1;  // the draft that defines it
    int last_use = -1;
  };
  // A step before its buffers are known; arguments are values, or fixed buffers as -2 - buffer.
  struct Draft {
    TileFn fn;
    int dst;
    std::array<int, 3> args{-1, -1, -1};
    int pairs_as = -1;  // its place among the primitives of pairs
    DType type = DType::kNone;
    int scalar_power = -1;  // the call scalar that is its exponent
  };
  static int fixed(int buffer) { return -2 - buffer; }

  void place_loads() {
    for (int i = 0; i < plan_->loads; ++i) {
      const expr::LoadSlot& slot = p_.loads[i];
      Value& v = values_[slot.reg];
      v.size = static_cast<int>(dtype_size(expr::register_type(slot.stored)));
      note_size(v.size);
      if (narrow_float(slot.stored)) {
        v.load = i;
      } else {
        v.buffer = i;
      }
      plan_->bytes += static_cast<int>(dtype_size(slot.stored));
    }
  }

  void place_uniforms() {
    for (const expr::ScalarSlot& s : p_.scalars) {
      place_uniform(s.reg, s.type);
      plan_->uniforms.push_back({buffer16(s.reg), s.scalar, 0, s.type});
      scalar_of_[s.reg] = s.scalar;
    }
    for (const expr::ConstantSlot& c : p_.constants) {
      place_uniform(c.reg, c.type);
      plan_->uniforms.push_back({buffer16(c.reg), -1, c.value, c.type});
      constant_of_[c.reg] = c.value;
    }
  }

  void place_uniform(int reg, DType type) {
    Value& v = values_[reg];
    v.size = static_cast<int>(dtype_size(type));
    v.uniform = true;
    v.buffer = new_slot();
    note_size(v.size);
  }

  uint16_t buffer16(int reg) const { return static_cast<uint16_t>(values_[reg].buffer); }
  int new_slot() { return plan_->loads + plan_->stores + plan_->slots++; }
  void note_size(int size) { widest_ = std::max(widest_, size); }

  Draft& draft(TileFn fn, int dst, std::array<int, 3> args) {
    drafts_.push_back({fn, dst, args});
    for (int arg : args) {
      if (arg >= 0) ++values_[arg].uses;
    }
    return drafts_.back();
  }

  // Joins a step to the one that alone uses its result.
  void join_pairs() {
    std::vector<int> def(values_.size(), -1);
    std::vector<bool> joined(drafts_.size(), false);
    for (size_t j = 0; j < drafts_.size(); ++j) {
      Draft& second = drafts_[j];
      for (int k = 0; k < 2 && second.pairs_as >= 0; ++k) {
        int value = second.args[k];
        if (value < 0 || def[value] < 0 || values_[value].uses != 1) continue;
        Draft& first = drafts_[def[value]];
        if (first.pairs_as < 0 || first.type != second.type) continue;
        second.fn = ops_.pair[static_cast<int>(first.type)][first.pairs_as][second.pairs_as][k];
        second.args = {first.args[0], first.args[1], second.args[1 - k]};
        second.pairs_as = -1;
        joined[def[value]] = true;
      }
      if (second.dst >= 0) def[second.dst] = static_cast<int>(j);
    }
    std::vector<Draft> kept;
    int stores_begin = 0;
    for (size_t j = 0; j < drafts_.size(); ++j) {
      if (joined[j]) continue;
      kept.push_back(drafts_[j]);
      stores_begin += static_cast<int>(j) < stores_begin_;
    }
    stores_begin_ = stores_begin;
    drafts_ = std::move(kept);
  }

  void find_lifetimes() {
    for (size_t d = 0; d < drafts_.size(); ++d) {
      int index = static_cast<int>(d);
      if (drafts_[d].dst >= 0) values_[drafts_[d].dst].def = index;
      for (int arg : drafts_[d].args) {
        if (arg >= 0) values_[arg].last_use = index;
        bool from_load =
            (arg >= 0 && is_raw_load(values_[arg].buffer)) || (arg <= -2 && is_raw_load(-2 - arg));
        if (from_load) last_load_use_ = index;
      }
    }
  }

  bool is_raw_load(int buffer) const { return buffer >= 0 && buffer < plan_->loads; }

  void widen_if_needed(int reg) {
    Value& v = values_[reg];
    if (v.load < 0) return;
    int load = v.load;
    v.load = -1;
    draft(ops_.widen[static_cast<int>(p_.loads[load].stored)], reg, {fixed(load), -1, -1});
    plan_->cost += 0.05;
  }

  TileFn function_of(const Instruction& i) const {
    int type = static_cast<int>(i.type);
    if (i.prim == Prim::kCast) return ops_.cast[static_cast<int>(i.from)][type];
    if (i.prim == Prim::kRoundTo16) return ops_.round16[static_cast<int>(i.from)];
    return ops_.code[static_cast<int>(i.prim)][type];
  }

  bool emit_instruction(const Instruction& i) {
    TileFn fn = function_of(i);
    if (fn == nullptr) return false;
    int count = expr::arity(i.prim);
    std::array<int, 3> args{i.a, i.b, i.c};
    bool uniform = true;
    for (int k = 0; k < count; ++k) {
      widen_if_needed(args[k]);
      uniform &= values_[args[k]].uniform;
    }
    for (int k = count; k < 3; ++k) args[k] = -1;
    int scalar_power = -1;
    if (i.prim == Prim::kPow && is_floating(i.type)) {
      if (auto it = constant_of_.find(i.b); it != constant_of_.end()) {
        if (TileFn special = power_function(ops_, i.type, it->second)) fn = special;
      }
      if (auto it = scalar_of_.find(i.b); it != scalar_of_.end()) scalar_power = it->second;
    }
    Value& v = values_[i.dst];
    v.size = expr::gives_bool(i.prim) ? 1 : static_cast<int>(dtype_size(i.type));
    note_size(v.size);
    if (uniform) {
      v.uniform = true;
      v.buffer = new_slot();
      Step step{fn, buffer16(i.dst), 0, 0, 0};
      uint16_t* to[] = {&step.a, &step.b, &step.c};
      for (int k = 0; k < count; ++k) *to[k] = buffer16(args[k]);
      if (scalar_power >= 0) add_power(true, plan_->prologue.size(), scalar_power, i.type);
      plan_->prologue.push_back(step);
      return true;
    }
    Draft& d = draft(fn, i.dst, args);
    d.type = i.type;
    d.scalar_power = scalar_power;
    if (is_floating(i.type)) d.pairs_as = pair_prim(i.prim);
    plan_->cost += cost_of(i.prim, i.type);
    return true;
  }

  void add_power(bool in_prologue, size_t step, int scalar, DType type) {
    plan_->powers.push_back({in_prologue, static_cast<uint16_t>(step), scalar, type});
  }

  // The load that a store writes back unchanged, or -1.
  int stored_load(const expr::StoreSlot& store) const {
    for (int i = 0; i < plan_->loads; ++i) {
      if (p_.loads[i].reg == store.reg && p_.loads[i].stored == store.stored) return i;
    }
    return -1;
  }

  // Stores that need a step of their own: after all others, so that a tile is read before it is
  // written. Several of them first put aside what they take from loads.
  void emit_stores() {
    int count = plan_->stores;
    std::vector<int> source(count);
    for (int s = 0; s < count; ++s) {
      const expr::StoreSlot& store = p_.stores[s];
      int size = static_cast<int>(dtype_size(store.stored));
      plan_->bytes += size;
      int load = stored_load(store);
      if (load >= 0 && count > 1) {
        int aside = static_cast<int>(values_.size());
        values_.emplace_back();
        values_.back().size = size;
        draft(ops_.copy[size], aside, {fixed(load), -1, -1});
        source[s] = aside;
      } else if (load >= 0) {
        source[s] = fixed(load);
      } else {
        widen_if_needed(store.reg);
        source[s] = store.reg;
      }
    }
    stores_begin_ = static_cast<int>(drafts_.size());
    for (int s = 0; s < count; ++s) {
      const expr::StoreSlot& store = p_.stores[s];
      bool raw = source[s] < 0 || source[s] >= p_.registers;
      TileFn fn = !raw && narrow_float(store.stored) ? ops_.narrow[static_cast<int>(store.stored)]
                                                     : ops_.copy[dtype_size(store.stored)];
      draft(fn, fixed(plan_->loads + s), {source[s], -1, -1});
    }
    plan_->plain_copy =
        drafts_.size() == 1 && count == 1 && source[0] < -1 && plan_->program->loads.size() == 1;
    plan_->cost += 0.025 * plan_->bytes;
  }

  // A value whose only store is a copy is computed in the output itself, when nothing reads a load
  // after that.
  void mark_direct_stores() {
    std::vector<Draft> kept(drafts_.begin(), drafts_.begin() + stores_begin_);
    for (size_t d = stores_begin_; d < drafts_.size(); ++d) {
      const Draft& store = drafts_[d];
      int value = store.args[0];
      bool copy = value >= 0 && store.fn == ops_.copy[values_[value].size];
      if (copy && values_[value].buffer < 0 && values_[value].def >= last_load_use_) {
        values_[value].buffer = -2 - store.dst;
      } else {
        kept.push_back(store);
      }
    }
    drafts_ = std::move(kept);
  }

  void assign_slots() {
    std::vector<int> free;
    for (size_t d = 0; d < drafts_.size(); ++d) {
      const Draft& draft = drafts_[d];
      Step step{draft.fn, 0, 0, 0, 0};
      uint16_t* to[] = {&step.a, &step.b, &step.c};
      std::vector<int> freed_later;
      int dst_size = draft.dst >= 0 ? values_[draft.dst].size : 0;
      for (int k = 0; k < 3; ++k) {
        int arg = draft.args[k];
        if (arg == -1) continue;
        *to[k] = static_cast<uint16_t>(arg < 0 ? -2 - arg : values_[arg].buffer);
        if (arg < 0 || !owned_[arg] || values_[arg].last_use != static_cast<int>(d)) continue;
        owned_[arg] = false;
        (values_[arg].size == dst_size ? free : freed_later).push_back(values_[arg].buffer);
      }
      if (draft.dst < 0) {
        step.dst = static_cast<uint16_t>(-2 - draft.dst);
      } else {
        Value& v = values_[draft.dst];
        if (v.buffer < 0) {
          if (free.empty()) free.push_back(new_slot());
          v.buffer = free.back();
          free.pop_back();
          owned_[draft.dst] = true;
        }
        step.dst = static_cast<uint16_t>(v.buffer);
      }
      free.insert(free.end(), freed_later.begin(), freed_later.end());
      if (draft.scalar_power >= 0) {
        add_power(false, plan_->steps.size(), draft.scalar_power, draft.type);
      }
      plan_->steps.push_back(step);
    }
  }

  const Program& p_;
  const TileOps& ops_;
  std::unique_ptr<Plan> plan_;
  std::vector<Value> values_;
  std::vector<Draft> drafts_;
  absl::flat_hash_map<int, int> scalar_of_;
  absl::flat_hash_map<int, double> constant_of_;
  absl::flat_hash_map<int, bool> owned_;
  int last_load_use_ = -1;
  int stores_begin_ = 0;
  int widest_ = 1;
};

// What the divisors of a Program depend on, ending in "some divisor is zero".
Program divisor_program(const Program& p) {
  Program out;
  out.inputs = p.inputs;
  out.scalar_inputs = p.scalar_inputs;
  out.outputs = 1;
  std::vector<bool> needed(p.registers, false);
  std::vector<const Instruction*> divisions;
  for (const Instruction& i : p.code) {
    bool divides = i.prim == Prim::kFloorDiv || i.prim == Prim::kRemainder || i.prim == Prim::kFmod;
    if (!divides || !is_integral(i.type)) continue;
    divisions.push_back(&i);
    needed[i.b] = true;
  }
  for (auto i = p.code.rbegin(); i != p.code.rend(); ++i) {
    if (!needed[i->dst]) continue;
    const expr::Register args[] = {i->a, i->b, i->c};
    for (int k = 0; k < expr::arity(i->prim); ++k) needed[args[k]] = true;
    out.code.push_back(*i);
  }
  std::reverse(out.code.begin(), out.code.end());
  for (const expr::LoadSlot& s : p.loads) {
    if (needed[s.reg]) out.loads.push_back(s);
  }
  for (const expr::ScalarSlot& s : p.scalars) {
    if (needed[s.reg]) out.scalars.push_back(s);
  }
  for (const expr::ConstantSlot& s : p.constants) {
    if (needed[s.reg]) out.constants.push_back(s);
  }
  int next = p.registers;
  int any = -1;
  for (const Instruction* division : divisions) {
    expr::Register zero = static_cast<expr::Register>(next++);
    out.constants.push_back({0.0, division->type, zero});
    Instruction equal{Prim::kEq, division->type};
    equal.dst = static_cast<expr::Register>(next++);
    equal.a = division->b;
    equal.b = zero;
    out.code.push_back(equal);
    if (any < 0) {
      any = equal.dst;
      continue;
    }
    Instruction either{Prim::kLogicalOr, DType::kBool};
    either.dst = static_cast<expr::Register>(next++);
    either.a = static_cast<expr::Register>(any);
    either.b = equal.dst;
    out.code.push_back(either);
    any = either.dst;
  }
  out.stores.push_back({0, DType::kBool, static_cast<expr::Register>(any)});
  out.registers = next;
  return out;
}

const Plan* compile(const Program& program, const TileOps& ops) {
  std::unique_ptr<Plan> plan = Compiler(program, ops).run();
  if (plan == nullptr) return nullptr;
  if (program.can_fail) {
    // Plans live for ever, and so does what they point to.
    plan->divisors = Compiler(*new Program(divisor_program(program)), ops).run().release();
    if (plan->divisors == nullptr) return nullptr;
  }
  return plan.release();
}

using Key = std::pair<const Program*, const TileOps*>;

const Plan* plan_slowly(const Program& program, const TileOps& ops) {
  static std::mutex* mutex = new std::mutex;
  static auto* plans = new absl::flat_hash_map<Key, const Plan*>;
  std::lock_guard lock(*mutex);
  auto [it, made] = plans->try_emplace(Key(&program, &ops), nullptr);
  if (made) it->second = compile(program, ops);
  return it->second;
}

}  // namespace

TileFn power_function(const TileOps& ops, DType type, double exponent) {
  auto of = [&](Prim prim) { return ops.code[static_cast<int>(prim)][static_cast<int>(type)]; };
  if (exponent == 1) return ops.copy[dtype_size(type)];
  if (exponent == 2) return of(Prim::kSquare);
  if (exponent == 3) return ops.cube[static_cast<int>(type)];
  if (exponent == 0.5) return of(Prim::kSqrt);
  if (exponent == -0.5) return of(Prim::kRsqrt);
  if (exponent == -1) return of(Prim::kReciprocal);
  return nullptr;
}

const Plan* plan_of(const Program& program) {
  struct Recent {
    const Program* program = nullptr;
    const TileOps* ops = nullptr;
    const Plan* plan = nullptr;
  };
  constexpr size_t kRecent = 256;
  static thread_local std::array<Recent, kRecent> cache;
  const TileOps& ops = tile_ops();
  Recent& recent = cache[program.hash % kRecent];
  if (recent.program != &program || recent.ops != &ops) {
    recent = {&program, &ops, plan_slowly(program, ops)};
  }
  return recent.plan;
}

}  // namespace gradwire::cpu
