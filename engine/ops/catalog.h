// The op catalog: all rows, by number and by name. Built once at first use, immutable after.
#pragma once

#include <deque>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "engine/ops/op_def.h"

namespace gradwire {

class Catalog {
 public:
  static const Catalog& get();

  // Null when there is no such row.
  const OpDef* find(uint16_t number) const {
    return number < by_number_.size() ? by_number_[number] : nullptr;
  }
  const OpDef* find(std::string_view name) const;
  const std::vector<const OpDef*>& rows() const { return sorted_; }  // by number

  // For the row files (rows_*.cc). A duplicate number or name, or a malformed signature, ends the
  // process at start: it is our bug and no client can cause it.
  OpDef& add(uint16_t number, OpKind kind, std::string_view signature, std::string_view doc);
  // Rows that compositions and gradients are made of: they trust their arguments, so that clients
  // cannot name them.
  void keep_internal(std::initializer_list<std::string_view> names);

  using Unary = expr::E (*)(expr::E);
  using Binary = expr::E (*)(expr::E, expr::E);
  using Ternary = expr::E (*)(expr::E, expr::E, expr::E);
  using Quaternary = expr::E (*)(expr::E, expr::E, expr::E, expr::E);
  // A pointwise row: operands of `fn` are the signature's Tensor, Operand and Scalar params in
  // order. Gets in_place, out and method forms.
  OpDef& pointwise(uint16_t number, std::string_view signature, std::string_view doc, TypeRule rule,
                   Unary fn);
  OpDef& pointwise(uint16_t number, std::string_view signature, std::string_view doc, TypeRule rule,
                   Binary fn);
  OpDef& pointwise(uint16_t number, std::string_view signature, std::string_view doc, TypeRule rule,
                   Ternary fn);
  OpDef& pointwise(uint16_t number, std::string_view signature, std::string_view doc, TypeRule rule,
                   Quaternary fn);
  OpDef& pointwise(uint16_t number, std::string_view signature, std::string_view doc, TypeRule rule,
                   expr::Graph graph);

 private:
  Catalog();

  std::deque<OpDef> storage_;
  std::vector<const OpDef*> by_number_;
  std::vector<const OpDef*> sorted_;
  absl::flat_hash_map<std::string, const OpDef*> by_name_;
};

// The row files, each a family.
void add_command_rows(Catalog& catalog);
void add_graph_rows(Catalog& catalog);
void add_pointwise_rows(Catalog& catalog);
void add_math_rows(Catalog& catalog);
void add_activation_rows(Catalog& catalog);
void add_create_rows(Catalog& catalog);
void add_sequence_rows(Catalog& catalog);
void add_view_rows(Catalog& catalog);
void add_arrange_rows(Catalog& catalog);
void add_place_rows(Catalog& catalog);
void add_join_rows(Catalog& catalog);
void add_stack_rows(Catalog& catalog);
void add_split_rows(Catalog& catalog);
void add_reduce_rows(Catalog& catalog);
void add_matmul_rows(Catalog& catalog);
void add_product_rows(Catalog& catalog);
void add_covariance_rows(Catalog& catalog);
void add_einsum_rows(Catalog& catalog);
void add_linalg_rows(Catalog& catalog);
void add_linalg_solve_rows(Catalog& catalog);
void add_linalg_inverse_rows(Catalog& catalog);
void add_linalg_norm_rows(Catalog& catalog);
void add_distance_rows(Catalog& catalog);
void add_index_rows(Catalog& catalog);
void add_gather_rows(Catalog& catalog);
void add_scatter_rows(Catalog& catalog);
void add_lookup_rows(Catalog& catalog);
void add_sort_rows(Catalog& catalog);
void add_scan_rows(Catalog& catalog);
void add_statistics_rows(Catalog& catalog);
void add_set_rows(Catalog& catalog);
void add_random_rows(Catalog& catalog);
void add_conv_rows(Catalog& catalog);
void add_pool_rows(Catalog& catalog);
void add_unpool_rows(Catalog& catalog);
void add_pad_rows(Catalog& catalog);
void add_resample_rows(Catalog& catalog);
void add_grid_rows(Catalog& catalog);
void add_rearrange_rows(Catalog& catalog);
void add_norm_rows(Catalog& catalog);
void add_norm_group_rows(Catalog& catalog);
void add_norm_p_rows(Catalog& catalog);
void add_loss_rows(Catalog& catalog);
void add_pair_loss_rows(Catalog& catalog);
void add_margin_loss_rows(Catalog& catalog);
void add_ctc_rows(Catalog& catalog);
void add_attention_rows(Catalog& catalog);
void add_multihead_rows(Catalog& catalog);
void add_bag_rows(Catalog& catalog);
void add_channel_dropout_rows(Catalog& catalog);
void add_module_rows(Catalog& catalog);
void add_module_norm_rows(Catalog& catalog);
void add_rnn_rows(Catalog& catalog);
void add_rnn_layer_rows(Catalog& catalog);
void add_rnn_cell_rows(Catalog& catalog);
void add_weight_norm_rows(Catalog& catalog);
void add_optimizer_rows(Catalog& catalog);

}  // namespace gradwire
