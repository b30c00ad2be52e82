// Rows 590 to 629: random numbers. Counters are reserved at dispatch, so neither order nor threads
// nor fusion change what is drawn.
#include <algorithm>

#include "engine/ops/call.h"
#include "kernels/random_counters.h"

namespace gradwire {
namespace {

absl::Status infer_sized(const Call& call, TensorSpecs* out) {
  const IntList& sizes = call.attr(0).as_ints();
  auto numel = checked_numel(sizes);
  if (!numel.ok()) return numel.status();
  out->push_back({call.attributes.back().as_dtype(), Dims(sizes.begin(), sizes.end()), {}});
  return absl::OkStatus();
}

absl::Status check_float(const Call& call) {
  DType dtype = call.attributes.back().as_dtype();
  if (is_floating(dtype)) return absl::OkStatus();
  return not_implemented_error("\"", call.op->name, "\" not implemented for '",
                               std::string(dtype_name(dtype)), "'");
}

absl::Status infer_self(const Call& call, TensorSpecs* out) {
  out->push_back({call.in(0)->dtype, call.in(0)->sizes, {}});
  return absl::OkStatus();
}

// In-place draws: the kernel writes the tensor itself, its old values do not matter.
void zero_gradient(Backward& b) {
  if (b.needs(0)) b.set(0, zeros(b.input_spec(0).sizes, b.input_spec(0).dtype));
}

absl::Status infer_dropout(const Call& call, TensorSpecs* out) {
  const Tensor& x = call.in(0);
  double p = call.attr(0).as_double();
  if (!(p >= 0 && p <= 1)) {
    return value_error("dropout probability has to be between 0 and 1, but got ", p);
  }
  if (!is_floating(x->dtype)) {
    return not_implemented_error("\"dropout\" not implemented for '",
                                 std::string(dtype_name(x->dtype)), "'");
  }
  out->push_back({x->dtype, x->sizes, {}});
  out->push_back({DType::kBool, x->sizes, {}});
  return absl::OkStatus();
}

void backward_dropout(Backward& b) {
  double p = b.attr(0).as_double();
  b.set(0, mul(mul(b.grad(0), b.output(1)), p == 1 ? 0.0 : 1.0 / (1.0 - p)));
}

}  // namespace

void add_random_rows(Catalog& c) {
  auto row = [&](uint16_t number, std::string_view signature, std::string_view doc,
                 std::string_view kernel, InferFn infer, LowerFn lower) -> OpDef& {
    OpDef& r = c.add(number, OpKind::kKernel, signature, doc);
    r.kernel = std::string(kernel);
    r.infer = infer;
    r.lower = lower;
    r.random = true;
    return r;
  };
  auto sized = [](OpDef& r) -> OpDef& {
    r.shape_rule = "size";
    r.type_rule = "given";
    return r;
  };
  sized(row(590, "rand(int[] size, *, dtype dtype) -> Tensor", "Uniform in [0, 1).", "uniform",
            infer_sized,
            [](const Call&, Task* task) {
              task->attributes = {0.0, 1.0};
              return absl::OkStatus();
            }))
      .check = check_float;
  sized(row(591, "randn(int[] size, *, dtype dtype) -> Tensor", "Normal, mean 0 and deviation 1.",
            "normal", infer_sized,
            [](const Call&, Task* task) {
              task->attributes = {0.0, 1.0};
              return absl::OkStatus();
            }))
      .check = check_float;
  sized(row(
      592, "randint(int[] size, int low, int high, *, dtype dtype) -> Tensor",
      "Integers in [low, high).", "randint",
      [](const Call& call, TensorSpecs* out) {
        if (call.attr(1).as_int() >= call.attr(2).as_int()) {
          return runtime_error("random_ expects 'from' to be less than 'to', but got from=",
                               call.attr(1).as_int(), " >= to=", call.attr(2).as_int());
        }
        return infer_sized(call, out);
      },
      [](const Call& call, Task* task) {
        task->attributes = {call.attr(1), call.attr(2)};
        return absl::OkStatus();
      }));
  auto& randperm = row(
      593, "randperm(int n, *, dtype dtype) -> Tensor", "A random permutation of 0 to n - 1.",
      "randperm",
      [](const Call& call, TensorSpecs* out) {
        if (call.attr(0).as_int() < 0) {
          return runtime_error("n must be non-negative, got ", call.attr(0).as_int());
        }
        out->push_back({call.attr(1).as_dtype(), {call.attr(0).as_int()}, {}});
        return absl::OkStatus();
      },
      [](const Call&, Task* task) {
        task->attributes.clear();
        return absl::OkStatus();
      });
  randperm.type_rule = "given";
  auto in_place = [&](uint16_t number, std::string_view signature, std::string_view doc,
                      std::string_view kernel) {
    OpDef& r = row(number, signature, doc, kernel, infer_self, nullptr);
    r.writes_first = r.in_place = true;
    r.backward = zero_gradient;
    // uniform_, normal_ and exponential_ draw real numbers.
    if (kernel == "uniform" || kernel == "normal" || kernel == "exponential") {
      r.check = [](const Call& call) {
        if (is_floating(call.in(0)->dtype)) return absl::OkStatus();
        return not_implemented_error("\"", call.op->name, "\" not implemented for '",
                                     std::string(dtype_name(call.in(0)->dtype)), "'");
      };
    }
    if (kernel == "randint") {
      r.check = [](const Call& call) {
        if (call.attr(0).as_int() < call.attr(1).as_int()) return absl::OkStatus();
        return runtime_error("random_ expects 'from' to be less than 'to', but got from=",
                             call.attr(0).as_int(), " >= to=", call.attr(1).as_int());
      };
    }
    r.shape_rule = r.type_rule = "same";
    r.lower = [](const Call&, Task* task) {
      // The old values are not read: the kernel has outputs only.
      task->inputs.clear();
      return absl::OkStatus();
    };
  };
  in_place(600, "uniform_(Tensor input, float low=0, float high=1) -> Tensor",
           "Fills input with numbers uniform in [low, high).", "uniform");
  in_place(601, "normal_(Tensor input, float mean=0, float std=1) -> Tensor",
           "Fills input with normal numbers.", "normal");
  in_place(602, "bernoulli_(Tensor input, float p=0.5) -> Tensor",
           "Fills input with 1 with probability p, else 0.", "bernoulli");
  in_place(603, "exponential_(Tensor input, float lambd=1) -> Tensor",
           "Fills input from the exponential distribution.", "exponential");
  in_place(604, "random_(Tensor input, int low, int high) -> Tensor",
           "Fills input with integers in [low, high).", "randint");
  auto& bernoulli = row(605, "bernoulli(Tensor input) -> Tensor",
                        "1 with the probability that input gives, else 0.", "bernoulli_tensor",
                        infer_self, nullptr);
  bernoulli.shape_rule = bernoulli.type_rule = "same";
  bernoulli.checks = true;
  bernoulli.backward = zero_gradient;
  auto& multinomial = row(
      606,
      "multinomial(Tensor input, int num_samples, "
      "bool replacement=False) -> Tensor",
      "Indices drawn by the weights in input's last dimension.", "multinomial",
      [](const Call& call, TensorSpecs* out) {
        const Tensor& x = call.in(0);
        if (x->rank() < 1 || x->rank() > 2 || !is_floating(x->dtype)) {
          return runtime_error(
              "multinomial expects floating-point weights of "
              "1 or 2 dims, got ",
              x->text());
        }
        Dims sizes = x->sizes;
        int64_t n = call.attr(0).as_int();
        if (n <= 0) return runtime_error("cannot sample n_sample <= 0 samples");
        if (!call.attr(1).as_bool() && n > sizes.back()) {
          return runtime_error(
              "cannot sample n_sample > prob_dist.size(-1) "
              "samples without replacement");
        }
        sizes.back() = n;
        out->push_back({DType::kInt64, sizes, {}});
        return absl::OkStatus();
      },
      [](const Call& call, Task* task) {
        // Reserved for the outputs already; the weights may need more.
        auto counters = [](int64_t n) { return philox_counters("multinomial", n); };
        uint64_t have = counters(numel_of(task->outputs[0].sizes));
        uint64_t need = counters(call.in(0)->numel());
        if (need > have) Slot::current().generator.reserve(need - have);
        return absl::OkStatus();
      });
  multinomial.checks = true;
  multinomial.method = true;
  auto& dropout = row(610,
                      "dropout_mask(Tensor input, float p=0.5) -> "
                      "(Tensor output, Tensor mask)",
                      "Elements kept with probability 1 - p and scaled by 1 / (1 - p), and which.",
                      "dropout", infer_dropout, nullptr);
  dropout.backward = backward_dropout;
  dropout.saves_outputs = save(1);
  auto& functional = c.add(611, OpKind::kComposite,
                           "nn.functional.dropout(Tensor input, float p=0.5, bool training=True, "
                           "bool inplace=False) -> Tensor",
                           "Zeroes elements with probability p in training and scales the rest by "
                           "1 / (1 - p).");
  functional.compose = [](const Call& call) -> Tensors {
    static const OpRef op("dropout_mask"), copy("copy_");
    double p = call.attr(0).as_double();
    if (!(p >= 0 && p <= 1)) {
      return {poisoned(value_error("dropout probability has to be between 0 and 1, but got ", p))};
    }
    if (!call.attr(1).as_bool() || p == 0) return {call.in(0)};
    Tensor out = call_many(op, {call.in(0)}, {p})[0];
    if (!call.attr(2).as_bool() || out->poison) return {out};
    return {call_in_place(copy, {call.in(0), out})};
  };
  functional.shape_rule = functional.type_rule = "same";
}

}  // namespace gradwire
