#include "kernels/cpu/dnnl_cache.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/scratch.h"

namespace gradwire::cpu {
namespace {

using dnnl::memory;

struct Product {
  memory::desc a, b, c, scratchpad;
  dnnl::matmul primitive;
};

memory::desc describe(int64_t rows, int64_t cols, int64_t row_stride, int64_t col_stride,
                      memory::data_type type) {
  return memory::desc({rows, cols}, type, {row_stride, col_stride});
}

// Strides as oneDNN insists on them: one is 1, the other spans it.
template <class T>
std::pair<int64_t, int64_t> spanning_strides(const Matrix<T>& m) {
  if (m.row_major()) return {std::max({m.row_stride, m.cols, int64_t{1}}), 1};
  return {1, std::max({m.col_stride, m.rows, int64_t{1}})};
}

std::unique_ptr<Product> make_product(const DnnlKey& key) {
  auto made = std::make_unique<Product>();
  int64_t m = key[0], n = key[1], k = key[2];
  made->a = describe(m, k, key[3], key[4], memory::data_type::bf16);
  made->b = describe(k, n, key[5], key[6], memory::data_type::bf16);
  made->c = describe(m, n, key[7], 1, memory::data_type::f32);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  dnnl::matmul::primitive_desc description(dnnl::matmul::desc(made->a, made->b, made->c),
                                           attributes, dnnl_engine());
  if (std::string_view(description.impl_info_str()).substr(0, 3) == "ref") return nullptr;
  made->scratchpad = description.scratchpad_desc();
  made->primitive = dnnl::matmul(description);
  return made;
}

}  // namespace

bool gemm_bfloat16(const Matrix<const uint16_t>& a, const Matrix<const uint16_t>& b,
                   const Matrix<float>& c) {
  if (!dnnl_has_bfloat16() || c.rows == 0 || c.cols == 0 || a.cols == 0) return false;
  static DnnlCache<Product> cache;
  auto [a_row, a_col] = spanning_strides(a);
  auto [b_row, b_col] = spanning_strides(b);
  DnnlKey key = {c.rows, c.cols, a.cols, a_row, a_col, b_row, b_col, c.row_stride};
  std::shared_ptr<const Product> product = cache.get(key, [&] { return make_product(key); });
  if (!product) return false;
  Scratch scratchpad(product->scratchpad.get_size() + 64);
  if (!scratchpad.data()) return false;
  try {
    const dnnl::engine& engine = dnnl_engine();
    memory ma(product->a, engine, const_cast<uint16_t*>(a.data));
    memory mb(product->b, engine, const_cast<uint16_t*>(b.data));
    memory mc(product->c, engine, c.data);
    memory ms(product->scratchpad, engine, scratchpad.data());
    product->primitive.execute(dnnl_thread_stream(), {{DNNL_ARG_SRC, ma},
                                                      {DNNL_ARG_WEIGHTS, mb},
                                                      {DNNL_ARG_DST, mc},
                                                      {DNNL_ARG_SCRATCHPAD, ms}});
  } catch (const dnnl::error&) {
    return false;
  }
  return true;
}

}  // namespace gradwire::cpu
