// SPDX-License-Identifier: Apache-2.0
//
// The rule texts of dsl/SPEC.md, one for each labelled constraint. The trace and the compiler's verifiers print these
// strings, followed by the values that break the rule.
#pragma once

namespace kiln::rules {

// Dimensions, tensors, names.
inline constexpr const char *dim_c1 = "a dimension's name requires 1 to 23 characters [dim_c1]";
inline constexpr const char *dim_c2 = "a dimension requires bounds 1 <= min <= max [dim_c2]";
inline constexpr const char *dim_c3 = "a product of dimensions requires the form offset + factor * s0 * s1 [dim_c3]";
inline constexpr const char *dim_c4 = "a sum of dimensions requires the form offset + factor * s0 * s1 [dim_c4]";
inline constexpr const char *dim_c5 = "a named dimension requires the same bounds everywhere in a model [dim_c5]";
inline constexpr const char *dim_c6 = "a dimension requires a named extent within its bounds as the least [dim_c6]";
inline constexpr const char *dim_c7 = "a dimension requires extents of at most 2147483647 [dim_c7]";
inline constexpr const char *dim_c8 = "a dimension requires a name that is an identifier in C and C++ [dim_c8]";
inline constexpr const char *dim_c9 = "a named extent requires an input or a state that has it [dim_c9]";
inline constexpr const char *tensor_c1 = "a tensor requires every extent to be at least 1 [tensor_c1]";
inline constexpr const char *tensor_c2 = "an argument requires the parameter's element type and shape [tensor_c2]";
inline constexpr const char *tensor_c3 = "a tensor requires a rank of at most 6 [tensor_c3]";
inline constexpr const char *tensor_c4 = "a tensor requires at most 2147483647 elements [tensor_c4]";
inline constexpr const char *tensor_c5 = "parameters, constants and states require fixed extents [tensor_c5]";
inline constexpr const char *layer_c6 = "a layer: its forward cannot be called with these arguments; expected a public "
                                        "const one that takes them [layer_c6]";
inline constexpr const char *layer_c8 =
    "a layer: it cannot be called with these arguments; expected tensors, then options [layer_c8]";
inline constexpr const char *layer_c1 = "layers of one owner require different names [layer_c1]";
inline constexpr const char *layer_c2 = "a layer requires a name [layer_c2]";
inline constexpr const char *layer_c4 =
    "names of layers, parameters and states require printable ASCII without quotes, backslashes and braces [layer_c4]";
inline constexpr const char *parameter_c1 =
    "a parameter requires one element type and shape wherever it is used [parameter_c1]";
inline constexpr const char *parameter_c2 =
    "a parameter of a stack's layer requires a use inside that stack [parameter_c2]";
inline constexpr const char *parameter_c3 = "parameters and states require a name [parameter_c3]";
inline constexpr const char *parameter_c4 =
    "parameters and states require different names, with those of their layers before them [parameter_c4]";
inline constexpr const char *parameter_c5 = "a parameter requires one storage wherever it is used [parameter_c5]";
inline constexpr const char *parameter_c6 =
    "a parameter that is stored in fewer bits requires a rank of 2 or more [parameter_c6]";
inline constexpr const char *parameter_c7 = "a parameter that is stored in fewer bits requires linear, matmul, conv2d "
                                            "without groups or embedding to read it, as their weight [parameter_c7]";

// Sources.
inline constexpr const char *constant_c1 = "constant requires as many values as its shape has elements [constant_c1]";
inline constexpr const char *constant_c2 = "constant requires values that its element type holds [constant_c2]";
inline constexpr const char *embedding_c1 = "embedding requires i32 indices [embedding_c1]";
inline constexpr const char *embedding_c2 = "embedding requires a table of rank 2 [embedding_c2]";
inline constexpr const char *embedding_c3 = "embedding requires a row for every position [embedding_c3]";
inline constexpr const char *embedding_c4 = "embedding requires a floating-point table [embedding_c4]";
inline constexpr const char *positions_c1 = "positions requires an axis within the rank [positions_c1]";
inline constexpr const char *sinusoidal_c1 = "sinusoidal requires i32 positions of rank 1 [sinusoidal_c1]";
inline constexpr const char *sinusoidal_c2 = "sinusoidal requires an even width [sinusoidal_c2]";
inline constexpr const char *sinusoidal_c3 = "sinusoidal requires a base above 1 [sinusoidal_c3]";

// Contractions.
inline constexpr const char *linear_c1 = "linear requires the input width to equal the weight's [linear_c1]";
inline constexpr const char *linear_c2 = "linear requires an input of rank 1 or more [linear_c2]";
inline constexpr const char *linear_c3 = "linear requires a weight of rank 2 [linear_c3]";
inline constexpr const char *linear_c4 = "linear requires a bias of shape [output width] [linear_c4]";
inline constexpr const char *linear_c5 = "linear requires operands of one floating-point type [linear_c5]";
inline constexpr const char *logits_c1 = "logits requires the input width to equal the embedding's [logits_c1]";
inline constexpr const char *matmul_c1 = "matmul requires the inner extents to be equal [matmul_c1]";
inline constexpr const char *matmul_c2 = "matmul requires operands of rank 2 or more [matmul_c2]";
inline constexpr const char *matmul_c3 = "matmul requires leading extents that are equal or 1 [matmul_c3]";
inline constexpr const char *matmul_c4 = "matmul requires operands of one floating-point type [matmul_c4]";
inline constexpr const char *attention_c1 =
    "attention requires the query width to be a multiple of the heads [attention_c1]";
inline constexpr const char *attention_c2 =
    "attention requires heads of keys as wide as those of queries [attention_c2]";
inline constexpr const char *attention_c3 =
    "attention requires the value width to be a multiple of the heads [attention_c3]";
inline constexpr const char *attention_c4 = "attention requires as many values as keys [attention_c4]";
inline constexpr const char *attention_c5 =
    "attention requires queries, keys and values with the same leading extents [attention_c5]";
inline constexpr const char *attention_c6 =
    "attention requires queries, keys and values of rank 2 or more [attention_c6]";
inline constexpr const char *attention_c7 =
    "attention requires a mask that broadcasts to [..., queries, keys] [attention_c7]";
inline constexpr const char *attention_c8 = "attention requires a mask of the queries' element type [attention_c8]";
inline constexpr const char *attention_c9 =
    "attention requires i32 lengths of the queries' leading extents [attention_c9]";
inline constexpr const char *attention_c10 =
    "causal attention requires at least as many keys as queries [attention_c10]";
inline constexpr const char *attention_c11 = "attention requires a scale above 0 [attention_c11]";
inline constexpr const char *attention_c12 =
    "attention requires queries, keys and values of one floating-point type [attention_c12]";
inline constexpr const char *conv2d_c1 =
    "conv2d requires an image [..., height, width, channels] of rank 3 or more [conv2d_c1]";
inline constexpr const char *conv2d_c2 =
    "conv2d requires a weight [outputs, channels / groups, kernel height, kernel width] of fixed extents [conv2d_c2]";
inline constexpr const char *conv2d_c3 =
    "conv2d requires as many channels as the weight's, times the groups [conv2d_c3]";
inline constexpr const char *conv2d_c4 = "conv2d requires outputs that are a multiple of the groups [conv2d_c4]";
inline constexpr const char *conv2d_c5 = "conv2d requires a bias of shape [outputs] [conv2d_c5]";
inline constexpr const char *conv2d_c6 = "conv2d requires operands of one floating-point type [conv2d_c6]";
inline constexpr const char *window_c1 =
    "a window requires a stride and a dilation of at least 1 and a padding of at least 0 [window_c1]";
inline constexpr const char *window_c2 = "a window requires a padded image that holds it [window_c2]";
inline constexpr const char *window_c3 =
    "a window requires an image extent that is fixed or a multiple of its stride [window_c3]";
inline constexpr const char *window_c4 = "a window requires an extent of at least 1 [window_c4]";
inline constexpr const char *additive_c1 =
    "additive attention requires queries and keys of rank 2 or more [additive_c1]";
inline constexpr const char *attention_c16 =
    "attention requires a number of heads that is a multiple of that of keys and values [attention_c16]";
inline constexpr const char *rotary_c1 = "rotary requires heads of an even width [rotary_c1]";
inline constexpr const char *rotary_c2 = "rotary requires angles of shape [positions, width of a head] [rotary_c2]";

// Elementwise.
inline constexpr const char *broadcast_c1 =
    "an elementwise operation requires extents that are equal or 1 [broadcast_c1]";
inline constexpr const char *broadcast_c2 =
    "an elementwise operation requires operands of one element type [broadcast_c2]";
inline constexpr const char *broadcast_c3 = "arithmetic and comparison require numbers [broadcast_c3]";
inline constexpr const char *broadcast_c4 = "an elementwise operation: an operand is no tensor; expected tensors and "
                                            "numbers, kiln::constant of an array, or one "
                                            "of several values [broadcast_c4]";
inline constexpr const char *logic_c1 = "logic requires booleans [logic_c1]";
inline constexpr const char *cast_c1 = "cast requires a result of f32, f16, bf16, i32 or i8 [cast_c1]";
inline constexpr const char *where_c1 = "where requires a boolean condition [where_c1]";
inline constexpr const char *where_c2 =
    "where: both choices are numbers; expected a tensor, or kiln::cast of the condition for 1 and 0 [where_c2]";
inline constexpr const char *unary_c1 = "an elementwise function requires a floating-point operand [unary_c1]";
inline constexpr const char *clamp_c1 = "clamp requires bounds in their order [clamp_c1]";
inline constexpr const char *remainder_c1 = "remainder requires i32 operands [remainder_c1]";
inline constexpr const char *dropout_c1 = "dropout requires a probability in [0, 1) [dropout_c1]";
inline constexpr const char *running_average_c1 =
    "running_average requires a parameter that is kept [running_average_c1]";
inline constexpr const char *running_average_c2 =
    "running_average requires a value and a target of the parameter's type and shape [running_average_c2]";
inline constexpr const char *running_average_c3 = "running_average requires a rate in (0, 1] [running_average_c3]";

// Rows and reductions.
inline constexpr const char *softmax_c1 = "softmax requires an axis within the rank [softmax_c1]";
inline constexpr const char *softmax_c2 = "softmax requires a floating-point operand [softmax_c2]";
inline constexpr const char *layer_norm_c1 =
    "layer_norm requires the input width to equal the weight's [layer_norm_c1]";
inline constexpr const char *layer_norm_c2 = "layer_norm requires a bias of the weight's shape [layer_norm_c2]";
inline constexpr const char *layer_norm_c3 = "layer_norm requires an epsilon above 0 [layer_norm_c3]";
inline constexpr const char *layer_norm_c4 = "layer_norm requires operands of one floating-point type [layer_norm_c4]";
inline constexpr const char *rms_norm_c1 = "rms_norm requires the input width to equal the weight's [rms_norm_c1]";
inline constexpr const char *rms_norm_c2 = "rms_norm requires an epsilon above 0 [rms_norm_c2]";
inline constexpr const char *rms_norm_c3 = "rms_norm requires operands of one floating-point type [rms_norm_c3]";
inline constexpr const char *reduction_c1 = "a reduction requires an axis within the rank [reduction_c1]";
inline constexpr const char *reduction_c2 = "mean requires a floating-point operand [reduction_c2]";
inline constexpr const char *reduction_c3 = "a reduction requires numbers [reduction_c3]";
inline constexpr const char *l2_normalize_c1 = "l2_normalize requires an epsilon above 0 [l2_normalize_c1]";
inline constexpr const char *topk_c1 = "topk requires a count from 1 to the axis's extent [topk_c1]";
inline constexpr const char *tril_c1 = "tril and triu require matrices [..., rows, columns] [tril_c1]";
inline constexpr const char *batch_norm_c1 =
    "batch_norm requires an input whose last extent is its width [batch_norm_c1]";
inline constexpr const char *group_norm_c1 =
    "group_norm requires an image [..., height, width, channels] whose channels the groups cut evenly [group_norm_c1]";
inline constexpr const char *group_norm_c2 = "group_norm requires an epsilon above 0 [group_norm_c2]";
inline constexpr const char *group_norm_c3 = "group_norm requires a weight and a bias of [channels] [group_norm_c3]";
inline constexpr const char *conv1d_c1 =
    "conv1d requires a signal [..., steps, channels] and a weight [outputs, channels / groups, kernel] [conv1d_c1]";
inline constexpr const char *conv_transpose2d_c1 = "conv_transpose2d requires an image [..., height, width, channels] "
                                                   "and a weight [channels, outputs / groups, kernel "
                                                   "height, kernel width] of fixed extents [conv_transpose2d_c1]";
inline constexpr const char *conv_transpose2d_c2 =
    "conv_transpose2d requires a padding below the dilated kernel and an output padding below the stride "
    "[conv_transpose2d_c2]";
inline constexpr const char *pool2d_c1 =
    "a pool requires an image [..., height, width, channels] of rank 3 or more [pool2d_c1]";
inline constexpr const char *pool2d_c2 = "a pool requires a floating-point operand [pool2d_c2]";
inline constexpr const char *pool2d_c3 = "a pool requires a padding of at most half its kernel [pool2d_c3]";
inline constexpr const char *pool2d_c4 =
    "adaptive_avg_pool2d requires fixed image extents that are multiples of the result's [pool2d_c4]";
inline constexpr const char *resize_bilinear_c1 =
    "resize_bilinear requires an image [..., height, width, channels] of rank 3 or more [resize_bilinear_c1]";
inline constexpr const char *resize_bilinear_c2 = "resize_bilinear requires fixed image extents [resize_bilinear_c2]";
inline constexpr const char *resize_bilinear_c3 =
    "resize_bilinear requires a floating-point operand [resize_bilinear_c3]";

// Data movement.
inline constexpr const char *reshape_c1 = "reshape requires the same number of elements [reshape_c1]";
inline constexpr const char *expand_c1 = "expand requires extents that broadcast to the result's [expand_c1]";
inline constexpr const char *transpose_c1 = "transpose requires a permutation of the axes [transpose_c1]";
inline constexpr const char *concat_c1 = "concat requires operands of one element type and rank [concat_c1]";
inline constexpr const char *concat_c2 = "concat requires equal extents beside its axis [concat_c2]";
inline constexpr const char *concat_c3 = "concat requires an axis within the rank [concat_c3]";
inline constexpr const char *concat_c4 = "concat requires extents that have a sum along its axis [concat_c4]";
inline constexpr const char *slice_c1 = "slice requires an axis within the rank [slice_c1]";
inline constexpr const char *slice_c2 = "slice requires start + extent within the operand's extent [slice_c2]";
inline constexpr const char *last_c1 = "last requires an axis within the rank [last_c1]";
inline constexpr const char *last_c2 = "last requires at most as many elements as the operand has [last_c2]";
inline constexpr const char *pad_c1 = "pad requires an axis within the rank and numbers of at least 0 [pad_c1]";
inline constexpr const char *flip_c1 = "flip requires an axis of fixed extent [flip_c1]";
inline constexpr const char *roll_c1 = "roll requires an axis of fixed extent [roll_c1]";
inline constexpr const char *windows_c1 =
    "windows require an image [..., height, width, channels] that they cut evenly [windows_c1]";
inline constexpr const char *relative_bias_c1 =
    "relative_bias requires a table with a row for each difference of positions [relative_bias_c1]";
inline constexpr const char *gather_c1 = "gather requires i32 indices [gather_c1]";
inline constexpr const char *gather_c2 = "gather requires an axis within the rank [gather_c2]";

// Structure.
inline constexpr const char *stack_c1 = "stack requires a layer that returns the type of its first argument [stack_c1]";
inline constexpr const char *stack_c2 = "stack requires at least one layer [stack_c2]";
inline constexpr const char *stack_c3 =
    "stack requires at most 1048576 layers, with those of the stacks around it [stack_c3]";
inline constexpr const char *scan_c1 = "scan requires sequences of one first extent [scan_c1]";
inline constexpr const char *scan_c2 = "scan requires a step that keeps the types of the state [scan_c2]";
inline constexpr const char *state_c1 =
    "a state requires its uses in the entry or the stack that owns it, outside of loops inside of that [state_c1]";
inline constexpr const char *state_c2 =
    "a state requires to be appended to at most once in an entry, and not to be read or replaced then [state_c2]";
inline constexpr const char *state_c3 = "a state requires to be replaced at most once in an entry [state_c3]";
inline constexpr const char *state_c5 = "a state requires one element type and shape wherever it is used [state_c5]";
inline constexpr const char *append_c1 = "append requires rows of the state's element type and shape [append_c1]";
inline constexpr const char *append_c2 =
    "append requires a result of at least as many rows as are appended [append_c2]";
inline constexpr const char *append_c3 = "a state requires room for the rows of its value [append_c3]";
inline constexpr const char *store_c1 = "store requires a value of the state's element type and shape [store_c1]";
inline constexpr const char *recurrent_c1 = "a recurrent layer requires a sequence [steps, ..., width] [recurrent_c1]";
inline constexpr const char *recurrent_c2 =
    "a recurrent layer requires initial states [layers * directions, ..., hidden width] [recurrent_c2]";
inline constexpr const char *recurrent_c3 = "a recurrent layer requires i32 lengths, one a sequence [recurrent_c3]";
inline constexpr const char *recurrent_c7 = "a recurrent layer requires a sequence of its weights' type [recurrent_c7]";
inline constexpr const char *recurrent_c5 = "a recurrent step requires a state of the input's leading extents and the "
                                            "hidden width, of an LSTM two [recurrent_c5]";
inline constexpr const char *model_c1 = "an entry requires as many input names as inputs, or none [model_c1]";
inline constexpr const char *model_c2 = "an entry requires as many output names as outputs, or none [model_c2]";
inline constexpr const char *model_c3 = "an entry requires names that are identifiers in C and C++ [model_c3]";
inline constexpr const char *model_c4 = "an entry requires different names for its inputs and outputs [model_c4]";
inline constexpr const char *model_c14 = "variables require patterns that match a parameter each [model_c14]";
inline constexpr const char *model_c15 = "variables require at most 16 patterns [model_c15]";
inline constexpr const char *model_c16 = "variables require weights that are stored as they are, f32 [model_c16]";
inline constexpr const char *batch_c1 = "a batched entry requires 1 to 256 sequences [batch_c1]";
inline constexpr const char *batch_c2 = "the batched entries of a model require one number of sequences [batch_c2]";
inline constexpr const char *batch_c3 =
    "a batched entry requires inputs and results whose first extent is fixed or a named one [batch_c3]";
inline constexpr const char *batch_c4 =
    "the batched entries of a model require one named extent as the first of inputs and results [batch_c4]";
inline constexpr const char *batch_c5 =
    "a model with batched entries requires other names than rows and sequences for its extents [batch_c5]";
inline constexpr const char *gradients_c1 =
    "gradients require a first result of f32 without axes, the loss [gradients_c1]";
inline constexpr const char *train_c1 =
    "training requires parameters of f32 that are stored as they are, or frozen ones [train_c1]";
inline constexpr const char *train_c2 = "an optimizer requires a momentum and betas in [0, 1) [train_c2]";
inline constexpr const char *train_c3 = "an optimizer requires an epsilon above 0 [train_c3]";
inline constexpr const char *train_c4 = "an optimizer requires a weight decay of 0 or more [train_c4]";
inline constexpr const char *train_c5 = "clipping requires a norm above 0 [train_c5]";
inline constexpr const char *train_c6 =
    "clipped, averaged and without_decay require an entry that trains, frozen, checkpointed, activations and "
    "accumulated one of gradients or one that trains [train_c6]";
inline constexpr const char *train_c7 = "accumulated requires 1 or more micro-batches of an entry without states, "
                                        "whose inputs and results have five axes at "
                                        "most [train_c7]";
inline constexpr const char *train_c8 = "averaged requires a decay in (0, 1) [train_c8]";
inline constexpr const char *train_c9 = "activations require a type of f32 or bf16 [train_c9]";
inline constexpr const char *train_c10 =
    "frozen and without_decay require patterns that match a parameter each [train_c10]";
inline constexpr const char *train_c11 = "frozen and without_decay require at most 16 patterns [train_c11]";
inline constexpr const char *model_c17 =
    "a model: a member of it or of its layers is mutable; expected members that a call does not change [model_c17]";
inline constexpr const char *loss_c1 =
    "cross_entropy requires i32 targets, and floating-point logits of one axis more [loss_c1]";
inline constexpr const char *loss_c2 = "cross_entropy requires a label smoothing in [0, 1) [loss_c2]";
inline constexpr const char *loss_c3 =
    "mse and binary_cross_entropy require two tensors of one floating-point type and one shape [loss_c3]";
inline constexpr const char *model_c5 = "entries of one model require different names [model_c5]";

} // namespace kiln::rules
