// sort, topk, kthvalue, median, nanmedian, mode. Equal elements keep their order, whether asked to
// or not; kthvalue names the one that torch's quickselect would.
#include <algorithm>
#include <atomic>

#include "kernels/cpu/index_space.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/sort_keys.h"
#include "kernels/error.h"

namespace gradwire::cpu {
namespace {

absl::Status no_memory(const char* op) {
  return make_error(ErrorKind::kOutOfMemory, absl::StrCat("[", op, "] out of memory"));
}

// Calls select(entries, spare, n), which orders the entries of one line, then writes the first
// `keep` of them, from entry `from` on, as (value, index).
template <class Select>
absl::Status by_lines(const char* op, const KernelCall& call, int64_t dim, bool descending,
                      int64_t from, int64_t keep, Context& context, Select&& select) {
  const TensorView& x = call.inputs[0];
  const TensorView& values = call.outputs[0];
  const TensorView& indices = call.outputs[1];
  const Lines<3> lines = lines_of<3>({&x, &values, &indices}, dim);
  const int64_t n = lines.lengths[0];
  if (n == 0 || lines.outer.numel == 0 || keep == 0) return absl::OkStatus();
  if (n > int64_t{UINT32_MAX}) return runtime_error("[", op, "] line of ", n, " is too long");
  std::atomic<bool> full{true};
  const int64_t grain = std::max<int64_t>(1, 8192 / n);
  dispatch_dtype(x.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    using E = Entry<T>;
    context.pool.parallel_ranges(lines.outer.numel, grain, [&](int64_t begin, int64_t end) {
      Scratch scratch(2 * static_cast<size_t>(n) * sizeof(E));
      if (scratch.data() == nullptr) {
        full = false;
        return;
      }
      E* entries = scratch.as<E>();
      for (int64_t line = begin; line < end; ++line) {
        const auto at = lines.outer.offsets_of(line);
        const T* source = x.as<T>() + at[0];
        make_entries(source, lines.steps[0], n, descending, entries);
        select(entries, entries + n, n);
        T* value = values.as<T>() + at[1];
        int64_t* index = indices.as<int64_t>() + at[2];
        for (int64_t i = 0; i < keep; ++i) {
          const int64_t position = position_of(entries[from + i]);
          value[i * lines.steps[1]] = source[position * lines.steps[0]];
          index[i * lines.steps[2]] = position;
        }
      }
    });
  });
  return full ? absl::OkStatus() : no_memory(op);
}

int64_t line_length(const TensorView& x, int64_t dim) {
  return x.rank == 0 ? 1 : x.sizes[dim];
}

absl::Status sort(const KernelCall& call, Context& context) {
  const int64_t dim = attribute(call, 0).as_int();
  const bool descending = attribute(call, 1).as_bool();
  return by_lines("sort", call, dim, descending, 0, line_length(call.inputs[0], dim), context,
                  [](auto* entries, auto* spare, int64_t n) { sort_entries(entries, spare, n); });
}

absl::Status topk(const KernelCall& call, Context& context) {
  const int64_t k = attribute(call, 0).as_int();
  const int64_t dim = attribute(call, 1).as_int();
  const Attribute& given = attribute(call, 2);
  const bool largest = given.none() || given.as_bool();
  const int64_t length = line_length(call.inputs[0], dim);
  if (k < 0 || k > length) {
    return runtime_error("[topk] selected index k out of range: ", k, " of ", length);
  }
  // Asked for sorted or not, the result is: the order costs little and is deterministic.
  return by_lines("topk", call, dim, largest, 0, k, context,
                  [k](auto* entries, auto* spare, int64_t n) {
                    if (k > n / 8 && n >= 1024) {
                      sort_entries(entries, spare, n);
                    } else {
                      std::partial_sort(entries, entries + k, entries + n);
                    }
                  });
}

bool same_key(uint64_t a, uint64_t b) {
  return a >> 32 == b >> 32;
}
bool same_key(const Entry64& a, const Entry64& b) {
  return a.key == b.key;
}

bool above(uint64_t a, uint64_t b) {
  return a >> 32 > b >> 32;
}
bool above(const Entry64& a, const Entry64& b) {
  return a.key > b.key;
}

// Brings the k-th smallest to place k. Which of equals it is follows from torch's own steps: a
// pivot of three, then Hoare's partition.
template <class E>
void select_entry(E* e, int64_t k, int64_t n) {
  int64_t low = 0, high = n - 1;
  while (low < high) {
    if (high == low + 1) {
      if (above(e[low], e[high])) std::swap(e[low], e[high]);
      return;
    }
    std::swap(e[low + (high - low) / 2], e[low + 1]);
    if (above(e[low + 1], e[high])) std::swap(e[low + 1], e[high]);
    if (above(e[low], e[high])) std::swap(e[low], e[high]);
    if (above(e[low + 1], e[low])) std::swap(e[low + 1], e[low]);
    int64_t i = low + 1, j = high;
    const E pivot = e[low];
    while (true) {
      do ++i;
      while (above(pivot, e[i]));
      do --j;
      while (above(e[j], pivot));
      if (j < i) break;
      std::swap(e[i], e[j]);
    }
    std::swap(e[low], e[j]);
    if (j <= k) low = i;
    if (j >= k) high = j - 1;
  }
}

absl::Status kthvalue(const KernelCall& call, Context& context) {
  const int64_t k = attribute(call, 0).as_int();
  const int64_t dim = attribute(call, 1).as_int();
  const TensorView& x = call.inputs[0];
  const int64_t length = line_length(x, dim);
  if (length == 0 && call.outputs[0].numel() > 0) {
    return index_error("[kthvalue] Expected reduction dim ", dim, " to have non-zero size.");
  }
  if (length > 0 && (k < 1 || k > length)) {
    return runtime_error("[kthvalue] selected number k out of range for dimension ", dim, ": ", k,
                         " of ", length);
  }
  return by_lines("kthvalue", call, dim, false, k - 1, 1, context,
                  [k](auto* entries, auto*, int64_t n) { select_entry(entries, k - 1, n); });
}

// NaN sorts last, so a line has one exactly when its largest key is NaN's; then the first wins.
template <class E>
bool is_nan_entry(const E& entry, DType dtype) {
  if (!is_floating(dtype)) return false;
  if constexpr (std::is_same_v<E, Entry64>) {
    return entry.key == ~uint64_t{0};
  } else {
    return entry >> 32 == 0xffffffffu;
  }
}

absl::Status median(const KernelCall& call, Context& context) {
  const int64_t dim = attribute(call, 0).as_int();
  const TensorView& x = call.inputs[0];
  if (line_length(x, dim) == 0 && call.outputs[0].numel() > 0) {
    return index_error("[median] Expected reduction dim ", dim, " to have non-zero size.");
  }
  const DType dtype = x.dtype;
  return by_lines("median", call, dim, false, 0, 1, context,
                  [dtype](auto* entries, auto*, int64_t n) {
                    for (int64_t i = 0; i < n; ++i) {
                      if (!is_nan_entry(entries[i], dtype)) continue;
                      entries[0] = entries[i];
                      return;
                    }
                    auto* middle = entries + (n - 1) / 2;
                    std::nth_element(entries, middle, entries + n);
                    entries[0] = *middle;
                  });
}

// The lower median of the elements that are numbers; nan when there is none.
absl::Status nanmedian(const KernelCall& call, Context& context) {
  const int64_t dim = attribute(call, 0).as_int();
  const TensorView& x = call.inputs[0];
  if (line_length(x, dim) == 0 && call.outputs[0].numel() > 0) {
    return index_error("[nanmedian] Expected reduction dim ", dim, " to have non-zero size.");
  }
  const DType dtype = x.dtype;
  return by_lines(
      "nanmedian", call, dim, false, 0, 1, context, [dtype](auto* entries, auto*, int64_t n) {
        auto* numbers = std::partition(entries, entries + n,
                                       [dtype](const auto& e) { return !is_nan_entry(e, dtype); });
        if (numbers == entries) {
          entries[0] = *std::min_element(entries, entries + n);
          return;
        }
        auto* middle = entries + (numbers - entries - 1) / 2;
        std::nth_element(entries, middle, numbers);
        entries[0] = *middle;
      });
}

// The most frequent element, of several the smallest, and its last place; nan equals nothing.
absl::Status mode(const KernelCall& call, Context& context) {
  const int64_t dim = attribute(call, 0).as_int();
  const DType dtype = call.inputs[0].dtype;
  return by_lines(
      "mode", call, dim, false, 0, 1, context, [dtype](auto* entries, auto* spare, int64_t n) {
        sort_entries(entries, spare, n);
        int64_t most = 0, run = 0;
        auto best = entries[0];
        for (int64_t i = 0; i < n; ++i) {
          bool again =
              i > 0 && same_key(entries[i], entries[i - 1]) && !is_nan_entry(entries[i], dtype);
          run = again ? run + 1 : 1;
          if (run <= most) continue;
          most = run;
          best = entries[i];
        }
        entries[0] = best;
      });
}

GW_CPU_KERNEL("sort", sort);
GW_CPU_KERNEL("topk", topk);
GW_CPU_KERNEL("kthvalue", kthvalue);
GW_CPU_KERNEL("median", median);
GW_CPU_KERNEL("nanmedian", nanmedian);
GW_CPU_KERNEL("mode", mode);

}  // namespace
}  // namespace gradwire::cpu
