#include "engine/core/tensor.h"

#include "engine/autograd/node.h"

namespace gradwire {

TensorImpl::TensorImpl() = default;
TensorImpl::~TensorImpl() = default;

std::string TensorImpl::text() const {
  return absl::StrCat(std::string(dtype_name(dtype)), shape_text(sizes));
}

}  // namespace gradwire
