// Help for writing pointwise rows.
#pragma once

#include <initializer_list>
#include <vector>

#include "engine/ops/op_def.h"

namespace gradwire {

// A graph of n operands whose `conditions` are kept as bools.
template <class Fn>
expr::Graph graph(int n, std::initializer_list<int> conditions, Fn fn) {
  expr::Builder b;
  std::vector<expr::E> e;
  for (int i = 0; i < n; ++i) {
    bool boolean = false;
    for (int c : conditions) boolean = boolean || c == i;
    e.push_back(b.operand(i, boolean));
  }
  expr::Graph g = b.finish(fn(e));
  g.operands = n;
  return g;
}

// A check of rows whose operands may be numbers: one of them must be a tensor.
absl::Status check_some_tensor(const Call& call);

}  // namespace gradwire
