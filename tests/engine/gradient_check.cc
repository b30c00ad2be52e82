#include "tests/engine/gradient_check.h"

#include <cmath>
#include <cstring>

#include "engine/ops/catalog.h"
#include "kernels/half.h"

namespace gradwire::testing {
namespace {

constexpr double kStep = 1e-5;
constexpr double kTolerance = 2e-6;

template <class T>
void write(std::string* bytes, const std::vector<double>& data) {
  for (double x : data) {
    T value;
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
      value = T(static_cast<float>(x));
    } else {
      value = static_cast<T>(x);
    }
    bytes->append(reinterpret_cast<const char*>(&value), sizeof value);
  }
}

template <class T>
std::vector<double> widened(const std::string& bytes) {
  std::vector<double> out;
  for (size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
      out.push_back(static_cast<double>(static_cast<float>(value)));
    } else {
      out.push_back(static_cast<double>(value));
    }
  }
  return out;
}

// Calls fn with a value of the dtype's C++ type; bools travel as bytes.
template <class Fn>
void with_type(DType dtype, Fn fn) {
  switch (dtype) {
    case DType::kFloat32:
      return fn(float{});
    case DType::kFloat64:
      return fn(double{});
    case DType::kFloat16:
      return fn(Half());
    case DType::kBFloat16:
      return fn(BFloat16());
    case DType::kInt64:
      return fn(int64_t{});
    case DType::kInt32:
      return fn(int32_t{});
    case DType::kInt16:
      return fn(int16_t{});
    case DType::kInt8:
      return fn(int8_t{});
    default:
      return fn(uint8_t{});
  }
}

}  // namespace

Id RowCaller::tensor(const Value& value) {
  std::string bytes = value.raw;
  if (bytes.empty())
    with_type(value.dtype, [&](auto t) { write<decltype(t)>(&bytes, value.data); });
  Id id = client_.constant(value.dtype, value.shape, bytes.data(), bytes.size());
  made_.push_back(id);
  return id;
}

std::vector<Id> RowCaller::send(std::string_view op, std::vector<Id> ids, AttributeList attributes,
                                int outputs) {
  std::vector<Id> out = client_.send(op, std::move(ids), std::move(attributes), outputs);
  made_.insert(made_.end(), out.begin(), out.end());
  return out;
}

void RowCaller::bind(const OpDef& row, const Sample& sample, const std::vector<Id>& given,
                     std::vector<Id>* ids, AttributeList* attributes) {
  size_t next = 0;
  auto id_of = [&](const Value& value) { return given.empty() ? tensor(value) : given[next++]; };
  bool more = true;
  for (size_t i = 0; i < row.signature.params.size(); ++i) {
    const Param& p = row.signature.params[i];
    const Argument* argument = i < sample.arguments.size() ? &sample.arguments[i] : nullptr;
    more = more && (argument || p.type == ParamType::kTensor);
    if (argument && std::holds_alternative<std::vector<Value>>(*argument)) {
      for (const Value& v : std::get<std::vector<Value>>(*argument)) ids->push_back(id_of(v));
      continue;
    }
    const Value* value = argument ? std::get_if<Value>(argument) : nullptr;
    if (value) {
      ids->push_back(id_of(*value));
    } else if (p.takes_ids() && p.type != ParamType::kTensorList) {
      ids->push_back(0);
    }
    if (p.attribute < 0 || !more) continue;
    attributes->push_back(value ? Attribute() : std::get<Attribute>(*argument));
  }
}

std::vector<Id> RowCaller::call(const OpDef& row, const Sample& sample,
                                const std::vector<Id>& given) {
  std::vector<Id> ids;
  AttributeList attributes;
  bind(row, sample, given, &ids, &attributes);
  if (!sample.in_place)
    return send(row.name, std::move(ids), std::move(attributes), sample.outputs);
  Id self = send("clone", {ids[0]})[0];
  ids[0] = self;
  client_.in_place(row.name, std::move(ids), std::move(attributes));
  return {self};
}

