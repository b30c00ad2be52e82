// bmm, addmm and linear: one product of batched matrices with an optional addend.
#include <atomic>

#include "kernels/cpu/dense.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/registry.h"

namespace gradwire::cpu {
namespace {

// out = beta * addend + alpha * a b. All views have three dimensions; the addend, if present, has
// the sizes of out.
struct Product {
  TensorView a, b, addend, out;
  double alpha = 1;
  double beta = 0;

  int64_t batch() const { return out.sizes[0]; }
  int64_t rows() const { return out.sizes[1]; }
  int64_t cols() const { return out.sizes[2]; }
  int64_t depth() const { return a.sizes[2]; }
};

template <class T>
Matrix<T> matrix_at(const TensorView& view, int64_t batch) {
  return {view.as<T>() + batch * view.strides[0], view.sizes[1], view.sizes[2], view.strides[1],
          view.strides[2]};
}

// Batches that share b become rows of one matrix.
void fold_batch(Product& p) {
  auto folds = [](const TensorView& v) {
    return v.sizes[1] == 1 || v.sizes[0] == 1 || v.strides[0] == v.sizes[1] * v.strides[1];
  };
  if (p.batch() <= 1 || p.b.strides[0] != 0 || !folds(p.a) || !folds(p.out)) return;
  if (p.addend.present() && !folds(p.addend)) return;
  for (TensorView* v : {&p.a, &p.out, &p.addend}) {
    if (!v->present()) continue;
    if (v->sizes[1] == 1) v->strides[1] = v->strides[0];
    v->sizes[1] *= v->sizes[0];
    v->sizes[0] = 1;
  }
  p.b.sizes[0] = 1;
}

// How a product is cut, by shape alone: blocks of rows or of columns, and matrices per claim.
struct Cut {
  int64_t row_block, col_block, row_blocks, col_blocks, grain;
};

Cut cut_of(const Product& p) {
  int64_t m = p.rows(), n = p.cols(), k = std::max<int64_t>(p.depth(), 1);
  double work = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  // A thin product is bound by memory, so less arithmetic fills the same time.
  double unit = std::min(m, n) < 8 ? 2.5e5 : 4e6;
  int64_t most = std::max<int64_t>(1, 16 / std::max<int64_t>(p.batch(), 1));
  int64_t blocks = std::clamp<int64_t>(static_cast<int64_t>(work / unit), 1, most);
  Cut cut{m, n, 1, 1, 1};
  if (blocks > 1 && m >= n) {
    cut.row_block = ((m + blocks - 1) / blocks + 15) / 16 * 16;
    cut.row_blocks = (m + cut.row_block - 1) / cut.row_block;
  } else if (blocks > 1) {
    cut.col_block = ((n + blocks - 1) / blocks + 15) / 16 * 16;
    cut.col_blocks = (n + cut.col_block - 1) / cut.col_block;
  } else {
    cut.grain = std::max<int64_t>(1, static_cast<int64_t>(unit / 2 / (work + 1)));
  }
  return cut;
}

// Calls f(batch, row, rows, col, cols) for every block.
template <class F>
void for_blocks(const Product& p, ThreadPool& pool, F&& f) {
  Cut cut = cut_of(p);
  int64_t per_matrix = cut.row_blocks * cut.col_blocks;
  pool.parallel_ranges(p.batch() * per_matrix, cut.grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t row = i % per_matrix / cut.col_blocks * cut.row_block;
      int64_t col = i % cut.col_blocks * cut.col_block;
      f(i / per_matrix, row, std::min(cut.row_block, p.rows() - row), col,
        std::min(cut.col_block, p.cols() - col));
    }
  });
}

template <class T, class C>
void add_block(const Matrix<const T>& addend, C alpha, C beta, const Matrix<C>& to, bool replace) {
  for (int64_t r = 0; r < to.rows; ++r) {
    for (int64_t j = 0; j < to.cols; ++j) {
      C x = beta * static_cast<C>(*addend.at(r, j));
      C* at = to.at(r, j);
      *at = replace ? x : alpha * *at + x;
    }
  }
}

template <class T, class C>
void store_block(const Matrix<C>& from, const Matrix<T>& to) {
  IndexMap map;
  map.add(to.cols, to.col_stride);
  for (int64_t r = 0; r < to.rows; ++r) scatter(from.at(r, 0), to.cols, to.at(r, 0), map, 0);
}

