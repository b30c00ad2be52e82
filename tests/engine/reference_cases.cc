#include "tests/engine/reference_cases.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "engine/ops/catalog.h"
#include "kernels/half.h"

namespace gradwire::testing {
namespace {

using Json = nlohmann::json;

std::string slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

template <class T>
void widen(const char* bytes, size_t count, std::vector<double>* out) {
  for (size_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, bytes + i * sizeof value, sizeof value);
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
      out->push_back(static_cast<double>(static_cast<float>(value)));
    } else {
      out->push_back(static_cast<double>(value));
    }
  }
}

class Tensors {
 public:
  explicit Tensors(const std::string& path) : bytes_(slurp(path)) {
    uint64_t length = 0;
    std::memcpy(&length, bytes_.data(), sizeof length);
    header_ = Json::parse(bytes_.substr(8, length));
    data_ = bytes_.data() + 8 + length;
  }

  Value get(const std::string& entry, const Json& node) const {
    const Json& t = header_.at(entry + "/t" + std::to_string(node.at("t").get<int>()));
    Value value;
    value.shape = t.at("shape").get<IntList>();
    value.differentiable = node.value("requires_grad", false);
    const char* at = data_ + t.at("data_offsets")[0].get<size_t>();
    size_t n = 1;
    for (int64_t s : value.shape) n *= static_cast<size_t>(s);
    std::string dtype = t.at("dtype");
    auto read = [&]<class T>(DType d, T) {
      value.dtype = d;
      if (!is_floating(d)) value.raw.assign(at, n * sizeof(T));
      widen<T>(at, n, &value.data);
    };
    if (dtype == "F64") read(DType::kFloat64, double{});
    if (dtype == "F32") read(DType::kFloat32, float{});
    if (dtype == "F16") read(DType::kFloat16, Half());
    if (dtype == "BF16") read(DType::kBFloat16, BFloat16());
    if (dtype == "I64") read(DType::kInt64, int64_t{});
    if (dtype == "I32") read(DType::kInt32, int32_t{});
    if (dtype == "I16") read(DType::kInt16, int16_t{});
    if (dtype == "I8") read(DType::kInt8, int8_t{});
    if (dtype == "U8") read(DType::kUInt8, uint8_t{});
    if (dtype == "BOOL") read(DType::kBool, uint8_t{});
    return value;
  }

 private:
  std::string bytes_;
  Json header_;
  const char* data_;
};

bool is_tensor(const Json& node) {
  return node.is_object() && node.contains("t");
}

const Json& items(const Json& node) {
  return node.is_object() && node.contains("tuple") ? node.at("tuple") : node;
}

std::optional<double> number(const Json& node) {
  if (node.is_number()) return node.get<double>();
  if (node.is_object() && node.contains("float")) {
    std::string text = node.at("float");
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (text == "inf") return kInfinity;
    if (text == "-inf") return -kInfinity;
    return std::numeric_limits<double>::quiet_NaN();
  }
  return std::nullopt;
}

DType dtype_named(const std::string& name) {
  for (int i = 0; i < 16; ++i) {
    auto dtype = static_cast<DType>(i);
    if (is_valid(dtype) && dtype_name(dtype) == name) return dtype;
  }
  return DType::kNone;
}

// One argument in the form its parameter takes, or nothing when it has no such form.
std::optional<Argument> argument(const Param& p, const Json& node, const std::string& entry,
                                 const Tensors& tensors) {
  if (node.is_null()) return p.optional ? std::optional<Argument>(Attribute()) : std::nullopt;
  const Json& list = items(node);
  switch (p.type) {
    case ParamType::kTensorList: {
      if (!list.is_array()) return std::nullopt;
      std::vector<Value> values;
      for (const Json& item : list) {
        if (!is_tensor(item)) return std::nullopt;
        values.push_back(tensors.get(entry, item));
      }
      return values;
    }
    case ParamType::kTensor:
    case ParamType::kOperand:
      if (is_tensor(node)) return tensors.get(entry, node);
      if (p.type == ParamType::kTensor) return std::nullopt;
      [[fallthrough]];
    case ParamType::kScalar:
      if (node.is_boolean()) return Attribute(node.get<bool>());
      if (node.is_number_integer()) return Attribute(node.get<int64_t>());
      if (auto x = number(node)) return Attribute(*x);
      return std::nullopt;
    case ParamType::kInt:
      if (node.is_number_integer()) return Attribute(node.get<int64_t>());
      return std::nullopt;
    case ParamType::kFloat:
      if (auto x = number(node)) return Attribute(*x);
      return std::nullopt;
    case ParamType::kBool:
      if (node.is_boolean()) return Attribute(node.get<bool>());
      return std::nullopt;
    case ParamType::kString:
      if (node.is_string()) return Attribute(node.get<std::string>());
      return std::nullopt;
    case ParamType::kDType:
      if (!node.is_object() || !node.contains("dtype")) return std::nullopt;
      return Attribute(dtype_named(node.at("dtype")));
    case ParamType::kInts: {
      if (node.is_number_integer()) return Attribute(IntList{node.get<int64_t>()});
      if (!list.is_array()) return std::nullopt;
      IntList ints;
      for (const Json& item : list) {
        if (!item.is_number_integer()) return std::nullopt;
        ints.push_back(item.get<int64_t>());
      }
      return Attribute(ints);
    }
    default:
      return std::nullopt;
  }
}

