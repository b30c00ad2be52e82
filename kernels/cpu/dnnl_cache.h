// oneDNN as this backend uses it: one thread, memory for temporaries from Scratch, primitives kept
// by shape because making one costs a hundred times what executing it does.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "dnnl.hpp"

namespace gradwire::cpu {

const dnnl::engine& dnnl_engine();

// The calling thread's stream. Must be called before a primitive is made or executed on a thread:
// it limits OpenMP there to one thread.
dnnl::stream& dnnl_thread_stream();

// True when bfloat16 products run on the processor's own instructions.
bool dnnl_has_bfloat16();

using DnnlKey = absl::InlinedVector<int64_t, 32>;

// Entries by key, made on first use. Thread-safe; entries handed out stay valid when the cache
// forgets them. An entry that cannot be made is remembered as null.
template <class Entry>
class DnnlCache {
 public:
  // `make` returns std::unique_ptr<Entry>; a dnnl::error that it throws counts as null.
  template <class Make>
  std::shared_ptr<const Entry> get(const DnnlKey& key, Make&& make) {
    {
      std::lock_guard lock(mutex_);
      auto it = entries_.find(key);
      if (it != entries_.end()) return it->second;
    }
    std::shared_ptr<const Entry> entry;
    try {
      dnnl_thread_stream();
      entry = make();
    } catch (const dnnl::error&) {
    }
    std::lock_guard lock(mutex_);
    if (entries_.size() >= kCapacity) entries_.clear();
    return entries_.try_emplace(key, std::move(entry)).first->second;
  }

 private:
  static constexpr size_t kCapacity = 4096;
  std::mutex mutex_;
  absl::flat_hash_map<DnnlKey, std::shared_ptr<const Entry>> entries_;
};

}  // namespace gradwire::cpu
