#include "kernels/cpu/backend.h"

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <new>
#include <string>
#include <thread>

#include "kernels/cpu/registry.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/error.h"

namespace gradwire::cpu {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kHugePage = size_t{2} << 20;

size_t round_up(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

// Whole huge pages, so that the first touch of a big block faults 512 times less.
void* map_huge(size_t bytes) {
  size_t size = round_up(bytes, kHugePage);
  void* map = mmap(nullptr, size + kHugePage, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) return nullptr;
  char* begin = static_cast<char*>(map);
  char* block = reinterpret_cast<char*>(round_up(reinterpret_cast<size_t>(begin), kHugePage));
  size_t head = block - begin;
  if (head > 0) munmap(begin, head);
  if (head < kHugePage) munmap(block + size, kHugePage - head);
  madvise(block, size, MADV_HUGEPAGE);
  return block;
}

// The cgroup's CPU quota in whole cores, or a large number without one.
int quota_cores() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) return 1 << 16;
  return std::max(1, static_cast<int>(std::ceil(std::strtod(quota.c_str(), nullptr) / period)));
}

// The number after `key` in a file of "key: number" lines, or of nothing but a number.
uint64_t number_in(const char* path, std::string_view key) {
  std::ifstream file(path);
  for (std::string word; file >> word;) {
    if (!key.empty() && word != key) continue;
    if (!key.empty() && !(file >> word)) break;
    char* end = nullptr;
    uint64_t number = std::strtoull(word.c_str(), &end, 10);
    return *end == 0 ? number : 0;
  }
  return 0;
}

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int cores = sched_getaffinity(0, sizeof(set), &set) == 0
                  ? CPU_COUNT(&set)
                  : static_cast<int>(std::thread::hardware_concurrency());
  return std::max(1, std::min(cores, quota_cores()));
}

}  // namespace

uint64_t available_bytes() {
  uint64_t bytes = number_in("/proc/meminfo", "MemAvailable:") * 1024;
  uint64_t most = number_in("/sys/fs/cgroup/memory.max", "");
  uint64_t used = number_in("/sys/fs/cgroup/memory.current", "");
  if (most > used) bytes = std::min(bytes, most - used);
  return bytes;
}

namespace {

class CpuBackend : public Backend {
 public:
  explicit CpuBackend(int threads) : pool_(threads > 0 ? threads : usable_cores()) {}

  std::string_view device_type() const override { return "cpu"; }

  void* allocate(size_t bytes) override {
    if (bytes == 0 || bytes > SIZE_MAX / 2) return nullptr;
    if (bytes >= kHugePage) return map_huge(bytes);
    return std::aligned_alloc(kAlignment, round_up(bytes, kAlignment));
  }

  void deallocate(void* block, size_t bytes) override {
    if (block == nullptr) return;
    if (bytes >= kHugePage) {
      munmap(block, round_up(bytes, kHugePage));
    } else {
      std::free(block);
    }
  }

  KernelId find_kernel(std::string_view name) const override { return cpu::find_kernel(name); }

  absl::Status launch(const KernelCall& call, Done done) override {
    Kernel kernel = kernel_at(call.kernel);
    if (kernel == nullptr) return internal_error("[launch] no CPU kernel number ", call.kernel);
    absl::Status status = run(kernel, call);
    if (!done) return status;
    done(std::move(status));
    return absl::OkStatus();
  }

  absl::Status copy_in(StreamKind, void* device, const void* host, size_t bytes) override {
    if (bytes > 0) std::memcpy(device, host, bytes);
    return absl::OkStatus();
  }

  absl::Status copy_out(StreamKind, void* host, const void* device, size_t bytes) override {
    if (bytes > 0) std::memcpy(host, device, bytes);
    return absl::OkStatus();
  }

  Event record(StreamKind) override { return 0; }
  void wait(StreamKind, Event) override {}
  void on_complete(Event, std::function<void()> fn) override { fn(); }
  bool query(Event) override { return true; }

 private:
  absl::Status run(Kernel kernel, const KernelCall& call) {
    Context context{pool_};
    try {
      return kernel(call, context);
    } catch (const std::bad_alloc&) {
      return make_error(ErrorKind::kOutOfMemory, "[launch] out of host memory");
    } catch (const std::exception& e) {
      return internal_error("[launch] ", e.what());
    }
  }

  ThreadPool pool_;
};

}  // namespace

std::unique_ptr<Backend> make_backend(int threads) {
  return std::make_unique<CpuBackend>(threads);
}

}  // namespace gradwire::cpu
