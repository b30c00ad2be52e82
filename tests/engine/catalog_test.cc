// Every row that PyTorch's recorded calls reach, without a client: values, dtypes, shapes and
// gradients; in-place and out forms; fusion; gradients against differences.
#include "engine/ops/catalog.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "tests/engine/reference_cases.h"

namespace gradwire::testing {
namespace {

// Recorded with another order of arguments than the row's, or with one that is of two kinds: the
// clients' overloads sort them out, and are run on the data, too.
const std::set<std::string> kOtherArguments = {"where", "einsum", "nn.functional.embedding",
                                               "nn.functional.embedding_bag", "tensor_split"};

// The README's table of gaps says why.
const std::set<std::string> kGaps = {"addcmul #9 bfloat16",   "matrix_exp #0 bfloat16",
                                     "matrix_exp #0 float16", "matrix_exp #1 bfloat16",
                                     "matrix_exp #1 float16", "tan #0 float16"};

// torch's gradient, which the data holds, is not the values' derivative.
const std::set<std::string> kOwnGradient = {"as_strided_scatter", "cov"};

bool smooth_float64(const ReferenceCase& c) {
  if (c.outputs[0].dtype != DType::kFloat64 || kOwnGradient.contains(c.name)) return false;
  if (ambiguous(c.name)) return false;
  if (c.entry.find("subgradients") != std::string::npos) return false;  // on a kink
  for (const Argument& a : c.sample.arguments) {
    const auto* value = std::get_if<Value>(&a);
    if (!value || !value->differentiable) continue;
    if (value->dtype != DType::kFloat64) return false;
    for (double x : value->data) {
      if (std::abs(x) > 1e4) return false;  // differences would be all rounding
    }
  }
  return true;
}

std::string difference(const std::string& op, const std::vector<double>& got, const Value& want) {
  if (got.size() != want.data.size()) {
    return absl::StrCat(got.size(), " elements, want ", want.data.size());
  }
  Tolerance t = tolerance_of(op, want.dtype);
  double largest = 1;
  for (double x : want.data) {
    if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
  }
  for (size_t i = 0; i < got.size(); ++i) {
    double a = got[i], b = want.data[i];
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (std::isfinite(b) && std::abs(a - b) <= t.relative * std::abs(b) + t.absolute * largest)
      continue;
    return absl::StrCat("element ", i, ": ", a, ", want ", b);
  }
  return "";
}

// One worker with one session, and what a case gave in it.
class Bench {
 public:
  explicit Bench(bool fusion) {
    WorkerOptions options;
    options.threads = 1;
    options.fusion = fusion;
    worker_ = std::move(Worker::create(options).value());
    client_ = std::make_unique<SessionClient>(*worker_);
  }
  SessionClient& client() { return *client_; }

  // Outputs and gradients as bytes; "" or what is wrong with them in `wrong`.
  std::string run(const ReferenceCase& c, std::string* wrong) {
    RowCaller caller(*client_);
    std::vector<Id> given, leaves;
    for (const Argument& a : c.sample.arguments) {
      if (auto* value = std::get_if<Value>(&a)) given.push_back(tensor(caller, *value, &leaves));
      if (auto* list = std::get_if<std::vector<Value>>(&a)) {
        for (const Value& value : *list) given.push_back(tensor(caller, value, &leaves));
      }
    }
    client_->refused();
    std::vector<Id> outputs = caller.call(*c.row, c.sample, given);
    std::string bytes;
    for (size_t i = 0; i < outputs.size(); ++i) {
      take(caller, c.name, outputs[i], c.outputs[i], absl::StrCat("output ", i), &bytes, wrong);
    }
    if (!wrong->empty() || c.cotangents.empty() || leaves.size() != c.gradients.size()) {
      return bytes;
    }
    std::vector<Id> ids;
    for (int root : c.roots) ids.push_back(outputs[root]);
    ids.insert(ids.end(), leaves.begin(), leaves.end());
    for (const Value& cotangent : c.cotangents) ids.push_back(caller.tensor(cotangent));
    std::vector<Id> grads =
        caller.send("session.autograd_grad", ids,
                    {static_cast<int64_t>(c.roots.size()), static_cast<int64_t>(leaves.size()),
                     static_cast<int64_t>(c.cotangents.size()), false, false, true},
                    static_cast<int>(leaves.size()));
    Reply reply = client_->answer();
    if (auto* error = std::get_if<ErrorReply>(&reply)) {
      *wrong = error->error->message;
      return bytes;
    }
    auto& metas = std::get<MetasReply>(reply).metas;
    for (size_t i = 0; i < grads.size(); ++i) {
      if (c.gradients[i].dtype == DType::kNone || !metas[i].defined) continue;
      take(caller, c.name, grads[i], c.gradients[i], absl::StrCat("gradient ", i), &bytes, wrong);
    }
    return bytes;
  }

 private:
  Id tensor(RowCaller& caller, const Value& value, std::vector<Id>* leaves) {
    Id id = caller.tensor(value);
    if (value.differentiable) {
      client_->send("session.requires_grad_", {id}, {true}, 0);
      leaves->push_back(id);
    }
    return id;
  }

