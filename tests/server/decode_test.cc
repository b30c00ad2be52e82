#include "server/decode.h"

#include <gtest/gtest.h>

#include "server/limits.h"
#include "tests/server/loopback.h"

namespace gradwire::server {
namespace {

std::string tape_of(std::initializer_list<Attribute> values) {
  std::string tape(1, static_cast<char>(values.size()));
  for (const Attribute& value : values) write_tape(value, &tape);
  return tape;
}

v1::Frame rich_frame() {
  v1::Frame frame;
  frame.set_first(7);
  v1::Site* site = frame.add_sites();
  site->set_id(3);
  site->set_text("train.py:12 in main");
  add_command(&frame, 11, {1, 2}, {3}, tape_of({1, 2.5, "text", IntList{4, 5}}), 3);
  add_command(&frame, 12, {}, {4, 0});
  add_command(&frame, 13, {4}, {},
              tape_of({AttributeList{true, AttributeList{}}, DType::kInt64, {}, FloatList{1}}));
  return frame;
}

absl::Status decode(const std::string& bytes) {
  FrameDecoder decoder;
  SiteTable sites;
  return decoder.decode(bytes, sites, 1);
}

TEST(Decode, ReadsEverything) {
  const std::string bytes = rich_frame().SerializeAsString();
  FrameDecoder decoder;
  SiteTable sites;
  ASSERT_TRUE(decoder.decode(bytes, sites, 1).ok());
  const auto commands = decoder.commands();
  ASSERT_EQ(commands.size(), 3u);
  EXPECT_EQ(commands[0].number, 7u);
  EXPECT_EQ(commands[0].op, 11);
  EXPECT_EQ(commands[0].inputs.size(), 2u);
  EXPECT_EQ(commands[0].outputs[0], 3u);
  ASSERT_NE(commands[0].site, nullptr);
  EXPECT_EQ(*commands[0].site, "train.py:12 in main");
  EXPECT_EQ(commands[1].site, nullptr);
  EXPECT_TRUE(commands[1].tape.empty());
  AttributeList first = read_tape(commands[0].tape);
  ASSERT_EQ(first.size(), 4u);
  EXPECT_EQ(first[0].as_int(), 1);
  EXPECT_EQ(first[1].as_double(), 2.5);
  EXPECT_EQ(first[2].as_string(), "text");
  EXPECT_EQ(first[3].as_ints(), (IntList{4, 5}));
  AttributeList third = read_tape(commands[2].tape);
  EXPECT_EQ(third[0].as_list().size(), 2u);
  EXPECT_EQ(third[1].as_dtype(), DType::kInt64);
  EXPECT_TRUE(third[2].none());
}

TEST(Decode, SurvivesEveryTruncationAndEveryFlippedByte) {
  const std::string bytes = rich_frame().SerializeAsString();
  for (size_t size = 0; size < bytes.size(); ++size) decode(bytes.substr(0, size)).IgnoreError();
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (int flip = 1; flip < 256; ++flip) {
      std::string broken = bytes;
      broken[at] = static_cast<char>(broken[at] ^ flip);
      decode(broken).IgnoreError();
    }
  }
}

TEST(Decode, RefusesCountsThatLie) {
  v1::Frame frame;
  frame.set_first(1);
  add_command(&frame, 1, {1, 2, 3});
  frame.mutable_ids()->RemoveLast();
  EXPECT_FALSE(decode(frame.SerializeAsString()).ok());
  frame.add_ids(3);
  EXPECT_TRUE(decode(frame.SerializeAsString()).ok());
  frame.add_ids(4);
  EXPECT_FALSE(decode(frame.SerializeAsString()).ok());
  frame.mutable_ids()->RemoveLast();
  frame.set_tape("x");
  EXPECT_FALSE(decode(frame.SerializeAsString()).ok());
  frame.clear_tape();
  frame.set_heads(0, frame.heads(0) | uint64_t{1} << 22);
  EXPECT_FALSE(decode(frame.SerializeAsString()).ok());
}

TEST(Decode, RefusesTooMuch) {
  v1::Frame frame;
  frame.set_first(1);
  for (size_t i = 0; i <= kFrameCommands; ++i) add_command(&frame, 1);
  EXPECT_FALSE(decode(frame.SerializeAsString()).ok());
  v1::Frame sites;
  sites.add_sites()->set_id(65536);
  EXPECT_FALSE(decode(sites.SerializeAsString()).ok());
  sites.mutable_sites(0)->set_id(1);
  sites.mutable_sites(0)->set_text(std::string(kSiteBytes + 1, 'a'));
  EXPECT_FALSE(decode(sites.SerializeAsString()).ok());
  EXPECT_FALSE(split_stream_request(std::string(kFrameBytes + 1, 0)).ok());
}

TEST(Decode, RefusesTapeBombs) {
  auto length = [](const std::string& tape) {
    return tape_length({reinterpret_cast<const uint8_t*>(tape.data()), tape.size()}).ok();
  };
  const std::string huge("\xff\xff\xff\xff", 4);
  for (char tag : {5, 6, 7, 8, 10}) EXPECT_FALSE(length(std::string("\1") + tag + huge));
  EXPECT_FALSE(length(std::string("\1\x0b", 2)));
  EXPECT_FALSE(length(""));
  auto nested = [](int depth) {
    Attribute value;
    for (int i = 0; i < depth; ++i) value = AttributeList{value};
    return tape_of({value});
  };
  EXPECT_TRUE(length(nested(kTapeDepth)));
  EXPECT_FALSE(length(nested(kTapeDepth + 1)));
  EXPECT_FALSE(length(tape_of({AttributeList(1 << 17)})));
}

}  // namespace
}  // namespace gradwire::server
