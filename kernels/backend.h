// The one interface between the engine and a device. The CPU backend implements it like any other;
// further ones are plug-ins: shared objects that export `gradwire_backend` (below).
//
// Contract for memory: only kernels and the copy calls touch device memory. The engine never
// dereferences a device pointer.
// Contract for order: work given to one stream runs in the order given; work on two streams is
// ordered only by `record` and `wait`. A launch may return before the kernel ran; everything that
// a KernelCall refers to by value is copied by a backend that defers, `program` lives for ever,
// and the engine keeps the memory behind views alive until an event recorded after the launch.
// Contract for errors: no call aborts or throws on any argument the engine can form from a
// client's command; faults come back as a Status with one of error.h's kinds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "kernels/attribute.h"
#include "kernels/tensor_view.h"

namespace gradwire {

namespace expr {
struct Program;
}

// A Python number handed to a pointwise program; kept as the caller wrote it.
struct ScalarValue {
  enum class Kind : uint8_t { kInt, kFloat, kBool };
  Kind kind = Kind::kFloat;
  int64_t i = 0;  // kInt and kBool
  double f = 0;   // kFloat

  double as_double() const { return kind == Kind::kFloat ? f : static_cast<double>(i); }
  int64_t as_int() const { return kind == Kind::kFloat ? static_cast<int64_t>(f) : i; }
};

// A kernel's number in its backend; 0 is "no such kernel".
using KernelId = uint32_t;

// One launch. Inputs and outputs stand in the order of the op's signature; list arguments are
// flattened in place; an absent optional tensor is a view with dtype kNone. Outputs never overlap
// inputs, except that output i of an in-place form is the same view as the input it writes.
struct KernelCall {
  KernelId kernel = 0;
  absl::InlinedVector<TensorView, 4> inputs;
  absl::InlinedVector<TensorView, 2> outputs;
  absl::InlinedVector<ScalarValue, 2> scalars;  // pointwise programs only
  AttributeList attributes;                     // in signature order, defaults filled in
  const expr::Program* program = nullptr;       // pointwise and fused launches only
  uint64_t seed = 0;                            // Philox key of random kernels
  uint64_t offset = 0;                          // Philox counter reserved for this call
};

enum class StreamKind : uint8_t { kCompute = 0, kUpload = 1, kDownload = 2 };
inline constexpr int kStreamKinds = 3;

using Event = uint64_t;  // 0 is "already complete"

class Backend {
 public:
  virtual ~Backend() = default;

  // "cpu", "cuda": the type part of the device's name.
  virtual std::string_view device_type() const = 0;

  // Uninitialised device memory aligned to 64 bytes, or null when there is none. bytes > 0.
  // The engine caches blocks in size classes; these calls may be slow. Any thread.
  virtual void* allocate(size_t bytes) = 0;
  virtual void deallocate(void* block, size_t bytes) = 0;

  // The kernel of that name, or 0 when this backend has none and the op must be composed. A
  // reduction "R" that can compute its input from a program as it goes is there as "R_of_program",
  // too: inputs[0] is then geometry without memory, the program's inputs follow. Its result has the
  // bits of the two launches; it may answer Unimplemented, and is then not used for that call.
  virtual KernelId find_kernel(std::string_view name) const = 0;

  // Queues one kernel on the compute stream. `done`, when given, is called exactly once with the
  // kernel's own status, from any thread and possibly before launch returns; the engine gives it
  // only for kernels that can fail on values (bad index, singular matrix).
  using Done = std::function<void(absl::Status)>;
  virtual absl::Status launch(const KernelCall& call, Done done) = 0;

  // Copies between host and device memory, queued on the stream. The host block must stay valid
  // until an event recorded after the copy.
  virtual absl::Status copy_in(StreamKind stream, void* device, const void* host, size_t bytes) = 0;
  virtual absl::Status copy_out(StreamKind stream, void* host, const void* device,
                                size_t bytes) = 0;

  // An event that completes when all work queued on the stream so far has run.
  virtual Event record(StreamKind stream) = 0;
  // Makes later work of `stream` wait for the event.
  virtual void wait(StreamKind stream, Event event) = 0;
  // Calls `fn` once, from any thread and possibly at once, when the event has completed. It has
  // returned before a later event of the same stream completes.
  virtual void on_complete(Event event, std::function<void()> fn) = 0;
  // True when the event has completed.
  virtual bool query(Event event) = 0;
};

}  // namespace gradwire

// What a plug-in exports. `kBackendAbi` must match; the engine owns the result.
inline constexpr uint32_t kBackendAbi = 1;
extern "C" {
using GradwireBackendFn = gradwire::Backend* (*)(uint32_t abi, const char* options);
}