std::vector<double> RowCaller::read(Id id, std::string* error) {
  HostTensor host = client_.read(id);
  std::vector<double> out;
  if (host.error) {
    *error = host.error->message;
  } else if (host.data) {
    with_type(host.dtype, [&](auto t) { out = widened<decltype(t)>(*host.data); });
  }
  return out;
}

TensorMeta RowCaller::meta(Id id) {
  client_.send("session.meta", {id}, {}, 0);
  Reply reply = client_.answer();
  auto* metas = std::get_if<MetasReply>(&reply);
  return metas && !metas->metas.empty() ? metas->metas[0] : TensorMeta{};
}

GradientCheck::Evaluation GradientCheck::evaluate(const std::vector<Value*>& tensors, bool twice) {
  Evaluation out;
  RowCaller caller(client_);
  std::vector<Id> ids, leaves;
  auto leaf = [&](const Value& value) {
    ids.push_back(caller.tensor(value));
    if (!value.differentiable) return;
    caller.client().send("session.requires_grad_", {ids.back()}, {true}, 0);
    leaves.push_back(ids.back());
  };
  for (const Value* value : tensors) leaf(*value);
  std::vector<Id> results = caller.call(*row_, *sample_, ids);
  for (const ErrorRef& error : client_.refused()) out.error = error->message;
  size_t arguments = leaves.size();
  Id loss = 0;
  for (size_t i = 0, w = 0; i < results.size(); ++i) {
    TensorMeta meta = caller.meta(results[i]);
    if (meta.error) out.error = meta.error->message;
    if (!is_floating(meta.dtype)) continue;
    if (w == weights_.size()) {
      Value fresh{DType::kFloat64, IntList(meta.sizes.begin(), meta.sizes.end()), {}, true};
      for (int64_t k = numel_of(meta.sizes); k > 0; --k) fresh.data.push_back(number());
      weights_.push_back(std::move(fresh));
    }
    leaf(weights_[w++]);
    Id part = caller.send("sum", {caller.send("mul", {results[i], ids.back()})[0]})[0];
    loss = loss ? caller.send("add", {loss, part}, {{}, {}, 1})[0] : part;
  }
  if (!out.error.empty()) return out;
  if (!loss) {
    out.error = "gives no floats";
    return out;
  }
  out.loss = caller.read(loss, &out.error).at(0);
  auto gradients = [&](Id of, const std::vector<Id>& by, bool create) {
    std::vector<Id> inputs{of};
    inputs.insert(inputs.end(), by.begin(), by.end());
    std::vector<Id> grads = caller.send("session.autograd_grad", std::move(inputs),
                                        {1, static_cast<int64_t>(by.size()), 0, true, create, true},
                                        static_cast<int>(by.size()));
    Reply reply = client_.answer();
    if (auto* error = std::get_if<ErrorReply>(&reply)) {
      out.error = error->error->message;
    } else {
      auto& metas = std::get<MetasReply>(reply).metas;
      for (size_t i = 0; i < grads.size(); ++i) {
        if (metas[i].error) out.error = metas[i].error->message;
        if (!metas[i].defined) grads[i] = 0;
      }
    }
    return grads;
  };
  auto read_all = [&](const std::vector<Id>& grads, const std::vector<Id>& by) {
    std::vector<std::vector<double>> values;
    for (size_t i = 0; i < grads.size() && out.error.empty(); ++i) {
      values.push_back(grads[i] ? caller.read(grads[i], &out.error)
                                : std::vector<double>(numel_of(caller.meta(by[i]).sizes)));
    }
    return values;
  };
  std::vector<Id> wanted(leaves.begin(), leaves.begin() + static_cast<std::ptrdiff_t>(arguments));
  std::vector<Id> first = gradients(loss, wanted, twice);
  if (!out.error.empty()) return out;
  out.gradients = read_all(first, wanted);
  if (!out.error.empty()) return out;
  for (size_t i = direction_.size(); i < arguments; ++i) {
    direction_.emplace_back();
    for (size_t k = 0; k < out.gradients[i].size(); ++k) direction_.back().push_back(number());
  }
  Id slope = 0;
  for (size_t i = 0; i < arguments; ++i) {
    for (size_t k = 0; k < out.gradients[i].size(); ++k) {
      out.slope += out.gradients[i][k] * direction_[i][k];
    }
    if (!twice || !first[i]) continue;
    TensorMeta meta = caller.meta(first[i]);
    Id v = caller.tensor(
        {DType::kFloat64, IntList(meta.sizes.begin(), meta.sizes.end()), direction_[i]});
    Id part = caller.send("sum", {caller.send("mul", {first[i], v})[0]})[0];
    slope = slope ? caller.send("add", {slope, part}, {{}, {}, 1})[0] : part;
  }
  if (!twice) return out;
  std::vector<Id> second(leaves.size());
  if (slope && caller.meta(slope).requires_grad) second = gradients(slope, leaves, false);
  if (out.error.empty()) out.second = read_all(second, leaves);
  return out;
}

