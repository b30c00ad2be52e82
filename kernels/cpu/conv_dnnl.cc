#include "kernels/cpu/conv_dnnl.h"

#include <atomic>

#include "kernels/cpu/conv_primitive.h"
#include "kernels/cpu/dense.h"

namespace gradwire::cpu {
namespace {

using dnnl::memory;

// A tensor in the primitive's layout: the caller's memory or a reordered copy of it.
class Chosen {
 public:
  Chosen(const ConvTensor& tensor, void* plain) : tensor_(tensor), plain_(plain) {
    if (tensor.direct()) return;
    scratch_.emplace(tensor.chosen.get_size() + 64);
  }
  bool ok() const { return !scratch_ || scratch_->data(); }
  void* data() const { return scratch_ ? scratch_->data() : plain_; }
  memory chosen() const { return memory(tensor_.chosen, dnnl_engine(), data()); }
  void load(dnnl::stream& stream) const {
    if (scratch_) move(stream, memory(tensor_.plain, dnnl_engine(), plain_), chosen());
  }
  void store(dnnl::stream& stream) const {
    if (scratch_) move(stream, chosen(), memory(tensor_.plain, dnnl_engine(), plain_));
  }

 private:
  void move(dnnl::stream& stream, memory from, memory to) const {
    dnnl::reorder reorder = tensor_.reorder;
    reorder.execute(stream, from, to);
  }

  const ConvTensor& tensor_;
  void* plain_;
  std::optional<Scratch> scratch_;
};

bool execute(const ConvPrimitive& p, const Chosen& a, const Chosen& b, const void* bias,
             const Chosen& out) {
  Scratch scratchpad(p.scratchpad.get_size() + 64);
  if (!scratchpad.data()) return false;
  const dnnl::engine& engine = dnnl_engine();
  std::unordered_map<int, memory> arguments = {
      {p.a_arg, a.chosen()},
      {p.b_arg, b.chosen()},
      {p.out_arg, out.chosen()},
      {DNNL_ARG_SCRATCHPAD, memory(p.scratchpad, engine, scratchpad.data())}};
  if (bias) arguments[DNNL_ARG_BIAS] = memory(p.bias, engine, const_cast<void*>(bias));
  p.primitive.execute(dnnl_thread_stream(), arguments);
  return true;
}

void* advance(void* data, int64_t bytes) {
  return static_cast<char*>(data) + bytes;
}

// The blocks of images and what one image takes, in bytes.
struct Blocks {
  int64_t size, count, a_bytes, b_bytes, out_bytes;
};

}  // namespace

absl::Status conv_dnnl(ConvKind kind, DType dtype, const ConvShape& shape, const ConvImages& a,
                       const ConvImages& b, const void* bias, const ConvImages& out,
                       ThreadPool& pool, bool& done) {
  done = false;
  if (shape.work() <= 0 || shape.in_plane() <= 0) return absl::OkStatus();
  auto width = static_cast<int64_t>(dtype_size(dtype));
  int64_t x_image = shape.in_channels * shape.in_plane() * width;
  int64_t y_image = shape.out_channels * shape.out_plane() * width;
  int64_t weights = shape.out_channels * shape.depth();
  bool to_weight = kind == ConvKind::kBackwardWeight;
  int64_t size = shape.image_block();
  int64_t count = (shape.images + size - 1) / size;
  ConvRequest request{
      kind, dtype, shape, a.channels_last, b.channels_last, out.channels_last, bias != nullptr};
  auto primitive_for = [&](int64_t images) {
    ConvRequest block = request;
    block.shape.images = images;
    return conv_primitive(block);
  };
  auto whole = primitive_for(size);
  int64_t rest = shape.images - (count - 1) * size;
  auto last = rest == size ? whole : primitive_for(rest);
  if (!whole || !last) return absl::OkStatus();

  // The weight is reordered once and shared, unless the last block wants it otherwise.
  Scratch partial(to_weight ? static_cast<size_t>(count * weights) * sizeof(float) + 64 : 64);
  Chosen shared(whole->b, b.data);
  if (!partial.data() || !shared.ok()) return scratch_error();
  std::atomic<bool> failed = false, broken = false;
  try {
    if (!to_weight) shared.load(dnnl_thread_stream());
  } catch (const dnnl::error&) {
    return absl::OkStatus();
  }
  pool.parallel_for(count, [&](int64_t i) {
    const ConvPrimitive& p = i == count - 1 ? *last : *whole;
    int64_t first = i * size;
    bool x_first = kind != ConvKind::kBackwardInput;
    Chosen from(p.a, advance(a.data, first * (x_first ? x_image : y_image)));
    bool own = to_weight || !(p.b.chosen == whole->b.chosen);
    std::optional<Chosen> second;
    if (own) second.emplace(p.b, to_weight ? advance(b.data, first * y_image) : b.data);
    void* target = to_weight ? partial.as<float>() + i * weights
                             : advance(out.data, first * (x_first ? y_image : x_image));
    Chosen to(p.out, target);
    if (!from.ok() || !to.ok() || (second && !second->ok())) {
      failed = true;
      return;
    }
    try {
      dnnl::stream& stream = dnnl_thread_stream();
      from.load(stream);
      if (second) second->load(stream);
      if (!execute(p, from, second ? *second : shared, bias, to)) failed = true;
      to.store(stream);
    } catch (const dnnl::error&) {
      broken = true;
    }
  });
  if (failed) return scratch_error();
  if (broken) return absl::OkStatus();
  if (to_weight) {
    float* sum = static_cast<float*>(out.data);
    std::copy(partial.as<float>(), partial.as<float>() + weights, sum);
    for (int64_t i = 1; i < count; ++i) {
      const float* part = partial.as<float>() + i * weights;
      for (int64_t k = 0; k < weights; ++k) sum[k] += part[k];
    }
  }
  done = true;
  return absl::OkStatus();
}

}  // namespace gradwire::cpu
