// Every row with arguments nobody should send: an error or a result, never an abort, and the
// session goes on.
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "engine/ops/catalog.h"
#include "tests/engine/session_client.h"

namespace gradwire::testing {
namespace {

class Hostile {
 public:
  explicit Hostile(SessionClient& client, uint64_t seed) : c_(client), random_(seed) {
    add(DType::kFloat32, {});
    add(DType::kFloat32, {0, 3});
    add(DType::kFloat32, {2, 3});
    add(DType::kFloat64, {2, 3, 4, 5});
    add(DType::kInt64, {3});
    add(DType::kBool, {2, 3});
    add(DType::kBFloat16, {1, 2, 6, 6});
    add(DType::kUInt8, {4});
    add(DType::kFloat32, {1, 2, 6, 6});
    add(DType::kFloat16, {2, 2, 2, 2, 2});
    ids_.push_back(c_.call("expand", {ids_[2]}, {IntList{4, 2, 3}}));
    ids_.push_back(c_.call("transpose", {ids_[2]}, {0, 1}));
    Id leaf = c_.floats({2, 3}, {1, 2, 3, 4, 5, 6});
    c_.send("session.requires_grad_", {leaf}, {true}, 0);
    ids_.push_back(leaf);
    ids_.push_back(c_.call("mul", {leaf, 0}, {{}, 2.0}));
    ids_.push_back(c_.call("optim.SGD", {leaf}, {0.1, 0.9, 0.0, 0.0, false, false}));
    ids_.push_back(c_.call("matmul", {ids_[0], ids_[1]}));  // poisoned
    ids_.push_back(Id{1} << 48 | 0xffffff);                 // never existed
  }

  void attack(const OpDef& row) {
    std::vector<Id> inputs;
    size_t most = row.signature.params.size() + 1;
    // Mostly as many ids as the row takes, sometimes not.
    size_t count = 0;
    for (const Param& p : row.signature.params) count += p.takes_ids() ? 1 : 0;
    if (row.signature.lists > 0) count += pick(3);
    if (pick(8) == 0) count = pick(most + 2);
    for (size_t i = 0; i < count; ++i) inputs.push_back(pick(9) == 0 ? 0 : ids_[pick(ids_.size())]);
    AttributeList attributes;
    if (row.signature.lists > 1 && pick(8)) {
      int64_t left = static_cast<int64_t>(count) - row.signature.single_ids;
      for (int i = 0; i < row.signature.lists; ++i) {
        int64_t take =
            i + 1 == row.signature.lists
                ? left
                : static_cast<int64_t>(pick(static_cast<uint64_t>(std::max<int64_t>(left, 0) + 1)));
        attributes.emplace_back(take);
        left -= take;
      }
    }
    for (const Param& p : row.signature.params) {
      if (p.attribute >= 0) attributes.push_back(pick(6) ? likely(p) : anything(0));
    }
    if (pick(6) == 0) attributes.resize(pick(attributes.size() + 1));
    int outputs = static_cast<int>(pick(4));
    std::vector<Id> made =
        c_.send(row.name, inputs, attributes, outputs, static_cast<Form>(pick(8) ? 0 : pick(3)));
    if (!made.empty() && pick(4) == 0) c_.read(made[0]);
    c_.release(made);
  }

 private:
  void add(DType dtype, const IntList& shape) {
    size_t bytes = dtype_size(dtype);
    for (int64_t s : shape) bytes *= static_cast<size_t>(s);
    std::string zeros(bytes, dtype == DType::kBool ? 1 : 0);
    ids_.push_back(c_.constant(dtype, shape, zeros.data(), zeros.size()));
  }
  uint64_t pick(uint64_t n) { return random_() % n; }

