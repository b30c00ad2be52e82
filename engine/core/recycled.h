// Memory for the small objects that dispatch makes and the executor drops, several for each op.
#pragma once

#include <cstddef>
#include <mutex>
#include <new>
#include <vector>

namespace gradwire {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kRecycle = false;  // sanitizers must see every object's life
#else
inline constexpr bool kRecycle = true;
#endif

// Blocks of one size. Each thread keeps a few; they move between threads in batches, since one
// thread makes what another drops. At most kKept blocks stay when all objects are gone.
template <size_t kBytes>
class RecycledBlocks {
 public:
  static void* take() {
    if (ended) return ::operator new(kBytes);
    Local& local = mine();
    if (local.blocks.empty() && !refill(&local)) return ::operator new(kBytes);
    void* block = local.blocks.back();
    local.blocks.pop_back();
    return block;
  }

  static void give(void* block) {
    if (ended) return keep(block);
    Local& local = mine();
    local.blocks.push_back(block);
    if (local.blocks.size() >= 2 * kBatch) spill(&local, kBatch);
  }

 private:
  static constexpr size_t kBatch = 64;
  static constexpr size_t kKept = 8192;

  struct Local {
    std::vector<void*> blocks;
    ~Local() {
      ended = true;
      spill(this, blocks.size());
    }
  };
  // The thread has given its blocks up. Outlives Local: a plain bool has no destructor.
  static inline thread_local bool ended = false;

  struct Central {
    std::mutex mutex;
    std::vector<void*> blocks;
  };

  static Local& mine() {
    thread_local Local local;
    return local;
  }
  static Central& central() {
    static Central* all = new Central();  // outlives every thread
    return *all;
  }

  static void keep(void* block) {
    Central& all = central();
    std::lock_guard lock(all.mutex);
    all.blocks.push_back(block);
  }

  static bool refill(Local* local) {
    Central& all = central();
    std::lock_guard lock(all.mutex);
    for (size_t i = 0; i < kBatch && !all.blocks.empty(); ++i) {
      local->blocks.push_back(all.blocks.back());
      all.blocks.pop_back();
    }
    return !local->blocks.empty();
  }

  static void spill(Local* local, size_t count) {
    Central& all = central();
    std::lock_guard lock(all.mutex);
    for (; count > 0; --count) {
      void* block = local->blocks.back();
      local->blocks.pop_back();
      if (all.blocks.size() < kKept) {
        all.blocks.push_back(block);
      } else {
        ::operator delete(block);
      }
    }
  }
};

// Base of a class whose objects live in recycled blocks. Objects of derived classes of another
// size do not.
template <class T>
class Recycled {
 public:
  static void* operator new(size_t bytes) {
    if (!kRecycle || bytes != sizeof(T)) return ::operator new(bytes);
    return RecycledBlocks<(sizeof(T) + 63) / 64 * 64>::take();
  }
  static void operator delete(void* block, size_t bytes) {
    if (!kRecycle || bytes != sizeof(T)) return ::operator delete(block);
    RecycledBlocks<(sizeof(T) + 63) / 64 * 64>::give(block);
  }
};

}  // namespace gradwire
