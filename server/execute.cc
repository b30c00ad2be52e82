#include "server/execute.h"

#include "gradwire/v1/frame.pb.h"
#include "kernels/error.h"
#include "server/limits.h"

namespace gradwire::server {
namespace {

absl::StatusOr<Attribute> attribute_of(const v1::Value& value, int depth) {
  switch (value.value_case()) {
    case v1::Value::kBoolean:
      return Attribute(value.boolean());
    case v1::Value::kInteger:
      return Attribute(static_cast<int64_t>(value.integer()));
    case v1::Value::kNumber:
      return Attribute(value.number());
    case v1::Value::kText:
      return Attribute(value.text());
    case v1::Value::kData:
      return Attribute(value.data());
    case v1::Value::kInts:
      return Attribute(IntList(value.ints().values().begin(), value.ints().values().end()));
    case v1::Value::kFloats:
      return Attribute(FloatList(value.floats().values().begin(), value.floats().values().end()));
    case v1::Value::kDtype:
      if (value.dtype() < 0 || value.dtype() > 255) {
        return value_error("dtype ", value.dtype(), " does not exist");
      }
      return Attribute(static_cast<DType>(value.dtype()));
    case v1::Value::kList: {
      if (depth == kTapeDepth) {
        return value_error("attribute lists nest more than ", kTapeDepth, " deep");
      }
      AttributeList list;
      for (const v1::Value& item : value.list().values()) {
        absl::StatusOr<Attribute> attribute = attribute_of(item, depth + 1);
        if (!attribute.ok()) return attribute.status();
        list.push_back(*std::move(attribute));
      }
      return Attribute(std::move(list));
    }
    case v1::Value::VALUE_NOT_SET:
      break;
  }
  return Attribute();
}

absl::Status append(const v1::Command& command, const v1::Op& op, uint32_t site, v1::Frame* frame) {
  constexpr int kMaxIds = 0xfff;
  if (command.inputs_size() > kMaxIds || command.outputs_size() > kMaxIds ||
      command.attributes_size() > 255) {
    return value_error("[", op.name().c_str(), "] has more than ", kMaxIds,
                       " inputs or outputs, or more than 255 attributes");
  }
  if (command.form() > 2) {
    return value_error("[", op.name().c_str(), "] form ", command.form(), " does not exist");
  }
  const uint64_t attributes = command.attributes_size() > 0 ? 1 : 0;
  frame->add_heads(op.number() | uint64_t{command.form()} << 16 | attributes << 20 |
                   uint64_t(command.inputs_size()) << 24 | uint64_t(command.outputs_size()) << 36 |
                   uint64_t{site} << 48);
  for (uint64_t id : command.inputs()) frame->add_ids(id);
  for (uint64_t id : command.outputs()) frame->add_ids(id);
  if (attributes == 0) return absl::OkStatus();
  std::string* tape = frame->mutable_tape();
  tape->push_back(static_cast<char>(command.attributes_size()));
  for (const v1::Value& value : command.attributes()) {
    absl::StatusOr<Attribute> attribute = attribute_of(value, 0);
    if (!attribute.ok()) {
      return value_error("[", op.name().c_str(), "] ", attribute.status().message());
    }
    write_tape(*attribute, tape);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Parcel> execute_parcel(const OpList& catalog, const v1::ExecuteRequest& request) {
  if (static_cast<size_t>(request.commands_size()) > kFrameCommands) {
    return value_error("a call has ", request.commands_size(), " commands, the limit is ",
                       kFrameCommands);
  }
  v1::Frame frame;
  Parcel parcel;
  for (const v1::Command& command : request.commands()) {
    const uint64_t first = request.commands(0).number();
    if (command.number() != (first == 0 ? 0 : first + parcel.replies.size())) {
      return value_error("command number ", command.number(), " does not follow the one before");
    }
    const v1::Op* op = catalog.find(command.op());
    if (op == nullptr) return value_error("there is no op named '", command.op().c_str(), "'");
    uint32_t site = 0;
    if (!command.site().empty()) {
      site = static_cast<uint32_t>(frame.sites_size()) + 1;
      v1::Site* entry = frame.add_sites();
      entry->set_id(site);
      entry->set_text(command.site());
    }
    GW_RETURN_IF_ERROR(append(command, *op, site, &frame));
    parcel.replies.push_back(catalog.replies(*op));
    frame.set_first(first);
  }
  auto bytes = std::make_shared<std::string>(frame.SerializeAsString());
  parcel.frame = {*bytes, bytes};
  return parcel;
}

}  // namespace gradwire::server
