#include "kernels/cpu/backend.h"

#include <gtest/gtest.h>

#include <cstring>
#include <new>

#include "kernels/cpu/registry.h"
#include "kernels/error.h"

namespace gradwire::cpu {
namespace {

absl::Status test_fail(const KernelCall&, Context&) {
  return index_error("[test_fail] index 7");
}
absl::Status test_throw(const KernelCall&, Context&) {
  throw std::bad_alloc();
}
absl::Status test_threads(const KernelCall& call, Context& context) {
  *call.outputs[0].as<int64_t>() = context.pool.threads();
  return absl::OkStatus();
}
GW_CPU_KERNEL("test_fail", test_fail);
GW_CPU_KERNEL("test_throw", test_throw);
GW_CPU_KERNEL("test_threads", test_threads);

TEST(CpuBackend, AllocatesAlignedBlocks) {
  auto backend = make_backend(1);
  EXPECT_EQ(backend->device_type(), "cpu");
  for (size_t bytes : {size_t{1}, size_t{64}, size_t{65}, size_t{1} << 20, size_t{2} << 20,
                       (size_t{5} << 20) + 3}) {
    void* block = backend->allocate(bytes);
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0u);
    std::memset(block, 1, bytes);
    backend->deallocate(block, bytes);
  }
  EXPECT_EQ(backend->allocate(SIZE_MAX), nullptr);
  EXPECT_EQ(backend->allocate(size_t{1} << 60), nullptr);
  backend->deallocate(nullptr, 4);
}

TEST(CpuBackend, LaunchesByName) {
  auto backend = make_backend(2);
  EXPECT_EQ(backend->find_kernel("no such kernel"), 0u);
  KernelCall call;
  call.kernel = backend->find_kernel("test_threads");
  ASSERT_NE(call.kernel, 0u);
  int64_t threads = 0;
  TensorView out;
  out.data = &threads;
  out.dtype = DType::kInt64;
  call.outputs.push_back(out);
  EXPECT_TRUE(backend->launch(call, nullptr).ok());
  EXPECT_EQ(threads, 2);
}

TEST(CpuBackend, ErrorsAreValues) {
  auto backend = make_backend(0);
  KernelCall call;
  call.kernel = 1u << 30;
  EXPECT_EQ(error_kind(backend->launch(call, nullptr)), ErrorKind::kInternal);
  call.kernel = backend->find_kernel("test_fail");
  EXPECT_EQ(error_kind(backend->launch(call, nullptr)), ErrorKind::kIndex);
  int calls = 0;
  absl::Status seen;
  EXPECT_TRUE(backend
                  ->launch(call,
                           [&](absl::Status status) {
                             ++calls;
                             seen = status;
                           })
                  .ok());
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(error_kind(seen), ErrorKind::kIndex);
  call.kernel = backend->find_kernel("test_throw");
  EXPECT_EQ(error_kind(backend->launch(call, nullptr)), ErrorKind::kOutOfMemory);
}

TEST(CpuBackend, CopiesAndEventsAreImmediate) {
  auto backend = make_backend(1);
  void* block = backend->allocate(16);
  char in[16] = "fifteen letters";
  char out[16] = {};
  EXPECT_TRUE(backend->copy_in(StreamKind::kUpload, block, in, 16).ok());
  EXPECT_TRUE(backend->copy_out(StreamKind::kDownload, out, block, 16).ok());
  EXPECT_STREQ(in, out);
  Event event = backend->record(StreamKind::kCompute);
  EXPECT_EQ(event, 0u);
  backend->wait(StreamKind::kUpload, event);
  bool called = false;
  backend->on_complete(event, [&] { called = true; });
  EXPECT_TRUE(called);
  EXPECT_TRUE(backend->query(event));
  backend->deallocate(block, 16);
}

}  // namespace
}  // namespace gradwire::cpu
