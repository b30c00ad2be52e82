// argmax, argmin, max_dim, min_dim: the first of equals, the first NaN before everything.
#include <limits>

#include "kernels/cpu/index_types.h"
#include "kernels/cpu/reduce.h"
#include "kernels/cpu/reduce_fold.h"
#include "kernels/cpu/reduce_minmax.h"

namespace gradwire::cpu {
namespace {

template <class T, bool kMax>
struct Arg {
  using Value = Wide<T>;
  struct Acc {
    Value value;
    int64_t index;  // -1: nothing seen
  };

  // Strictly better, so that the first of equals stays.
  static bool better(Value x, Value than) {
    if (than != than) return false;
    return (kMax ? x > than : x < than) || x != x;
  }
  static void step(Acc& a, Value x, int64_t index) {
    if (a.index < 0 || better(x, a.value)) a = {x, index};
  }

  static void init(void* acc, int64_t n) {
    for (int64_t i = 0; i < n; ++i) static_cast<Acc*>(acc)[i] = {Value{}, -1};
  }

  static void merge(void* acc, const void* later, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      const Acc& b = static_cast<const Acc*>(later)[i];
      if (b.index >= 0) step(static_cast<Acc*>(acc)[i], b.value, b.index);
    }
  }

  // Finds the extreme of a block with vectors, then its first place.
  static void fold_contiguous(Acc& acc, const T* p, int64_t n, int64_t index) {
    constexpr int64_t kStep = 512;
    for (int64_t i = 0; i + kStep <= n; i += kStep) {
      V8<Value> a = load8(p + i), b = load8(p + i + 8);
      for (int64_t j = 16; j < kStep; j += 16) {
        const V8<Value> x = load8(p + i + j), y = load8(p + i + j + 8);
        a = ((kMax ? x > a : x < a) | (x != x)) ? x : a;
        b = ((kMax ? y > b : y < b) | (y != y)) ? y : b;
      }
      a = ((kMax ? b > a : b < a) | (b != b)) ? b : a;
      Value best = a[0];
      for (int l = 1; l < 8; ++l) best = better(a[l], best) ? Value(a[l]) : best;
      if (acc.index >= 0 && !better(best, acc.value)) continue;
      int64_t j = i;
      while (best != best ? widen(p[j]) == widen(p[j]) : widen(p[j]) != best) ++j;
      acc = {best, index + j};
    }
    for (int64_t i = n / kStep * kStep; i < n; ++i) step(acc, widen(p[i]), index + i);
  }

  static void fold(void* accs, const void* in, int64_t kept, int64_t kept_stride, int64_t reduced,
                   int64_t reduced_stride, int64_t index) {
    Acc* acc = static_cast<Acc*>(accs);
    const T* p = static_cast<const T*>(in);
    if (reduced_stride == 1) {
      for (int64_t k = 0; k < kept; ++k)
        fold_contiguous(acc[k], p + k * kept_stride, reduced, index);
    } else if (reduced_stride < kept_stride) {
      for (int64_t k = 0; k < kept; ++k) {
        const T* q = p + k * kept_stride;
        for (int64_t r = 0; r < reduced; ++r) step(acc[k], widen(q[r * reduced_stride]), index + r);
      }
    } else {
      for (int64_t r = 0; r < reduced; ++r) {
        const T* q = p + r * reduced_stride;
        for (int64_t k = 0; k < kept; ++k) step(acc[k], widen(q[k * kept_stride]), index + r);
      }
    }
  }

  static constexpr Reducer table() { return {sizeof(Acc), init, fold, merge}; }
};

// With `values`, outputs are (values, indices), else (indices).
template <bool kMax>
absl::Status arg(const KernelCall& call, Context& context, const char* name, bool values) {
  const TensorView& in = call.inputs[0];
  const Attribute& dim = attribute(call, 0);
  const uint32_t dims = reduced_dims(dim, in.rank) & ((1u << in.rank) - 1);
  GW_RETURN_IF_ERROR(check_not_empty(name, in, dims, dim.none()));
  const TensorView& out0 = call.outputs[0];
  const TensorView* out1 = values ? &call.outputs[1] : nullptr;
  return dispatch_dtype(in.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    using Acc = typename Arg<T, kMax>::Acc;
    return reduce(
        in, out0, out1, dims, true, Arg<T, kMax>::table(),
        [&](const void* accs, int64_t n, const auto& offsets, const auto& strides) {
          const Acc* acc = static_cast<const Acc*>(accs);
          const int which = values ? 1 : 0;
          int64_t* index = static_cast<int64_t*>(address(values ? *out1 : out0, offsets[which]));
          for (int64_t i = 0; i < n; ++i) index[i * strides[which]] = acc[i].index;
          if (!values) return;
          T* value = static_cast<T*>(address(out0, offsets[0]));
          for (int64_t i = 0; i < n; ++i) value[i * strides[0]] = convert<T>(acc[i].value);
        },
        context);
  });
}

absl::Status argmax(const KernelCall& call, Context& context) {
  return arg<true>(call, context, "argmax", false);
}

absl::Status argmin(const KernelCall& call, Context& context) {
  return arg<false>(call, context, "argmin", false);
}

absl::Status max_dim(const KernelCall& call, Context& context) {
  return arg<true>(call, context, "max", true);
}

absl::Status min_dim(const KernelCall& call, Context& context) {
  return arg<false>(call, context, "min", true);
}

GW_CPU_KERNEL("argmax", argmax);
GW_CPU_KERNEL("argmin", argmin);
GW_CPU_KERNEL("max_dim", max_dim);
GW_CPU_KERNEL("min_dim", min_dim);

}  // namespace
}  // namespace gradwire::cpu