  int64_t integer() {
    switch (pick(8)) {
      case 0:
        return std::numeric_limits<int64_t>::min();
      case 1:
        return std::numeric_limits<int64_t>::max();
      case 2:
        return int64_t{1} << (20 + pick(40));
      case 3:
        return -static_cast<int64_t>(pick(5));
      default:
        return static_cast<int64_t>(pick(6));
    }
  }
  IntList integers() {
    IntList list;
    if (pick(8) == 0) {  // the sum wraps to a small number
      constexpr int64_t most = std::numeric_limits<int64_t>::max();
      return {most, most, static_cast<int64_t>(pick(6)) + 2};
    }
    for (size_t n = pick(pick(20) ? 5 : 40); n > 0; --n) list.push_back(integer());
    return list;
  }
  Attribute likely(const Param& p) {
    switch (p.type) {
      case ParamType::kInt:
        return integer();
      case ParamType::kBool:
        return pick(2) == 0;
      case ParamType::kFloat:
        return static_cast<double>(integer()) / 4;
      case ParamType::kInts:
        return integers();
      case ParamType::kDType:
        return static_cast<DType>(pick(11));
      case ParamType::kString:
        return pick(2) ? "mean" : "nonsense";
      case ParamType::kScalar:
      case ParamType::kOperand:
        return pick(2) ? Attribute(integer()) : Attribute(1.5);
      default:
        return anything(0);
    }
  }
  Attribute anything(int depth) {
    switch (pick(10)) {
      case 0:
        return {};
      case 1:
        return integer();
      case 2:
        return std::numeric_limits<double>::quiet_NaN();
      case 3:
        return std::numeric_limits<double>::infinity();
      case 4:
        return std::string(pick(40), 'x');
      case 5:
        return integers();
      case 6:
        return FloatList(pick(9), 0.5);
      case 7:
        return static_cast<DType>(pick(256));
      case 8: {
        AttributeList list;
        for (size_t n = depth < 3 ? pick(4) : 0; n > 0; --n) list.push_back(anything(depth + 1));
        return list;
      }
      default:
        return pick(2) == 0;
    }
  }

