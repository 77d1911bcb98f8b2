// SPDX-License-Identifier: Apache-2.0
//
// The passes that turn an entry with `kiln.training` (compiler/dialect/Training.h) into one that computes gradients or updates
// parameters. Only compiler/pipeline/Pipeline.cpp orders them.
#ifndef KILN_TRAINING_PASSES
#define KILN_TRAINING_PASSES

include "mlir/Pass/PassBase.td"

def Differentiate : Pass<"kiln-differentiate", "::mlir::ModuleOp"> {
  let summary = "Add the gradients of the loss to the results of entries that train";
  let description = [{
    Reverse-mode differentiation. Before: an entry whose first result is a scalar, the loss.
    ```mlir
    func.func @train(%x: tensor<7x8xf32>, ...) -> (tensor<f32> {kiln.name = "loss"})
        attributes {kiln.entry, kiln.training = {update = "sgd", ...}} {
      %w = kiln.parameter {sources = ["w"]} : tensor<8x8xf32>   %y = kiln.linear %x, %w ...   return %loss
    ```
    After: the gradients of its parameters are further results.
    ```mlir
    func.func @train(...) -> (tensor<f32> {kiln.name = "loss"}, tensor<8x8xf32> {kiln.gradient_of = "w"}) ... {
      ...   %dw = kiln.matmul ...   return %loss, %dw
    ```
    Gradients of a parameter with copies are stacked along new leading axes. In the function of a stage role, parameters of other
    roles are dropped from the request; roles without the loss return 0 instead of it.

    Ops that only affect gradients are erased, also from entries that are not differentiated.
  }];
  let dependentDialects = ["::mlir::kiln::KilnDialect"];
}

def Accumulate : Pass<"kiln-accumulate", "::mlir::ModuleOp"> {
  let summary = "Average the gradients of a call over micro-batches";
  let description = [{
    Before: the result of `kiln-differentiate`, for an entry with `micro_batches`.
    ```mlir
    func.func @train(%tokens: tensor<32xi32>) -> (tensor<f32>, tensor<8x8xf32> {kiln.gradient_of = "w"}) {
      ...   return %loss, %dw
    ```
    After, with 4 micro-batches:
    ```mlir
    func.func @train(%tokens: tensor<4x32xi32>) -> (tensor<f32>, tensor<8x8xf32> {kiln.gradient_of = "w"}) {
      %sums:2 = kiln.scan (%zero, %zeros) over (%numbers, %tokens) { ... }
      %loss = kiln.mul %sums#0, %quarter   %dw = kiln.mul %sums#1, %quarter   return %loss, %dw
    ```
    Results after the loss are stacked. If sums have a fixed number of parts (`kiln.reduction_parts`), they are added as a tree, and stay
    sums where `kiln-average-gradients` averages them over replicas.
  }];
  let dependentDialects = ["::mlir::kiln::KilnDialect"];
}

def AddOptimizer : Pass<"kiln-add-optimizer", "::mlir::ModuleOp"> {
  let summary = "Update parameters with the gradients of an entry";
  let description = [{
    Before: an entry with gradients among its results, after all passes that average them. After: these results are gone, and each
    parameter is assigned its new value.
    ```mlir
    kiln.require_finite %largest   %step = kiln.mul %dw, %learning_rate   %next = kiln.sub %w, %step   kiln.assign %next to %w
    return %loss
    ```
    With clipping, the norm of all gradients is a further result, "grad_norm". If the request is to `give` gradients, they stay
    results, and callers get them. `kiln.training` is erased.
  }];
  let dependentDialects = ["::mlir::kiln::KilnDialect"];
}

#endif // KILN_TRAINING_PASSES
