// A oneDNN convolution with the reorders around it, for one shape.
#pragma once

#include <memory>
#include <optional>

#include "kernels/cpu/conv_dnnl.h"
#include "kernels/cpu/dnnl_cache.h"

namespace gradwire::cpu {

struct ConvRequest {
  ConvKind kind = ConvKind::kForward;
  DType dtype = DType::kFloat32;
  ConvShape shape;  // of one block of images
  bool a_last = false, b_last = false, out_last = false, bias = false;

  DnnlKey key() const;
};

// A tensor as the caller has it and as the primitive wants it.
struct ConvTensor {
  dnnl::memory::desc plain, chosen;
  dnnl::reorder reorder;  // plain to chosen for inputs, chosen to plain for outputs

  bool direct() const { return plain == chosen; }
};

struct ConvPrimitive {
  ConvTensor a, b, out;
  dnnl::memory::desc bias, scratchpad;
  dnnl::primitive primitive;
  int a_arg = 0, b_arg = 0, out_arg = 0;
};

// Null when oneDNN has only its reference code or cannot describe the shape.
std::shared_ptr<const ConvPrimitive> conv_primitive(const ConvRequest& request);

}  // namespace gradwire::cpu
