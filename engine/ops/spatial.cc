#include "engine/ops/spatial.h"

#include "kernels/error.h"

namespace gradwire {

absl::StatusOr<IntList> spread(const Attribute& a, int spatial, std::string_view what) {
  IntList list = a.is_int() ? IntList{a.as_int()} : a.as_ints();
  if (list.size() == 1) list.assign(spatial, list[0]);
  if (static_cast<int>(list.size()) != spatial) {
    return runtime_error(std::string(what), " must have 1 or ", spatial, " entries, got ",
                         list.size());
  }
  return list;
}

}  // namespace gradwire
