#include "tests/engine/sequence_generator.h"

#include <cstring>
#include <limits>

#include "engine/ops/catalog.h"
#include "kernels/half.h"

namespace gradwire::testing {
namespace {

constexpr uint64_t kTransfer = 77;
constexpr DType kDTypes[] = {DType::kFloat32,  DType::kFloat32, DType::kFloat64, DType::kFloat16,
                             DType::kBFloat16, DType::kInt64,   DType::kInt32,   DType::kInt16,
                             DType::kInt8,     DType::kUInt8,   DType::kBool};

template <class T>
void append(std::string* bytes, T value) {
  bytes->append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace

SequenceGenerator::SequenceGenerator(SessionClient& client, uint64_t seed)
    : client_(client), random_(seed) {
  for (const OpDef* row : Catalog::get().rows()) {
    if (row->kind == OpKind::kPointwise) rows_.push_back(row);
  }
  switch (pick(40)) {
    case 0:  // several cuts of work
      shapes_ = {{70000}, {1}, {}};
      break;
    case 3:  // the same for reductions: long, wide, many
      shapes_ = {{150000}, {1}, {}};
      break;
    case 4:
      shapes_ = {{70, 700}, {700}, {70, 1}};
      break;
    case 5:
      shapes_ = {{30, 20, 40}, {20, 1}, {30, 1, 40}, {}};
      break;
    case 1:
    case 2:
      shapes_ = {{40, 50}, {50}, {40, 1}, {}, {1, 50}};
      break;
    default:
      shapes_ = {{4, 6}, {4, 6}, {4, 6}, {6}, {4, 1}, {}, {3, 4, 6}, {0, 6}, {6, 4}};
  }
}

std::string SequenceGenerator::run() {
  hold();
  for (int i = 0; i < 4; ++i) add_constant();
  int steps = 20 + static_cast<int>(pick(41));
  for (int i = 0; i < steps && !values_.empty(); ++i) step();
  let_go();
  for (const Value& value : values_) {
    HostTensor read = client_.read(value.id);
    absl::StrAppend(&trace_, "at byte ", log_.size(), ": ", value.id & 0xffff, " ",
                    std::string(dtype_name(value.dtype)), shape_text(value.sizes), "\n");
    if (read.error) {
      log_ += "error " + read.error->message + "\n";
    } else {
      log_ += *read.data;
    }
  }
  for (const ErrorRef& error : client_.refused()) log_ += "refused " + error->message + "\n";
  while (!values_.empty()) release();
  return std::move(log_);
}

void SequenceGenerator::hold() {
  Id gate = client_.call("session.upload", {}, {int64_t{kTransfer}, DType::kUInt8, IntList{1}});
  client_.release({gate});
}

void SequenceGenerator::let_go() {
  auto upload = client_.state().uploads.get(1, kTransfer);
  char byte = 0;
  if (upload.ok() && (*upload)->start(1, client_.state().account).ok()) {
    (*upload)->write(0, &byte, 1).IgnoreError();
  }
}

void SequenceGenerator::add_constant() {
  DType dtype = kDTypes[pick(std::size(kDTypes))];
  const IntList& shape = shapes_[pick(shapes_.size())];
  int64_t n = 1;
  for (int64_t s : shape) n *= s;
  std::string bytes;
  for (int64_t i = 0; i < n; ++i) {
    double x = static_cast<double>(static_cast<int64_t>(pick(2001)) - 1000) / 250;
    if (pick(50) == 0) x = 0;
    if (is_floating(dtype) && pick(100) == 0) {
      x = std::numeric_limits<double>::infinity() * (pick(2) ? 1 : -1);
    }
    if (is_floating(dtype) && pick(100) == 0) x = std::numeric_limits<double>::quiet_NaN();
    switch (dtype) {
      case DType::kFloat64:
        append(&bytes, x);
        break;
      case DType::kFloat32:
        append(&bytes, static_cast<float>(x));
        break;
      case DType::kFloat16:
        append(&bytes, Half(static_cast<float>(x)));
        break;
      case DType::kBFloat16:
        append(&bytes, BFloat16(static_cast<float>(x)));
        break;
      case DType::kInt64:
        append(&bytes, static_cast<int64_t>(x * 3));
        break;
      case DType::kInt32:
        append(&bytes, static_cast<int32_t>(x * 3));
        break;
      case DType::kInt16:
        append(&bytes, static_cast<int16_t>(x * 3));
        break;
      case DType::kInt8:
        append(&bytes, static_cast<int8_t>(x * 3));
        break;
      case DType::kUInt8:
        append(&bytes, static_cast<uint8_t>(static_cast<int>(x * 3 + 13)));
        break;
      default:
        append(&bytes, static_cast<uint8_t>(pick(2)));
    }
  }
  keep(client_.constant(dtype, shape, bytes.data(), bytes.size()));
}

// Learns a result's shape from dispatch; forgets what failed.
void SequenceGenerator::keep(Id id) {
  client_.send("session.meta", {id}, {}, 0);
  Reply reply = client_.answer();
  auto* metas = std::get_if<MetasReply>(&reply);
  if (!metas || metas->metas[0].error) {
    log_ += "failed\n";
    client_.release({id});
    return;
  }
  const TensorMeta& meta = metas->metas[0];
  if (numel_of(meta.sizes) > 200000) {
    client_.release({id});
    return;
  }
  values_.push_back({id, meta.dtype, meta.sizes});
  absl::StrAppend(&trace_, "  ", id & 0xffff, " is ", std::string(dtype_name(meta.dtype)),
                  shape_text(meta.sizes), "\n");
}

Attribute SequenceGenerator::number() {
  switch (pick(4)) {
    case 0:
      return static_cast<int64_t>(pick(7)) - 2;
    case 1:
      return pick(2) == 0;
    default:
      return static_cast<double>(pick(41)) / 10 - 1.5;
  }
}

void SequenceGenerator::note(std::string_view op, const std::vector<Id>& inputs,
                             const AttributeList& attributes) {
  absl::StrAppend(&trace_, std::string(op), "(");
  for (Id id : inputs) absl::StrAppend(&trace_, id & 0xffff, " ");
  for (const Attribute& a : attributes) {
    if (a.is_number()) absl::StrAppend(&trace_, a.as_double(), " ");
  }
  absl::StrAppend(&trace_, ")\n");
}

Id SequenceGenerator::traced(std::string_view op, std::vector<Id> inputs,
                             AttributeList attributes) {
  note(op, inputs, attributes);
  Id id = client_.call(op, std::move(inputs), std::move(attributes));
  absl::StrAppend(&trace_, "  -> ", id & 0xffff, "\n");
  return id;
}

void SequenceGenerator::traced_in_place(std::string_view op, std::vector<Id> inputs,
                                        AttributeList attributes) {
  note(std::string(op) + " in place", inputs, attributes);
  client_.in_place(op, std::move(inputs), std::move(attributes));
}

void SequenceGenerator::pointwise() {
  const OpDef* row = rows_[pick(rows_.size())];
  bool in_place = row->in_place && chance(30);
  std::vector<Id> inputs;
  AttributeList attributes;
  bool first = true;
  for (const Param& p : row->signature.params) {
    if (p.type == ParamType::kTensor || (p.type == ParamType::kOperand && (first || chance(65)))) {
      inputs.push_back(any().id);
      if (p.attribute >= 0) attributes.emplace_back();
    } else if (p.type == ParamType::kOperand) {
      inputs.push_back(0);
      attributes.push_back(number());
    } else {
      attributes.push_back(p.has_default && chance(50) ? p.default_value : number());
    }
    first = false;
  }
  if (in_place) {
    traced_in_place(row->name, std::move(inputs), std::move(attributes));
  } else {
    keep(traced(row->name, std::move(inputs), std::move(attributes)));
  }
}

void SequenceGenerator::view() {
  const Value value = any();
  auto rank = static_cast<int64_t>(value.sizes.size());
  if (rank == 0) {
    keep(traced("unsqueeze", {value.id}, {int64_t{0}}));
    return;
  }
  auto dim = static_cast<int64_t>(pick(rank));
  switch (pick(6)) {
    case 0:
      keep(traced("transpose", {value.id}, {dim, static_cast<int64_t>(pick(rank))}));
      break;
    case 1:
      keep(traced("slice", {value.id},
                  {dim, static_cast<int64_t>(pick(3)), {}, static_cast<int64_t>(1 + pick(2))}));
      break;
    case 2:
      keep(traced("select", {value.id}, {dim, int64_t{0}}));
      break;
    case 3: {
      IntList sizes{2};
      sizes.insert(sizes.end(), value.sizes.begin(), value.sizes.end());
      keep(traced("expand", {value.id}, {sizes}));
      break;
    }
    case 4:
      keep(traced("reshape", {value.id}, {IntList{numel_of(value.sizes)}}));
      break;
    default:
      keep(traced("detach", {value.id}, {}));
  }
}

void SequenceGenerator::other() {
  const Value value = any();
  switch (pick(6)) {
    case 0:
      traced_in_place("copy_", {value.id, any().id}, {});
      break;
    case 1:
      keep(traced("sum", {value.id}, {value.sizes.empty() ? IntList{} : IntList{0}, false}));
      break;
    case 2:
      if (value.sizes.size() == 2 && value.dtype == DType::kFloat32) {
        Id t = traced("transpose", {value.id}, {int64_t{0}, int64_t{1}});
        keep(traced("matmul", {value.id, t}, {}));
        client_.release({t});
      }
      break;
    case 3:
      keep(traced("to", {value.id}, {kDTypes[pick(std::size(kDTypes))]}));
      break;
    case 4:
      keep(traced("clone", {value.id}, {}));
      break;
    default:
      add_constant();
  }
}

// Of a chain that nobody else will ask for, of one that lives on, or of anything.
void SequenceGenerator::reduction() {
  static constexpr std::string_view kRows[] = {"sum", "sum",  "mean", "amax",     "amin",
                                               "all", "prod", "var",  "logsumexp"};
  Value value = any();
  bool temporary = chance(75);
  if (temporary) {
    Id chain = traced("mul", {value.id, any().id}, {});
    client_.send("session.meta", {chain}, {}, 0);
    Reply reply = client_.answer();
    auto* metas = std::get_if<MetasReply>(&reply);
    if (!metas || metas->metas[0].error || numel_of(metas->metas[0].sizes) > 200000) {
      client_.release({chain});
      return;
    }
    value = {chain, metas->metas[0].dtype, metas->metas[0].sizes};
  }
  IntList dims;
  for (size_t d = 0; d < value.sizes.size(); ++d) {
    if (chance(50)) dims.push_back(static_cast<int64_t>(d));
  }
  std::string_view row = kRows[pick(std::size(kRows))];
  AttributeList attributes{dims};
  if (row == "var") attributes.emplace_back(1.0);
  attributes.emplace_back(chance(50));
  keep(traced(row, {value.id}, attributes));
  if (temporary) client_.release({value.id});
}

void SequenceGenerator::release() {
  size_t at = pick(values_.size());
  client_.release({values_[at].id});
  values_.erase(values_.begin() + static_cast<std::ptrdiff_t>(at));
}

void SequenceGenerator::step() {
  uint64_t what = pick(100);
  if (what < 60) {
    pointwise();
  } else if (what < 72) {
    view();
  } else if (what < 79) {
    other();
  } else if (what < 84) {
    reduction();
  } else if (values_.size() > 3) {
    release();
  }
}

}  // namespace gradwire::testing
