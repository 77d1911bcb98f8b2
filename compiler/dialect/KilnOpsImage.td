// SPDX-License-Identifier: Apache-2.0
//
// Ops on images, [..., height, width, channels].
include "KilnDialect.td"

def Kiln_Conv2dOp : Kiln_InferredOp<"conv2d",
    [Kiln_InKernel<"Contraction", "Cheap", ["decompose", "getFlops", "getResizedAxes"]>, Kiln_Differentiable]> {
  let summary = "a convolution of an image";
  let description = [{
    y[..., i, j, o] = sum over a, b, c of x[..., i s + a d - p, j s + b d - p, c] w[o, c, a, b] + bias[o] with stride s, dilation
    d and padding p of the height and of the width; x is 0 outside of its extents. Each of `groups` equal parts of the outputs
    reads one part of the channels.

    ```mlir
    %0 = kiln.conv2d %x, %weight, %bias stride = [2, 2] padding = [1, 1] dilation = [1, 1] groups = 1
        : (tensor<2x14x14x512xf32>, tensor<256x512x3x3xf32>, tensor<256xf32>) -> tensor<2x7x7x256xf32>
    ```
  }];
  let arguments = (ins Kiln_FloatTensor:$x, Kiln_FloatTensor:$weight, Optional<Kiln_FloatTensor>:$bias,
                       DenseI64ArrayAttr:$stride, DenseI64ArrayAttr:$padding, DenseI64ArrayAttr:$dilation,
                       I64Attr:$groups);
  let results = (outs Kiln_FloatTensor:$result);
  let assemblyFormat = [{
    $x `,` $weight (`,` $bias^)? `stride` `=` $stride `padding` `=` $padding `dilation` `=` $dilation `groups` `=` $groups
    attr-dict `:` functional-type(operands, results)
  }];
  let hasCanonicalizer = 1;
}

class Kiln_PoolOp<string mnemonic, string what>
    : Kiln_InferredOp<mnemonic, [Kiln_InKernel<"Reduction", "Cheap", ["decompose", "getResizedAxes"]>, Kiln_Differentiable]> {
  let summary = what # " of each window of an image";
  let description = what # [{ of each window of an image. Windows have the size `kernel` and the distance `stride`; the first
    one begins `padding` before the image.

    ```mlir
    %0 = kiln.}] # mnemonic # [{ %x kernel = [2, 2] stride = [2, 2] padding = [0, 0] : (tensor<14x14x512xf32>) -> tensor<7x7x512xf32>
    ```
  }];
  let arguments = (ins Kiln_FloatTensor:$x, DenseI64ArrayAttr:$kernel, DenseI64ArrayAttr:$stride,
                       DenseI64ArrayAttr:$padding);
  let results = (outs Kiln_FloatTensor:$result);
  let assemblyFormat = [{
    $x `kernel` `=` $kernel `stride` `=` $stride `padding` `=` $padding attr-dict
    `:` functional-type(operands, results)
  }];
}

def Kiln_MaxPool2dOp : Kiln_PoolOp<"max_pool2d", "the largest element, NaN if there is one,">;
def Kiln_AvgPool2dOp : Kiln_PoolOp<"avg_pool2d", "the mean, with zeros for the padding,">;

def Kiln_ResizeBilinearOp : Kiln_Op<"resize_bilinear", [Pure, Kiln_InKernel<"Lookup">, Kiln_Differentiable]> {
  let summary = "an image with another size";
  let description = [{
    Bilinear interpolation at the size of the result: element i of H' is at max((i + 1/2) H / H' - 1/2, 0) of H, and is
    interpolated linearly between its two neighbours, along the height and the width.

    ```mlir
    %0 = kiln.resize_bilinear %x : tensor<7x7x512xf32> -> tensor<14x28x512xf32>
    ```
  }];
  let arguments = (ins Kiln_FloatTensor:$x);
  let results = (outs Kiln_FloatTensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($result)";
  let hasVerifier = 1;
}
