#include "kernels/cpu/scratch.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace gradwire::cpu {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kSmallest = size_t{1} << 20;
#ifdef __SANITIZE_ADDRESS__
constexpr size_t kKept = 0;  // the sanitizer must see where each block ends
#else
constexpr size_t kKept = size_t{32} << 20;  // the most a thread keeps between calls
#endif

struct Arena {
  char* base = nullptr;
  size_t capacity = 0;
  size_t used = 0;

  ~Arena() { std::free(base); }

  // Only while nothing is in use.
  void grow(size_t bytes) {
    size_t wanted = std::max(kSmallest, capacity);
    while (wanted < bytes) wanted *= 2;
    std::free(base);
    base = static_cast<char*>(std::aligned_alloc(kAlignment, wanted));
    capacity = base == nullptr ? 0 : wanted;
  }
};

thread_local Arena arena;

}  // namespace

Scratch::Scratch(size_t bytes) : data_(nullptr), bytes_(0), owned_(false) {
  if (bytes > SIZE_MAX - kAlignment) return;
  bytes_ = std::max(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  if (arena.used == 0 && bytes_ > arena.capacity && bytes_ <= kKept) arena.grow(bytes_);
  if (bytes_ <= arena.capacity - arena.used) {
    data_ = arena.base + arena.used;
    arena.used += bytes_;
  } else {
    data_ = std::aligned_alloc(kAlignment, bytes_);
    owned_ = true;
  }
}

Scratch::~Scratch() {
  if (owned_) {
    std::free(data_);
  } else if (data_ != nullptr) {
    arena.used -= bytes_;
  }
}

}  // namespace gradwire::cpu
