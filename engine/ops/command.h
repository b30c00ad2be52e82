// One command as dispatch sees it, whether it came in a stream frame or as a readable message.
// Views only: everything points into the decoded frame and is valid during Dispatcher::apply.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/attribute.h"

namespace gradwire {

enum class Form : uint8_t { kPlain = 0, kInPlace = 1, kOut = 2 };

struct Command {
  uint64_t number = 0;  // position in the slot's order, from 1
  uint16_t op = 0;      // catalog number
  Form form = Form::kPlain;
  std::span<const uint64_t> inputs;
  std::span<const uint64_t> outputs;
  std::span<const uint8_t> tape;      // this command's attributes: a count byte and its values; may
                                      // be empty
  const std::string* site = nullptr;  // the user's own line, or null
};

inline constexpr int kTapeDepth = 8;

// Tags of values on the tape (proto frame.proto).
enum class TapeTag : uint8_t {
  kNone = 0,
  kFalse = 1,
  kTrue = 2,
  kInt = 3,
  kFloat = 4,
  kString = 5,
  kBytes = 6,
  kList = 7,
  kInts = 8,
  kDType = 9,
  kFloats = 10,
};

// Bytes that one command's attributes take at the start of `tape`, every count checked against
// what is left. Error: the tape is cut short, nests too deep or has an unknown tag.
absl::StatusOr<size_t> tape_length(std::span<const uint8_t> tape);

// The values of a tape that tape_length has passed. Strings and bytes both become std::string.
AttributeList read_tape(std::span<const uint8_t> tape);

// Appends one value to a tape (the count byte is the caller's).
void write_tape(const Attribute& value, std::string* tape);

}  // namespace gradwire
