#include "engine/ops/bind.h"

namespace gradwire {
namespace {

absl::Status mismatch(const OpDef& op, const Param& p, std::string_view got) {
  return type_error("[", op.name, "] argument '", p.name, "' must be ", p.type_text, ", not ",
                    std::string(got));
}

std::string_view kind_name(const Attribute& a) {
  static constexpr std::string_view kNames[] = {
      "None",  "bool", "int", "float", "dtype", "str", "a list of ints", "a list of floats",
      "a list"};
  return kNames[a.value.index()];
}

// Checks one attribute and brings it to its param's form (an int for float, one int for int[]).
absl::Status coerce(const OpDef& op, const Param& p, Attribute* a) {
  if (a->none()) {
    if (p.optional || p.type == ParamType::kOperand) return absl::OkStatus();
    return mismatch(op, p, "None");
  }
  switch (p.type) {
    case ParamType::kOperand:
    case ParamType::kScalar:
      if (a->is_number()) return absl::OkStatus();
      break;
    case ParamType::kInt:
      if (a->is_int()) return absl::OkStatus();
      if (a->is_bool()) {
        *a = Attribute(a->as_int());
        return absl::OkStatus();
      }
      break;
    case ParamType::kFloat:
      if (a->is_number()) {
        *a = Attribute(a->as_double());
        return absl::OkStatus();
      }
      break;
    case ParamType::kBool:
      if (a->is_bool()) return absl::OkStatus();
      break;
    case ParamType::kString:
    case ParamType::kDevice:
    case ParamType::kBytes:
      if (a->is_string()) return absl::OkStatus();
      break;
    case ParamType::kDType:
      if (is_valid(a->as_dtype())) return absl::OkStatus();
      break;
    case ParamType::kInts:
      if (std::holds_alternative<IntList>(a->value)) return absl::OkStatus();
      if (a->is_int()) {
        *a = Attribute(IntList{a->as_int()});
        return absl::OkStatus();
      }
      if (auto* list = std::get_if<AttributeList>(&a->value)) {
        IntList ints;
        for (const Attribute& item : *list) {
          if (!item.is_int()) return mismatch(op, p, kind_name(item));
          ints.push_back(item.as_int());
        }
        *a = Attribute(std::move(ints));
        return absl::OkStatus();
      }
      break;
    case ParamType::kFloats:
      if (std::holds_alternative<FloatList>(a->value)) return absl::OkStatus();
      if (a->is_number()) {
        *a = Attribute(FloatList{a->as_double()});
        return absl::OkStatus();
      }
      if (auto* ints = std::get_if<IntList>(&a->value)) {
        *a = Attribute(FloatList(ints->begin(), ints->end()));
        return absl::OkStatus();
      }
      if (auto* list = std::get_if<AttributeList>(&a->value)) {
        FloatList floats;
        for (const Attribute& item : *list) {
          if (!item.is_number()) return mismatch(op, p, kind_name(item));
          floats.push_back(item.as_double());
        }
        *a = Attribute(std::move(floats));
        return absl::OkStatus();
      }
      break;
    default:
      return absl::OkStatus();
  }
  return mismatch(op, p, kind_name(*a));
}

absl::Status unknown_id(const OpDef& op, std::string_view name, uint64_t id) {
  return runtime_error("[", op.name, "] argument '", std::string(name), "': tensor id ", id,
                       " was released or never existed");
}

absl::Status take_tensor(const Slot& slot, const OpDef& op, const Param& p, uint64_t id,
                         Call* call) {
  if (id == 0) {
    if (!p.optional && p.type != ParamType::kOperand) return mismatch(op, p, "None");
    call->inputs.push_back(nullptr);
    return absl::OkStatus();
  }
  const Tensor* t = slot.find(id);
  if (!t) return unknown_id(op, p.name, id);
  call->inputs.push_back(*t);
  return absl::OkStatus();
}

}  // namespace

absl::Status bind(const Slot& slot, const OpDef& op, const Command& command, Call* call) {
  const Signature& signature = op.signature;
  call->op = &op;
  call->form = command.form;
  call->wanted = static_cast<int>(command.outputs.size());
  if (command.form == Form::kInPlace && !op.in_place) {
    return type_error("[", op.name, "] has no in-place form");
  }
  if (command.form == Form::kOut && !op.out) {
    return type_error("[", op.name, "] does not support the out= argument");
  }
  AttributeList given;
  if (!command.tape.empty()) given = read_tape(command.tape);
  size_t skip = 0;
  if (signature.lists > 1) {
    int64_t listed = 0;
    for (int i = 0; i < signature.lists; ++i) {
      if (static_cast<size_t>(i) >= given.size() || !given[i].is_int() || given[i].as_int() < 0 ||
          given[i].as_int() > static_cast<int64_t>(command.inputs.size())) {
        return type_error("[", op.name, "] the lengths of its ", signature.lists,
                          " tensor lists must come first");
      }
      call->list_sizes.push_back(static_cast<int>(given[i].as_int()));
      listed += given[i].as_int();
    }
    if (listed + signature.single_ids != static_cast<int64_t>(command.inputs.size())) {
      return type_error("[", op.name, "] got ", command.inputs.size(), " ids for lists of ", listed,
                        " in all and ", signature.single_ids, " more");
    }
    skip = signature.lists;
  } else {
    int64_t rest = static_cast<int64_t>(command.inputs.size()) - signature.single_ids;
    if (signature.lists == 1 ? rest < 0 : rest != 0) {
      return type_error("[", op.name, "] takes ", signature.single_ids, " tensors",
                        signature.lists ? " and a list" : "", ", got ", command.inputs.size());
    }
    if (signature.lists == 1) call->list_sizes.push_back(static_cast<int>(rest));
  }
  if (given.size() - skip > static_cast<size_t>(signature.attributes)) {
    return type_error("[", op.name, "] takes ", signature.attributes, " attributes, got ",
                      given.size() - skip);
  }
  call->attributes.resize(signature.attributes);
  size_t next = 0, list = 0, objects = 0;
  for (const Param& p : signature.params) {
    if (p.type == ParamType::kTensorList) {
      for (int i = 0; i < call->list_sizes[list]; ++i) {
        uint64_t id = command.inputs[next++];
        GW_RETURN_IF_ERROR(take_tensor(slot, op, p, id, call));
      }
      ++list;
    } else if (p.type == ParamType::kObject) {
      // Objects come first among the ids, so that they are one span.
      call->object_ids = command.inputs.subspan(0, ++objects);
      ++next;
    } else if (p.takes_ids()) {
      GW_RETURN_IF_ERROR(take_tensor(slot, op, p, command.inputs[next++], call));
    }
    if (p.attribute < 0) continue;
    Attribute& a = call->attributes[p.attribute];
    size_t at = p.attribute + skip;
    if (at < given.size()) {
      a = std::move(given[at]);
      if (p.type == ParamType::kOperand && call->inputs.back()) continue;
      GW_RETURN_IF_ERROR(coerce(op, p, &a));
      if (p.type == ParamType::kOperand && a.none() && !p.optional) return mismatch(op, p, "None");
    } else if (p.has_default) {
      a = p.default_value;
    } else if (p.type == ParamType::kOperand ? !call->inputs.back() && !p.optional : !p.optional) {
      return type_error("[", op.name, "] missing argument '", p.name, "'");
    }
  }
  if (command.form == Form::kOut) {
    for (uint64_t id : command.outputs) {
      const Tensor* t = slot.find(id);
      if (!t) return unknown_id(op, "out", id);
      call->outs.push_back(*t);
    }
  }
  return absl::OkStatus();
}

}  // namespace gradwire
