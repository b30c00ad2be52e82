// Updates over lists of parameters: all tensors of a step are cut in pieces of about the same
// size, whatever their number and sizes, and each piece is read, updated and written in one pass.
#pragma once

#include <array>
#include <atomic>
#include <vector>

#include "absl/status/status.h"
#include "kernels/backend.h"
#include "kernels/cpu/dense.h"

namespace gradwire::cpu {

// Elements [begin, end) of a parameter.
struct Piece {
  int64_t parameter, begin, end;
};

// Pieces in order; pieces [starts[i], starts[i + 1]) are one unit of work.
struct Pieces {
  std::vector<Piece> pieces;
  std::vector<int64_t> starts;
};
Pieces cut_parameters(const TensorView* parameters, int64_t count);

// Checks the lists of a step with `groups` lists of tensors: their number, that dtypes and sizes
// agree within a parameter, that every tensor of the first two groups is there.
absl::Status check_step(const char* op, const KernelCall& call, int64_t groups);

// The views with their dimensions in the order of the first one's strides, so that dense tensors
// of one memory format become runs.
template <size_t kGroups>
std::array<IndexMap, kGroups> maps_of(const std::array<TensorView, kGroups>& views) {
  std::array<int, kMaxRank> order;
  int rank = views[0].rank;
  for (int d = 0; d < rank; ++d) order[d] = d;
  std::stable_sort(order.begin(), order.begin() + rank,
                   [&](int a, int b) { return views[0].strides[a] > views[0].strides[b]; });
  std::array<IndexMap, kGroups> maps;
  for (size_t g = 0; g < kGroups; ++g) {
    if (!views[g].present()) continue;
    for (int d = 0; d < rank; ++d) {
      maps[g].add(views[g].sizes[order[d]], views[g].strides[order[d]]);
    }
  }
  return maps;
}

// Calls row(parameter, pointers, n) for runs of elements; pointers[g] is null for an absent tensor.
// Group 1, the gradients, is read only; all others are written back.
template <class T, size_t kGroups, class Row>
absl::Status update_lists(const KernelCall& call, int64_t count, ThreadPool& pool, Row&& row) {
  using C = ComputeOf<T>;
  constexpr int64_t kRun = 1024;
  Pieces work = cut_parameters(call.inputs.data(), count);
  std::atomic<bool> failed = false;
  auto unit = [&](int64_t u) {
    Scratch scratch(kGroups * kRun * sizeof(C));
    if (!scratch.data()) {
      failed = true;
      return;
    }
    for (int64_t i = work.starts[u]; i < work.starts[u + 1]; ++i) {
      const Piece& piece = work.pieces[i];
      std::array<TensorView, kGroups> views;
      for (size_t g = 0; g < kGroups; ++g) views[g] = call.inputs[g * count + piece.parameter];
      bool direct = std::is_same_v<T, C>;
      for (const TensorView& view : views) direct = direct && view.contiguous();
      std::array<IndexMap, kGroups> maps;
      if (!direct) {
        maps = maps_of<kGroups>(views);
        direct = std::is_same_v<T, C>;
        for (const IndexMap& map : maps) direct = direct && map.linear() && map.step() == 1;
      }
      std::array<C*, kGroups> at{};
      if (direct) {
        for (size_t g = 0; g < kGroups; ++g) {
          if (views[g].present()) at[g] = views[g].template as<C>() + piece.begin;
        }
        row(piece.parameter, at, piece.end - piece.begin);
        continue;
      }
      for (int64_t first = piece.begin; first < piece.end; first += kRun) {
        int64_t n = std::min(kRun, piece.end - first);
        for (size_t g = 0; g < kGroups; ++g) {
          if (!views[g].present()) continue;
          at[g] = scratch.as<C>() + static_cast<int64_t>(g) * kRun;
          gather(views[g].template as<const T>(), maps[g], first, n, at[g]);
        }
        row(piece.parameter, at, n);
        for (size_t g = 0; g < kGroups; ++g) {
          if (g != 1 && at[g]) scatter(at[g], n, views[g].template as<T>(), maps[g], first);
        }
      }
    }
  };
  // Scratch is asked for once up front: a step must not fail half way.
  {
    Scratch probe(kGroups * kRun * sizeof(C));
    if (!probe.data()) return scratch_error();
  }
  pool.parallel_for(static_cast<int64_t>(work.starts.size()) - 1, unit);
  return failed ? scratch_error() : absl::OkStatus();
}

// Dispatches on each parameter's dtype: lists of one dtype in one go, mixed lists dtype by dtype.
template <size_t kGroups, class Run>
absl::Status by_dtype(const KernelCall& call, int64_t count, Run&& run) {
  absl::Status status;
  for (DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16}) {
    std::vector<int64_t> members;
    for (int64_t p = 0; p < count; ++p) {
      if (call.inputs[p].dtype == dtype) members.push_back(p);
    }
    if (members.empty()) continue;
    KernelCall part;
    const KernelCall* lists = &call;
    if (static_cast<int64_t>(members.size()) != count) {
      for (size_t g = 0; g < kGroups; ++g) {
        for (int64_t p : members) part.inputs.push_back(call.inputs[g * count + p]);
      }
      lists = &part;
    }
    visit_floating(dtype, [&](auto tag) { status = run(tag, *lists, members); });
    GW_RETURN_IF_ERROR(status);
  }
  return absl::OkStatus();
}

}  // namespace gradwire::cpu