// A view of one matrix per distinct batch, in C, that gemm can take.
template <class C>
class Operand {
 public:
  Operand(TensorView view, ThreadPool& pool) : view_(view) {
    bool shared = view.strides[0] == 0;
    if (view.dtype == dtype_of<C>() && matrix_at<const C>(view, 0).blas_ready()) return;
    TensorView source = view;
    if (shared) source.sizes[0] = 1;
    scratch_.emplace(static_cast<size_t>(source.numel()) * sizeof(C) + 64);
    if (!scratch_->data()) return;
    copy_in<C>(source, scratch_->as<C>(), pool);
    view_.data = scratch_->data();
    view_.strides[0] = shared ? 0 : view.sizes[1] * view.sizes[2];
    view_.strides[1] = view.sizes[2];
    view_.strides[2] = 1;
  }
  bool ok() const { return !scratch_ || scratch_->data(); }
  Matrix<const C> at(int64_t batch) const { return matrix_at<const C>(view_, batch); }

 private:
  TensorView view_;
  std::optional<Scratch> scratch_;
};

template <class T>
absl::Status multiply_floating(const Product& p, ThreadPool& pool) {
  using C = ComputeOf<T>;
  Operand<C> a(p.a, pool);
  Operand<C> b(p.b, pool);
  if (!a.ok() || !b.ok()) return scratch_error();
  bool add = p.addend.present() && p.beta != 0;
  C alpha = static_cast<C>(p.alpha);
  C beta = static_cast<C>(p.beta);
  std::atomic<bool> failed = false;
  for_blocks(p, pool, [&](int64_t batch, int64_t row, int64_t rows, int64_t col, int64_t cols) {
    Matrix<T> out = matrix_at<T>(p.out, batch).block(row, rows, col, cols);
    bool direct = std::is_same_v<T, C> && out.blas_ready();
    std::optional<Scratch> scratch;
    Matrix<C> to{nullptr, rows, cols, cols, 1};
    if (direct) {
      to = {reinterpret_cast<C*>(out.data), rows, cols, out.row_stride, out.col_stride};
    } else {
      scratch.emplace(static_cast<size_t>(rows * cols) * sizeof(C) + 64);
      to.data = scratch->as<C>();
      if (!to.data) {
        failed = true;
        return;
      }
    }
    if (add) {
      auto addend = matrix_at<const T>(p.addend, batch).block(row, rows, col, cols);
      add_block<T, C>(addend, 1, beta, to, true);
    }
    gemm(alpha, a.at(batch).block(row, rows, 0, p.depth()),
         b.at(batch).block(0, p.depth(), col, cols), add ? C(1) : C(0), to);
    if (!direct) store_block(to, out);
  });
  return failed ? scratch_error() : absl::OkStatus();
}

// Products of bfloat16 without a float32 copy of the operands; false when this processor or the
// operands do not allow it.
bool multiply_bfloat16(const Product& p, ThreadPool& pool, absl::Status& status) {
  auto suits = [](const TensorView& v) { return matrix_at<const uint16_t>(v, 0).blas_ready(); };
  if (!suits(p.a) || !suits(p.b) || p.depth() == 0 || p.out.numel() == 0) return false;
  bool add = p.addend.present() && p.beta != 0;
  std::atomic<bool> failed = false;
  std::atomic<bool> unable = false;
  auto one = [&](int64_t batch, int64_t row, int64_t rows, int64_t col, int64_t cols) {
    if (unable) return;
    Scratch scratch(static_cast<size_t>(rows * cols) * sizeof(float) + 64);
    if (!scratch.data()) {
      failed = true;
      return;
    }
    Matrix<float> to{scratch.as<float>(), rows, cols, cols, 1};
    auto a = matrix_at<const uint16_t>(p.a, batch).block(row, rows, 0, p.depth());
    auto b = matrix_at<const uint16_t>(p.b, batch).block(0, p.depth(), col, cols);
    if (!gemm_bfloat16(a, b, to)) {
      unable = true;
      return;
    }
    auto alpha = static_cast<float>(p.alpha);
    auto beta = static_cast<float>(p.beta);
    if (add) {
      auto addend = matrix_at<const BFloat16>(p.addend, batch).block(row, rows, col, cols);
      add_block<BFloat16, float>(addend, alpha, beta, to, false);
    } else if (alpha != 1) {
      for (int64_t i = 0; i < rows * cols; ++i) to.data[i] *= alpha;
    }
    store_block(to, matrix_at<BFloat16>(p.out, batch).block(row, rows, col, cols));
  };
  for_blocks(p, pool, one);
  if (failed) status = scratch_error();
  return !unable;
}

