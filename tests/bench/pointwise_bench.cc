// The pointwise kernel: launch overhead, bandwidth, fusion against hand-fused loops, threads.
#include <benchmark/benchmark.h>

#include <cmath>
#include <memory>
#include <vector>

#include "kernels/cpu/backend.h"
#include "kernels/cpu/pointwise.h"
#include "kernels/expr/expr.h"

namespace gradwire {
namespace {

using expr::Builder;
using expr::E;
using expr::Program;

constexpr int64_t kMany = 10'000'000;

// Device memory of one tensor, touched.
class Block {
 public:
  explicit Block(std::vector<int64_t> sizes, DType dtype = DType::kFloat32) {
    view_.dtype = dtype;
    view_.rank = static_cast<int>(sizes.size());
    int64_t stride = 1;
    for (int d = view_.rank - 1; d >= 0; --d) {
      view_.sizes[d] = sizes[d];
      view_.strides[d] = stride;
      stride *= sizes[d];
    }
    bytes_ = stride * dtype_size(dtype);
    view_.data = backend().allocate(bytes_);
    if (dtype == DType::kFloat32) {
      for (int64_t i = 0; i < stride; ++i) {
        view_.as<float>()[i] = static_cast<float>(i % 1013) / 500.f - 1.f;
      }
    } else {
      std::fill_n(view_.as<char>(), bytes_, 1);
    }
  }
  ~Block() { backend().deallocate(view_.data, bytes_); }
  Block(const Block&) = delete;

  TensorView& view() { return view_; }
  TensorView broadcast(const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides) {
    TensorView v = view_;
    v.rank = static_cast<int>(sizes.size());
    for (int d = 0; d < v.rank; ++d) {
      v.sizes[d] = sizes[d];
      v.strides[d] = strides[d];
    }
    return v;
  }

