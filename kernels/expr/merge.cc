#include <algorithm>
#include <bit>

#include "kernels/expr/expr.h"
#include "kernels/expr/intern.h"

namespace gradwire::expr {
namespace {

class Merger {
 public:
  Program run(std::span<const Member> members) {
    for (const Member& member : members) add(member);
    if (!out_.can_fail) drop_dead();
    out_.registers = next_;
    return std::move(out_);
  }

 private:
  // What a member gave: its register, and the same as a later op would load it.
  struct Value {
    DType stored;
    Register reg;
    int rounded = -1;
  };

  Register fresh() { return static_cast<Register>(next_++); }

  // A register loaded from, or rounded to, that dtype holds only its values.
  bool holds(Register reg, DType dtype) const {
    for (const LoadSlot& slot : out_.loads) {
      if (slot.reg == reg) return slot.stored == dtype;
    }
    for (const Instruction& i : out_.code) {
      if (i.dst == reg) return i.prim == Prim::kRoundTo16 && i.from == dtype;
    }
    return false;
  }

  Register rounded(Value& value) {
    if (value.rounded < 0) {
      value.rounded = value.reg;
      if (register_type(value.stored) != value.stored && !holds(value.reg, value.stored)) {
        Instruction round;
        round.prim = Prim::kRoundTo16;
        round.type = DType::kFloat32;
        round.from = value.stored;
        round.a = value.reg;
        round.dst = fresh();
        out_.code.push_back(round);
        value.rounded = round.dst;
      }
    }
    return static_cast<Register>(value.rounded);
  }

  Register load(int input, DType stored) {
    for (const LoadSlot& slot : out_.loads) {
      if (slot.input == input && slot.stored == stored) return slot.reg;
    }
    out_.inputs = std::max(out_.inputs, input + 1);
    out_.loads.push_back({static_cast<uint16_t>(input), stored, fresh()});
    return out_.loads.back().reg;
  }

  Register constant(const ConstantSlot& wanted) {
    for (const ConstantSlot& slot : out_.constants) {
      if (slot.type == wanted.type &&
          std::bit_cast<uint64_t>(slot.value) == std::bit_cast<uint64_t>(wanted.value)) {
        return slot.reg;
      }
    }
    out_.constants.push_back({wanted.value, wanted.type, fresh()});
    return out_.constants.back().reg;
  }

  void add(const Member& member) {
    const Program& p = *member.program;
    std::vector<Register> map(p.registers, 0);
    for (int input : member.inputs) out_.inputs = std::max(out_.inputs, input + 1);
    for (const LoadSlot& slot : p.loads) {
      int source = member.inputs[slot.input];
      map[slot.reg] = source >= 0 ? load(source, slot.stored) : rounded(values_[-1 - source]);
    }
    for (const ScalarSlot& slot : p.scalars) {
      map[slot.reg] = fresh();
      out_.scalars.push_back(
          {static_cast<uint16_t>(slot.scalar + out_.scalar_inputs), slot.type, map[slot.reg]});
    }
    out_.scalar_inputs += p.scalar_inputs;
    for (const ConstantSlot& slot : p.constants) map[slot.reg] = constant(slot);
    for (Instruction i : p.code) {
      i.a = map[i.a];
      i.b = map[i.b];
      i.c = map[i.c];
      Register dst = fresh();
      map[i.dst] = dst;
      i.dst = dst;
      out_.code.push_back(i);
    }
    const StoreSlot& store = p.stores[0];
    values_.push_back({store.stored, map[store.reg]});
    if (member.output >= 0) {
      out_.stores.push_back({static_cast<uint16_t>(member.output), store.stored, map[store.reg]});
      out_.outputs = std::max(out_.outputs, member.output + 1);
    }
    out_.can_fail |= p.can_fail;
  }

  // Forgets what no store needs: values of members that nobody asked for.
  void drop_dead() {
    std::vector<bool> live(next_, false);
    for (const StoreSlot& slot : out_.stores) live[slot.reg] = true;
    for (size_t i = out_.code.size(); i-- > 0;) {
      const Instruction& instruction = out_.code[i];
      if (!live[instruction.dst]) continue;
      for (Register r : {instruction.a, instruction.b, instruction.c}) live[r] = true;
    }
    std::erase_if(out_.code, [&](const Instruction& i) { return !live[i.dst]; });
    std::erase_if(out_.loads, [&](const LoadSlot& slot) { return !live[slot.reg]; });
    std::erase_if(out_.scalars, [&](const ScalarSlot& slot) { return !live[slot.reg]; });
    std::erase_if(out_.constants, [&](const ConstantSlot& slot) { return !live[slot.reg]; });
  }

  Program out_;
  std::vector<Value> values_;
  int next_ = 0;
};

}  // namespace

const Program* merge(std::span<const Member> members) {
  std::string key = "m";
  for (const Member& member : members) {
    append(key, member.program);
    append(key, member.output);
    append(key, static_cast<uint32_t>(member.inputs.size()));
    for (int input : member.inputs) append(key, input);
  }
  if (const Program* made = find_made(key)) return made;
  const Program* program = intern(Merger().run(members));
  remember_made(std::move(key), program);
  return program;
}

}  // namespace gradwire::expr