template <class T>
void multiply_integral(const Product& p, ThreadPool& pool) {
  bool add = p.addend.present() && p.beta != 0;
  auto alpha = static_cast<uint64_t>(static_cast<int64_t>(p.alpha));
  auto beta = static_cast<uint64_t>(static_cast<int64_t>(p.beta));
  for_blocks(p, pool, [&](int64_t batch, int64_t row, int64_t rows, int64_t col, int64_t cols) {
    Matrix<T> out = matrix_at<T>(p.out, batch).block(row, rows, col, cols);
    gemm_integer<T>(matrix_at<const T>(p.a, batch).block(row, rows, 0, p.depth()),
                    matrix_at<const T>(p.b, batch).block(0, p.depth(), col, cols), out);
    if (!add && alpha == 1) return;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t j = 0; j < cols; ++j) {
        uint64_t x = alpha * static_cast<uint64_t>(*out.at(r, j));
        if (add) {
          x += beta *
               static_cast<uint64_t>(*matrix_at<const T>(p.addend, batch).at(row + r, col + j));
        }
        *out.at(r, j) = static_cast<T>(x);
      }
    }
  });
}

absl::Status multiply(const char* op, Product p, ThreadPool& pool) {
  if (p.out.numel() == 0) return absl::OkStatus();
  fold_batch(p);
  absl::Status status;
  DType dtype = p.out.dtype;
  if (dtype == DType::kBFloat16 && multiply_bfloat16(p, pool, status)) return status;
  bool known =
      visit_floating(dtype, [&](auto tag) { status = multiply_floating<decltype(tag)>(p, pool); });
  if (!known && dtype != DType::kBool) {
    known = visit_integral(dtype, [&](auto tag) { multiply_integral<decltype(tag)>(p, pool); });
  }
  return known ? status : dtype_error(op, dtype);
}

// A matrix or vector as a batch of one matrix of the given sizes; missing and size-1 dimensions
// broadcast.
TensorView as_batch(const TensorView& view, int64_t rows, int64_t cols) {
  if (!view.present()) return view;
  TensorView out = view;
  out.rank = 3;
  int64_t sizes[2] = {rows, cols};
  out.sizes[0] = 1;
  out.strides[0] = 0;
  for (int d = 0; d < 2; ++d) {
    int from = view.rank - 2 + d;
    out.sizes[d + 1] = sizes[d];
    bool given = from >= 0 && (view.sizes[from] != 1 || sizes[d] == 1);
    out.strides[d + 1] = given ? view.strides[from] : 0;
  }
  return out;
}

absl::Status bmm(const KernelCall& call, Context& context) {
  Product p{call.inputs[0], call.inputs[1], TensorView{}, call.outputs[0]};
  return multiply("bmm", p, context.pool);
}
GW_CPU_KERNEL("bmm", bmm);

absl::Status addmm(const KernelCall& call, Context& context) {
  const TensorView& out = call.outputs[0];
  int64_t m = out.sizes[0], n = out.sizes[1], k = call.inputs[1].sizes[1];
  Product p{as_batch(call.inputs[1], m, k), as_batch(call.inputs[2], k, n),
            as_batch(call.inputs[0], m, n), as_batch(out, m, n)};
  p.beta = call.attributes[0].as_double();
  p.alpha = call.attributes[1].as_double();
  return multiply("addmm", p, context.pool);
}
GW_CPU_KERNEL("addmm", addmm);

absl::Status baddbmm(const KernelCall& call, Context& context) {
  TensorView addend = call.inputs[0];
  const TensorView& out = call.outputs[0];
  TensorView wide = out;
  wide.data = addend.data;
  for (int d = 0; d < 3; ++d) {
    int from = addend.rank - 3 + d;
    wide.strides[d] = from >= 0 && addend.sizes[from] != 1 ? addend.strides[from] : 0;
  }
  Product p{call.inputs[1], call.inputs[2], wide, out};
  p.beta = call.attributes[0].as_double();
  p.alpha = call.attributes[1].as_double();
  return multiply("baddbmm", p, context.pool);
}
GW_CPU_KERNEL("baddbmm", baddbmm);

absl::Status linear(const KernelCall& call, Context& context) {
  const TensorView& out = call.outputs[0];
  int64_t m = out.sizes[0], n = out.sizes[1], k = call.inputs[0].sizes[1];
  TensorView weight = as_batch(call.inputs[1], n, k);
  std::swap(weight.sizes[1], weight.sizes[2]);
  std::swap(weight.strides[1], weight.strides[2]);
  TensorView bias = call.inputs.size() > 2 ? call.inputs[2] : TensorView{};
  Product p{as_batch(call.inputs[0], m, k), weight, as_batch(bias, m, n), as_batch(out, m, n)};
  p.beta = 1;
  return multiply("linear", p, context.pool);
}
GW_CPU_KERNEL("linear", linear);

}  // namespace
}  // namespace gradwire::cpu