std::string GradientCheck::compare(const std::vector<double>& gradient, std::vector<double>* place,
                                   const std::vector<Value*>& tensors, bool slope,
                                   std::string_view what) {
  if (gradient.size() != place->size()) {
    return absl::StrCat(std::string(what), ": ", gradient.size(), " elements for ", place->size());
  }
  for (size_t k = 0; k < place->size(); ++k) {
    double x = (*place)[k];
    std::string error;
    auto difference = [&](double step) {
      (*place)[k] = x + step;
      Evaluation above = evaluate(tensors, false);
      (*place)[k] = x - step;
      Evaluation below = evaluate(tensors, false);
      (*place)[k] = x;
      error += above.error + below.error;
      return (slope ? above.slope - below.slope : above.loss - below.loss) / (2 * step);
    };
    double expected = difference(kStep);
    if (std::abs(gradient[k] - expected) > kTolerance * (1 + std::abs(expected))) {
      // Curved: the error falls with the square of the step (Richardson's extrapolation).
      expected = (16 * difference(kStep / 4) - expected) / 15;
    }
    if (!error.empty()) return error;
    if (std::abs(gradient[k] - expected) <= kTolerance * (1 + std::abs(expected))) continue;
    return absl::StrCat(std::string(what), ", element ", k, " at ", x, ": ", gradient[k],
                        " where differences give ", expected);
  }
  return "";
}

std::string GradientCheck::check(const Sample& sample) {
  row_ = Catalog::get().find(sample.op);
  if (!row_) return "no such row";
  Sample copy = sample;
  sample_ = &copy;
  weights_.clear();
  direction_.clear();
  std::vector<Value*> tensors;
  for (Argument& a : copy.arguments) {
    if (auto* value = std::get_if<Value>(&a)) tensors.push_back(value);
    if (auto* list = std::get_if<std::vector<Value>>(&a)) {
      for (Value& value : *list) tensors.push_back(&value);
    }
  }
  std::vector<Value*> by;
  for (Value* value : tensors) {
    if (value->differentiable) by.push_back(value);
  }
  if (by.empty()) return "nothing to differentiate";
  Evaluation plain = evaluate(tensors, false);
  if (!plain.error.empty()) return plain.error;
  Evaluation twice = evaluate(tensors, true);
  bool once = twice.error.find("derivative for ") != std::string::npos;  // as in torch
  if (!twice.error.empty() && !once) return "second order: " + twice.error;
  for (size_t i = 0; i < by.size(); ++i) {
    for (size_t k = 0; k < plain.gradients[i].size(); ++k) {
      double a = plain.gradients[i][k], b = once ? a : twice.gradients[i][k];
      if (std::abs(a - b) <= 1e-10 * (1 + std::abs(a))) continue;
      return absl::StrCat("create_graph changes gradient ", i, " from ", a, " to ", b);
    }
    std::string wrong =
        compare(plain.gradients[i], &by[i]->data, tensors, false, absl::StrCat("gradient ", i));
    if (!wrong.empty()) return wrong;
  }
  if (once) return "";
  for (Value& w : weights_) by.push_back(&w);
  for (size_t i = 0; i < by.size(); ++i) {
    std::string wrong = compare(twice.second[i], &by[i]->data, tensors, true,
                                absl::StrCat("second order, gradient ", i));
    if (!wrong.empty()) return wrong;
  }
  return "";
}

}  // namespace gradwire::testing
