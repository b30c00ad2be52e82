#include "server/decode.h"

#include "kernels/error.h"
#include "server/limits.h"
#include "server/wire.h"

namespace gradwire::server {
namespace {

// Field numbers of frame.proto and session.proto.
enum FrameField : uint32_t {
  kFirst = 1,
  kHeads = 2,
  kIds = 3,
  kTape = 4,
  kSiteEntries = 5,
  kAcknowledged = 6,
};
enum SiteField : uint32_t { kSiteId = 1, kSiteText = 2 };
enum RequestField : uint32_t { kStart = 1, kFrame = 2 };

// Bits of a head.
constexpr int kFormShift = 16;
constexpr int kTapeShift = 20;
constexpr int kReservedShift = 21;
constexpr int kInputsShift = 24;
constexpr int kOutputsShift = 36;
constexpr int kSiteShift = 48;
constexpr uint64_t kIdsMask = 0xfff;

absl::Status malformed() {
  return value_error("frame is malformed");
}

// Appends a packed run of fixed64, or one that came unpacked.
absl::Status read_numbers(WireReader& reader, WireType type, std::vector<uint64_t>* numbers) {
  if (type == WireType::kFixed64) {
    uint64_t value;
    if (!reader.fixed64(&value)) return malformed();
    numbers->push_back(value);
    return absl::OkStatus();
  }
  std::string_view run;
  if (type != WireType::kBytes || !reader.bytes(&run)) return malformed();
  if (run.size() % 8 != 0) return value_error("frame is malformed: half an id or head");
  const size_t old = numbers->size();
  numbers->resize(old + run.size() / 8);
  if (!run.empty()) std::memcpy(numbers->data() + old, run.data(), run.size());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<StreamParts> split_stream_request(std::string_view message) {
  if (message.size() > kFrameBytes) {
    return value_error("a message of ", message.size(), " bytes is over the limit of ",
                       kFrameBytes);
  }
  StreamParts parts;
  WireReader reader(message);
  while (!reader.done()) {
    uint32_t field;
    WireType type;
    if (!reader.tag(&field, &type)) return value_error("stream request is malformed");
    if (field == kStart || field == kFrame) {
      std::string_view& part = field == kStart ? parts.start : parts.frame;
      if (type != WireType::kBytes || part.data() != nullptr || !reader.bytes(&part)) {
        return value_error("stream request is malformed");
      }
    } else if (!reader.skip(type)) {
      return value_error("stream request is malformed");
    }
  }
  return parts;
}

void SiteTable::set(uint16_t id, std::string_view text) {
  if (id >= sites_.size()) sites_.resize(id + 1);
  sites_[id] = text;
}

absl::Status FrameDecoder::parse_site(std::string_view message) {
  uint64_t id = 0;
  std::string_view text;
  WireReader reader(message);
  while (!reader.done()) {
    uint32_t field;
    WireType type;
    if (!reader.tag(&field, &type)) return malformed();
    bool good;
    if (field == kSiteId && type == WireType::kVarint) {
      good = reader.varint(&id);
    } else if (field == kSiteText && type == WireType::kBytes) {
      good = reader.bytes(&text);
    } else {
      good = reader.skip(type);
    }
    if (!good) return malformed();
  }
  if (id == 0 || id > kSites) return value_error("site ", id, " is not between 1 and ", kSites);
  if (text.size() > kSiteBytes) {
    return value_error("site ", id, " has ", text.size(), " bytes, the limit is ", kSiteBytes);
  }
  new_sites_.emplace_back(static_cast<uint16_t>(id), text);
  return absl::OkStatus();
}

absl::Status FrameDecoder::parse(std::string_view frame) {
  first_ = 0;
  heads_.clear();
  ids_.clear();
  tape_ = {};
  new_sites_.clear();
  WireReader reader(frame);
  while (!reader.done()) {
    uint32_t field;
    WireType type;
    if (!reader.tag(&field, &type)) return malformed();
    bool good = true;
    std::string_view part;
    if (field == kFirst && type == WireType::kVarint) {
      good = reader.varint(&first_);
    } else if (field == kHeads) {
      GW_RETURN_IF_ERROR(read_numbers(reader, type, &heads_));
    } else if (field == kIds) {
      GW_RETURN_IF_ERROR(read_numbers(reader, type, &ids_));
    } else if (field == kTape && type == WireType::kBytes) {
      good = reader.bytes(&tape_);
    } else if (field == kSiteEntries && type == WireType::kBytes) {
      if (!reader.bytes(&part)) return malformed();
      if (new_sites_.size() == kSites)
        return value_error("frame sets more than ", kSites, " sites");
      GW_RETURN_IF_ERROR(parse_site(part));
    } else {
      good = reader.skip(type);
    }
    if (!good) return malformed();
  }
  return absl::OkStatus();
}

absl::Status FrameDecoder::bind() {
  commands_.resize(heads_.size());
  const uint64_t* ids = ids_.data();
  size_t ids_left = ids_.size();
  std::span<const uint8_t> tape(reinterpret_cast<const uint8_t*>(tape_.data()), tape_.size());
  for (size_t i = 0; i < heads_.size(); ++i) {
    const uint64_t head = heads_[i];
    Command& command = commands_[i];
    const uint32_t form = head >> kFormShift & 0xf;
    if (form > 2 || (head >> kReservedShift & 7) != 0) {
      return value_error("head of command ", first_ + i, " has bits that mean nothing");
    }
    const size_t inputs = head >> kInputsShift & kIdsMask;
    const size_t outputs = head >> kOutputsShift & kIdsMask;
    if (inputs + outputs > ids_left) {
      return value_error("command ", first_ + i, " has ", inputs + outputs, " ids, the frame has ",
                         ids_left, " left");
    }
    command.number = first_ + i;
    command.op = static_cast<uint16_t>(head);
    command.form = static_cast<Form>(form);
    command.inputs = {ids, inputs};
    command.outputs = {ids + inputs, outputs};
    command.tape = {};
    command.site = nullptr;
    ids += inputs + outputs;
    ids_left -= inputs + outputs;
    if (head >> kTapeShift & 1) {
      absl::StatusOr<size_t> length = tape_length(tape);
      if (!length.ok()) {
        return value_error("command ", first_ + i, ": ", length.status().message());
      }
      command.tape = tape.first(*length);
      tape = tape.subspan(*length);
    }
  }
  if (ids_left != 0) return value_error("frame has ", ids_left, " ids that no command takes");
  if (!tape.empty()) {
    return value_error("frame has ", tape.size(), " bytes of attributes that no command takes");
  }
  return absl::OkStatus();
}

absl::Status FrameDecoder::decode(std::string_view frame, SiteTable& sites, uint64_t next) {
  commands_.clear();
  GW_RETURN_IF_ERROR(parse(frame));
  if (first_ == 0) first_ = next;
  if (heads_.size() > kFrameCommands) {
    return value_error("frame has ", heads_.size(), " commands, the limit is ", kFrameCommands);
  }
  if (!heads_.empty() && (first_ == 0 || first_ > UINT64_MAX / 2)) {
    return value_error("frame starts at command ", first_, "; numbers start at 1");
  }
  if (absl::Status status = bind(); !status.ok()) {
    commands_.clear();
    return status;
  }
  for (auto& [id, text] : new_sites_) sites.set(id, text);
  for (size_t i = 0; i < heads_.size(); ++i) {
    if (const uint64_t site = heads_[i] >> kSiteShift) {
      commands_[i].site = sites.find(static_cast<uint16_t>(site));
    }
  }
  return absl::OkStatus();
}

uint64_t peek_acknowledged(std::string_view frame) {
  uint64_t acknowledged = 0;
  WireReader reader(frame);
  while (!reader.done()) {
    uint32_t field;
    WireType type;
    if (!reader.tag(&field, &type)) return 0;
    if (field == kAcknowledged && type == WireType::kVarint) {
      if (!reader.varint(&acknowledged)) return 0;
    } else if (!reader.skip(type)) {
      return 0;
    }
  }
  return acknowledged;
}

}  // namespace gradwire::server
