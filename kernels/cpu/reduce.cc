#include "kernels/cpu/reduce.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "kernels/cpu/element_source.h"
#include "kernels/cpu/index_space.h"
#include "kernels/cpu/index_types.h"
#include "kernels/cpu/scratch.h"
#include "kernels/error.h"

namespace gradwire::cpu {
namespace {

constexpr int64_t kUnit = 65536;    // elements of one unit of work
constexpr int64_t kBlock = 512;     // accumulators of one unit
constexpr int64_t kMaxRows = 8192;  // rows folded in a sequence before parts are merged

struct Dim {
  int64_t size;
  std::array<int64_t, 3> strides;  // input, outputs
};

void sort_by_input_stride(absl::InlinedVector<Dim, kMaxRank>& dims) {
  std::stable_sort(dims.begin(), dims.end(),
                   [](const Dim& a, const Dim& b) { return a.strides[0] > b.strides[0]; });
}

// How the elements that one unit of work folds lie in the input's memory: where that is one piece,
// a source computes the piece; where each row of outputs is one, it computes row after row.
enum class Pieces { kWhole, kRows, kNone };

Pieces pieces_of(const Space<3>& kept, const Space<1>& rows, int64_t block) {
  const int64_t width = kept.inner_size(), kept_stride = kept.inner_stride(0);
  if (rows.rank <= 1) {
    const bool inner = rows.numel == 1 || rows.inner_stride(0) == 1;
    if (inner && (block == 1 || kept_stride == rows.numel)) return Pieces::kWhole;
    if (kept_stride == 1 && block >= width && rows.inner_stride(0) == width) return Pieces::kWhole;
  }
  return kept_stride == 1 ? Pieces::kRows : Pieces::kNone;
}

}  // namespace

uint32_t reduced_dims(const Attribute& dims, int rank) {
  if (dims.is_int()) return 1u << dims.as_int();
  if (dims.as_ints().empty()) return (1u << rank) - 1;
  uint32_t mask = 0;
  for (int64_t d : dims.as_ints()) mask |= 1u << d;
  return mask;
}

int64_t reduced_numel(const TensorView& in, uint32_t dims) {
  int64_t n = 1;
  for (int d = 0; d < in.rank; ++d) {
    if (dims >> d & 1) n *= in.sizes[d];
  }
  return n;
}

absl::Status reduce(const TensorView& in, const TensorView& out0, const TensorView* out1,
                    uint32_t dims, bool ordered, const Reducer& reducer,
                    const StoreAccumulators& store, Context& context) {
  absl::InlinedVector<Dim, kMaxRank> kept_dims, reduced;
  for (int d = 0; d < in.rank; ++d) {
    if (dims >> d & 1) {
      reduced.push_back({in.sizes[d], {in.strides[d], 0, 0}});
    } else {
      kept_dims.push_back(
          {in.sizes[d], {in.strides[d], out0.strides[d], out1 ? out1->strides[d] : 0}});
    }
  }
  sort_by_input_stride(kept_dims);
  if (!ordered) sort_by_input_stride(reduced);
  Space<3> kept;
  Space<1> rows;
  for (const Dim& d : kept_dims) kept.push(d.size, d.strides);
  for (const Dim& d : reduced) rows.push(d.size, {d.strides[0]});
  if (kept.numel == 0) return absl::OkStatus();

  const int64_t width = kept.inner_size();
  const int64_t kept_stride = kept.inner_stride(0);
  const int64_t row_stride = rows.inner_stride(0);
  const bool along_rows = row_stride <= kept_stride || width == 1;
  const int64_t block = along_rows ? std::clamp<int64_t>(kUnit / std::max<int64_t>(rows.numel, 1),
                                                         1, std::min(kBlock, width))
                                   : std::min(kBlock, width);
  int64_t chunk = along_rows ? kUnit : std::clamp<int64_t>(kUnit / block, 1, kMaxRows);
  if (rows.numel <= 2 * chunk) chunk = std::max<int64_t>(rows.numel, 1);
  const int64_t chunks = std::max<int64_t>(1, (rows.numel + chunk - 1) / chunk);
  const int64_t blocks = (width + block - 1) / block;
  const int64_t outputs = kept.numel / width * blocks;  // blocks of outputs

  const ElementSource* source = context.source;
  const Pieces pieces = pieces_of(kept, rows, block);
  if (source && pieces == Pieces::kNone) return absl::UnimplementedError("[reduce] no source");
  const size_t element = dtype_size(in.dtype);
  std::atomic<bool> failed{false};
  // Folds row runs of outputs [first, first + n) from a source: the same calls as from memory, on
  // a copy in the same order.
  auto fold_source = [&](void* acc, int64_t base, int64_t n, int64_t begin, int64_t end) {
    if (pieces == Pieces::kWhole) {
      if (begin >= end) return absl::OkStatus();
      const int64_t low = base + rows.offsets_of(begin)[0];
      const int64_t high =
          base + rows.offsets_of(end - 1)[0] + (n - 1) * (n > 1 ? kept_stride : 0) + 1;
      Scratch window(element * (high - low));
      if (window.data() == nullptr) return absl::ResourceExhaustedError("[reduce] no memory");
      GW_RETURN_IF_ERROR(source->produce(low, high, window.data()));
      for_runs(rows, begin, end, [&](const auto& row, int64_t count, int64_t linear) {
        reducer.fold(acc, window.as<char>() + element * (base + row[0] - low), n, kept_stride,
                     count, row_stride, linear);
      });
      return absl::OkStatus();
    }
    // Wider than n, so that the copy is as far from contiguous along rows as the memory was.
    const int64_t stride = n + 8;
    Scratch window(element * stride * std::max<int64_t>(end - begin, 1));
    if (window.data() == nullptr) return absl::ResourceExhaustedError("[reduce] no memory");
    absl::Status status;
    for_runs(rows, begin, end, [&](const auto& row, int64_t count, int64_t linear) {
      for (int64_t r = 0; r < count && status.ok(); ++r) {
        const int64_t low = base + row[0] + r * row_stride;
        status = source->produce(low, low + n, window.as<char>() + element * stride * r);
      }
      if (status.ok()) reducer.fold(acc, window.data(), n, 1, count, stride, linear);
    });
    return status;
  };

  const size_t acc_size = reducer.acc_size;
  Scratch scratch(chunks > 1 ? acc_size * chunks * kept.numel : 1);
  if (scratch.data() == nullptr) return make_error(ErrorKind::kOutOfMemory, "[reduce] no memory");
  auto part = [&](int64_t c, int64_t k) {
    return scratch.as<char>() + acc_size * (c * kept.numel + k);
  };
  const std::array<int64_t, 2> strides{kept.inner_stride(1), kept.inner_stride(2)};

  auto fold_unit = [&](int64_t unit) {
    alignas(64) char local[kBlock * kMaxAccumulator];
    const int64_t c = unit / outputs;
    const int64_t outer = unit % outputs / blocks;
    const int64_t begin = unit % outputs % blocks * block;
    const int64_t n = std::min(block, width - begin);
    const int64_t first = outer * width + begin;
    const auto offsets = kept.offsets_of(first);
    void* acc = chunks > 1 ? part(c, first) : local;
    reducer.init(acc, n);
    if (source) {
      if (!fold_source(acc, offsets[0], n, c * chunk, std::min(rows.numel, (c + 1) * chunk)).ok()) {
        failed.store(true);
      }
      if (chunks == 1) store(acc, n, {offsets[1], offsets[2]}, strides);
      return;
    }
    for_runs(rows, c * chunk, std::min(rows.numel, (c + 1) * chunk),
             [&](const auto& row, int64_t count, int64_t linear) {
               reducer.fold(acc, address(in, offsets[0] + row[0]), n, kept_stride, count,
                            row_stride, linear);
             });
    if (chunks == 1) store(acc, n, {offsets[1], offsets[2]}, strides);
  };
  const int64_t unit_elements = std::max<int64_t>(1, block * std::min(chunk, rows.numel));
  context.pool.parallel_ranges(chunks * outputs, std::max<int64_t>(1, kUnit / unit_elements),
                               [&](int64_t begin, int64_t end) {
                                 for (int64_t u = begin; u < end; ++u) fold_unit(u);
                               });
  if (failed.load()) return make_error(ErrorKind::kOutOfMemory, "[reduce] no memory");
  if (chunks == 1) return absl::OkStatus();

  context.pool.parallel_for(outputs, [&](int64_t i) {
    const int64_t begin = i % blocks * block;
    const int64_t n = std::min(block, width - begin);
    const int64_t first = i / blocks * width + begin;
    for (int64_t step = 1; step < chunks; step *= 2) {
      for (int64_t c = 0; c + step < chunks; c += 2 * step) {
        reducer.merge(part(c, first), part(c + step, first), n);
      }
    }
    const auto offsets = kept.offsets_of(first);
    store(part(0, first), n, {offsets[1], offsets[2]}, strides);
  });
  return absl::OkStatus();
}

}  // namespace gradwire::cpu
