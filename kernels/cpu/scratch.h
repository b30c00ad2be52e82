// Per-thread temporary memory of kernels, reused between calls.
#pragma once

#include <cstddef>

namespace gradwire::cpu {

// A block of at least `bytes`, aligned to 64, valid until the Scratch object ends. Objects of one
// thread nest like a stack. Null only when the machine is out of memory.
class Scratch {
 public:
  explicit Scratch(size_t bytes);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  void* data() const { return data_; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_;
  size_t bytes_;
  bool owned_;
};

}  // namespace gradwire::cpu