std::optional<Sample> sample_of(const OpDef& row, const Json& sample, const std::string& entry,
                                const Tensors& tensors) {
  const Signature& signature = row.signature;
  Sample bound{row.name, {}};
  const Json& args = sample.at("args");
  Json kwargs = sample.at("kwargs");
  size_t next = 0;
  for (const Param& p : signature.params) {
    const Json* node = nullptr;
    if (!p.keyword_only && next < args.size()) {
      node = &args[next++];
    } else if (kwargs.contains(p.name)) {
      node = &kwargs.at(p.name);
    }
    std::optional<Argument> value;
    if (node) {
      value = argument(p, *node, entry, tensors);
    } else if (p.has_default) {
      value = p.default_value;
    } else if (p.optional) {
      value = Attribute();
    }
    if (!value) return std::nullopt;
    if (node != nullptr && kwargs.contains(p.name)) kwargs.erase(p.name);
    bound.arguments.push_back(std::move(*value));
  }
  bool all = next == args.size() && kwargs.empty();
  return all ? std::optional<Sample>(std::move(bound)) : std::nullopt;
}

// The tensors of an expected tree, in order.
void collect(const Json& node, std::vector<const Json*>* out) {
  if (is_tensor(node)) {
    out->push_back(&node);
  } else if (node.is_array()) {
    for (const Json& item : node) collect(item, out);
  } else if (node.is_object() && (node.contains("tuple") || node.contains("dict"))) {
    collect(node.contains("tuple") ? node.at("tuple") : node.at("dict"), out);
  } else if (node.is_object()) {
    for (const Json& item : node) collect(item, out);
  }
}

const Json& tolerances() {
  static const Json facts = Json::parse(slurp(std::string(REFERENCE_DATA) + "/tolerances.json"));
  return facts;
}

bool listed(const char* list, const std::string& op) {
  const Json& names = tolerances().at(list);
  return std::find(names.begin(), names.end(), op) != names.end();
}

}  // namespace

Tolerance tolerance_of(const std::string& op, DType dtype) {
  const Json& all = tolerances().at("tolerance");
  auto found = all.find(std::string(dtype_name(dtype)));
  if (found == all.end()) return {};
  Tolerance t{found->at(0), found->at(1)};
  if (listed("loose", op)) {
    const Json& loose = tolerances().at("loose_tolerance");
    t.relative = std::max<double>(t.relative, loose.at(0));
    t.absolute = std::max<double>(t.absolute, loose.at(1));
  }
  return t;
}

bool ambiguous(const std::string& op) {
  return listed("ambiguous", op);
}

ReferenceCases reference_cases(const std::string& suite) {
  std::string base = std::string(REFERENCE_DATA) + "/" + suite;
  Json all = Json::parse(slurp(base + ".json"));
  Tensors tensors(base + ".safetensors");
  ReferenceCases result;
  for (const auto& [entry, spec] : all.items()) {
    std::string name = spec.value("op", entry);
    const OpDef* row = Catalog::get().find(name);
    if (!row || row->internal || row->random || row->signature.lists > 1 ||
        row->kind == OpKind::kCommand) {
      continue;
    }
    for (const Json& sample : spec.at("samples")) {
      std::optional<Sample> bound = sample_of(*row, sample, entry, tensors);
      std::vector<const Json*> outputs;
      collect(sample.at("expected"), &outputs);
      int fixed = row->signature.fixed_outputs;
      if (!bound || (fixed >= 0 && fixed != static_cast<int>(outputs.size()))) {
        ++result.unbound;
        continue;
      }
      ReferenceCase c;
      c.entry = entry + " #" + std::to_string(sample.value("id", -1));
      if (sample.contains("dtype")) c.entry += " " + sample.at("dtype").get<std::string>();
      c.name = name;
      c.row = row;
      c.sample = std::move(*bound);
      c.sample.outputs = static_cast<int>(outputs.size());
      for (const Json* node : outputs) c.outputs.push_back(tensors.get(entry, *node));
      auto read = [&](const char* key, std::vector<Value>* to) {
        if (!sample.contains(key)) return;
        for (const Json& node : sample.at(key)) {
          to->push_back(is_tensor(node) ? tensors.get(entry, node) : Value{DType::kNone, {}, {}});
        }
      };
      if (sample.contains("grad_outputs_of")) {
        c.roots = sample.at("grad_outputs_of").get<std::vector<int>>();
        read("cotangents", &c.cotangents);
        read("grads", &c.gradients);
      }
      result.cases.push_back(std::move(c));
    }
  }
  return result;
}

}  // namespace gradwire::testing