 private:
  static Backend& backend() {
    static std::unique_ptr<Backend> backend = cpu::make_backend(1);
    return *backend;
  }
  TensorView view_;
  size_t bytes_;
};

const Program* program_of(expr::Graph graph, DType t = DType::kFloat32) {
  std::vector<expr::OperandType> operands(graph.operands, {false, t});
  return expr::instantiate(graph, t, operands, t);
}

const Program* unary(E (*f)(E), DType t = DType::kFloat32) {
  Builder b;
  return program_of(b.finish(f(b.operand(0))), t);
}

E gelu(E x) {
  return x * 0.5 * (1.0 + erf(x * M_SQRT1_2));
}
E same(E x) {
  return x;
}

void run(benchmark::State& state, const Program* program, std::vector<TensorView> inputs,
         TensorView output, int threads, std::vector<ScalarValue> scalars = {}) {
  cpu::ThreadPool pool(threads);
  cpu::Context context{pool};
  KernelCall call;
  call.program = program;
  call.inputs.assign(inputs.begin(), inputs.end());
  call.outputs.push_back(output);
  call.scalars.assign(scalars.begin(), scalars.end());
  for (auto _ : state) {
    if (!cpu::pointwise(call, context).ok()) state.SkipWithError("launch failed");
    benchmark::ClobberMemory();
  }
  int64_t bytes = output.numel() * dtype_size(output.dtype);
  for (const TensorView& in : inputs) {
    int64_t elements = 1;
    for (int d = 0; d < in.rank; ++d) elements *= in.strides[d] == 0 ? 1 : in.sizes[d];
    bytes += elements * dtype_size(in.dtype);
  }
  state.SetBytesProcessed(state.iterations() * bytes);
}

void add(benchmark::State& state, int threads) {
  int64_t n = state.range(0);
  Block x({n}), y({n}), z({n});
  Builder b;
  E a = b.operand(0), c = b.operand(1);
  run(state, program_of(b.finish(a + c)), {x.view(), y.view()}, z.view(), threads);
}
BENCHMARK_CAPTURE(add, one_thread, 1)->Arg(1)->Arg(100)->Arg(1000)->Arg(100'000)->Arg(kMany);
BENCHMARK_CAPTURE(add, two_threads, 2)->Arg(100'000)->Arg(kMany)->UseRealTime();

void add_in_place(benchmark::State& state) {
  Block x({kMany}), y({kMany});
  Builder b;
  E a = b.operand(0), c = b.operand(1);
  run(state, program_of(b.finish(a + c)), {x.view(), y.view()}, x.view(), 1);
}
BENCHMARK(add_in_place);

void map(benchmark::State& state, E (*f)(E), DType t, int threads = 1) {
  Block x({kMany}, t), y({kMany}, t);
  run(state, unary(f, t), {x.view()}, y.view(), threads);
}
BENCHMARK_CAPTURE(map, copy, same, DType::kFloat32);
BENCHMARK_CAPTURE(map, exp, expr::exp, DType::kFloat32);
BENCHMARK_CAPTURE(map, exp_bf16, expr::exp, DType::kBFloat16);
BENCHMARK_CAPTURE(map, tanh, expr::tanh, DType::kFloat32);
BENCHMARK_CAPTURE(map, sigmoid, expr::sigmoid, DType::kFloat32);
BENCHMARK_CAPTURE(map, gelu, gelu, DType::kFloat32);
BENCHMARK_CAPTURE(map, log, expr::log, DType::kFloat32);
BENCHMARK_CAPTURE(map, sin, expr::sin, DType::kFloat32);
BENCHMARK_CAPTURE(map, gelu_two_threads, gelu, DType::kFloat32, 2)->UseRealTime();

void add_scalar_small(benchmark::State& state) {
  Block x({4, 8}), y({4, 8});
  Builder b;
  E a = b.operand(0), s = b.operand(1);
  expr::OperandType operands[] = {{false, DType::kFloat32}, {true, DType::kNone}};
  ScalarValue scalar;
  scalar.f = 0.5;
  run(state, expr::instantiate(b.finish(a * s), DType::kFloat32, operands, DType::kFloat32),
      {x.view()}, y.view(), 1, {scalar});
}
BENCHMARK(add_scalar_small);

// Ten ops: (((x * w + b) * g + r) * x - w) * b + g) * r - x.
E chain_of(E x, E w, E b, E g, E r) {
  E v = x * w + b;
  v = v * g + r;
  v = v * x - w;
  v = v * b + g;
  return v * r - x;
}
// What a compiler makes of the fused loop for this processor.
__attribute__((optimize("O3"), target_clones("arch=skylake-avx512", "default"))) void chain_loop(
    float* y, const float* x, const float* w, const float* b, const float* g, const float* r,
    int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    float v = x[i] * w[i] + b[i];
    v = v * g[i] + r[i];
    v = v * x[i] - w[i];
    v = v * b[i] + g[i];
    y[i] = v * r[i] - x[i];
  }
}

void chain_fused(benchmark::State& state) {
  int64_t n = state.range(0);
  Block x({n}), w({n}), c({n}), g({n}), r({n}), y({n});
  Builder b;
  E e[5];
  for (int i = 0; i < 5; ++i) e[i] = b.operand(i);
  run(state, program_of(b.finish(chain_of(e[0], e[1], e[2], e[3], e[4]))),
      {x.view(), w.view(), c.view(), g.view(), r.view()}, y.view(), 1);
}
void chain_by_hand(benchmark::State& state) {
  int64_t n = state.range(0);
  Block x({n}), w({n}), c({n}), g({n}), r({n}), y({n});
  for (auto _ : state) {
    chain_loop(y.view().as<float>(), x.view().as<float>(), w.view().as<float>(),
               c.view().as<float>(), g.view().as<float>(), r.view().as<float>(), n);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * n * 24);
}
BENCHMARK(chain_fused)->Arg(2048)->Arg(200'000)->Arg(kMany);
BENCHMARK(chain_by_hand)->Arg(2048)->Arg(200'000)->Arg(kMany);

// gelu(x * w + b) * g + r over rows of 1024, w, b and g one row.
void affine_gelu(benchmark::State& state) {
  const std::vector<int64_t> sizes = {kMany / 1024, 1024}, row = {0, 1};
  Block x(sizes), r(sizes), y(sizes), w({1024}), c({1024}), g({1024});
  Builder b;
  E e[5];
  for (int i = 0; i < 5; ++i) e[i] = b.operand(i);
  run(state, program_of(b.finish(gelu(e[0] * e[1] + e[2]) * e[3] + e[4])),
      {x.view(), w.broadcast(sizes, row), c.broadcast(sizes, row), g.broadcast(sizes, row),
       r.view()},
      y.view(), 1);
}
BENCHMARK(affine_gelu);

void bias(benchmark::State& state) {
  const std::vector<int64_t> sizes = {256, 256, 8, 8};
  Block x(sizes), y(sizes), c({256});
  Builder b;
  E a = b.operand(0), d = b.operand(1);
  run(state, program_of(b.finish(a + d)), {x.view(), c.broadcast(sizes, {0, 1, 0, 0})}, y.view(),
      1);
}
BENCHMARK(bias);

void transpose(benchmark::State& state) {
  int64_t n = state.range(0);
  Block x({n, n}), y({n, n});
  run(state, unary(same), {x.broadcast({n, n}, {1, n})}, y.view(), 1);
}
BENCHMARK(transpose)->Arg(64)->Arg(512)->Arg(3000)->Arg(4096);

void nchw_to_nhwc(benchmark::State& state) {
  Block x({16, 64, 56, 56}), y({16, 56, 56, 64});
  run(state, unary(same), {x.broadcast({16, 56, 56, 64}, {64 * 56 * 56, 56, 1, 56 * 56})}, y.view(),
      1);
}
BENCHMARK(nchw_to_nhwc);

}  // namespace
}  // namespace gradwire