  SessionClient& c_;
  std::mt19937_64 random_;
  std::vector<Id> ids_;
};

TEST(Hostile, EveryRowWithEveryKindOfArgument) {
  auto worker = std::move(Worker::create({.threads = 2}).value());
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SessionClient client(*worker, uint64_t{256} << 20);
    Hostile hostile(client, seed);
    for (const OpDef* row : Catalog::get().rows()) {
      if (row->name == "session.wait") continue;  // may rightly wait for ever
      if (row->name == "session.upload") continue;
      for (int i = 0; i < 6; ++i) {
        SCOPED_TRACE(row->name);
        hostile.attack(*row);
      }
    }
    Id two = client.floats({1}, {2});
    EXPECT_EQ(client.read_floats(client.call("add", {two, two}, {{}, {}, 1})),
              (std::vector<float>{4}));
  }
}

// A mask's true elements are counted as often as they are written.
TEST(Hostile, UploadedBoolsAreZeroOrOne) {
  auto worker = std::move(Worker::create({.threads = 1}).value());
  SessionClient c(*worker);
  Id mask = c.call("session.upload", {}, {1, DType::kBool, IntList{4}});
  auto upload = c.state().uploads.get(1, 1);
  ASSERT_TRUE(upload.ok());
  ASSERT_TRUE((*upload)->start(4, c.state().account).ok());
  ASSERT_TRUE((*upload)->write(0, "\x00\x02\xff\x01", 4).ok());
  HostTensor value = c.read(mask);
  ASSERT_FALSE(value.error);
  EXPECT_EQ(*value.data, std::string("\x00\x01\x01\x01", 4));
  EXPECT_EQ(c.read(c.call("nonzero", {mask})).sizes, (Dims{3, 1}));
}

// Sizes that nothing bounds because another one is 0.
TEST(Hostile, EmptyTensorsOfAnySizeAreDoneAtOnce) {
  auto worker = std::move(Worker::create({.threads = 1}).value());
  SessionClient c(*worker, uint64_t{1} << 24);
  Id x = c.constant(DType::kFloat32, {1, 0, 4, 4}, "", 0);
  Id wide = c.constant(DType::kFloat32, {0, 1, 1, int64_t{1} << 40}, "", 0);
  auto empty = [&](std::string_view op, Id input, const AttributeList& attributes) {
    Id y = c.call(op, {input}, attributes);
    HostTensor value = c.read(y);
    EXPECT_TRUE(value.error || value.data->empty()) << op;
  };
  empty("adaptive_avg_pool", x, {IntList{int64_t{1} << 50, 1}});
  empty("nn.functional.adaptive_avg_pool2d", x, {IntList{2, int64_t{1} << 31}});
  empty("nn.functional.adaptive_max_pool2d", x, {IntList{int64_t{1} << 40, 1}});
  empty("nn.functional.max_pool2d", wide, {IntList{1}});
  empty("nn.functional.avg_pool2d", wide, {IntList{1}});
  empty("nn.functional.pad", wide, {IntList{1, 1}});
  empty("sum", wide, {IntList{3}, false});
  empty("flip", wide, {IntList{3}});
}

// Geometry that would reach beyond the tensor's memory.
TEST(Hostile, ViewsStayInsideTheirStorage) {
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  constexpr int64_t least = std::numeric_limits<int64_t>::min();
  auto worker = std::move(Worker::create({.threads = 1}).value());
  SessionClient c(*worker, uint64_t{1} << 20);
  Id x = c.floats({2, 3}, {1, 2, 3, 4, 5, 6});
  auto refused = [&](std::string_view op, const AttributeList& attributes) {
    std::vector<Id> made = c.send(op, {x}, attributes, 3);
    EXPECT_TRUE(c.read(made[0]).error) << op;
    c.release(made);
  };
  refused("split_with_sizes", {IntList{most, most, 4}, 0});
  refused("split_with_sizes", {IntList{2, most, most, 2}, 0});
  refused("split_with_sizes", {IntList{3, -1}, 0});
  refused("as_strided", {IntList{2}, IntList{most}, 0});
  refused("as_strided", {IntList{2, 2}, IntList{most / 2, most / 2}, 2});
  refused("as_strided", {IntList{2}, IntList{1}, 5});
  refused("as_strided", {IntList{1}, IntList{1}, least});
  refused("as_strided", {IntList{1}, IntList{1}, most});
  refused("as_strided", {IntList{0}, IntList{1}, most});
  refused("narrow", {0, 1, most});
  refused("narrow", {0, least, 1});
  refused("narrow", {0, most, most});
  refused("select", {0, least});
  refused("select", {0, most});
  refused("unfold", {0, most, 1});
  refused("unfold", {0, 1, least});
  refused("expand", {IntList{most, 2, 3}});
  refused("expand", {IntList{most, most, 2, 3}});
  refused("view", {IntList{most, 3}});
  refused("view", {IntList{int64_t{1} << 32, int64_t{1} << 32, 6}});
  auto empty = [&](std::string_view op, const AttributeList& attributes) {
    Id y = c.call(op, {x}, attributes);
    EXPECT_EQ(c.read_floats(y), std::vector<float>{}) << op;
  };
  empty("slice", {0, most, most, 1});
  empty("slice", {0, least, least, most});
  empty("diagonal", {least, 0, 1});
  empty("diagonal", {most, 0, 1});
  EXPECT_EQ(c.read_floats(c.call("slice", {x}, {1, least, most, most})),
            (std::vector<float>{1, 4}));
  // A stride that was kept from overflow is never stepped with.
  Id thin = c.call("slice", {x}, {1, 0, 1, most});
  EXPECT_EQ(c.read_floats(c.call("unsqueeze", {thin}, {1})), (std::vector<float>{1, 4}));
  EXPECT_EQ(c.read_floats(c.call("diagonal", {thin}, {0, 0, 1})), (std::vector<float>{1}));
}

}  // namespace
}  // namespace gradwire::testing
