#include "kernels/cpu/dnnl_cache.h"

#include <dlfcn.h>

namespace gradwire::cpu {

const dnnl::engine& dnnl_engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::stream& dnnl_thread_stream() {
  // OpenMP is oneDNN's dependency, not ours, so its symbol is looked up where oneDNN brought it.
  using SetThreads = void (*)(int);
  static const auto set_threads =
      reinterpret_cast<SetThreads>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  thread_local dnnl::stream stream = [] {
    if (set_threads) set_threads(1);
    return dnnl::stream(dnnl_engine());
  }();
  return stream;
}

bool dnnl_has_bfloat16() {
  static const bool has = __builtin_cpu_supports("avx512bf16") != 0;
  return has;
}

}  // namespace gradwire::cpu