  void take(RowCaller& caller, const std::string& op, Id id, const Value& want,
            const std::string& what, std::string* bytes, std::string* wrong) {
    // What dispatch inferred, before the value is there.
    TensorMeta meta = caller.meta(id);
    HostTensor got = client_->read(id);
    if (got.error) {
      if (wrong->empty()) *wrong = what + ": " + got.error->message;
      return;
    }
    *bytes += *got.data;
    if (!wrong->empty()) return;
    if (meta.dtype != want.dtype || meta.sizes != Dims(want.shape.begin(), want.shape.end())) {
      *wrong =
          absl::StrCat(what, " is ", std::string(dtype_name(meta.dtype)), shape_text(meta.sizes),
                       ", want ", std::string(dtype_name(want.dtype)), shape_text(want.shape));
      return;
    }
    if (got.dtype != meta.dtype || got.sizes != meta.sizes ||
        got.data->size() != static_cast<size_t>(numel_of(meta.sizes)) * dtype_size(meta.dtype)) {
      *wrong = what + ": the value is not what dispatch inferred";
      return;
    }
    std::string error;
    std::string different = difference(op, caller.read(id, &error), want);
    if (!different.empty()) *wrong = what + ", " + different;
  }

  std::unique_ptr<Worker> worker_;
  std::unique_ptr<SessionClient> client_;
};

class CatalogTest : public ::testing::TestWithParam<const char*> {};

TEST_P(CatalogTest, GivesPyTorchsResultsFusedOrNot) {
  ReferenceCases data = reference_cases(GetParam());
  ASSERT_GT(data.cases.size(), 800u);
  Bench fused(true), plain(false);
  std::map<std::string, std::string> wrong;
  std::set<std::string> rows;
  for (const ReferenceCase& c : data.cases) {
    if (kOtherArguments.contains(c.name) || ambiguous(c.name) || kGaps.contains(c.entry)) continue;
    std::string error, plain_error;
    std::string bytes = fused.run(c, &error);
    if (bytes != plain.run(c, &plain_error)) error += " (fusion changes the bits)";
    rows.insert(c.name);
    if (!error.empty()) wrong.try_emplace(c.entry, error);
  }
  for (const auto& [entry, error] : wrong) ADD_FAILURE() << entry << ": " << error;
  RecordProperty("rows", std::to_string(rows.size()));
  RecordProperty("calls", std::to_string(data.cases.size()));
}

INSTANTIATE_TEST_SUITE_P(Suites, CatalogTest, ::testing::Values("opinfo", "dtypes"),
                         [](const auto& info) { return std::string(info.param); });

// x.op_() and op(out=x) write what op gives.
TEST(Catalog, InPlaceAndOutFormsWriteTheSame) {
  ReferenceCases data = reference_cases("dtypes");
  Bench bench(true);
  SessionClient& client = bench.client();
  std::map<std::string, std::string> wrong;
  size_t compared = 0;
  for (const ReferenceCase& c : data.cases) {
    const auto* first =
        c.sample.arguments.empty() ? nullptr : std::get_if<Value>(&c.sample.arguments[0]);
    if (c.outputs.size() != 1) continue;
    for (Form form : {Form::kInPlace, Form::kOut}) {
      bool in_place = form == Form::kInPlace;
      if (in_place ? !c.row->in_place || !first || first->shape != c.outputs[0].shape ||
                         first->dtype != c.outputs[0].dtype
                   : !c.row->out) {
        continue;
      }
      RowCaller caller(client);
      std::vector<Id> ids, again;
      AttributeList attributes;
      Id expected = caller.call(*c.row, c.sample, {})[0];
      caller.bind(*c.row, c.sample, {}, &ids, &attributes);
      client.refused();
      Id target = 0;
      if (in_place) {
        target = ids[0];
        client.in_place(c.row->name, ids, attributes);
      } else {
        Value room = c.outputs[0];
        for (double& x : room.data) x = 1;
        target = caller.tensor(room);
        client.out(c.row->name, ids, attributes, {target});
      }
      HostTensor want = client.read(expected), got = client.read(target);
      std::string error;
      for (const ErrorRef& refused : client.refused()) error = refused->message;
      if (want.error) continue;  // reported by the test above
      if (error.empty() && got.error) error = got.error->message;
      if (error.empty() && *got.data != *want.data) error = "other bits than the plain form";
      ++compared;
      if (!error.empty()) wrong.try_emplace(c.entry + (in_place ? " in place" : " out"), error);
    }
  }
  for (const auto& [entry, error] : wrong) ADD_FAILURE() << entry << ": " << error;
  EXPECT_GT(compared, 1000u);
}

// Gradients, and gradients of gradients, against central differences in float64.
TEST(Catalog, GradientsAreThoseOfTheValues) {
  ReferenceCases data = reference_cases("dtypes");
  Bench bench(true);
  GradientCheck check(bench.client());
  std::map<std::string, int> done;
  std::map<std::string, std::string> wrong;
  for (const ReferenceCase& c : data.cases) {
    if (c.gradients.empty() || !smooth_float64(c)) continue;
    size_t elements = 0;
    for (const Value& g : c.gradients) elements += g.data.size();
    if (elements == 0 || elements > 30 || done[c.name] >= 2) continue;
    ++done[c.name];
    std::string error = check.check(c.sample);
    if (!error.empty()) wrong.try_emplace(c.entry, error);
  }
  for (const auto& [entry, error] : wrong) ADD_FAILURE() << entry << ": " << error;
  EXPECT_GT(done.size(), 80u);
}

}  // namespace
}  // namespace gradwire::testing
