#include "kernels/cpu/conv_primitive.h"

#include <algorithm>
#include <string_view>

namespace gradwire::cpu {
namespace {

using dnnl::memory;

memory::data_type type_of(DType dtype) {
  return dtype == DType::kBFloat16 ? memory::data_type::bf16 : memory::data_type::f32;
}

// Spatial values without the missing leading dimensions.
template <class F>
memory::dims spatial(const ConvShape& s, F&& value) {
  memory::dims out;
  for (int d = 3 - s.spatial; d < 3; ++d) out.push_back(value(d));
  return out;
}

memory::dims image_dims(const ConvShape& s, int64_t channels, const std::array<int64_t, 3>& size) {
  memory::dims dims = {s.images, channels};
  for (int64_t n : spatial(s, [&](int d) { return size[d]; })) dims.push_back(n);
  return dims;
}

memory::desc plain_images(const memory::dims& dims, memory::data_type type, bool channels_last) {
  size_t rank = dims.size();
  memory::dims strides(rank);
  int64_t step = 1;
  if (channels_last) {
    strides[1] = 1;
    step = dims[1];
  }
  for (size_t d = rank; d-- > 2;) {
    strides[d] = step;
    step *= dims[d];
  }
  if (!channels_last) {
    strides[1] = step;
    step *= dims[1];
  }
  strides[0] = step;
  return memory::desc(dims, type, strides);
}

memory::desc any(const memory::desc& plain) {
  return memory::desc(plain.dims(), plain.data_type(), memory::format_tag::any);
}

memory::dims weight_dims(const ConvShape& s) {
  memory::dims dims;
  if (s.groups > 1) dims.push_back(s.groups);
  dims.push_back(s.group_out());
  dims.push_back(s.group_in());
  for (int64_t n : spatial(s, [&](int d) { return s.kernel[d]; })) dims.push_back(n);
  return dims;
}

memory::desc plain_weight(const ConvShape& s, memory::data_type type) {
  memory::dims dims = weight_dims(s), strides(dims.size());
  int64_t step = 1;
  for (size_t d = dims.size(); d-- > 0;) {
    strides[d] = step;
    step *= dims[d];
  }
  return memory::desc(dims, type, strides);
}

// Padding at the end such that oneDNN's formula gives the output's size; false when none does.
bool end_padding(const ConvShape& s, memory::dims& padding) {
  for (int d = 3 - s.spatial; d < 3; ++d) {
    int64_t window = (s.kernel[d] - 1) * s.dilation[d] + 1;
    int64_t need = (s.out[d] - 1) * s.stride[d] + window - s.in[d] - s.padding[d];
    int64_t end = std::max<int64_t>(need, 0);
    int64_t span = s.in[d] + s.padding[d] + end - window;
    if (span < 0 || span / s.stride[d] + 1 != s.out[d]) return false;
    padding.push_back(end);
  }
  return true;
}

bool is_reference(const char* name) {
  return std::string_view(name).substr(0, 3) == "ref";
}

void choose(ConvTensor& tensor, const memory::desc& chosen, bool input) {
  tensor.chosen = chosen;
  if (tensor.direct()) return;
  const dnnl::engine& engine = dnnl_engine();
  const memory::desc& from = input ? tensor.plain : tensor.chosen;
  const memory::desc& to = input ? tensor.chosen : tensor.plain;
  tensor.reorder = dnnl::reorder(dnnl::reorder::primitive_desc(engine, from, engine, to));
}

std::unique_ptr<ConvPrimitive> make(const ConvRequest& r) {
  using dnnl::algorithm;
  const ConvShape& s = r.shape;
  memory::dims strides = spatial(s, [&](int d) { return s.stride[d]; });
  memory::dims dilations = spatial(s, [&](int d) { return s.dilation[d] - 1; });
  memory::dims begin = spatial(s, [&](int d) { return s.padding[d]; });
  memory::dims end;
  if (!end_padding(s, end)) return nullptr;
  memory::data_type type = type_of(r.dtype);
  bool forward = r.kind == ConvKind::kForward, to_weight = r.kind == ConvKind::kBackwardWeight;
  bool x_last = r.kind == ConvKind::kBackwardInput ? r.out_last : r.a_last;
  bool y_last = forward ? r.out_last : to_weight ? r.b_last : r.a_last;
  auto x_dims = image_dims(s, s.in_channels, s.in);
  auto y_dims = image_dims(s, s.out_channels, s.out);
  memory::desc x = plain_images(x_dims, type, x_last), y = plain_images(y_dims, type, y_last);
  memory::desc w = plain_weight(s, type);
  memory::desc dw = plain_weight(s, memory::data_type::f32);
  memory::desc wanted_x = x_last ? x : any(x), wanted_y = y_last ? y : any(y);
  memory::desc bias;
  if (r.bias) bias = memory::desc({s.out_channels}, type, memory::format_tag::a);

  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const dnnl::engine& engine = dnnl_engine();
  auto kind = dnnl::prop_kind::forward_training;
  auto direct = algorithm::convolution_direct;
  using Forward = dnnl::convolution_forward;
  Forward::desc forward_desc = r.bias ? Forward::desc(kind, direct, wanted_x, any(w), bias,
                                                      wanted_y, strides, dilations, begin, end)
                                      : Forward::desc(kind, direct, wanted_x, any(w), wanted_y,
                                                      strides, dilations, begin, end);
  Forward::primitive_desc forward_pd(forward_desc, attributes, engine);
  auto out = std::make_unique<ConvPrimitive>();
  out->bias = bias;
  if (forward) {
    if (is_reference(forward_pd.impl_info_str())) return nullptr;
    out->a.plain = x;
    out->b.plain = w;
    out->out.plain = y;
    choose(out->a, forward_pd.src_desc(), true);
    choose(out->b, forward_pd.weights_desc(), true);
    choose(out->out, forward_pd.dst_desc(), false);
    out->a_arg = DNNL_ARG_SRC;
    out->b_arg = DNNL_ARG_WEIGHTS;
    out->out_arg = DNNL_ARG_DST;
    out->scratchpad = forward_pd.scratchpad_desc();
    out->primitive = Forward(forward_pd);
  } else if (!to_weight) {
    using Backward = dnnl::convolution_backward_data;
    Backward::desc desc(direct, wanted_x, any(w), wanted_y, strides, dilations, begin, end);
    Backward::primitive_desc pd(desc, attributes, engine, forward_pd);
    if (is_reference(pd.impl_info_str())) return nullptr;
    out->a.plain = y;
    out->b.plain = w;
    out->out.plain = x;
    choose(out->a, pd.diff_dst_desc(), true);
    choose(out->b, pd.weights_desc(), true);
    choose(out->out, pd.diff_src_desc(), false);
    out->a_arg = DNNL_ARG_DIFF_DST;
    out->b_arg = DNNL_ARG_WEIGHTS;
    out->out_arg = DNNL_ARG_DIFF_SRC;
    out->scratchpad = pd.scratchpad_desc();
    out->primitive = Backward(pd);
  } else {
    using Backward = dnnl::convolution_backward_weights;
    Backward::desc desc(direct, wanted_x, any(dw), wanted_y, strides, dilations, begin, end);
    Backward::primitive_desc pd(desc, attributes, engine, forward_pd);
    if (is_reference(pd.impl_info_str())) return nullptr;
    out->a.plain = x;
    out->b.plain = y;
    out->out.plain = dw;
    choose(out->a, pd.src_desc(), true);
    choose(out->b, pd.diff_dst_desc(), true);
    choose(out->out, pd.diff_weights_desc(), false);
    out->a_arg = DNNL_ARG_SRC;
    out->b_arg = DNNL_ARG_DIFF_DST;
    out->out_arg = DNNL_ARG_DIFF_WEIGHTS;
    out->scratchpad = pd.scratchpad_desc();
    out->primitive = Backward(pd);
  }
  return out;
}

}  // namespace

DnnlKey ConvRequest::key() const {
  DnnlKey key = {static_cast<int64_t>(kind),
                 static_cast<int64_t>(dtype),
                 shape.images,
                 shape.in_channels,
                 shape.out_channels,
                 shape.groups,
                 shape.spatial,
                 a_last * 8 + b_last * 4 + out_last * 2 + bias};
  for (const auto* list :
       {&shape.in, &shape.out, &shape.kernel, &shape.stride, &shape.padding, &shape.dilation}) {
    key.insert(key.end(), list->begin(), list->end());
  }
  return key;
}

std::shared_ptr<const ConvPrimitive> conv_primitive(const ConvRequest& request) {
  static DnnlCache<ConvPrimitive> cache;
  return cache.get(request.key(), [&] { return make(request); });
}

}  // namespace gradwire::cpu
