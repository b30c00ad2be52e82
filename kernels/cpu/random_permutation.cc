// randperm and multinomial.
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>

#include "kernels/cpu/index_convert.h"
#include "kernels/cpu/random_generate.h"
#include "kernels/cpu/random_math.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/sort_keys.h"
#include "kernels/error.h"

namespace gradwire::cpu {
namespace {

// The order of n random 64-bit keys.
absl::Status randperm(const KernelCall& call, Context& context) {
  const TensorView& out = call.outputs[0];
  const int64_t n = out.numel();
  if (n == 0) return absl::OkStatus();
  Scratch scratch(2 * static_cast<size_t>(n) * sizeof(Entry64));
  if (scratch.data() == nullptr) {
    return make_error(ErrorKind::kOutOfMemory, "[randperm] out of memory");
  }
  Entry64* entries = scratch.as<Entry64>();
  context.pool.parallel_ranges(n, kRandomGrain, [&](int64_t begin, int64_t end) {
    constexpr int64_t kBlock = kRandomBlock / 2;
    uint32_t words[kRandomBlock];
    for (int64_t i = begin; i < end; i += kBlock) {
      const int64_t count = std::min(kBlock, end - i);
      draw<2>(call, i, count, words);
      for (int64_t j = 0; j < count; ++j) {
        entries[i + j] = {word64(words + 2 * j), static_cast<uint64_t>(i + j)};
      }
    }
  });
  sort_entries(entries, entries + n, n);
  const Space<1> space = space_of<1>({&out});
  int64_t values[512];
  for (int64_t i = 0; i < n; i += 512) {
    const int64_t count = std::min<int64_t>(512, n - i);
    for (int64_t j = 0; j < count; ++j) values[j] = position_of(entries[i + j]);
    store_range(out, space, i, count, values);
  }
  return absl::OkStatus();
}

// The 64-bit element number i of the call's stream.
std::array<uint32_t, 2> element_words(const KernelCall& call, int64_t i) {
  const auto w = philox(call.seed, call.offset + static_cast<uint64_t>(i / 2));
  return i % 2 == 0 ? std::array{w[0], w[1]} : std::array{w[2], w[3]};
}

absl::Status check_row(const double* p, int64_t k, int64_t n, bool replacement) {
  double sum = 0;
  int64_t nonzero = 0;
  for (int64_t i = 0; i < k; ++i) {
    if (!(p[i] >= 0 && p[i] < INFINITY)) {
      return runtime_error("[multinomial] probability tensor contains either `inf`, `nan` or ",
                           "element < 0: ", p[i]);
    }
    sum += p[i];
    nonzero += p[i] > 0;
  }
  if (!(sum > 0)) {
    return runtime_error("[multinomial] invalid multinomial distribution ",
                         "(sum of probabilities <= 0)");
  }
  if (!replacement && nonzero < n) {
    return runtime_error("[multinomial] invalid multinomial distribution (with replacement=False, ",
                         "not enough non-negative category to sample): ", n, " of ", nonzero);
  }
  return absl::OkStatus();
}

// Draws of the cumulated distribution; `first` numbers the row's first draw.
void draw_replaced(const KernelCall& call, const double* p, int64_t k, int64_t first, int64_t n,
                   double* cumulated, int64_t* to) {
  double sum = 0;
  int64_t last = 0;
  for (int64_t i = 0; i < k; ++i) {
    sum += p[i];
    cumulated[i] = sum;
    if (p[i] > 0) last = i;
  }
  for (int64_t i = 0; i < n; ++i) {
    const double u = uniform64(element_words(call, first + i).data()) * sum;
    const int64_t at = std::upper_bound(cumulated, cumulated + k, u) - cumulated;
    to[i] = std::min(at, last);  // u may round up to the sum
  }
}

struct Arrival {
  double time;
  int64_t category;

  bool operator<(const Arrival& o) const {
    return time != o.time ? time < o.time : category < o.category;
  }
};

// An exponential race: the first n arrivals at rates p (Efraimidis and Spirakis 2006).
void draw_distinct(const KernelCall& call, const double* p, int64_t k, int64_t first, int64_t n,
                   Arrival* arrivals, int64_t* to) {
  int64_t runners = 0;
  for (int64_t i = 0; i < k; ++i) {
    if (p[i] <= 0) continue;
    const double u = open_uniform64(element_words(call, first + i).data());
    arrivals[runners++] = {-std::log(u) / p[i], i};
  }
  std::partial_sort(arrivals, arrivals + n, arrivals + runners);
  for (int64_t i = 0; i < n; ++i) to[i] = arrivals[i].category;
}

absl::Status multinomial(const KernelCall& call, Context& context) {
  const TensorView& probs = call.inputs[0];
  const TensorView& out = call.outputs[0];
  const int64_t n = attribute(call, 0).as_int();
  const bool replacement = attribute(call, 1).as_bool();
  const int64_t k = probs.rank == 0 ? 1 : probs.sizes[probs.rank - 1];
  if (n <= 0) return runtime_error("[multinomial] cannot sample n_sample <= 0 samples, got ", n);
  if (!replacement && n > k) {
    return runtime_error("[multinomial] cannot sample n_sample > prob_dist.size(-1) samples ",
                         "without replacement: ", n, " > ", k);
  }
  const int64_t rows = out.numel() / n;
  if (rows == 0) return absl::OkStatus();
  Scratch scratch(8 * static_cast<size_t>(rows) * static_cast<size_t>(k) + 1);
  if (scratch.data() == nullptr) {
    return make_error(ErrorKind::kOutOfMemory, "[multinomial] out of memory");
  }
  double* p = scratch.as<double>();
  const int64_t grain = std::max<int64_t>(1, 8192 / std::max<int64_t>(1, k));
  context.pool.parallel_ranges(rows, grain, [&](int64_t begin, int64_t end) {
    convert_range(probs, begin * k, end * k, DType::kFloat64, p + begin * k);
  });
  for (int64_t row = 0; row < rows; ++row) {
    GW_RETURN_IF_ERROR(check_row(p + row * k, k, n, replacement));
  }
  const Space<1> space = space_of<1>({&out});
  std::atomic<bool> full{true};
  context.pool.parallel_ranges(rows, grain, [&](int64_t begin, int64_t end) {
    Scratch working(static_cast<size_t>(k) * sizeof(Arrival));
    Scratch result(static_cast<size_t>(n) * sizeof(int64_t));
    int64_t* drawn = result.as<int64_t>();
    if (working.data() == nullptr || drawn == nullptr) {
      full = false;
      return;
    }
    for (int64_t row = begin; row < end; ++row) {
      if (replacement) {
        draw_replaced(call, p + row * k, k, row * n, n, working.as<double>(), drawn);
      } else {
        draw_distinct(call, p + row * k, k, row * k, n, working.as<Arrival>(), drawn);
      }
      store_range(out, space, row * n, n, drawn);
    }
  });
  if (!full) return make_error(ErrorKind::kOutOfMemory, "[multinomial] out of memory");
  return absl::OkStatus();
}

GW_CPU_KERNEL("randperm", randperm);
GW_CPU_KERNEL("multinomial", multinomial);

}  // namespace
}  // namespace gradwire::cpu
